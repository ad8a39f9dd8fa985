// Starts `memmodel lsp` for litmus tests, cat models and PTX files.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const DOCUMENTS = [{ language: "litmus" }, { language: "cat" }, { pattern: "**/*.ptx" }];
const SENT = ["check", "model", "delay", "seconds", "repair"];

let client;

function options() {
  const settings = vscode.workspace.getConfiguration("memmodel");
  return Object.fromEntries(SENT.map((name) => [name, settings.get(name)]));
}

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("memmodel").get("command");
  client = new LanguageClient(
    "memmodel",
    "memmodel",
    { command, args },
    { documentSelector: DOCUMENTS, initializationOptions: options },
  );
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showErrorMessage(
      `memmodel: ${command} could not be started (${error.message}). Install it with: pip install 'memmodel[lsp]'`,
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) {
    await running.stop();
  }
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("memmodel.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("memmodel") && restart()),
  );
  await start();
}

module.exports = { activate, deactivate: stop };

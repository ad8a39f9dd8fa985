"""A client of the language server: it starts `memmodel lsp` and speaks the protocol over its standard streams."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from typing import Any

from helpers.patience import PATIENCE
from helpers.places import ROOT


class Client:
    """`with Client() as editor:` is a session; `options` are the initialization options."""

    def __init__(self, *, resolves: bool = True, **options: Any) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memmodel", "lsp", "--stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment,
        )  # fmt: skip
        self.options = {"delay": 0.05, "seconds": PATIENCE, "quick": PATIENCE, **options}
        self.resolves = resolves
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.version: dict[str, int] = {}
        self.shown: dict[str, list[dict[str, Any]]] = {}
        self.count = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        out = self.process.stdout
        assert out is not None
        while head := out.readline():
            length = int(head.split(b":")[1]) if head.lower().startswith(b"content-length") else 0
            if not length:
                continue
            while out.readline().strip():
                pass
            message = json.loads(out.read(length))
            (self.answers if "id" in message and "method" not in message else self.told).put(message)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Any) -> Any:
        self.count += 1
        self._send({"id": self.count, "method": method, "params": params})
        while True:
            answer = self.answers.get(timeout=PATIENCE)
            if answer["id"] == self.count:
                assert "error" not in answer, answer
                return answer["result"]

    def __enter__(self) -> Client:
        support = {"resolveSupport": {"properties": ["edit"]}, "dataSupport": True} if self.resolves else {}
        capabilities = {"textDocument": {"codeAction": support, "publishDiagnostics": {"relatedInformation": True}}}
        self.server = self.ask(
            "initialize",
            {"processId": None, "rootUri": None, "capabilities": capabilities, "initializationOptions": self.options},
        )
        self.tell("initialized", {})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    # ---- documents -------------------------------------------------------------------------------------------------

    def open(self, text: str, name: str = "t.litmus", language: str = "litmus") -> str:
        uri = name if ":" in name else (ROOT / "litmus" / name).as_uri()
        self.version[uri] = 1
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})
        return uri

    def edit(self, uri: str, text: str) -> None:
        self.version[uri] += 1
        document = {"uri": uri, "version": self.version[uri]}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def diagnostics(self, uri: str, *, checked: bool = False) -> list[dict[str, Any]]:
        """Of the last version; `checked`: those that a check has made too."""
        while True:
            told = self.told.get(timeout=PATIENCE)
            params = told.get("params", {})
            if told["method"] != "textDocument/publishDiagnostics" or params["uri"] != uri:
                continue
            if params.get("version") != self.version[uri]:
                continue
            found: list[dict[str, Any]] = params["diagnostics"]
            if not checked or any(one["code"] in CHECKED for one in found):
                return found

    def message(self) -> str:
        """The next message for the person."""
        while True:
            told = self.told.get(timeout=PATIENCE)
            if told["method"] == "window/showMessage":
                return str(told["params"]["message"])

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        params = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        return self.ask(f"textDocument/{method}", params)


CHECKED = {"never", "sometimes", "always", "undecided", "vacuous"}


def place(text: str, word: str, number: int = 0) -> tuple[int, int]:
    """Line and character (in UTF-16 units) of the n-th time that a word stands in a text."""
    at = -1
    for _ in range(number + 1):
        at = text.index(word, at + 1)
    before = text[:at]
    return before.count("\n"), len(before.rpartition("\n")[2].encode("utf-16-le")) // 2


def covered(text: str, span: dict[str, Any]) -> str:
    """The text of a range."""
    lines = text.split("\n")
    ends = []
    for end in (span["start"], span["end"]):
        line = lines[end["line"]].encode("utf-16-le")
        inside = line[: 2 * end["character"]].decode("utf-16-le")
        ends.append(sum(len(one) + 1 for one in lines[: end["line"]]) + len(inside))
    return text[ends[0] : ends[1]]

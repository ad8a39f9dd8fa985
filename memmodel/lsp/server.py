"""The language server over standard input and output.

In: the protocol. Out: the protocol. Settled here: this process only passes questions on, so that no text makes it
hang or fail. Errors of a text come at once; a check begins when nobody has typed for a moment, and the next edit ends
it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from memmodel.base.resources import DEFAULT_MODEL
from memmodel.lsp.document import BEGIN, Document, path_of
from memmodel.lsp.worker import Asking

REPAIR, WEAKEN = "memmodel: repair with the smallest change", "memmodel: drop or narrow what is not needed"


@dataclass(frozen=True)
class ClientOptions:
    """What a client may choose, as its `initializationOptions`.

    `check`: tests are judged, not only parsed. `delay`: seconds without an edit before that. `effort`, `seconds` and
    `memory` (bytes) bound each answer; `repair`: seconds of a search for repairs; `quick`: those of a hover and its
    like.
    """

    model: str = DEFAULT_MODEL
    check: bool = True
    delay: float = 0.4
    effort: int = 20_000_000
    seconds: float = 10.0
    memory: int = 1 << 30
    repair: float = 20.0
    quick: float = 5.0

    @staticmethod
    def of(settings: object) -> ClientOptions:
        """The settings of a client; what it does not say, or says wrong, is the default."""
        known = settings if isinstance(settings, dict) else {}
        chosen: dict[str, Any] = {}
        for option in fields(ClientOptions):
            value, kind = known.get(option.name), type(option.default)
            number = kind in (int, float)
            if number and isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
                chosen[option.name] = int(value) if kind is int else float(value)
            elif not number and isinstance(value, kind):
                chosen[option.name] = value
        return ClientOptions(**chosen)


class Server(LanguageServer):
    """What is known of the session: settings, processes, and the documents that are watched."""

    def __init__(self) -> None:
        import memmodel

        super().__init__("memmodel", memmodel.__version__, types.TextDocumentSyncKind.Full)
        self.settings = ClientOptions()
        self.reader, self.judge, self.fixer = Asking(), Asking(), Asking()
        self.watched: dict[str, Watch] = {}
        self.converter = get_converter()

    def opened(self, uri: str) -> TextDocument | None:
        """A document that the client has open."""
        document: TextDocument | None = self.workspace.text_documents.get(unquote(uri))  # pygls keeps them so
        return document

    def document(self, uri: str) -> dict[str, Any] | None:
        """A document as the other processes take it; None for one that is not open, or of no known kind."""
        known = self.opened(uri)
        kind = Document.kind_of(uri, known.language_id or "") if known is not None else ""
        if known is None or not kind:
            return None
        others = self.workspace.text_documents if kind == "cat" else {}
        texts = {
            str(path): other.source
            for other in others.values()
            if other is not known and (path := path_of(other.uri)) is not None and path.suffix == ".cat"
        }
        encoding = self.workspace.position_encoding
        units = encoding.value if isinstance(encoding, types.PositionEncodingKind) else str(encoding or "utf-16")
        return {"uri": uri, "text": known.source, "kind": kind, "units": units, "open": texts}

    async def read(self, name: str, uri: str, **arguments: Any) -> Any:
        """The answer of the process that reads; None where there is none."""
        document = self.document(uri)
        if document is None:
            return None
        # A client takes questions back all the time: that is no reason to end the process that reads.
        asked = asyncio.ensure_future(self.reader.ask(name, document, arguments, self.settings.quick))
        reply = await asyncio.shield(asked)
        return reply["answer"]

    def shown(self, kind: type, value: object) -> Any:
        """JSON values as the types of the protocol."""
        return self.converter.structure(value, kind)

    def budget(self) -> dict[str, Any]:
        """What a question that judges may use."""
        settings = self.settings
        return {
            "model": settings.model,
            "effort": settings.effort,
            "seconds": settings.seconds,
            "memory": settings.memory,
        }

    def shutdown(self) -> None:
        for process in (self.reader, self.judge, self.fixer):
            process.stop()
        if self._thread_pool is not None:  # one of its threads reads from the client, and may do so for ever
            self._thread_pool.shutdown(wait=False, cancel_futures=True)
            self._thread_pool = None
        super().shutdown()  # type: ignore[no-untyped-call]


class Watch:
    """Follows one document: its errors at once, then a check, unless it changes before that is done."""

    def __init__(self, server: Server, uri: str) -> None:
        self.server, self.uri = server, uri
        self.changed = asyncio.Event()
        self.changed.set()
        self.task = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            await self._once()

    async def _once(self) -> None:
        document = self.server.document(self.uri)
        if document is None:
            return
        opened = self.server.opened(self.uri)
        version = opened.version if opened is not None else None
        asked = await self.server.reader.ask("diagnostics", document, {}, self.server.settings.quick)
        diagnostics = (
            asked["answer"] if asked["answer"] is not None else [_failed(asked.get("error", "this is no text"))]
        )
        if self.changed.is_set():
            return
        self._publish(diagnostics, version)
        settings = self.server.settings
        wrong = any(diagnostic["severity"] == types.DiagnosticSeverity.Error for diagnostic in diagnostics)
        if document["kind"] != "litmus" or wrong or not settings.check:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self.changed.wait(), settings.delay)
            return
        checking = asyncio.ensure_future(
            self.server.judge.ask("check", document, self.server.budget(), 2 * settings.seconds + settings.quick)
        )
        waiting = asyncio.ensure_future(self.changed.wait())
        try:
            await asyncio.wait({checking, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not checking.done():
                checking.cancel()
        if not self.changed.is_set() and checking.done():
            self._publish([*diagnostics, *(checking.result()["answer"] or ())], version)

    def _publish(self, diagnostics: list[Any], version: int | None) -> None:
        self.server.text_document_publish_diagnostics(
            self.server.shown(
                types.PublishDiagnosticsParams, {"uri": self.uri, "version": version, "diagnostics": diagnostics}
            )
        )


def _failed(message: str) -> dict[str, Any]:
    return {"range": BEGIN, "severity": 2, "source": "memmodel", "message": message}


def serve() -> None:
    """Serve the client on standard input and output until it leaves."""
    if not os.environ.get("MEMMODEL_TRACEBACK"):
        logging.getLogger("pygls").addHandler(logging.NullHandler())
        logging.getLogger("pygls").propagate = False
    server = Server()
    register(server)
    try:
        server.start_io()
    finally:
        os._exit(0)  # a thread may still wait for the client


def register(server: Server) -> None:
    """What the server answers."""
    documents(server)
    names(server)
    changes(server)


def documents(server: Server) -> None:
    """Documents that come, change and go."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.settings = ClientOptions.of(params.initialization_options)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        uri = params.text_document.uri
        if server.document(uri) is not None and uri not in server.watched:
            server.watched[uri] = Watch(server, uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def edited(params: types.DidChangeTextDocumentParams) -> None:
        watch = server.watched.get(params.text_document.uri)
        if watch is not None:
            watch.changed.set()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        if Document.kind_of(params.text_document.uri) == "cat":  # others may include it
            for uri, watch in server.watched.items():
                if Document.kind_of(uri) == "cat":
                    watch.changed.set()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        watch = server.watched.pop(params.text_document.uri, None)
        if watch is not None:
            watch.task.cancel()
            watch._publish([], None)


def names(server: Server) -> None:
    """Register the requests about names: hover, definition, references and the like."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        at = params.position
        card = await server.read("hover", params.text_document.uri, line=at.line, character=at.character)
        return None if card is None else server.shown(types.Hover, card)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> list[types.Location]:
        at = params.position
        places = await server.read("definition", params.text_document.uri, line=at.line, character=at.character)
        return [server.shown(types.Location, place) for place in places or ()]

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location]:
        at, uri = params.position, params.text_document.uri
        declaration = params.context.include_declaration
        places = await server.read("references", uri, line=at.line, character=at.character, declaration=declaration)
        return [server.shown(types.Location, place) for place in places or ()]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        at = params.position
        places = await server.read("highlights", params.text_document.uri, line=at.line, character=at.character)
        return [server.shown(types.DocumentHighlight, place) for place in places or ()]

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[*'.:=%"']))
    async def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        at = params.position
        items = await server.read("completion", params.text_document.uri, line=at.line, character=at.character)
        return [server.shown(types.CompletionItem, item) for item in items or ()]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        outline = await server.read("symbols", params.text_document.uri)
        return [server.shown(types.DocumentSymbol, symbol) for symbol in outline or ()]


def changes(server: Server) -> None:
    """Changes of a document."""

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        reply = await server.read("format", params.text_document.uri) or {"edits": [], "reason": ""}
        if reply["reason"]:
            _say(server, f"memmodel does not format this: {reply['reason']}")
        return [server.shown(types.TextEdit, edit) for edit in reply["edits"]]

    options = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite], resolve_provider=True
    )

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = server.document(uri)
        if document is None:
            return []
        offered = [
            action for diagnostic in params.context.diagnostics if (action := _suggestion(uri, diagnostic)) is not None
        ]
        if document["kind"] == "litmus":
            mine = [
                diagnostic
                for diagnostic in params.context.diagnostics
                if diagnostic.source == "memmodel" and diagnostic.code != "error"
            ]
            fix = types.CodeAction(REPAIR, types.CodeActionKind.QuickFix, mine or None, data=[uri, "fix"])
            less = types.CodeAction(WEAKEN, types.CodeActionKind.RefactorRewrite, data=[uri, "weaken"])
            offered += [*([fix] if mine else ()), less]
        only = params.context.only
        offered = [
            action for action in offered if only is None or any((action.kind or "").startswith(kind) for kind in only)
        ]
        if not _resolves(server):
            for action in offered:
                if action.data is not None:
                    await _resolve(server, action)
        return offered

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        await _resolve(server, action)
        return action


def _suggestion(uri: str, diagnostic: types.Diagnostic) -> types.CodeAction | None:
    """The word that an error suggests."""
    data = diagnostic.data if isinstance(diagnostic.data, dict) else {}
    meant = data.get("write")
    if not isinstance(meant, str):
        return None
    edit = types.WorkspaceEdit(changes={uri: [types.TextEdit(diagnostic.range, meant)]})
    return types.CodeAction(f"write {meant}", types.CodeActionKind.QuickFix, [diagnostic], is_preferred=True, edit=edit)


def _resolves(server: Server) -> bool:
    """True if the client requests the edit of a code action only when the action is chosen."""
    text = server.client_capabilities.text_document
    support = text.code_action.resolve_support if text is not None and text.code_action is not None else None
    return support is not None and "edit" in support.properties


async def _resolve(server: Server, action: types.CodeAction) -> None:
    """Work out the edit of an action."""
    data = action.data
    if not (isinstance(data, list | tuple) and len(data) == 2):
        return
    uri, what = str(data[0]), str(data[1])
    document = server.document(uri)
    if document is None or document["kind"] != "litmus":
        return
    seconds = server.settings.repair
    arguments = {**server.budget(), "what": "fix" if what == "fix" else "weaken", "seconds": seconds}
    asked = await server.fixer.ask("repair", document, arguments, 2 * seconds + server.settings.quick)
    repair = asked["answer"] or {"edits": [], "title": "", "reason": asked.get("error") or "the text is no test"}
    if not repair["edits"]:
        _say(server, f"memmodel: {repair['reason'] or 'nothing to change'}")
        return
    edits = [server.shown(types.TextEdit, edit) for edit in repair["edits"]]
    action.edit = types.WorkspaceEdit(changes={uri: edits})
    _say(server, f"memmodel: {repair['title']}")


def _say(server: Server, message: str) -> None:
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message[:1000]))

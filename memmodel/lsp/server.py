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
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from memmodel.lsp.document import Document, path_of
from memmodel.lsp.worker import Asking

QUICK = 5.0
"""Seconds that a hover and its like may take."""

REPAIR, WEAKEN = "memmodel: repair with the smallest change", "memmodel: drop or narrow what is not needed"


@dataclass(frozen=True)
class ClientOptions:
    """What a client may choose, as its `initializationOptions`.

    `check`: tests are judged, not only parsed. `delay`: seconds without an edit before that. `effort`, `seconds` and
    `memory` (bytes) bound each answer; `repair` are the seconds of a search for repairs.
    """

    model: str = "ptx-9.3"
    check: bool = True
    delay: float = 0.4
    effort: int = 20_000_000
    seconds: float = 10.0
    memory: int = 1 << 30
    repair: float = 20.0

    @staticmethod
    def of(given: object) -> ClientOptions:
        """The settings of a client; what it does not say, or says wrong, is the default."""
        known = given if isinstance(given, dict) else {}
        fields: dict[str, Any] = {}
        for name, default in ClientOptions._defaults().items():
            value = known.get(name, default)
            number = isinstance(default, int | float) and not isinstance(default, bool)
            if number and isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
                fields[name] = int(value) if isinstance(default, int) else float(value)
            elif not number and isinstance(value, type(default)):
                fields[name] = value
        return ClientOptions(**fields)

    @staticmethod
    def _defaults() -> dict[str, object]:
        plain = ClientOptions()
        return {name: getattr(plain, name) for name in ClientOptions.__annotations__}


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
        found: TextDocument | None = self.workspace.text_documents.get(unquote(uri))  # pygls keeps them so
        return found

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

    async def read(self, name: str, uri: str, **given: Any) -> Any:
        """The answer of the process that reads; None where there is none."""
        document = self.document(uri)
        if document is None:
            return None
        # A client takes questions back all the time: that is no reason to end the process that reads.
        asked = asyncio.ensure_future(self.reader.ask(name, document, given, QUICK))
        found = await asyncio.shield(asked)
        return found["answer"]

    def shown(self, kind: type, found: object) -> Any:
        """JSON values as the types of the protocol."""
        return self.converter.structure(found, kind)

    def budget(self) -> dict[str, Any]:
        """What a question that judges may use."""
        one = self.settings
        return {"model": one.model, "effort": one.effort, "seconds": one.seconds, "memory": one.memory}

    def shutdown(self) -> None:
        for one in (self.reader, self.judge, self.fixer):
            one.stop()
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
        asked = await self.server.reader.ask("diagnostics", document, {}, QUICK)
        found = asked["answer"] if asked["answer"] is not None else [_failed(asked.get("error", "this is no text"))]
        if self.changed.is_set():
            return
        self._publish(found, version)
        settings = self.server.settings
        wrong = any(one["severity"] == types.DiagnosticSeverity.Error for one in found)
        if document["kind"] != "litmus" or wrong or not settings.check:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self.changed.wait(), settings.delay)
            return
        checking = asyncio.ensure_future(
            self.server.judge.ask("check", document, self.server.budget(), 2 * settings.seconds + QUICK)
        )
        waiting = asyncio.ensure_future(self.changed.wait())
        try:
            await asyncio.wait({checking, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not checking.done():
                checking.cancel()
        if not self.changed.is_set() and checking.done():
            self._publish([*found, *(checking.result()["answer"] or ())], version)

    def _publish(self, found: list[Any], version: int | None) -> None:
        self.server.text_document_publish_diagnostics(
            self.server.shown(
                types.PublishDiagnosticsParams, {"uri": self.uri, "version": version, "diagnostics": found}
            )
        )


def _failed(message: str) -> dict[str, Any]:
    zero = {"line": 0, "character": 0}
    return {"range": {"start": zero, "end": zero}, "severity": 2, "source": "memmodel", "message": message}


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
    """What stands somewhere, and where it comes from."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        at = params.position
        found = await server.read("hover", params.text_document.uri, line=at.line, character=at.character)
        return None if found is None else server.shown(types.Hover, found)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> list[types.Location]:
        at = params.position
        found = await server.read("definition", params.text_document.uri, line=at.line, character=at.character)
        return [server.shown(types.Location, one) for one in found or ()]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        found = await server.read("symbols", params.text_document.uri)
        return [server.shown(types.DocumentSymbol, one) for one in found or ()]


def changes(server: Server) -> None:
    """Changes of a document."""

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    async def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        found = await server.read("format", params.text_document.uri) or {"edits": [], "reason": ""}
        if found["reason"]:
            _say(server, f"memmodel does not format this: {found['reason']}")
        return [server.shown(types.TextEdit, one) for one in found["edits"]]

    options = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite], resolve_provider=True
    )

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = server.document(uri)
        if document is None:
            return []
        found = [one for told in params.context.diagnostics if (one := _suggestion(uri, told)) is not None]
        if document["kind"] == "litmus":
            mine = [one for one in params.context.diagnostics if one.source == "memmodel" and one.code != "error"]
            fix = types.CodeAction(REPAIR, types.CodeActionKind.QuickFix, mine or None, data=[uri, "fix"])
            less = types.CodeAction(WEAKEN, types.CodeActionKind.RefactorRewrite, data=[uri, "weaken"])
            found += [*([fix] if mine else ()), less]
        only = params.context.only
        found = [one for one in found if only is None or any((one.kind or "").startswith(kind) for kind in only)]
        if not _resolves(server):
            for one in found:
                if one.data is not None:
                    await _resolve(server, one)
        return found

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        await _resolve(server, action)
        return action


def _suggestion(uri: str, told: types.Diagnostic) -> types.CodeAction | None:
    """The word that an error suggests."""
    data = told.data if isinstance(told.data, dict) else {}
    meant = data.get("write")
    if not isinstance(meant, str):
        return None
    edit = types.WorkspaceEdit(changes={uri: [types.TextEdit(told.range, meant)]})
    return types.CodeAction(f"write {meant}", types.CodeActionKind.QuickFix, [told], is_preferred=True, edit=edit)


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
    given = {**server.budget(), "what": "fix" if what == "fix" else "weaken", "seconds": seconds}
    asked = await server.fixer.ask("repair", document, given, 2 * seconds + QUICK)
    found = asked["answer"] or {"edits": [], "title": "", "reason": asked.get("error") or "the text is no test"}
    if not found["edits"]:
        _say(server, f"memmodel: {found['reason'] or 'nothing to change'}")
        return
    edits = [server.shown(types.TextEdit, one) for one in found["edits"]]
    action.edit = types.WorkspaceEdit(changes={uri: edits})
    _say(server, f"memmodel: {found['title']}")


def _say(server: Server, message: str) -> None:
    server.window_show_message(types.ShowMessageParams(types.MessageType.Info, message[:1000]))

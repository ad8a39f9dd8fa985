"""A PTX file to a Module.

In: a path or a Source. Out: `PtxModule`. Bad text raises InputError with its place.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace

from memmodel.errors import InputError
from memmodel.ptx.lexer import Token
from memmodel.ptx.module.body import BodyReader, Locations
from memmodel.ptx.module.lexer import ModuleCursor
from memmodel.ptx.module.syntax import ModuleVariable, PtxFunction, PtxModule
from memmodel.ptx.module.variables import PARENTHESIS, SPACES, declarations, space_of
from memmodel.recovery.every_error import ErrorsSoFar
from memmodel.source import STANDARD_INPUT, Source, Span, at_byte, read_bytes

MAX_BYTES = 64_000_000
_LINKING = (".visible", ".extern", ".weak", ".common")
_FILE = re.compile(r'^[ \t]*+\.file[ \t]++(\d{1,9})[ \t]++"([^"\n]*)"', re.MULTILINE)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")


def read_module(path: str | os.PathLike[str]) -> PtxModule:
    """Read a PTX file, or standard input where the path is `-`."""
    return parse_module(read_source(path))


def read_source(path: str | os.PathLike[str]) -> Source:
    """The text of a PTX file, or of standard input where the path is `-`. Raises InputError."""
    name = os.fspath(path)
    if name == STANDARD_INPUT:
        name, data = "<stdin>", sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        data = read_bytes(path, MAX_BYTES)
    return decoded(name, data)


def decoded(name: str, data: bytes) -> Source:
    """Bytes as the text of a module. Raises InputError."""
    if len(data) > MAX_BYTES:
        raise at_byte(f"larger than {MAX_BYTES:,} bytes", name, data, MAX_BYTES)
    try:
        text = data.rstrip(b"\0").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise at_byte(f"not a text file (byte {error.start} is not UTF-8)", name, data, error.start) from error
    return Source(name, text.replace("\r\n", "\n"))


def parse_module(source: Source) -> PtxModule:
    """Read a module. Raises InputError."""
    bad = _CONTROL.search(source.text)
    if bad is not None:
        raise InputError("not a text file: control character", Span(source, *bad.span()), show_line=False)
    return _ModuleReader(source).module()


class _ModuleReader:
    def __init__(self, source: Source) -> None:
        self.cursor = ModuleCursor.of(source)
        files = {int(number): name for number, name in _FILE.findall(source.text)}
        self.locations = Locations(files, source.text)
        self.version: tuple[int, int] | None = None
        self.target = ""
        self.variables: dict[str, ModuleVariable] = {}
        self.functions: dict[str, PtxFunction] = {}
        self.errors = ErrorsSoFar()
        self.aliases: dict[str, str] = {}

    def module(self) -> PtxModule:
        cursor = self.cursor
        while cursor.token.kind != "end":
            try:
                self._directive()
            except InputError as error:  # where the next directive begins is not known
                self.errors.note(error)
                break
        self.errors.end()
        if self.version is None:
            cursor.fail(".version is missing", hint="a PTX module begins with .version, .target and .address_size")
        for alias, name in self.aliases.items():
            if name in self.functions:
                self.functions[alias] = replace(self.functions[name], name=alias)
        return PtxModule(cursor.source, self.version, self.target, self.variables, self.functions)

    def _directive(self) -> None:
        cursor = self.cursor
        token = cursor.next()
        if token.kind == ";":
            return
        if token.kind == "name" and cursor.accept(":"):
            return
        if token.kind != "dot":
            cursor.fail(f"{token.text!r} begins no directive", token)
        word = token.text
        if word == ".version":
            self._version()
        elif word == ".target":
            self._target()
        elif word == ".address_size":
            if cursor.integer("32 or 64") != 64:
                cursor.fail("only 64-bit addresses are known", token)
        elif word == ".file":
            self._file()
        elif word in (".section", ".nv_intermediate_source_section"):  # debugging data
            if word == ".section":
                cursor.next()
            cursor.skip_to_closing("{", "}", "the section is not closed: '}' is expected")
        elif word == ".alias":
            alias = cursor.expect("name", "the name of a function")
            cursor.expect(",")
            self.aliases[alias.text] = cursor.expect("name", "the name of a function").text
            cursor.expect(";")
        elif word == ".pragma":
            cursor.skip_statement()
        elif word == ".loc":
            self.locations.read(cursor)
        elif word in (*_LINKING, ".entry", ".func") or space_of(token) in SPACES:
            self._object(token)
        else:
            cursor.fail(f"{word} is no directive of a module", token)

    def _version(self) -> None:
        cursor = self.cursor
        token = cursor.expect("number", "a version such as 8.8")
        parts = token.text.split(".")
        if len(parts) != 2 or not all(part.isdigit() and len(part) < 4 for part in parts):
            cursor.fail("a version such as 8.8 is expected here", token)
        self.version = (int(parts[0]), int(parts[1]))

    def _target(self) -> None:
        cursor = self.cursor
        self.target = cursor.expect("name", "a target such as sm_90a").text
        while cursor.accept(","):
            cursor.expect("name", "a target option")

    def _file(self) -> None:
        cursor = self.cursor
        cursor.integer("the number of a file")
        cursor.expect("string", "the name of a file")
        while cursor.accept(","):
            cursor.integer("a number")

    def _object(self, token: Token) -> None:
        cursor = self.cursor
        linking = {}
        while token.text in _LINKING:
            linking[token.text[1:]] = True
            token = cursor.expect("dot", "a directive")
        if token.text in (".entry", ".func"):
            self._function(token)
            return
        if space_of(token) not in SPACES:
            cursor.fail(f"{token.text} is no state space", token)
        for variable in declarations(cursor, token, linking):
            self.variables[variable.name] = variable

    def _function(self, token: Token) -> None:
        cursor = self.cursor
        entry = token.text == ".entry"
        directives: dict[str, tuple[int, ...]] = {}
        self._tuning(directives)
        results = self._parameters() if not entry and cursor.token.kind == "(" else ()
        name = cursor.expect("name", "the name of a function")
        params = self._parameters() if cursor.token.kind == "(" else ()
        self._tuning(directives)
        span = cursor.span(name)
        if cursor.accept(";"):
            if name.text not in self.functions:
                self.functions[name.text] = PtxFunction(name.text, entry, params, results, span, directives=directives)
            return
        known = self.functions.get(name.text)
        if known is not None and known.body is not None:
            cursor.fail(f"{name.text} is defined twice", name)
        function = PtxFunction(name.text, entry, params, results, span)
        self.functions[name.text] = function
        cursor.expect("{", "';' or '{'")
        names = {*self.variables, *self.functions, *(variable.name for variable in (*params, *results))}
        body = BodyReader(cursor, names, self.locations, self.errors)
        self.functions[name.text] = replace(
            function,
            body=body.read(),
            variables=tuple(body.variables),
            registers=body.slots,
            directives=directives,
        )

    def _tuning(self, directives: dict[str, tuple[int, ...]]) -> None:
        """`.reqntid 128`, `.maxnreg 168`, `.noreturn`, `.language "ptx", 5`, …"""
        cursor = self.cursor
        while cursor.token.kind == "dot":
            token = cursor.next()
            if token.text == ".pragma":
                cursor.skip_statement()
                continue
            if token.text == ".attribute":
                cursor.skip_to_closing("(", ")", PARENTHESIS)
            values: list[int] = []
            while cursor.token.kind in ("number", "string"):
                if cursor.accept("string") is None:
                    values.append(cursor.integer("a number"))
                if not cursor.accept(","):
                    break
            directives[token.text[1:]] = tuple(values)

    def _parameters(self) -> tuple[ModuleVariable, ...]:
        cursor = self.cursor
        cursor.expect("(")
        parameters: list[ModuleVariable] = []
        while cursor.token.kind != ")":
            token = cursor.expect("dot", "a parameter")
            if token.text not in (".param", ".reg"):
                cursor.fail(f"{token.text} begins no parameter", token)
            parameters += declarations(cursor, token, {}, parameter=True)
            if not cursor.accept(","):
                break
        cursor.expect(")")
        return tuple(parameters)

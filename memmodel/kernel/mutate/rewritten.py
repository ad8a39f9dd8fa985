"""A kernel with lines changed as a user asks: `LINE: NEW TEXT`, `LINE: drop`, `LINE: scope=cta`, `LINE: relaxed`.

In: a module, one of its entries, such requests. Out: `RewrittenKernel`. Settled here: the text is changed and read
again, each line stays where it is, and what is illegal then is an error at its place in the changed text. `LINE` is a
line of the PTX, or `FILE:LINE` of what was compiled: there the change is made of each instruction that synchronizes and
comes from that line. Raises InputError for a request that cannot be carried out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memmodel.errors import InputError
from memmodel.isa.module import lower_in_module, spelling_of
from memmodel.isa.rows.spelling import Spelling
from memmodel.kernel.launch import Launch
from memmodel.kernel.mutate.mutations import REMOVED, Mutation, mutations
from memmodel.kernel.question.entries import entry_of
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.module.syntax import Location, PtxFunction, PtxInstruction, PtxModule
from memmodel.ptx.operands import Imm, Register
from memmodel.repair.spellings import LEVELS, SCOPES, semantics
from memmodel.source import Source, Span

DROP = "drop"
SEMANTICS = ("relaxed", "acquire", "release", "acq_rel", "sc")
FORMS = "LINE: NEW TEXT, LINE: drop, LINE: scope=cta, LINE: relaxed"
PTX = "PTX"
"""The file of a line that is meant of the PTX, where something else was compiled."""

SHOWN = 6
"""Lines that are named where another one was meant."""

_REQUEST = re.compile(r"\s*(?:(?P<file>[^\s:][^:]*):)?(?P<line>\d{1,9})\s*:(?P<text>.*)", re.DOTALL)
_STATEMENT = re.compile(r"(?P<guard>@!?\s*\S+\s+)?(?P<opcode>[\w.:]+)")
_LEVEL_OF = {"cta": "cta", "gpu": "gl", "sys": "sys"}
"""The levels of membar, by the scope that they have."""


@dataclass(frozen=True, slots=True)
class TextChange:
    """Text of one line that becomes another one. `instruction`: the first that stood there. `removal`: the change, if
    it is taken away and something that does nothing stands in its place.
    """

    instruction: PtxInstruction
    span: Span
    text: str
    removal: Mutation | None = None

    @property
    def was(self) -> str:
        return " ".join(self.span.text.split())

    @property
    def becomes(self) -> str:
        """The new text of the instruction; empty if it is removed."""
        return "" if self.removal is not None else " ".join(self.text.split())


@dataclass(frozen=True, slots=True)
class RewrittenKernel:
    """The kernel with all changes."""

    module: PtxModule
    entry: PtxFunction
    changes: tuple[TextChange, ...]


@dataclass(frozen=True, slots=True)
class _Request:
    """One change as it was typed. `source`: all that was typed, for errors."""

    source: Source
    file: str
    line: int
    text: str
    line_at: Span
    text_at: Span

    def wrong(self, message: str, hint: str, *, at_line: bool = False) -> InputError:
        return InputError(message, self.line_at if at_line else self.text_at, hint)


def rewritten(module: PtxModule, entry: PtxFunction, launch: Launch, requests: Sequence[str]) -> RewrittenKernel:
    """The kernel with all of the requests carried out. Raises InputError."""
    body = _Body(entry)
    changes = [change for request in requests for change in body.changes(_read(request))]
    changes.sort(key=lambda change: change.span.start)
    for before, after in pairwise(changes):
        if after.span.start < before.span.end:
            raise InputError(f"line {after.instruction.line} is changed twice", after.span, "give one --what-if of it")
    text, end, parts = module.source.text, 0, []
    for change in changes:
        parts += [text[end : change.span.start], change.text]
        end = change.span.end
    changed = parse_module(Source(module.source.name, "".join([*parts, text[end:]])))
    function = entry_of(changed, entry.name)
    lines = {change.instruction.line for change in changes}
    for instruction, line in zip(function.body or (), _lines(function), strict=True):
        if line in lines:
            lower_in_module(instruction, launch.cluster[0] * launch.cluster[1] * launch.cluster[2])
    return RewrittenKernel(changed, function, tuple(changes))


def weakened(instruction: PtxInstruction, entry: PtxFunction, changed: PtxFunction) -> Mutation | None:
    """A change of scope or semantics; None if more differs."""
    before, after = entry.body or (), changed.body or ()
    if len(before) != len(after):
        return None
    becomes = after[instruction.number]
    differs = set(instruction.words) ^ set(becomes.words)
    same = instruction.operands == becomes.operands and instruction.guard == becomes.guard
    return Mutation(instruction, "", becomes) if same and differs <= {*SCOPES, *SEMANTICS} else None


def _read(request: str) -> _Request:
    source = Source("--what-if", request)
    match = _REQUEST.fullmatch(request)
    if match is None:
        raise InputError("no line and what becomes of it", source.span(0, len(request)), f"one of {FORMS}")
    text = re.sub(r"//.*", "", match["text"]).strip().rstrip(";").strip()
    start = match.start("text") + len(match["text"]) - len(match["text"].lstrip())
    place = source.span(min(start, len(request)), max(start + 1, len(request)))
    asked = _Request(source, match["file"] or "", int(match["line"]), text, source.span(*match.span("line")), place)
    if not text:
        raise asked.wrong("nothing is said that the line becomes", f"`{asked.line}: {DROP}` leaves it out")
    return asked


class _Body:
    """The instructions of an entry, by line."""

    def __init__(self, entry: PtxFunction) -> None:
        self._entry = entry
        self._numbered = list(zip(entry.body or (), _lines(entry), strict=True))
        self._removals: dict[int, Mutation | None] = {}
        """Of each instruction that synchronizes; None for an access, which is only ever weakened."""
        for change in mutations(entry):
            self._removals.setdefault(change.instruction.number, change if change.what == REMOVED else None)

    def changes(self, request: _Request) -> list[TextChange]:
        """What one request changes."""
        from_source, instructions = self._at(request)
        synchronizing = [instruction for instruction in instructions if instruction.number in self._removals]
        scope = re.fullmatch(r"scope\s*=\s*\.?(\w+)", request.text)
        if request.text == DROP:
            return self._dropped(request, instructions, synchronizing)
        if scope is not None:
            return self._worded(synchronizing or instructions, lambda it: _with_scope(it, scope[1], request))
        if request.text in SEMANTICS:
            return self._worded(synchronizing or instructions, lambda it: _with_semantics(it, request.text, request))
        if not from_source:
            return [TextChange(instructions[0], instructions[0].span.to(instructions[-1].span), request.text)]
        if len({instruction.opcode for instruction in synchronizing}) != 1:
            shown = ", ".join(f"`{PTX}:{it.line}` ({it.opcode})" for it in (synchronizing or instructions)[:SHOWN])
            raise request.wrong(f"line {request.line} of the source is several instructions", f"take one of {shown}")
        return [TextChange(instruction, instruction.span, request.text) for instruction in synchronizing]

    def _at(self, request: _Request) -> tuple[bool, list[PtxInstruction]]:
        """The instructions that a request is about; True if its line is one of the source that was compiled."""
        own = self._entry.span.source.name
        compiled = own.startswith("<") and own != "<stdin>"
        of_ptx = request.file in (PTX, own) if request.file else not compiled
        if of_ptx:
            there = [instruction for instruction, line in self._numbered if line == request.line]
            known = [line for instruction, line in self._numbered if instruction.number in self._removals]
        else:
            there = [it for it, _ in self._numbered if (request.file, request.line) in _places(it, request.file)]
            known = [
                line
                for it, _ in self._numbered
                if it.number in self._removals
                for file, line in _places(it, request.file)
            ]
        if not there:
            near = sorted(sorted(set(known), key=lambda line: (abs(line - request.line), line))[:SHOWN])
            which = f" of {request.file}" if request.file else ""
            hint = f"synchronizations near it stand in line{'s' * (len(near) > 1)} {', '.join(map(str, near))}"
            raise request.wrong(
                f"line {request.line}{which} has no instruction of {self._entry.name}",
                hint if near else f"{FORMS}; the line is one of the PTX, or FILE:LINE of its source",
                at_line=True,
            )
        return not of_ptx, there

    def _dropped(
        self, request: _Request, instructions: list[PtxInstruction], synchronizing: list[PtxInstruction]
    ) -> list[TextChange]:
        removals = [self._removals[instruction.number] for instruction in synchronizing]
        changes = [
            TextChange(removal.instruction, removal.instruction.span, _removed(removal), removal)
            for removal in removals
            if removal is not None
        ]
        if not changes:
            named = synchronizing[0] if synchronizing else instructions[0]
            why = "accesses memory as well" if synchronizing else "does not synchronize"
            raise request.wrong(
                f"nothing to drop: {named.opcode} {why}",
                "write what stands there instead, or weaken it: `relaxed`, `scope=cta`"
                if synchronizing
                else f"write what stands there instead, such as `{request.line}: nanosleep.u32 0`",
            )
        return changes

    def _worded(self, instructions: list[PtxInstruction], worded: Callable[[PtxInstruction], str]) -> list[TextChange]:
        """A word of the opcode becomes another one, in each instruction of the line that can have it."""
        changes, refused = [], []
        for instruction in instructions:
            try:
                opcode = worded(instruction)
            except InputError as error:
                refused.append(error)
                continue
            changes.append(TextChange(instruction, instruction.span, _with_opcode(instruction, opcode)))
        if not changes:
            raise refused[0]
        return changes


def _with_scope(instruction: PtxInstruction, scope: str, request: _Request) -> str:
    """The opcode with another scope. Raises InputError if it has none, or has it already."""
    if scope not in SCOPES:
        raise request.wrong(f"{scope} is no scope", f"one of {', '.join(SCOPES)}")
    spelling, words = _spelling(instruction, request)
    slots = {slot.name for slot in spelling.row.slots}
    if "level" in slots and scope in _LEVEL_OF:
        changed = {**words, "level": _LEVEL_OF[scope]}
    elif "scope" in slots:
        changed = {**words, "scope": scope}
        if "sem" in slots and "sem" not in words:  # a scope is written after semantics
            changed["sem"] = semantics(spelling)
    else:
        levels = f"; {spelling.head} has {', '.join(LEVELS)}" if "level" in slots else ""
        raise request.wrong(f"{instruction.opcode} has no scope{levels}", f"one of {FORMS}")
    now = words.get("scope") or ("cta" if spelling.head.startswith("mbarrier") else "")
    if changed == words or now == scope:
        raise request.wrong(f"nothing to change: {instruction.opcode} has the scope .{scope}", "give another one")
    return spelling.mnemonic(changed)


def _with_semantics(instruction: PtxInstruction, sem: str, request: _Request) -> str:
    """The opcode with other semantics. Raises InputError if it has none, or has these already."""
    spelling, words = _spelling(instruction, request)
    if not any(slot.name == "sem" for slot in spelling.row.slots):
        raise request.wrong(f"{instruction.opcode} has no semantics", f"`{request.line}: {DROP}` leaves it out")
    if semantics(spelling) == sem:
        raise request.wrong(f"nothing to change: {instruction.opcode} is .{sem} already", "give another one")
    changed = {**words, "sem": sem}
    if "scope" not in words and "cluster" not in spelling.head and spelling.head.startswith("mbarrier"):
        changed["scope"] = "cta"
    return spelling.mnemonic(changed)


def _spelling(instruction: PtxInstruction, request: _Request) -> tuple[Spelling, dict[str, str]]:
    spelling = spelling_of(instruction.opcode)
    if not isinstance(spelling, Spelling):
        raise request.wrong(f"{instruction.opcode} is not known", f"write what stands there instead: {FORMS}")
    return spelling, dict(spelling.words)


def _removed(removal: Mutation) -> str:
    """What stands in place of an instruction that is removed."""
    becomes = removal.becomes
    operands = [
        operand.name if isinstance(operand, Register) else str(operand.value)
        for operand in becomes.operands
        if isinstance(operand, Register | Imm)
    ]
    return f"{_guard(removal.instruction)}{becomes.opcode} {', '.join(operands)}"


def _guard(instruction: PtxInstruction) -> str:
    match = _STATEMENT.match(instruction.span.text)
    return (match["guard"] or "") if match is not None else ""


def _with_opcode(instruction: PtxInstruction, opcode: str) -> str:
    text = instruction.span.text
    match = _STATEMENT.match(text)
    assert match is not None, "an instruction begins with its guard or its opcode"
    return text[: match.start("opcode")] + opcode + text[match.end("opcode") :]


def _places(instruction: PtxInstruction, file: str) -> set[tuple[str, int]]:
    """Where an instruction comes from: the file as it was asked for, and the line. `file` empty: the source itself."""
    location: Location | None = instruction.location
    places = set()
    while location is not None:
        if not file or location.file == file or location.file.endswith("/" + file):
            places.add((file, location.line))
        location = location.caller
    return places


def _lines(function: PtxFunction) -> list[int]:
    """The lines of its instructions, which stand in the order of the text but for those of functions that it calls."""
    lines, line, offset = [], 1, 0
    for instruction in function.body or ():
        text, start = instruction.span.source.text, instruction.span.start
        line += text.count("\n", offset, start) if start >= offset else -text.count("\n", start, offset)
        offset = start
        lines.append(line)
    return lines

"""The question of a test: `locations [...]`, then `exists`, `~exists` or `forall` and a condition.

In: Reader. Out: Question. Read with an explicit stack, so that nesting costs no Python frames; `/\\` binds tighter
than `\\/`, and `not` tighter than both. Names are checked later, by `check`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memmodel.errors import InputError, suggestion
from memmodel.litmus.declarations import thread_name
from memmodel.litmus.lexer import INSTANCE_HINT, Reader
from memmodel.litmus.syntax import (
    FINDINGS,
    Always,
    And,
    Compare,
    Condition,
    LocValue,
    Not,
    Number,
    Or,
    Quantifier,
    RegValue,
    Term,
)
from memmodel.ptx.lexer import Token, shorten

MAX_DEPTH = 200
MAX_COMPARISONS = 5_000
MAX_SHOWN_TERMS = 1_000
MAX_QUESTIONS = 100

_OPERATORS = {"=": "==", "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CTA = re.compile(r"cta[0-9]*")
QUESTIONS = ("exists", "~exists", "forall")
"""The words that ask."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a file asks, from the character `start` on."""

    quantifier: Quantifier
    condition: Condition
    shown: tuple[Term, ...]
    finding: str | None = None
    start: int = 0


def begins_question(token: Token, after: Token) -> bool:
    """True if a question begins at `token`."""
    return token.text in ("exists", "forall", "locations") or (token.kind == "~" and after.text == "exists")


def is_over(reader: Reader) -> bool:
    """True where what stands before ends: at a question, or at the end of the file."""
    return reader.token.kind == "end" or begins_question(reader.token, reader.ahead())


def read_questions(reader: Reader) -> list[Question]:
    """Everything after the threads, to the end of the file: one question or several. Raises InputError."""
    questions = [_question(reader)]
    while reader.token.kind != "end":
        if len(questions) == MAX_QUESTIONS:
            raise InputError(f"more than {MAX_QUESTIONS} questions", reader.here())
        questions.append(_question(reader))
    return questions


def _question(reader: Reader) -> Question:
    """One question, up to the next or the end of the file."""
    start = reader.token.start
    shown = _locations(reader)
    word = reader.token
    if word.kind == "~" and reader.ahead().text == "exists":
        reader.next()
        quantifier = Quantifier.NOT_EXISTS
    elif word.text == "exists":
        quantifier = Quantifier.EXISTS
    elif word.text == "forall":
        quantifier = Quantifier.FORALL
    else:
        meant = suggestion(word.text, QUESTIONS) if word.kind == "name" else ""
        hint = meant or "a test ends with a question such as `exists (P1:r0 == 1)`"
        raise reader.wanted("exists, ~exists or forall", hint)
    reader.next()
    finding = _finding(reader, quantifier)
    if finding is not None:
        return Question(quantifier, Always(), shown, finding, start)
    return Question(quantifier, _condition(reader), shown, None, start)


def _finding(reader: Reader, quantifier: Quantifier) -> str | None:
    """`race`, `hang`, `hazard` or `undefined` as all of the condition, with or without parentheses; else None."""
    bracketed = reader.token.kind == "("
    word = reader.ahead() if bracketed else reader.token
    after = reader.ahead(2 if bracketed else 1)
    if word.text not in FINDINGS or after.kind in ("[", "@", *_OPERATORS) or after.text in _OPERATORS:
        return None
    if bracketed and after.kind != ")":
        return None
    if quantifier is Quantifier.FORALL:
        raise InputError(f"`forall {word.text}` asks nothing", reader.span(word), "ask with exists or ~exists")
    for _ in range(3 if bracketed else 1):
        reader.next()
    reader.accept(";")
    if not is_over(reader):
        raise reader.wanted("another question or the end of the file")
    return word.text


def _locations(reader: Reader) -> tuple[Term, ...]:
    if reader.accept_word("locations") is None:
        return ()
    reader.expect("[", "`[`", "for example `locations [x; P0:r1;]`")
    shown: list[Term] = []
    while not reader.accept("]"):
        if reader.token.kind not in ("name", "number", "["):
            raise reader.wanted("a location, a register or `]`")
        shown.append(_value(reader))
        if len(shown) > MAX_SHOWN_TERMS:
            raise InputError(f"more than {MAX_SHOWN_TERMS:,} locations", reader.here())
        if reader.accept(";") is None and reader.token.kind != "]":
            raise reader.wanted("`;` or `]`")
    reader.accept(";")
    return tuple(shown)


@dataclass(slots=True)
class _Level:
    """What is open since one `(`: finished disjuncts, conjuncts so far, `not`s before the next operand."""

    opened: Token | None
    ors: list[tuple[Condition, int]] = field(default_factory=list)
    ands: list[tuple[Condition, int]] = field(default_factory=list)
    nots: int = 0

    def close(self) -> tuple[Condition, int]:
        return _join(Or, [*self.ors, _join(And, self.ands)])


def _join(kind: type[And] | type[Or], operands: list[tuple[Condition, int]]) -> tuple[Condition, int]:
    if len(operands) == 1:
        return operands[0]
    return kind(tuple(operand for operand, _ in operands)), 1 + max(depth for _, depth in operands)


def _condition(reader: Reader) -> Condition:
    levels = [_Level(None)]
    atoms = 0
    nested = 0  # parentheses and `not`s that are open
    while True:
        level = levels[-1]
        token = reader.token
        if token.kind in ("~", "!") or token.text == "not" or token.kind == "(":
            nested += 1
            if nested > MAX_DEPTH:
                raise _too_deep(reader, token)
            reader.next()
            if token.kind == "(":
                levels.append(_Level(token))
            else:
                level.nots += 1
            continue
        operand, depth = _atom(reader), 1
        atoms += 1
        if atoms > MAX_COMPARISONS:
            raise InputError(f"more than {MAX_COMPARISONS:,} comparisons in one condition", reader.span(token))
        while True:  # an operand is complete
            level = levels[-1]
            for _ in range(level.nots):
                operand, depth = Not(operand), depth + 1
            nested -= level.nots
            level.nots = 0
            if depth > MAX_DEPTH:
                raise _too_deep(reader, token)
            level.ands.append((operand, depth))
            token = reader.token
            if token.kind == ")" and level.opened is not None:
                reader.next()
                operand, depth = levels.pop().close()
                nested -= 1
                continue
            break
        if token.kind == "\\/":
            level.ors.append(_join(And, level.ands))
            level.ands = []
        elif token.kind != "/\\":
            break
        reader.next()
    return _finish(reader, level)


def _finish(reader: Reader, level: _Level) -> Condition:
    token = reader.token
    if token.kind in ("end", ";") and level.opened is not None:
        raise InputError("this `(` is never closed", reader.span(level.opened))
    reader.accept(";")
    if not is_over(reader):
        if token.text in ("|", "and", "or"):
            hint = "conjunction is `/\\`, disjunction is `\\/`"
            raise reader.wanted("`/\\`, `\\/` or the end of the condition", hint)
        raise reader.wanted("`/\\`, `\\/` or `)`" if level.opened else "`/\\`, `\\/` or the end of the file")
    condition, depth = level.close()
    if depth > MAX_DEPTH:
        raise _too_deep(reader, token)
    return condition


def _too_deep(reader: Reader, token: Token) -> InputError:
    hint = "a flat `/\\` or `\\/` needs no nesting"
    return InputError(f"the condition nests deeper than {MAX_DEPTH}", reader.span(token), hint)


def _atom(reader: Reader) -> Condition:
    if reader.accept_word("true"):
        return Always()
    first = reader.token
    left = _term(reader)
    operator = _OPERATORS.get(reader.token.kind)
    if operator is None:
        written = reader.source.text[first.start : reader.tokens[reader.at - 1].end]
        hint = f"compare it with a value: `{shorten(written)} == 1`"
        raise reader.wanted("a comparison (==, !=, <, <=, >, >=)", hint)
    reader.next()
    right = _term(reader)
    return Compare(left, operator, right, reader.span(first, reader.tokens[reader.at - 1]))


def _term(reader: Reader) -> Term:
    if reader.token.kind == "number" and reader.ahead().kind != ":":
        value, token = reader.number()
        return Number(value, reader.span(token))
    if reader.token.kind not in ("name", "number", "["):
        raise reader.wanted("a register such as P0:r0, a location or a number")
    return _value(reader)


def _value(reader: Reader) -> RegValue | LocValue:
    first = reader.token
    if reader.ahead().kind == ":" and first.kind != "[":
        thread, _ = thread_name(reader)
        reader.next()
        register, last = reader.register()
        return RegValue(thread, register, reader.span(first, last))
    bracket = reader.accept("[")
    token = reader.expect("name", "a location")
    cta: int | None = None
    owner: str | None = None
    index = 0
    if reader.accept("@"):
        if _CTA.fullmatch(reader.token.text):
            cta = reader.cta_number()[0]
        else:
            owner = reader.expect("name", "`cta` and a number, or a thread", INSTANCE_HINT).text
    if reader.accept("["):
        index = reader.count("an index", 1 << 20)[0]
        reader.expect("]", "`]`")
    if bracket is not None:
        reader.expect("]", "`]`")
    return LocValue(token.text, index, cta, reader.span(first, reader.tokens[reader.at - 1]), thread=owner)

"""As few programs as show every change between two models, as litmus tests that both models pass.

In: two models, programs on which they differ. Out: `Regressions`: the tests, and the changes that no program shows.
Settled here: what one change is: an operand of a union that is only in one model, else a definition or check. A program
shows a change if the models no longer differ on it when this change alone is taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from memmodel import api
from memmodel.answer import Observation
from memmodel.base.resources import is_shipped
from memmodel.cat.syntax import Binary, Check, Definition, Expr, Model, Name, operands_of, rebuilt
from memmodel.cat.text.printer import show
from memmodel.errors import InternalError
from memmodel.report.expect import FINDINGS, is_called
from memmodel.report.report import Report
from memmodel.search.work import Record
from memmodel.source import Span

_REASONS = 6
"""Lines of a model's reason that a test quotes."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """`rule`: the definition, axiom or flag. `what`: the change in words, from the first model to the second.
    `without`: the second model with this change taken back."""

    rule: str
    what: str
    span: Span | None
    without: Model

    @property
    def text(self) -> str:
        """`release-pattern (my.cat:12): without ...`."""
        place = f" ({Path(self.span.source.name).name}:{self.span.line})" if self.span is not None else ""
        return f"{self.rule}{place}: {self.what}"


@dataclass(frozen=True, slots=True)
class RegressionTest:
    """`shows`: the changes that it shows. `direction`: what the second model does. `words`: the answers."""

    name: str
    text: str
    size: int
    direction: str
    shows: tuple[str, ...]
    words: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Regressions:
    """`unseen`: the changes that no program shows. `unsaid`: programs that no Expect line can tell apart."""

    tests: tuple[RegressionTest, ...]
    unseen: tuple[str, ...]
    unsaid: int


def regressions(first: Model, second: Model, names: tuple[str, str], records: Sequence[Record]) -> Regressions:
    """The tests that explain how two models differ. `names`: of the models, as the records have them."""
    changes = rule_changes(first, second)
    programs: list[tuple[RegressionTest, frozenset[tuple[str, str]]]] = []
    unsaid = 0
    for record in sorted(records, key=lambda record: int(record["size"])):
        program = _program(record, first, second, names, changes)
        if program is None:
            unsaid += 1
        else:
            programs.append((program, frozenset((change, program.direction) for change in program.shows)))
    chosen = [test for test, _ in _cover(programs)]
    seen = {change for test, _ in programs for change in test.shows}
    unseen = tuple(change.text for change in changes if change.text not in seen)
    numbered = (
        replace(test, name=name, text=f"PTX {name}\n{test.text}")
        for test, name in ((test, f"{test.name}-{number:02}") for number, test in enumerate(chosen, 1))
    )
    return Regressions(tuple(numbered), unseen, unsaid)


def _cover(
    programs: Sequence[tuple[RegressionTest, frozenset[tuple[str, str]]]],
) -> list[tuple[RegressionTest, frozenset[tuple[str, str]]]]:
    """Few programs that show all that any does: each time the one that shows most, of these the smallest."""
    left = frozenset().union(*(shown for _, shown in programs)) if programs else frozenset()
    chosen = []
    while left:
        best = max(programs, key=lambda program: (len(program[1] & left), -program[0].size))
        chosen.append(best)
        left -= best[1]
    return chosen


# ---- what has changed ------------------------------------------------------------------------------------------------


def rule_changes(first: Model, second: Model) -> list[RuleChange]:
    """What is different in the second model, one rule or operand at a time."""
    changes: list[RuleChange] = []
    earlier = {definition.name: definition for definition in first.definitions}
    for number, definition in enumerate(second.definitions):
        old = earlier.get(definition.name)
        if old is not None and old.kind is definition.kind and show(old.body) != show(definition.body):
            changes += _of_definition(second, number, old, definition)
    checks = {check.name: check for check in first.checks}
    for check in second.checks:
        before = checks.pop(check.name, None)
        if before is None:
            kept = tuple(other for other in second.checks if other.name != check.name)
            changes.append(RuleChange(check.name, "is new", check.span, replace(second, checks=kept)))
        elif (before.kind, before.negated, before.flag, show(before.body)) != (
            check.kind,
            check.negated,
            check.flag,
            show(check.body),
        ):
            changes += _of_check(second, before, check)
    for gone in checks.values():
        body = _moved(gone.body, second, len(second.definitions))
        if body is not None:
            restored = replace(second, checks=(*second.checks, replace(gone, body=body)))
            changes.append(RuleChange(gone.name, "is gone", gone.span, restored))
    return changes


def _of_definition(model: Model, number: int, old: Definition, new: Definition) -> Iterator[RuleChange]:
    for what, body in _bodies(model, number, old.body, new.body):
        definitions = list(model.definitions)
        definitions[number] = replace(new, body=body)
        yield RuleChange(new.name, what, new.span, replace(model, definitions=tuple(definitions)))


def _of_check(model: Model, old: Check, new: Check) -> Iterator[RuleChange]:
    for what, body in _bodies(model, len(model.definitions), old.body, new.body):
        taken_back = replace(new, body=body, kind=old.kind, negated=old.negated, flag=old.flag)
        checks = tuple(taken_back if check.name == new.name else check for check in model.checks)
        yield RuleChange(new.name, what, new.span, replace(model, checks=checks))


def _bodies(model: Model, before: int, old: Expr, new: Expr) -> Iterator[tuple[str, Expr]]:
    """Each change of a body in words, with the new body without it. `before`: what names refer to is defined before."""
    mine, theirs = list(_united(old)), list(_united(new))
    texts = {show(part) for part in mine}, {show(part) for part in theirs}
    if len(mine) + len(theirs) > 2 and texts[0] & texts[1] and texts[0] != texts[1]:
        for part in mine:
            moved = _moved(part, model, before)
            if show(part) not in texts[1] and moved is not None:
                yield f"without `{show(part)}`", Binary("|", new, moved, new.kind)
        for part in theirs:
            if show(part) not in texts[0]:
                kept = [other for other in theirs if show(other) != show(part)]
                yield f"with `{show(part)}`", reduce(lambda a, b: Binary("|", a, b, new.kind), kept)
        return
    moved = _moved(old, model, before)
    if moved is not None:
        same = show(old) == show(new)
        yield "its test is another one" if same else f"`{show(old)}` is now `{show(new)}`", moved


def _united(expr: Expr) -> Iterator[Expr]:
    """The operands of a union, or the expression itself."""
    if isinstance(expr, Binary) and expr.op == "|":
        yield from _united(expr.left)
        yield from _united(expr.right)
    else:
        yield expr


def _moved(expr: Expr, model: Model, before: int) -> Expr | None:
    """An expression of one model over the definitions of another one; None if a name is not defined there."""
    missing = False

    def move(part: Expr) -> Expr:
        nonlocal missing
        if isinstance(part, Name):
            if part.ref is None:
                return part
            refs = [n for n, other in enumerate(model.definitions[:before]) if other.name == part.name]
            group = [
                n for n, other in enumerate(model.definitions) if other.name == part.name and other.group is not None
            ]
            known = refs or group
            missing = missing or not known or model.definitions[known[-1]].kind is not part.kind
            return replace(part, ref=known[-1]) if known else part
        return rebuilt(part, move) if operands_of(part) else part

    moved = move(expr)
    return None if missing else moved


# ---- tests -----------------------------------------------------------------------------------------------------------


def _program(
    record: Record, first: Model, second: Model, names: tuple[str, str], changes: Sequence[RuleChange]
) -> RegressionTest | None:
    """A program as a test; None if its two answers do not differ in a word."""
    body = _asked(str(record["text"]), record.get("finding"))
    reports = [_report(f"PTX program\n{body}", model) for model in (first, second)]
    seen = [report.answer.observation for report in reports]
    if seen[0] is seen[1] or Observation.UNDECIDED in seen:
        return None
    direction = _direction(record, names[1])
    shows = [
        change for change in changes if _report(f"PTX program\n{body}", change.without).answer.observation is seen[0]
    ]
    rules = tuple(change.text for change in shows)
    words = (seen[0].value, seen[1].value)
    named = (named_for_tests(names[0]), named_for_tests(names[1]))
    sentence = f"{named[1]} {direction}: {'; '.join(rules) or 'several changes together'}"
    text = _written(sentence, named, body, reports, (first, second))
    rule = shows[0].rule if len(shows) == 1 else "changes"
    return RegressionTest(f"{rule}-{direction.split()[0]}", text, int(record["size"]), direction, rules, words)


def _written(
    sentence: str, names: tuple[str, str], body: str, reports: Sequence[Report], models: Sequence[Model]
) -> str:
    """The test less its title. The reasons name lines of the test as written, so it is judged as written."""
    words = [report.answer.observation for report in reports]
    expected = " ".join(f"{name}:{word.value}" for name, word in zip(names, words, strict=True) if " " not in name)
    text = ""
    for _ in range(3):
        reasons = ["// " + line for name, report in zip(names, reports, strict=True) for line in _reason(name, report)]
        quoted = sentence.replace('"', "'")
        head = [f'"{quoted}"', *reasons, *([f"Expect={expected}"] if expected else [])]
        before, text = text, "\n".join([*head, body])
        if text == before:
            break
        reports = [_report(f"PTX program\n{text}", model) for model in models]
        if [report.answer.observation for report in reports] != words:
            raise InternalError(f"a regression test has another answer once it is written:\n{text}")
    return text


def _asked(text: str, flag: str | None) -> str:
    """The program with its question and without its head; of a finding, the question whether there is one."""
    lines = [line for line in text.splitlines()[1:] if not line.startswith("Expect=")]
    words = [word for word in FINDINGS if flag is not None and is_called(flag, word)]
    if words:
        while lines and not lines[-1].strip():
            lines.pop()
        lines[-1] = f"exists {words[0]}"
    return "\n".join(lines).strip("\n") + "\n"


def _direction(record: Record, second: str) -> str:
    more = record["allows"] == second
    if record.get("finding") is not None:
        return "reports more" if more else "reports less"
    return "allows more" if more else "forbids more"


def _report(text: str, model: Model) -> Report:
    return api.check(text, model)


def _reason(name: str, report: Report) -> list[str]:
    """What a model says of a program, without the execution."""
    lines = []
    for line in replace(report, warnings=(), expected=None).explain().splitlines()[1:]:
        if "an execution" in line or "at the start" in line:
            break
        lines.append(line.strip())
    return [f"{name}: {report.answer.observation.value}", *(f"  {line}" for line in lines[:_REASONS])]


def named_for_tests(name: str) -> str:
    """How an Expect line names a model: a shipped one by its name, any other by its file."""
    return name if is_shipped(name) or " " in name else Path(name).name

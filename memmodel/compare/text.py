"""How two models differ, as text, as Markdown for a review comment, and as JSON.

In: results, the two names. Out: text. Settled here: an explanation says what each model makes of one final state, or of
the findings that only one of them has; findings that both have are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memmodel.answer import FinalValues, Finding
from memmodel.compare.judge import Contrast, Direction
from memmodel.compare.run import FileFault, FileResult
from memmodel.report.execution import Style, plain
from memmodel.report.findings import sentence
from memmodel.report.report import Report

if TYPE_CHECKING:
    from memmodel.records.compare import ContrastRecord

Names = tuple[str, str]

MOST = 5
"""Final states and findings that are listed; the rest is counted."""


def summary(results: Sequence[FileResult], names: Names) -> str:
    """`26 tests under ptx-9.3 and total: 1 differs (total forbids more), 25 are the same`."""
    every = [one for result in results for one in result.contrasts]
    differ = [one for one in every if one.differs]
    undecided = sum(bool(one.undecided) and not one.differs for one in every)
    undecided += sum(result.fault is FileFault.UNDECIDED for result in results)
    counts = {way: sum(one.direction is way for one in differ) for way in Direction}
    ways = ", ".join(f"{names[1]} {way.value} in {number}" for way, number in counts.items() if number)
    same = len(every) - len(differ) - sum(bool(one.undecided) and not one.differs for one in every)
    files = len(results)
    parts = [f"{len(differ)} differ{'s' if len(differ) == 1 else ''}" + (f" ({ways})" if ways else "")]
    parts.append(f"{same} the same")
    parts.append(f"{undecided} undecided")
    if bad := sum(result.fault in (FileFault.BAD, FileFault.INTERNAL) for result in results):
        parts.append(f"{bad} bad")
    head = f"{files} test{'' if files == 1 else 's'}"
    if len(every) > files:
        head += f", {len(every)} questions,"
    return f"{head} under {names[0]} and {names[1]}: {', '.join(parts)}"


def lines(found: Contrast, names: Names, style: Style = plain) -> list[str]:
    """A contrast as lines: what differs, then what each model says of it."""
    told = [f"{style(_where(found), 'title')}: {names[1]} {style(found.direction.value, 'bad')}"]
    told += [f"  {line}" for line in _facts(found, names)]
    for number, name in enumerate(names):
        told.append(f"  {style(name, 'name')}:")
        told += [f"    {line}" for line in _explanation(found, number)]
    return told


def undecided_line(found: Contrast) -> str:
    """Why a question without a known difference was not compared to the end."""
    return f"{_where(found)}: undecided: {found.undecided}"


def markdown(results: Sequence[FileResult], names: Names) -> str:
    """A comment for a review: the sum, a table, and what each model says, folded."""
    every = [one for result in results for one in result.contrasts]
    differ = [one for one in every if one.differs]
    told = [f"**{_escaped(summary(results, names))}**", ""]
    if differ:
        told += [f"| test | {_escaped(names[0])} | {_escaped(names[1])} | {_escaped(names[1])} |", "|---|---|---|---|"]
        for one in differ:
            words = [_code(report.answer.observation.value) for report in one.reports]
            told.append(f"| {_code(_where(one))} | {words[0]} | {words[1]} | {one.direction.value} |")
        told.append("")
    for one in differ:
        body = lines(one, names)[1:]
        told += ["<details>", f"<summary><code>{_html(_where(one))}</code></summary>", ""]
        told += ["```text", *(line.replace("```", "` ` `") for line in body), "```", "", "</details>", ""]
    undecided = [undecided_line(one) for one in every if one.undecided and not one.differs]
    undecided += [result.message.split("\n")[0] for result in results if result.fault is not FileFault.NONE]
    told += [f"- {_code(line)}" for line in undecided]
    return "\n".join(told).rstrip("\n")


def record(results: Sequence[FileResult], names: Names) -> dict[str, object]:
    """Everything as JSON values, keys in the order of docs/regression.md."""
    from memmodel.records.compare import DiffRecord, FaultRecord, UncomparedRecord

    every = [one for result in results for one in result.contrasts]
    return DiffRecord(
        first=names[0],
        second=names[1],
        tests=len(results),
        questions=len(every),
        differ=tuple(_contrast(one, names) for one in every if one.differs),
        undecided=tuple(
            UncomparedRecord(path=one.path, test=one.test, question=one.number + 1, reason=one.undecided)
            for one in every
            if one.undecided
        ),
        errors=tuple(
            FaultRecord(path=result.path, kind=result.fault.value, message=result.message)
            for result in results
            if result.fault is not FileFault.NONE
        ),
    ).json_values()


# ---- below -----------------------------------------------------------------------------------------------------------


def _where(found: Contrast) -> str:
    return f"{found.path}#{found.number + 1}" if found.number else found.path


def _facts(found: Contrast, names: Names) -> list[str]:
    """What differs, in lines."""
    words = [report.answer.observation.value for report in found.reports]
    told = []
    if words[0] != words[1]:
        told.append(f"{found.reports[0].question}: {words[0]} under {names[0]}, {words[1]} under {names[1]}")
    for states, name in zip((found.gone, found.new), names, strict=True):
        told += _listed([_state(one) for one in states], f"final state{{s}} only under {name}")
    for findings, name in zip((found.fewer, found.more), names, strict=True):
        told += _listed([sentence(one) for one in findings], f"finding{{s}} only under {name}")
    return told


def _listed(items: list[str], what: str) -> list[str]:
    if not items:
        return []
    told = [f"{len(items)} {what.format(s='' if len(items) == 1 else 's')}:"]
    told += [f"  {item}" for item in items[:MOST]]
    return told + ([f"  … and {len(items) - MOST} more"] if len(items) > MOST else [])


def _state(state: FinalValues) -> str:
    values = "  ".join(f"{name} = {value}" for name, value in state.values)
    return values or "(every thread ends; no register or location to show)"


def _explanation(found: Contrast, number: int) -> list[str]:
    """What one model says of the difference."""
    told: list[str] = []
    if found.asked is not None:
        report = found.asked[number]
        bare = replace(report, expected=None, warnings=(), answer=replace(report.answer, findings=(), unsearched=""))
        told += bare.explain().splitlines()
    own = (found.fewer, found.more)[number]
    if own:
        told += _with_only(found.reports[number], own)
    elif found.fewer or found.more:
        told.append(f"none of the findings that are only under {found.reports[1 - number].model}")
    return told


def _with_only(report: Report, findings: tuple[Finding, ...]) -> list[str]:
    """A report's lines on some of its findings."""
    from memmodel.report.findings import finding_lines

    answer = replace(report.answer, findings=findings, with_condition=None, witness=None, counter=None)
    return [line.removeprefix("  ") for line in finding_lines(replace(report, answer=answer), plain, {})]


def _contrast(found: Contrast, names: Names) -> ContrastRecord:
    from memmodel.records.compare import ContrastRecord
    from memmodel.report.record import finding

    first, second = found.reports
    return ContrastRecord(
        path=found.path,
        test=found.test,
        question=first.question,
        number=found.number + 1,
        direction=found.direction.name.lower(),
        observations=(first.answer.observation.value, second.answer.observation.value),
        states_only_first=tuple(dict(state.values) for state in found.gone),
        states_only_second=tuple(dict(state.values) for state in found.new),
        findings_only_first=tuple(finding(first, one) for one in found.fewer),
        findings_only_second=tuple(finding(second, one) for one in found.more),
        explanations={name: "\n".join(_explanation(found, side)) for side, name in enumerate(names)},
        undecided=found.undecided,
    )


def _code(text: str) -> str:
    return "`" + text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"


def _escaped(text: str) -> str:
    for mark in "\\`*_|<>":
        text = text.replace(mark, f"\\{mark}")
    return text


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

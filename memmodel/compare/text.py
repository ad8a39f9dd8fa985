"""How two models differ, as text, as Markdown for a review comment, and as JSON.

In: results, the two names. Out: text. Settled here: an explanation says what each model makes of one final state, or of
the findings that only one of them has; findings that both have are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from memmodel.answer import FinalValues, Finding
from memmodel.batch import Outcome
from memmodel.compare.judge import Contrast, Direction
from memmodel.compare.run import FileResult
from memmodel.report.execution import Style, plain
from memmodel.report.findings import sentence
from memmodel.report.report import Report

if TYPE_CHECKING:
    from memmodel.records.compare import ContrastRecord

Names = tuple[str, str]

MOST = 5
"""Final states and findings that are listed; the rest is counted."""


def summary(results: Sequence[FileResult], names: Names) -> str:
    """`26 tests under ptx-9.4 and total: 1 differs (total forbids more), 25 are the same`."""
    every = [contrast for result in results for contrast in result.contrasts]
    differ = [contrast for contrast in every if contrast.differs]
    undecided = sum(bool(contrast.undecided) and not contrast.differs for contrast in every)
    failures = [result.failure for result in results if result.failure is not None]
    undecided += sum(failure.outcome is Outcome.UNDECIDED for failure in failures)
    counts = {way: sum(contrast.direction is way for contrast in differ) for way in Direction}
    ways = ", ".join(f"{names[1]} {way.value} in {number}" for way, number in counts.items() if number)
    same = len(every) - len(differ) - sum(bool(contrast.undecided) and not contrast.differs for contrast in every)
    files = len(results)
    parts = [f"{len(differ)} differ{'s' if len(differ) == 1 else ''}" + (f" ({ways})" if ways else "")]
    parts.append(f"{same} the same")
    parts.append(f"{undecided} undecided")
    if bad := sum(failure.outcome is not Outcome.UNDECIDED for failure in failures):
        parts.append(f"{bad} bad")
    head = f"{files} test{'' if files == 1 else 's'}"
    if len(every) > files:
        head += f", {len(every)} questions,"
    return f"{head} under {names[0]} and {names[1]}: {', '.join(parts)}"


def lines(contrast: Contrast, names: Names, style: Style = plain) -> list[str]:
    """A contrast as lines: what differs, then what each model says of it."""
    written = [f"{style(_where(contrast), 'title')}: {names[1]} {style(contrast.direction.value, 'bad')}"]
    written += [f"  {line}" for line in _facts(contrast, names)]
    for number, name in enumerate(names):
        written.append(f"  {style(name, 'name')}:")
        written += [f"    {line}" for line in _explanation(contrast, number)]
    return written


def undecided_line(contrast: Contrast) -> str:
    """Why a question without a known difference was not compared to the end."""
    return f"{_where(contrast)}: undecided: {contrast.undecided}"


def markdown(results: Sequence[FileResult], names: Names) -> str:
    """A comment for a review: the sum, a table, and what each model says, folded."""
    every = [contrast for result in results for contrast in result.contrasts]
    differ = [contrast for contrast in every if contrast.differs]
    written = [f"**{_escaped(summary(results, names))}**", ""]
    if differ:
        written += [
            f"| test | {_escaped(names[0])} | {_escaped(names[1])} | direction |",
            "|---|---|---|---|",
        ]
        for contrast in differ:
            words = [_code(report.answer.observation.value) for report in contrast.reports]
            written.append(f"| {_code(_from_here(contrast))} | {words[0]} | {words[1]} | {contrast.direction.value} |")
        written.append("")
    for contrast in differ:
        body = lines(contrast, names)[1:]
        written += ["<details>", f"<summary><code>{escape(_from_here(contrast), quote=False)}</code></summary>", ""]
        written += ["```text", *(line.replace("```", "` ` `") for line in body), "```", "", "</details>", ""]
    undecided = [undecided_line(contrast) for contrast in every if contrast.undecided and not contrast.differs]
    undecided += [result.failure.message.split("\n")[0] for result in results if result.failure is not None]
    written += [f"- {_code(line)}" for line in undecided]
    return "\n".join(written).rstrip("\n")


def record(results: Sequence[FileResult], names: Names) -> dict[str, object]:
    """Everything as JSON values, keys in the order of docs/regression.md."""
    from memmodel.records.compare import DiffRecord, FaultRecord, UncomparedRecord

    every = [contrast for result in results for contrast in result.contrasts]
    return DiffRecord(
        first=names[0],
        second=names[1],
        tests=len(results),
        questions=len(every),
        differ=tuple(_contrast(contrast, names) for contrast in every if contrast.differs),
        undecided=tuple(
            UncomparedRecord(
                path=contrast.path, test=contrast.test, question=contrast.number + 1, reason=contrast.undecided
            )
            for contrast in every
            if contrast.undecided
        ),
        errors=tuple(
            FaultRecord(path=result.path, kind=result.failure.outcome.value, message=result.failure.message)
            for result in results
            if result.failure is not None
        ),
    ).json_values()


# ---- below -----------------------------------------------------------------------------------------------------------


def _where(contrast: Contrast) -> str:
    return f"{contrast.path}#{contrast.number + 1}" if contrast.number else contrast.path


def _from_here(contrast: Contrast) -> str:
    """The same with a path as it is from here, if the file is below: a reviewer has the files elsewhere."""
    try:
        path = Path(contrast.path).resolve().relative_to(Path.cwd().resolve())
    except (OSError, ValueError):
        return _where(contrast)
    return _where(replace(contrast, path=str(path)))


def _facts(contrast: Contrast, names: Names) -> list[str]:
    """What differs, in lines."""
    words = [report.answer.observation.value for report in contrast.reports]
    facts = []
    if words[0] != words[1]:
        facts.append(f"{contrast.reports[0].question}: {words[0]} under {names[0]}, {words[1]} under {names[1]}")
    for states, name in zip((contrast.lost_outcomes, contrast.new), names, strict=True):
        facts += _listed([_state(final_values) for final_values in states], f"final state{{s}} only under {name}")
    for findings, name in zip((contrast.fewer, contrast.more), names, strict=True):
        facts += _listed([sentence(finding) for finding in findings], f"finding{{s}} only under {name}")
    return facts


def _listed(items: list[str], what: str) -> list[str]:
    if not items:
        return []
    written = [f"{len(items)} {what.format(s='' if len(items) == 1 else 's')}:"]
    written += [f"  {item}" for item in items[:MOST]]
    return written + ([f"  … and {len(items) - MOST} more"] if len(items) > MOST else [])


def _state(state: FinalValues) -> str:
    values = "  ".join(f"{name} = {value}" for name, value in state.values)
    return values or "(every thread ends; no register or location to show)"


def _explanation(contrast: Contrast, number: int) -> list[str]:
    """What one model says of the difference."""
    written: list[str] = []
    if contrast.asked is not None:
        report = contrast.asked[number]
        bare = replace(report, expected=None, warnings=(), answer=replace(report.answer, findings=(), unsearched=""))
        written += bare.explain().splitlines()
    own = (contrast.fewer, contrast.more)[number]
    if own:
        written += _with_only(contrast.reports[number], own)
    elif contrast.fewer or contrast.more:
        written.append(f"none of the findings that are only under {contrast.reports[1 - number].model}")
    return written


def _with_only(report: Report, findings: tuple[Finding, ...]) -> list[str]:
    """A report's lines on some of its findings."""
    from memmodel.report.findings import finding_lines

    answer = replace(report.answer, findings=findings, with_condition=None, witness=None, counter=None)
    return [line.removeprefix("  ") for line in finding_lines(replace(report, answer=answer), plain, {})]


def _contrast(contrast: Contrast, names: Names) -> ContrastRecord:
    from memmodel.records.compare import ContrastRecord
    from memmodel.report.record import finding

    first, second = contrast.reports
    return ContrastRecord(
        path=contrast.path,
        test=contrast.test,
        question=first.question,
        number=contrast.number + 1,
        direction=contrast.direction.name.lower(),
        observations=(first.answer.observation.value, second.answer.observation.value),
        states_only_first=tuple(dict(state.values) for state in contrast.lost_outcomes),
        states_only_second=tuple(dict(state.values) for state in contrast.new),
        findings_only_first=tuple(finding(first, fewer) for fewer in contrast.fewer),
        findings_only_second=tuple(finding(second, more) for more in contrast.more),
        explanations={name: "\n".join(_explanation(contrast, side)) for side, name in enumerate(names)},
        undecided=contrast.undecided,
    )


def _code(text: str) -> str:
    return "`" + text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"


def _escaped(text: str) -> str:
    for mark in "\\`*_|<>":
        text = text.replace(mark, f"\\{mark}")
    return text

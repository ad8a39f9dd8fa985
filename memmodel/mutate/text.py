"""What `mutate-model` says: lines for a person, JSON for a program.

In: Strength. Out: text, StrengthRecord.
"""

from __future__ import annotations

from collections.abc import Iterator

from memmodel.mutate.outcome import EditResult, Fate, Strength
from memmodel.records.mutate import EditRecord, StrengthRecord
from memmodel.report.execution import Style, plain

_LONGEST = 100
"""Characters of an edit in a line; JSON has all of it."""

_ROLES = {
    Fate.FAILS: "good",
    Fate.DIFFERS: "warning",
    Fate.FOUND: "bad",
    Fate.SURVIVES: "bad",
    Fate.UNDECIDED: "undecided",
    Fate.EQUIVALENT: "name",
}


def lines(strength: Strength, *, everything: bool = False, style: Style = plain) -> Iterator[str]:
    """The edits that no Expect line notices, or `everything`, and the counts."""
    for result in strength.results:
        if everything or result.fate not in (Fate.FAILS, Fate.EQUIVALENT):
            yield f"{result.edit.place} {result.edit.rule}: {_short(result.edit.what)}"
            yield f"  {style(result.fate.value, _ROLES[result.fate])}{_details(result)}"
            if result.program:
                yield from (f"    {line}" for line in result.program.rstrip().splitlines())
    yield summary(strength)


def summary(strength: Strength) -> str:
    """`ptx-9.4: 1,700 of 1,750 edits told apart (97 %) by 1,207 tests; 12 equivalent, 50 survive`."""
    noticed = strength.count(Fate.FAILS, Fate.DIFFERS)
    judged = noticed + strength.count(Fate.FOUND, Fate.SURVIVES)
    parts = [
        f"{strength.count(fate):,} {words}"
        for fate, words in (
            (Fate.DIFFERS, "of them by an answer that no Expect line speaks of"),
            (Fate.FOUND, "only by a program that was found"),
            (Fate.SURVIVES, "by no test"),
            (Fate.EQUIVALENT, "equivalent"),
            (Fate.UNDECIDED, "undecided"),
        )
        if strength.count(fate)
    ]
    share = f" ({100 * strength.share:.1f} %)" if judged else ""
    tests = _of_tests(strength.tests)
    more = f"; {', '.join(parts)}" if parts else ""
    why = f"; {strength.reason}, {_of_tests(len(strength.unjudged))} not judged" if strength.reason else ""
    return f"{strength.model}: {noticed:,} of {judged:,} edits told apart{share} by {tests}{more}{why}"


def _of_tests(count: int) -> str:
    return f"{count:,} test{'' if count == 1 else 's'}"


def record(strength: Strength) -> StrengthRecord:
    """Everything as a record."""
    return StrengthRecord(
        model=strength.model,
        tests=strength.tests,
        share=round(strength.share, 4),
        counts={fate.value: strength.count(fate) for fate in Fate},
        unjudged=tuple(strength.unjudged),
        reason=strength.reason,
        edits=tuple(_edit(result) for result in strength.results),
    )


def _edit(result: EditResult) -> EditRecord:
    edit, notice = result.edit, result.notice
    return EditRecord(
        file=edit.span.source.name,
        line=edit.span.line,
        column=edit.span.column,
        rule=edit.rule,
        change=edit.change.value,
        what=edit.what,
        fate=result.fate.value,
        test=notice.test if notice else "",
        before=notice.before if notice else "",
        after=notice.after if notice else "",
        how=result.how,
        program=result.program,
    )


def _details(result: EditResult) -> str:
    notice = result.notice
    words = f": {notice.test}, {notice.before} becomes {notice.after}" if notice else ""
    return words + (f": {result.how}" if result.how else "")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

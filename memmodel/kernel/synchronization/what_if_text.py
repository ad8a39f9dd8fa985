"""What changes of a kernel would do, as text and as JSON values.

In: WhatIf. Out: lines; a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memmodel.kernel.order.verdict import KernelFinding
from memmodel.kernel.output.groups import groups
from memmodel.kernel.output.record import finding as finding_record
from memmodel.kernel.output.text import finding_lines, finding_name, headline
from memmodel.kernel.synchronization.report import place
from memmodel.kernel.synchronization.what_if import WhatIf, WhatIfBegun

SHOWN = 6
"""Findings, reasons and changed lines that are shown."""


def begun_lines(begun: WhatIfBegun) -> list[str]:
    """The verdict on the kernel as it is, and what is changed."""
    text = [headline(begun.before)]
    for change, phrase in list(zip(begun.changes, begun.phrases, strict=True))[:SHOWN]:
        becomes = f"becomes `{change.becomes}`" if change.becomes else "is dropped"
        text.append(f"what if {place(change.instruction)}: `{change.was}` {becomes}")
        text += [f"  it {phrase}"] if phrase else []
    more = len(begun.changes) - SHOWN
    return text + ([f"  and {more} more instructions"] if more > 0 else [])


def what_if_lines(asked: WhatIf) -> list[str]:
    """The verdict then, and what appears and goes."""
    text = [f"then {headline(asked.after)}", *_appearing(asked.appearing)]
    if asked.vanishing:
        names = [finding_name(group) for group in groups(asked.vanishing)]
        more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        text.append(f"gone: {', '.join(names[:SHOWN])}{more}")
    if not asked.appearing and not asked.vanishing:
        text.append("no finding appears, and none goes" + (", as far as it was judged" if asked.undecided else ""))
    text += [f"undecided: {reason}" for reason in asked.undecided[:SHOWN]]
    if asked.why:
        text.append(f"why: {asked.why}")
    if asked.needing:
        text.append(f"needed under {' and '.join(asked.needing)}")
    if asked.perhaps_needing:
        text.append(f"may be needed under {' and '.join(asked.perhaps_needing)}; see --readings")
    return text + [f"note: {note}" for note in asked.notes]


def _appearing(findings: Iterable[KernelFinding]) -> Iterator[str]:
    grouped = groups(findings)
    for group in grouped[:SHOWN]:
        first, *rest = finding_lines(group)
        yield f"appears: {first}"
        yield from rest
    if len(grouped) > SHOWN:
        yield f"and {len(grouped) - SHOWN} more findings appear"


def what_if_record(asked: WhatIf) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "entry": asked.before.entry,
        "changes": [
            {
                "line": change.instruction.line,
                "place": place(change.instruction),
                "phrase": phrase or None,
                "was": change.was,
                "becomes": change.becomes or None,
            }
            for change, phrase in zip(asked.changes, asked.phrases, strict=True)
        ],
        "before": asked.before.word,
        "after": asked.after.word,
        "appear": [finding_record(finding).json_values() for finding in asked.appearing],
        "go": [finding_record(finding).json_values() for finding in asked.vanishing],
        "undecided": asked.undecided,
        "why": asked.why or None,
        "needed_under": list(asked.needing),
        "may_be_needed_under": list(asked.perhaps_needing),
        "notes": list(asked.notes),
    }

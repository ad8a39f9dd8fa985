"""Arrivals, commits and copies that signal another mbarrier object: one that a thread waits for in vain.

In: a lowered test, executions of it that hang. Out: changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memmodel.concrete.records import ObjectRecord
from memmodel.litmus.constants import instructions
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import OTHER
from memmodel.repair.edits import Edit, place
from memmodel.repair.judge import TextCounterexample
from memmodel.why.story import execution_of

SIGNALS = re.compile(r"mbarrier\.(arrive|expect_tx|complete_tx)|tcgen05\.commit|complete_tx::bytes")
OBJECT = re.compile(r"\[\s*([A-Za-z_$][\w$]*)(?:\s*\+\s*(\d+))?(\s*@\s*\w+)?\s*\]")
"""A variable, how many bytes on, and whose CTA's instance."""


def other_objects(lowered: LoweredTest, hangs: Iterable[TextCounterexample]) -> Iterator[Edit]:
    """The same instructions on an object for whose phase a thread waits for ever."""
    wanted = dict.fromkeys(name for hang in hangs for name in _awaited(hang))
    uses = (item.span.text for thread in lowered.test.threads for item in instructions(thread))
    objects = {match[1] for text in uses if text.lstrip().startswith("mbarrier.") for match in OBJECT.finditer(text)}
    objects |= {variable.name for variable in lowered.test.variables if variable.mbarrier is not None}
    for number, thread in enumerate(lowered.test.threads):
        for index, item in enumerate(instructions(thread)):
            named = [match for match in OBJECT.finditer(item.span.text) if match[1] in objects]
            if not SIGNALS.search(item.mnemonic) or not named:
                continue
            now = named[-1]  # an object is the last place of a copy that is named
            for name, offset in wanted:
                if (name, offset) != (now[1], int(now[2] or 0)):
                    text = f"[{name}{f'+{offset}' if offset else ''}{now[3] or ''}]"
                    what = f"{place(thread, item)}: {now[0]} -> {text} in {item.mnemonic}"
                    start = item.span.start + now.start()
                    yield Edit(start, start + len(now[0]), text, what, OTHER, (number, index, "name"))


def _awaited(hang: TextCounterexample) -> Iterator[tuple[str, int]]:
    """The objects that waiting threads test last, by their variables and how many bytes on."""
    execution = execution_of(hang.witness)
    for trace in () if execution is None else execution.frame.traces:
        last = trace.records[-1] if trace.records else None
        if trace.ending.first is not None and isinstance(last, ObjectRecord):
            yield last.object.instance.name, last.object.first

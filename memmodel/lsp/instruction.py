"""The text about an instruction in an editor: its row of the table, and the rules of the model about its events.

In: a mnemonic, its steps. Out: Markdown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from textwrap import shorten

from memmodel.base.labels import Label
from memmodel.base.sets import SETS
from memmodel.cat.analysis import names_in
from memmodel.cat.syntax import Check, Definition, Model
from memmodel.isa.document import entry
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.spelling import Refusal
from memmodel.isa.table import HEADS
from memmodel.lint.advice import part_label
from memmodel.litmus.syntax import Layout
from memmodel.program.ops import IssueAsync, Op

MOST_RULES = 8

COMMON = frozenset({"M", "R", "W", "_", "ASYNC", "ISSUE", "CTA", "CLUSTER", "GPU", "SYS"})
"""Sets of events of too many instructions: a rule that names such a set is not about one of these instructions."""


def row_of(mnemonic: str) -> Row | None:
    """The row of an incomplete or illegal mnemonic, by its first words."""
    parts = mnemonic.split(".")[:24]
    heads = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((HEADS[head] for head in heads if head in HEADS), None)


def described(mnemonic: str, layout: Layout, ops: Iterable[Op], model: Model) -> str | None:
    """The entry of a mnemonic in the table, with the rules of the model; for an unknown one, the error."""
    reading = read_mnemonic(mnemonic, layout, HEADS)
    if isinstance(reading, Refusal):
        row = row_of(mnemonic)
        if row is None:
            return f"{reading.message}\n\n{reading.hint or ''}".strip()
        hint = f" ({reading.hint})" if reading.hint else ""
        text = f"**{reading.message}**{hint}\n\n{entry(row)}"
    else:
        text = entry(reading.row)
    rules = rules_of(ops, model)
    if rules:
        paragraph = f"\n\nRules of {model.name} that speak of it:\n\n" + "\n".join(rules) + "\n"
        about, mark, illegal = text.partition("\n- Illegal")
        text = about.rstrip() + paragraph + (f"\nWhat is illegal:\n{mark}{illegal}" if mark else "")
    return text


def labels_of(ops: Iterable[Op]) -> Iterator[Label]:
    """The labels of the events that steps make."""
    for op in ops:
        label = getattr(op, "label", None)
        if label is not None:
            yield label
        if isinstance(op, IssueAsync):
            for part in op.parts:
                yield part_label(part)


def rules_of(ops: Iterable[Op], model: Model) -> list[str]:
    """Definitions and checks that name a set with one of the events; those with the rarest sets come first."""
    labels = list(labels_of(ops))
    mine = {
        row.name for row in SETS if row.holds is not None and not row.placed and any(map(row.holds, labels))
    } - COMMON
    rules: tuple[Definition | Check, ...] = (*model.definitions, *model.checks)
    bodies = [(rule.name, rule.doc, frozenset(name.name for name in names_in(rule.body) if name.ref is None))
              for rule in rules]  # fmt: skip
    often = Counter(name for _, _, names in bodies for name in names)
    scored = []
    for place, (name, doc, names) in enumerate(bodies):
        common = names & mine
        if common:
            scored.append((-sum(1 / often[shared] for shared in common), place, name, doc, sorted(common)))
    return [
        f"- `{name}` ({', '.join(sets)}){': ' + shorten(' '.join(doc.split()), 200, placeholder=' …') if doc else ''}"
        for _, _, name, doc, sets in sorted(scored)[:MOST_RULES]
    ]

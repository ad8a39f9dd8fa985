"""Read a mnemonic against the rows of the table: which row, which word in which slot, and what is illegal about it.

In: a mnemonic, the layout it stands in, and the rows by head. Out: a `Reading`, or a `Refusal` that says what is wrong.
Settled here: unknown, repeated, contradictory, missing and misplaced qualifiers. Operands are the business of `call`.
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.errors import nearest
from memmodel.isa.refused import refusal
from memmodel.isa.rows.cases import covers
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.slots import Need, Slot
from memmodel.isa.rows.spelling import Refusal, Spelling
from memmodel.litmus.syntax import Layout

MAX_PARTS = 24
"""More dots than any PTX mnemonic has; a longer one is not worth taking apart."""

MAX_SHOWN = 6
"""A family with more instructions than this is not listed in a hint."""


def read_mnemonic(mnemonic: str, layout: Layout, heads: Mapping[str, Row]) -> Spelling | Refusal:
    """Sort the qualifiers of `mnemonic` into the slots of its row. `heads` finds a row by each of its heads."""
    parts = mnemonic.split(".")
    if len(parts) > MAX_PARTS:
        return Refusal(f"a mnemonic with {len(parts)} dotted parts", f"no PTX instruction has more than {MAX_PARTS}")
    longest = next(
        ((row, length) for length in range(len(parts), 0, -1) if (row := heads.get(".".join(parts[:length])))), None
    )
    named = refusal(mnemonic)
    if named is not None and (longest is None or len(named[0].split(".")) > longest[1]):
        return Refusal(f"{named[0]} is not modelled: {named[1]}", None, None)
    if longest is None:
        if layout is not Layout.MODULE:
            heads = {head: row for head, row in heads.items() if not row.modules}
        return _unknown_instruction(mnemonic, heads)
    row, length = longest
    head = ".".join(parts[:length])
    if row.columns and layout is not Layout.COLUMNS:
        return Refusal(f"{head} is a word of the column layout; PTX has no such instruction", None, 0)
    if row.modules and layout is not Layout.MODULE:
        return Refusal(f"{head} is for compiled modules; litmus tests do not have it", None, 0)
    words: dict[str, str] = {}
    where: dict[str, int] = {}
    for position in range(length, len(parts)):
        word = parts[position]
        slot = _slot_for(word, row, words, layout)
        if isinstance(slot, Refusal):
            longer = nearest(word, [name.removeprefix(f"{head}.") for name in heads if name.startswith(f"{head}.")])
            unknown = longer and slot.message.startswith("unknown")
            hint = f"did you mean '{head}.{longer}'?" if unknown else (slot.hint or "").replace("{head}", head)
            return Refusal(slot.message.replace("{head}", head), hint or None, position)
        words[slot.name], where[slot.name] = word, position
    return _check(row, head, words, where, layout)


def _unknown_instruction(mnemonic: str, heads: Mapping[str, Row]) -> Refusal:
    shown = mnemonic if len(mnemonic) <= 60 else mnemonic[:57] + "..."
    parts = mnemonic.split(".")
    for length in range(len(parts) - 1, 0, -1):
        family = [head for head in heads if head.split(".")[:length] == parts[:length]]
        if len(family) > MAX_SHOWN:
            parts_tried = (".".join(parts[:count]) for count in range(len(parts), length, -1))
            close = next((name for tried in parts_tried if (name := nearest(tried, family))), None)
            hint = f"did you mean '{close}'?" if close else "there is " + ", ".join(family[:MAX_SHOWN]) + ", ..."
            return Refusal(f"unknown instruction '{shown}'", hint)
        if family:
            return Refusal(f"unknown instruction '{shown}'", "there is " + ", ".join(family))
    close = nearest(parts[0], heads)
    return Refusal(f"unknown instruction '{shown}'", f"did you mean '{close}'?" if close else None)


def _slot_for(word: str, row: Row, taken: Mapping[str, str], layout: Layout) -> Slot | Refusal:
    """The slot that takes this word, or what is wrong with it."""
    module = layout is Layout.MODULE
    fitting = [slot for slot in row.slots if word in slot.words or (module and word in slot.modules)]
    for slot in fitting:
        if word in slot.columns and layout is not Layout.COLUMNS:
            return Refusal(*slot.refused.get(word, ("PTX has no {head}." + word, f"it has {_list(slot, layout)}")))
        if slot.name not in taken:
            return slot
    if fitting:
        other = taken[fitting[0].name]
        if other == word:
            return Refusal(f"'.{word}' is written twice", "once is enough")
        hint = f"each is {_article(fitting[0].what)}; keep the one that is meant"
        return Refusal(f"'.{other}' and '.{word}' exclude each other", hint)
    for slot in row.slots:
        if word in slot.refused:
            return Refusal(*slot.refused[word])
    known = list(dict.fromkeys(name for slot in row.slots for name in slot.words))
    close = nearest(word, known)
    shown = word if len(word) <= 40 else word[:37] + "..."
    if close:
        return Refusal(f"unknown qualifier '.{shown}' of {{head}}", f"did you mean '.{close}'?")
    return Refusal(f"unknown qualifier '.{shown}' of {{head}}", f"it takes {_few(known)}" if known else "it takes none")


def _check(row: Row, head: str, words: dict[str, str], where: dict[str, int], layout: Layout) -> Spelling | Refusal:
    """Everything about the words together: the row's own rules first, since they say why, then absence and order.

    A module may write what stands in a syntax line of the row, in any order.
    """
    columns, by_forms = layout is Layout.COLUMNS, layout is Layout.MODULE and bool(row.forms)
    form = next((form for form in row.forms if form.fits(words, row.slots, columns)), None)
    if by_forms and form is not None:
        return Spelling(row, head, words, where, form)
    for rule in row.rules:
        if covers(rule.case, words):
            part = where.get(rule.at) if rule.at else None
            return Refusal(rule.message.format(head=head, **words), rule.hint.format(head=head, **words), part)
    spelled = ".".join([head, *words.values()])
    for slot in () if by_forms else row.slots:
        if slot.name not in words and (slot.need is Need.ALWAYS or (slot.need is Need.BLOCKS and not columns)):
            message, hint = slot.missing or (f"{spelled} needs {_article(slot.what)}", f"one of {_list(slot, layout)}")
            return Refusal(message.replace("{head}", head), hint.replace("{head}", head))
    if row.forms and form is None:
        lines = [line for each in row.forms if (line := each.spelled(head, row.slots, modules=by_forms))]
        close = nearest(spelled, lines)
        lines = ([close] if close else []) + [line for line in lines if line != close]
        return Refusal(f"PTX has no {spelled}", "there is " + ", ".join(lines[:MAX_SHOWN]))
    placed = [where[slot.name] for slot in row.slots if slot.name in where]
    if row.ordered and placed != sorted(placed):
        ordered = ".".join([head, *(words[slot.name] for slot in row.slots if slot.name in words)])
        return Refusal(f"the qualifiers of {head} are out of order", f"write {ordered}")
    return Spelling(row, head, words, where, form)


def _list(slot: Slot, layout: Layout) -> str:
    words = (*slot.words, *(slot.modules if layout is Layout.MODULE else ()))
    return _few([word for word in words if layout is Layout.COLUMNS or word not in slot.columns])


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"


def _few(words: list[str]) -> str:
    return " ".join(f".{word}" for word in words[:24]) + (" ..." if len(words) > 24 else "")

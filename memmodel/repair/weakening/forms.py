"""The cheaper forms of what orders a test.

In: a lowered test. Out: for every instruction that may be narrowed the edits that do it, the cheapest first. Settled
here: what the forms are, and the words that say why a cheaper one is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memmodel.isa.lower import read_instruction
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.synchronization.fence_async import READS
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR, cost
from memmodel.repair.edits import Edit, place, respelled, whole
from memmodel.repair.insertion.gaps import gaps
from memmodel.repair.spellings import RESTRICTED, apart, is_fence, narrowest

RESTRICTION = "sync_restrict"
"""What a form says that is about some memory alone: of two that cost the same, the other one is tried first."""

COUNTED = "wgmma.fence"
"""The fence that is counted as well, for what the page of wgmma.mma_async calls undefined."""

NOT_NEEDED = "what is forbidden stays forbidden without it"
ONLY_SHARED = "only shared memory is handed over"
ONLY_READ = "its thread has only read what is handed over"
ONLY_SOURCES = "only the reads of the copies have to be over"


def sites(lowered: LoweredTest) -> list[list[Edit]]:
    """For every instruction that may be narrowed, its cheaper forms, the cheapest first."""
    test = lowered.test
    sites: list[list[Edit]] = []
    for number, thread in enumerate(test.threads):
        for index, item in enumerate(instructions(thread)):
            now = cost(read_instruction(item, test))
            site: list[Edit] = []
            group = (number, index)
            if is_fence(lowered, number, index) or item.mnemonic.startswith(COUNTED):
                what = f"{place(thread, item)}: drop {item.mnemonic}: {NOT_NEEDED}"
                site.append(Edit(*whole(item), "", what, -now, group))
            for mnemonic, spelling in narrowest(item, test):
                saved = now - cost(spelling)
                if saved > 0:
                    why = f": {_why(read_instruction(item, test), spelling)}"
                    site.append(respelled(thread, item, mnemonic, -saved, group, what=why))
            site += _apart(lowered, number, index, item, now)
            if site:
                sites.append(sorted(site, key=lambda edit: (edit.cost, RESTRICTION in edit.text)))
    return sites


def _why(old: Spelling, new: Spelling) -> str:
    """Why a weaker spelling is enough, where it is."""
    before, after = dict(old.words), dict(new.words)
    if after.get("restrict") == READS:
        return ONLY_READ
    if "restrict" in after:
        return ONLY_SHARED
    if "read" in after and "read" not in before:
        return ONLY_SOURCES
    if after.get("space") != before.get("space"):
        return f"only .{after['space']} memory is accessed through both proxies"
    sem, scope = (after.get(slot) if after.get(slot) != before.get(slot) else None for slot in ("sem", "scope"))
    if sem is None:
        return f".{scope or after.get('level', 'cta')} takes in all threads that it has to reach"
    wide = f", and .{scope} takes in all threads that it has to reach" if scope and before.get("scope") else ""
    if wide and sem == "relaxed" and new.head.startswith("mbarrier."):  # the object may be of another CTA
        wide = f", and the object {'counts it' if 'wait' not in new.head else 'is seen'} whatever its scope"
    return f"as .{sem} it orders all that it has to{wide}"


def _apart(lowered: LoweredTest, number: int, index: int, item: Instruction, now: float) -> Iterator[Edit]:
    """A relaxed operation, and a fence for shared memory alone in front of a release or after an acquire."""
    test, thread = lowered.test, lowered.test.threads[number]
    parts = apart(item, test)
    if parts is None:
        return
    sem, mnemonic, spelling = parts
    fence = RESTRICTED[sem]
    openings = [gap for gap in gaps(lowered, number) if not gap.last]
    if sem == "release":
        gap = next((gap for gap in openings if gap.index == index), None)
    else:
        gap = next((gap for gap in openings if gap.index > index), None)
    saved = now - cost(spelling) - OTHER - SCOPE_COST["cta"] * SEM_FACTOR[sem]
    if gap is None or saved <= 0:
        return
    what = f", with {fence} {gap.where}: {ONLY_SHARED}"
    edit = respelled(thread, item, mnemonic, -saved, (number, index), what=what)
    start, text = gap.put(f"{fence};")
    yield replace(edit, more=(Edit(start, start, text, edit.what, 0.0, (number, gap.index, fence)),))

"""Which changes of an instruction are offered: by the table, for every row in each of its spellings."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from helpers.examples import share
from helpers.kernel.one_table import spellings

from kernel.machine.test_every_row import SAMPLES, fitted, spelling_of
from memmodel.isa.mnemonic import read_mnemonic
from memmodel.isa.rows.row import Effect
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.table import HEADS
from memmodel.kernel.mutate.mutations import NOTHING, REMOVED, Mutation, mutations
from memmodel.litmus.syntax import Layout
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

VARIABLES = "src flat other map dst made both gmap smap all copies held le out twin sums fixed tile bar"
HEAD = (
    ".version 9.4\n.target sm_103a\n.address_size 64\n.visible .entry k()\n{\n"
    + ".reg .pred %p<64>; .reg .b16 %h<64>; .reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .b128 %q<64>; "
    + "".join(f".shared .align 128 .b8 {name}[1024]; " for name in VARIABLES.split())
)  # fmt: skip
SCOPES = ("cta", "cluster", "gpu", "sys")
WEAKER = {
    "sc": ("acq_rel", "release", "acquire", "relaxed"),
    "acq_rel": ("release", "acquire", "relaxed"),
    "acquire": ("relaxed",),
    "release": ("relaxed",),
    **{scope: (SCOPES[number], SCOPES[0]) for number, scope in enumerate(SCOPES[1:])},
}
"""What is weaker than a word, as far as it is offered: the next narrower scope, and the narrowest."""

STAYS = {
    "mbarrier.check_layout": "it orders nothing",
    "mbarrier.complete_tx": "copies do that",
    "fabric.submit": "no launch says what an endpoint is bound to",
    "fabric.wait": "no launch says what an endpoint is bound to",
    "tcgen05.alloc": "without memory there is no kernel",
    "tcgen05.dealloc": "without memory there is no kernel",
    "tcgen05.relinquish_alloc_permit": "it orders nothing",
    "setmaxnreg": "it orders nothing",
    **dict.fromkeys(
        ("vote.sync", "vote", "redux.sync", "match.any.sync", "match.all.sync", "shfl.sync", "shfl", "elect.sync",
         "activemask"), "it computes what others go on with",
    ),
}  # fmt: skip
"""Rows that synchronize and are never removed, and why."""

ONE_WAY = re.compile(r"fence\.(sc|acq_rel)\.\w+;")
OTHERS = re.compile(r"barrier\.cluster|membar\.gl|fence\.proxy\.async")
"""Words that are no semantics and no scope, or another weaker word."""


def offered(*lines: str) -> list[list[Mutation]]:
    """The changes of each line."""
    (entry,) = parse_module(Source("k.ptx", "\n".join([HEAD, *lines, "ret;\n}\n"]))).functions.values()
    changes: list[list[Mutation]] = [[] for _ in entry.body or ()]
    for change in mutations(entry):
        changes[change.instruction.number].append(change)
    return changes[: len(lines)]


def weaker(line: str) -> Iterator[str]:
    """Each weaker form of a line that the table has."""
    mnemonic = line.split()[0].rstrip(";")
    words = mnemonic.split(".")
    for number, word in enumerate(words):
        for other in WEAKER.get(word, ()):
            text = ".".join([*words[:number], other, *words[number + 1 :]])
            if isinstance(read_mnemonic(text, Layout.MODULE, HEADS), Spelling):
                yield f".{word} becomes .{other}"


EVERY = {fitted(line) for sample in SAMPLES for line in spellings(sample)}
LINES = sorted(line for line in EVERY if line.endswith(";"))  # others have a label
OF_HEAD: dict[str, list[str]] = {}
for written in LINES:
    OF_HEAD.setdefault(spelling_of(written).head, []).append(written)


def test_an_instruction_can_be_weakened_where_the_table_has_a_weaker_one() -> None:
    lines = share(LINES, 2)
    for line, changes in zip(lines, offered(*lines), strict=True):
        words = {change.what for change in changes if " becomes " in change.what}
        expected = set(weaker(line))
        if ONE_WAY.match(line):
            expected = {change for change in expected if not change.endswith(("release", "acquire"))}
        assert words == expected or OTHERS.match(line), line


@pytest.mark.parametrize("head", [head for head, row in HEADS.items() if row.effect is Effect.SYNCHRONIZES])
def test_what_synchronizes_can_be_removed(head: str) -> None:
    lines = OF_HEAD.get(head, [])
    for line, changes in zip(lines, offered(*lines), strict=True):
        removed = [change.becomes.words for change in changes if change.what == REMOVED]
        assert removed in ([NOTHING], [("mov", "pred")]) or (not removed and head in STAYS), line


# ---- numbers -------------------------------------------------------------------------------------------------------

NUMBERS = {
    "mbarrier.init.shared.b64 [bar], 2;": {"1 more arrival": 3, "1 fewer arrival": 1},
    "mbarrier.init.shared.b64 [bar], 1;": {"1 more arrival": 2},
    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 32;": {"16 more bytes": 48, "16 fewer bytes": 16},
    "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;": {"16 more bytes": 32},
    "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 17;": {"16 more bytes": 33, "16 fewer bytes": 1},
    "mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1;": {"the other parity": 0},
    "mbarrier.try_wait.parity.shared.b64 %p1, [bar], %r1;": {},
    "mbarrier.try_wait.shared.b64 %p1, [bar], %rd1;": {},
    "bar.sync 1, 64;": {"32 more threads": 96},
    "bar.sync 1;": {},
    "barrier.cta.arrive 1, 64;": {"32 more threads": 96},
    "barrier.cta.sync 1, %r1;": {},
    "bar.warp.sync 3;": {},
    "cp.async.wait_group 0;": {"one more group may be open": 1},
    "cp.async.bulk.wait_group.read 1;": {"one more group may be open": 2},
    "cp.async.wait_all;": {},
}


@pytest.mark.parametrize("line", NUMBERS)
def test_numbers_that_are_wrong(line: str) -> None:
    changed = {
        change.what: change.becomes.operands[-1]
        for change in offered(line)[0]
        if change.becomes.words == change.instruction.words
    }
    assert {what: getattr(operand, "value", None) for what, operand in changed.items()} == NUMBERS[line]


RELAXED = {
    "mbarrier.arrive.shared.b64 _, [bar];": "mbarrier.arrive.relaxed.cta.shared.b64",
    "mbarrier.arrive.release.cluster.shared.b64 _, [bar];": "mbarrier.arrive.relaxed.cluster.shared.b64",
    "mbarrier.try_wait.shared.b64 %p1, [bar], %rd1;": "mbarrier.try_wait.relaxed.cta.shared.b64",
    "mbarrier.try_wait.acquire.cluster.shared.b64 %p1, [bar], %rd1;": "mbarrier.try_wait.relaxed.cluster.shared.b64",
    "barrier.cluster.arrive;": "barrier.cluster.arrive.relaxed",
    "barrier.cluster.arrive.release.aligned;": "barrier.cluster.arrive.relaxed.aligned",
}


@pytest.mark.parametrize("line", RELAXED)
def test_what_releases_or_acquires_by_default_becomes_relaxed(line: str) -> None:
    assert RELAXED[line] in {".".join(change.becomes.words) for change in offered(line)[0]}
    relaxed = line.replace(line.split()[0].rstrip(";"), RELAXED[line])
    assert not any("relaxed" in change.what for change in offered(relaxed)[0])

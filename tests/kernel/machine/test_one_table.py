"""The rule of the house: an instruction is one row, whichever door it comes through.

Each sample, in each spelling that its row knows, is lowered and run as an instruction of a litmus test and of a module.
"""

from __future__ import annotations

import pytest
from helpers.kernel.one_table import compare, readable, spellings

LOAD = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
TO_CLUSTER = LOAD.replace("shared::cta", "shared::cluster")
STORE = "cp.async.bulk.global.shared::cta.bulk_group"
REDUCE = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
TENSOR = "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes"
FLAT = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
BOX = "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group"

WORDS = "cp.async.ca.shared.global"

AWAY = "mapa.shared::cluster.u32 %r10, tile, 1; mapa.shared::cluster.u32 %r11, bar, 1; mov.u32 %r12, tile;"
NUMBERS = "mov.u32 %r0, 16; mov.u32 %r1, 24; mov.u32 %r2, 1; mov.u32 %r3, 3; mov.u32 %r4, -1; "
NUMBERS += "mov.u16 %h0, 255; mov.u64 %rd0, 4096;"

COPIES = [
    f"{LOAD} [tile], [src], 64, [bar];",
    f"{LOAD} [tile+16], [src+32], %r0, [bar];",
    f"{LOAD} [tile], [src], %r1, [bar];",
    f"{LOAD} [tile+4], [src], 16, [bar];",
    f"{LOAD} [tile], [src+4], 16, [bar];",
    f"{LOAD} [tile], [src+240], 32, [bar];",
    f"{LOAD} [%r10], [src], 16, [bar];",
    f"{LOAD}.ignore_oob [tile], [src], 64, %r2, 3, [bar];",
    f"{LOAD}.ignore_oob [tile], [src], 64, 0, %r0, [bar];",
    f"{TO_CLUSTER} [tile], [src], 64, [bar];",
    f"{TO_CLUSTER} [%r10], [src], 64, [%r11];",
    f"{TO_CLUSTER}.multicast::cluster [tile], [src+64], 32, [bar], 3;",
    f"{TO_CLUSTER}.multicast::cluster [tile], [src+64], 32, [bar], %r2;",
    f"{TO_CLUSTER.replace('global', 'shared::cta')} [%r10], [other], 64, [%r11];",
    f"{TO_CLUSTER.replace('global', 'shared::cta')} [%r12], [other], 64, [bar];",
    f"{STORE} [dst], [tile], 64;",
    f"{STORE}.cp_mask [dst], [tile], 64, %h0;",
    f"{STORE}.cp_mask [dst], [tile], 64, 0x8001;",
    f"{STORE.replace('bulk.', 'bulk.relaxed.gpu.')}.b128 [dst], [tile], 64;",
    f"{TO_CLUSTER.replace('bulk.', 'bulk.relaxed.sys.')}.b128 [tile], [src], 64, [bar];",
    f"{REDUCE} [dst+16], [tile], 32;",
    f"{REDUCE.replace('bulk.', 'bulk.relaxed.cta.')} [dst], [tile], 32;",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u32 [%r10], [tile], 32, [%r11];",
    "cp.async.bulk.prefetch.L2.global [src], 32;",
    "cp.async.bulk.prefetch.L2.global [src], %r1;",
]

BOXES = [
    f"{TENSOR} [tile], [map, {{4}}], [bar];",
    f"{TENSOR} [tile], [map, {{56}}], [bar];",
    f"{TENSOR} [tile], [map, {{%r4}}], [bar];",
    f"{TENSOR} [%r10], [map, {{0}}], [bar];",
    f"{FLAT} [tile], [flat, {{0, 3}}], [bar];",
    f"{FLAT} [tile], [flat, {{6, 7}}], [bar];",
    f"{FLAT} [%r10], [flat, {{0, 3}}], [%r11];",
    f"{FLAT} [%r12], [flat, {{0, 3}}], [%r11];",
    f"{FLAT}.cta_group::2 [%r12], [flat, {{0, 3}}], [%r11];",
    f"{FLAT}.multicast::cluster [tile], [flat, {{2, 0}}], [bar], 3;",
    f"{FLAT}.multicast::cluster.cta_group::2 [tile], [flat, {{2, 0}}], [%r11], %r2;",
    f"{BOX} [map, {{8}}], [tile];",
    f"{BOX} [map, {{60}}], [tile];",
    f"{BOX} [map, {{%r4}}], [tile];",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [flat, {4, 2}], [tile];",
    "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [flat, {0, 0}];",
]

REPLACE = "tensormap.replace.tile"
MAPS = [
    f"{REPLACE}.global_address.global.b1024.b64 [made], %rd0;",
    f"{REPLACE}.rank.b1024.b32 [made], 1;",
    f"{REPLACE}.box_dim.global.b1024.b32 [made], 1, %r0;",
    f"{REPLACE}.global_dim.global.b1024.b32 [made], 4, 9;",
    f"{REPLACE}.global_stride.global.b1024.b64 [made], 3, %rd0;",
    f"{REPLACE}.element_stride.global.b1024.b32 [made], 1, 1;",
    f"{REPLACE}.elemtype.global.b1024.b32 [made], 6;",
    f"{REPLACE}.swizzle_mode.global.b1024.b32 [made], 0;",
    f"{REPLACE}.fill_mode.global.b1024.b32 [made], 0;",
    f"{REPLACE}.rank.global.b1024.b32 [made+32], 1;",
]

GROUPS = [
    (line, before)
    for before in (
        "",
        f"{STORE} [dst], [tile], 16; cp.async.bulk.commit_group; {STORE} [dst+64], [tile], 16;",
        f"{WORDS} [tile], [src], 8; cp.async.commit_group; {WORDS} [other], [src], 8;",
        f"{BOX} [map, {{8}}], [tile]; cp.async.bulk.commit_group;",
    )
    for line in (
        "cp.async.bulk.wait_group 0;",
        "cp.async.bulk.wait_group 1;",
        "cp.async.bulk.wait_group.read 0;",
        "cp.async.wait_group 0;",
        "cp.async.wait_all;",
        "cp.async.bulk.commit_group;",
    )
]


@pytest.mark.share(2)
@pytest.mark.parametrize("sample", [*COPIES, *BOXES, *MAPS])
def test_copies(sample: str) -> None:
    read = [line for line in spellings(sample) if readable(line, AWAY + NUMBERS)]
    assert sample in read
    for line in read:
        compare(line, AWAY + NUMBERS)


def test_a_map_in_shared_memory() -> None:
    """Without the state space a module would have to name a generic address, which litmus tests do not tell apart."""
    compare(f"{REPLACE}.rank.shared::cta.b1024.b32 [held], %r2;", NUMBERS)


@pytest.mark.parametrize(("line", "before"), GROUPS)
def test_groups(line: str, before: str) -> None:
    compare(line, before)

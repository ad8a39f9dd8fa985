"""Tensor maps that the launch puts into global memory: which fence makes their use defined."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import entry, module

from memmodel.cat.load import load_model
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.launch import parse_launch

COPY = """
add.s64 %d1, %d0, 4096;
setp.eq.s32 %p1, %r0, 32;
{first}
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
mov.u32 %r20, 0;
@!%p0 bra W;
mbarrier.arrive.expect_tx.shared.b64 %d5, [%r4], 512;
{acquire}
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%d1, {{%r20, %r20}}], [%r4];
W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r4], 0;
@!%p5 bra W;
{after}
"""
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;"
OTHER = ACQUIRE.replace("%d1", "%d1+128")
RELEASE = "\n@{} fence.proxy.tensormap::generic.release.gpu;"
MISSING = {"undefined-tensor-map"}


def replace(who: str = "%p0", at: str = "%d1") -> str:
    return f"@{who} tensormap.replace.tile.global_address.global.b1024.b64 [{at}], %d0;"


USES = [
    ("acquired", {}, set()),
    ("not acquired", {"acquire": ""}, MISSING),
    ("another map is acquired", {"acquire": OTHER}, MISSING),
    ("acquired too late", {"acquire": "", "after": ACQUIRE}, MISSING),
    ("acquired by another thread before a barrier", {"acquire": "", "first": f"@%p1 {ACQUIRE}"}, set()),
    ("acquired by another thread after it", {"acquire": "", "after": f"bar.sync 0;\n@%p1 {ACQUIRE}"}, MISSING),
    ("one CTA acquires it",
     {"acquire": f"mov.u32 %r30, %ctaid.x;\nsetp.eq.u32 %p9, %r30, 0;\n@%p9 {ACQUIRE}"}, MISSING),
    ("changed before", {"first": replace("%p1") + RELEASE.format("%p1")}, set()),
    ("changed before, and not acquired", {"first": replace("%p1") + RELEASE.format("%p1"), "acquire": ""},
     {"data-race"}),
    ("the one behind it is changed", {"first": replace(at="%d1+128"), "acquire": ""}, MISSING),
    ("the one before it is changed", {"first": replace(at="%d1+-128"), "acquire": ""}, MISSING),
    ("changed later", {"after": "bar.sync 0;\n" + replace("%p1")}, set()),
    ("changed later, and not acquired", {"after": "bar.sync 0;\n" + replace("%p1"), "acquire": ""}, MISSING),
    ("changed later by the same thread", {"after": replace(), "acquire": ""}, MISSING),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "found"), [one[1:] for one in USES], ids=[one[0] for one in USES])
def test_maps_that_the_launch_gives(parts: dict[str, str], found: set[str]) -> None:
    read = module(COPY.format(**{"first": "", "acquire": ACQUIRE, "after": "", **parts}))
    ctas = 2 if "%ctaid" in parts.get("acquire", "") else 1
    given = {"address": "0x100002000", "element_bytes": 2, "dims": [64, 64], "strides_bytes": [128], "box": [64, 4]}
    launch = parse_launch({
        "grid": [ctas, 1, 1], "block": [64, 1, 1],
        "params": [{"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536}],
        "tensormaps": [{"param": "p", "offset": at, **given} for at in (3968, 4096, 4224)],
    })  # fmt: skip
    verdict = judge(read, entry(read), launch, load_model("ptx-9.4"))
    assert {one.rule for one in verdict.findings} == found, repr(verdict)
    assert verdict.word == ("findings" if found else "clean")


FILL = "@%p1 tensormap.replace.tile.fill_mode.global.b1024.b32 [%d1], {};" + RELEASE.format("%p1")


@pytest.mark.parametrize(
    ("fill", "packed", "word"),
    [(0, None, "clean"), (1, None, "clean"), (0, "b4x16", "clean"), (1, "b4x16", "findings")],
)
def test_what_lies_outside_the_tensor(fill: int, packed: str | None, word: str) -> None:
    """It is read as zero or as NaN: "OOB-NaN fill mode doesn't support the types .b4x16, .b4x16_p64, .b6x16_p32 and
    .b6p2x16" ("Restriction on Tensor Copy instructions").
    """
    read = module(COPY.format(first=FILL.format(fill), acquire=ACQUIRE, after=""))
    size = {"element_bytes": 2, "box": [64, 4]} if packed is None else {"element_bytes": 1, "box": [128, 8]}
    launch = parse_launch({
        "grid": [1, 1, 1], "block": [64, 1, 1],
        "params": [{"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 65536}],
        "tensormaps": [
            {"param": "p", "offset": 4096, "address": "0x100002000", "dims": [64, 64], "strides_bytes": [128],
             "packed": packed, **size}
        ],
    })  # fmt: skip
    assert judge(read, entry(read), launch, load_model("ptx-9.4")).word == word

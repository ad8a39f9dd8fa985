"""What older and rarer PTX has: vector registers, shfl and vote without .sync, surfaces, malloc and free."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged


def rules(body: str, before: str = "", threads: int = 64) -> set[str]:
    return {one.rule for one in judged(body, threads, before=before).findings}


VECTORS = """.reg .v4 .u32 %v, %w<2>;
.reg .v2 .f32 pair;
mov.u32 %v.x, 1;
mov.u32 %v.y, 2;
mov.u32 %v.b, 3;
mov.u32 %v.a, 4;
st.shared.v4.u32 [%r2], %v;
ld.shared.v4.u32 %w1, [%r2];
add.u32 %r10, %w1.r, %w1.w;
mad.lo.u32 %r10, %w1.g, 10, %r10;
mov.b64 %d5, {%w1.z, %w1.y};
setp.ne.u32 %p3, %r10, 25;
setp.ne.or.u64 %p3, %d5, 0x200000003, %p3;
@%p3 trap;
"""


def test_vector_registers() -> None:
    """Components have two names each; a vector stands for all of them."""
    assert judged(VECTORS, threads=1).word == "clean"
    assert rules(VECTORS.replace("%w1.g, 10", "%w1.b, 10"), threads=1) == {"trap"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("shfl.idx.b32 %r10, %r0, 3, 31;", 3),
        ("shfl.up.b32 %r10|%p4, %r0, 31, 0;\nselp.u32 %r10, 7, 8, %p4;", None),
        ("setp.lt.u32 %p4, %r0, 4;\nvote.ballot.b32 %r10, %p4;", 15),
        ("setp.lt.u32 %p4, %r0, 4;\nvote.any.pred %p5, %p4;\nselp.u32 %r10, 1, 0, %p5;", 1),
        ("setp.lt.u32 %p4, %r0, 4;\nvote.all.pred %p5, %p4;\nselp.u32 %r10, 1, 0, %p5;", 0),
    ],
)
def test_teams_without_sync(written: str, value: int | None) -> None:
    """The lanes that are active take part."""
    body = f"{written}\nsetp.ne.u32 %p3, %r10, {9 if value is None else value};\n@%p3 trap;"
    assert rules(body, threads=32) == ({"trap"} if value is None else set())
    assert rules(body.replace(f", {value};\n@", f", {99};\n@"), threads=32) == {"trap"}


def test_teams_of_a_warp_that_has_diverged() -> None:
    body = "setp.lt.u32 %p4, %r0, 4;\n@%p4 bra X;\nvote.ballot.b32 %r10, 1;\nX:"
    assert judged(body, threads=32).word == "undecided"
    synced = body.replace("vote.ballot.b32 %r10, 1", "vote.sync.ballot.b32 %r10, 1, 0xfffffff0")
    assert judged(synced, threads=32).word == "clean"


SURFACE = ".global .surfref image;"


def test_surfaces_that_are_read() -> None:
    verdict = judged("suld.b.2d.v2.b32.clamp {%r10, %r11}, [image, {%r0, %r1}];", before=SURFACE)
    assert verdict.word == "clean" and any("surface" in what for what in verdict.assumptions)


@pytest.mark.parametrize(
    "write",
    [
        "sust.b.2d.b32.trap [image, {%r1, %r0}], %r0",
        "sust.p.1d.v4.b32.zero [%d5, {%r1}], {%r0, %r0, %r0, %r0}",
        "sured.b.add.1d.u32.trap [image, {%r1}], %r0",
    ],
)
def test_surfaces_that_are_written(write: str) -> None:
    """The memory consistency model does not apply to them; what else the kernel does is judged."""
    assert judged(f"{write};", before=SURFACE).word == "undecided"
    assert "data-race" in rules(f"{write};\nst.global.u32 [%d0], %r0;", SURFACE)


# ---- malloc, free ----------------------------------------------------------------------------------------------

SYSTEM = ".extern .func (.param .b64 r) malloc (.param .b64 a);\n.extern .func free (.param .b64 a);\n"
MALLOC = """{ .param .b64 a; .param .b64 r;
st.param.b64 [a], 64;
call.uni (r), malloc, (a);
ld.param.b64 %d5, [r]; }
"""
FREE = "{ .param .b64 a;\nst.param.b64 [a], %d5;\ncall.uni free, (a); }\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (MALLOC + "st.global.u32 [%d5+60], %r0;\nld.u32 %r10, [%d5+60];\n" + FREE, set()),
        (MALLOC + "st.global.u32 [%d5+64], %r0;", {"undefined-address"}),
        (MALLOC + FREE + "st.global.u32 [%d5], %r0;", {"undefined-address"}),
        (MALLOC + FREE + FREE, {"undefined-address"}),
        ("mov.u64 %d5, %d0;\n" + FREE, {"undefined-address"}),
        ("mov.u64 %d5, 0;\n" + FREE, set()),
    ],
    ids=["use", "beyond", "after", "twice", "other", "null"],
)
def test_memory_of_the_heap(body: str, found: set[str]) -> None:
    """Each thread has its own."""
    assert rules(body, SYSTEM) == found


SHARED = f"""@!%p0 bra B;
{MALLOC}st.shared.u64 [%r2], %d5;
B: bar.sync 0;
ld.shared.u64 %d6, [%r2];
setp.eq.u32 %p4, %r0, 33;
@%p4 ACCESS;
SYNC
@!%p0 bra E;
{FREE}E:
"""


@pytest.mark.parametrize(
    "access",
    ["ld.global.u32 %r10, [%d6+8]", "st.global.u32 [%d6+8], %r0", "red.relaxed.gpu.global.add.u32 [%d6+8], 1"],
)
def test_memory_is_freed_after_its_use(access: str) -> None:
    """Thread 0 gives its memory to thread 33, and frees it."""
    body = SHARED.replace("ACCESS", access)
    assert not rules(body.replace("SYNC", "bar.sync 0;"), SYSTEM)
    assert rules(body.replace("SYNC", ""), SYSTEM) & {"data-race", "undefined-address"}


@pytest.mark.parametrize(
    ("size", "found"), [(16, set()), (0, set()), (12, {"undefined-instruction"}), (2048, {"undefined-address"})]
)
def test_st_bulk(size: int, found: set[str]) -> None:
    """A multiple of 8 bytes of shared memory."""
    assert rules(f"st.bulk.weak.shared::cta [%r2], {size}, 0;", threads=1) == found
    assert rules("st.bulk [%d0], 16, 0;", threads=1) == {"undefined-address"}

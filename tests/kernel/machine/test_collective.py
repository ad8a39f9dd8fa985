"""What threads execute together: a warp all of whose lanes are there, four warps with the same descriptors.

Each case breaks one sentence of the ISA: "all threads in the warpgroup must execute the same wgmma.mma_async
instruction", "the contents of a matrix descriptor must be same across all the warps in the warpgroup", "undefined if
all threads do not use the same values of" an operand, "or if any thread in the warp has exited".
"""

from __future__ import annotations

import pytest
from helpers.kernel.engines import rules, verdict_of

REGISTERS = ", ".join(f"%f{n}" for n in range(4))
MULTIPLY = f"""mov.b64 %d11, 0x4000004000010000;
cvt.u64.u32 %d10, %r2;
shr.u64 %d10, %d10, 4;
or.b64 %d10, %d10, %d11;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{REGISTERS}}}, %d10, %d10, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
"""


def only(condition: str, body: str) -> str:
    """A body for the threads of which a comparison of the thread number holds."""
    return f"setp.{condition};\n@!%p5 bra OVER;\n{body}OVER:\n"


def found(body: str, threads: int = 128) -> set[str]:
    return {message for message in messages(body, threads)}


def messages(body: str, threads: int) -> list[str]:
    return [one.message for one in verdict_of(body, threads=threads).findings]


def test_a_warpgroup_multiplies() -> None:
    assert verdict_of(MULTIPLY, threads=128).word == "clean"
    assert verdict_of(MULTIPLY, threads=256).word == "clean"


@pytest.mark.parametrize(
    ("condition", "threads"),
    [
        ("lt.u32 %p5, %r0, 64", 128),  # two warps
        ("lt.u32 %p5, %r0, 96", 128),  # three warps
        ("ge.u32 %p5, %r0, 64", 192),  # warps 2 to 5
        ("lt.u32 %p5, %r0, 256", 96),  # a block of 96 threads
    ],
)
def test_a_part_of_a_warpgroup_does_not(condition: str, threads: int) -> None:
    verdict = verdict_of(only(condition, MULTIPLY), threads=threads)
    assert "undefined-instruction" in rules(verdict)


def test_the_warps_execute_the_same_instruction() -> None:
    body = f"setp.lt.u32 %p5, %r0, 64;\n@%p5 bra FIRST;\n{MULTIPLY}bra.uni OVER;\nFIRST:\n{MULTIPLY}OVER:\n"
    assert any("different instructions" in message for message in found(body))


def test_descriptors_are_the_same_in_all_warps() -> None:
    apart = MULTIPLY.replace("wgmma.fence", "shr.u32 %r10, %r0, 5;\nadd.u64 %d10, %d10, %d12;\nwgmma.fence", 1)
    apart = apart.replace("add.u64", "cvt.u64.u32 %d12, %r10;\nadd.u64")
    assert any("not the same in all warps" in message for message in found(apart))


GROUP = {
    "wgmma.fence": "wgmma.fence.sync.aligned;\n",
    "wgmma.commit_group": "wgmma.commit_group.sync.aligned;\n",
    "wgmma.wait_group": "wgmma.wait_group.sync.aligned 0;\n",
}


@pytest.mark.parametrize("group", ["wgmma.commit_group", "wgmma.wait_group"])
@pytest.mark.parametrize("shifted", [True, False])
def test_the_instructions_of_a_warpgroup_come_in_one_order(group: str, shifted: bool) -> None:
    """Warp 0 leaves out the first of three rounds and the other warps the last one: each executes the same twice."""
    left_out = "setp.eq.and.u32 %p7, %r20, 0, %p5;\n@%p7 bra OUT;\nsetp.eq.and.u32 %p7, %r20, 2, %p6;\n@%p7 bra OUT;\n"
    multiply = MULTIPLY.split("wgmma.commit_group")[0]
    body = "setp.lt.u32 %p5, %r0, 32;\nsetp.ge.u32 %p6, %r0, 32;\nmov.u32 %r20, 0;\nL:\n" + multiply
    if group == "wgmma.wait_group":
        body += GROUP["wgmma.commit_group"]
    body += f"{left_out if shifted else ''}{GROUP[group]}OUT:\n"
    body += "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p8, %r20, 3;\n@%p8 bra L;\n"
    texts = found(body + GROUP["wgmma.wait_group"])
    assert any("execute different instructions" in text for text in texts) is shifted, texts


@pytest.mark.parametrize("body", GROUP.values(), ids=GROUP)
def test_fences_and_groups_of_wgmma_are_those_of_a_whole_warpgroup(body: str) -> None:
    """ "all threads in the warpgroup must execute the same" instruction; the warps come to it at one place."""
    assert not found(body)
    assert any("warp 0, 1 of its warpgroup alone" in message for message in found(only("lt.u32 %p5, %r0, 64", body)))
    apart = f"setp.lt.u32 %p5, %r0, 64;\n@%p5 bra FIRST;\n{body}bra.uni OVER;\nFIRST:\n{body}OVER:\n"
    assert any("different instructions" in message for message in found(apart))


EXITED = "setp.ge.u32 %p5, %r0, 20;\n@%p5 exit;\n"
WARP = {
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r10};",
    "mma": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r10, %r11, %r12, %r13}, "
    "{%r14, %r15}, {%f0, %f1, %f2, %f3};",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r11;",
    "wmma.load": "wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 "
    "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%r2], 16;",
    "wmma.store": "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 "
    "[%r2], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, 16;",
    "tcgen05.wait": "tcgen05.wait::ld.sync.aligned;",
    "alloc": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 32;",
}


@pytest.mark.parametrize("body", WARP.values(), ids=WARP)
def test_no_lane_of_the_warp_has_exited(body: str) -> None:
    text = "lanes have exited"
    assert not any(text in message for message in found(body, 32))
    assert any(text in message for message in found(EXITED + body, 32))
    # No page speaks of a warp that begins with eight lanes.
    assert "in a warp of 8 threads is not specified" in verdict_of(body, 40).open[0]


@pytest.mark.parametrize(
    "body", [*GROUP.values(), MULTIPLY, "setmaxnreg.dec.sync.aligned.u32 40;\n"], ids=[*GROUP, "wgmma", "setmaxnreg"]
)
def test_no_lane_of_the_warpgroup_has_exited(body: str) -> None:
    text = "lanes have exited"
    assert not any(text in message for message in found(body))
    assert any(text in message for message in found(EXITED.replace("20", "100") + body))


def test_operands_are_the_same_in_all_lanes() -> None:
    alloc = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], %r10;"
    body = f"mov.u32 %r10, 32;\nsetp.lt.u32 %p5, %r0, 16;\n@%p5 mov.u32 %r10, 64;\n{alloc}"
    assert any("nCols of tcgen05.alloc is not the same" in message for message in found(body, 32))


def test_operands_that_are_not_known_in_some_lanes() -> None:
    body = """tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 32;
bar.warp.sync -1;
ld.shared.u32 %r23, [%r4];
setp.ge.u32 %p5, %r0, 16;
{}tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r23, 32;
"""
    for unknown, word in (("", "clean"), ("@%p5 ld.global.u32 %r23, [%d0];\n", "undecided")):
        assert verdict_of(body.format(unknown), 32).word == word


@pytest.mark.parametrize(
    ("change", "operand"), [("@%p5 add.u32 %r10, %r10, 64;", "p"), ("@%p5 mov.u32 %r11, 32;", "stride")]
)
def test_lanes_name_one_matrix(change: str, operand: str) -> None:
    load = "wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%r10], %r11;"
    body = f"mov.u32 %r10, %r2;\nmov.u32 %r11, 16;\nsetp.lt.u32 %p5, %r0, 16;\n{change}\n{load}"
    assert found(body.replace(change, ""), 32) == set()
    assert any(f"{operand} of wmma.load.c is not the same in all lanes" in message for message in found(body, 32))


@pytest.mark.parametrize(("lanes", "undefined"), [(128, False), (64, True)])
def test_registers_are_given_back_by_a_whole_warpgroup(lanes: int, undefined: bool) -> None:
    body = only(f"lt.u32 %p5, %r0, {lanes}", "setmaxnreg.dec.sync.aligned.u32 40;\n")
    assert ("undefined-instruction" in rules(verdict_of(body, threads=128))) is undefined


@pytest.mark.parametrize(("other", "undefined"), [("40", False), ("48", True)])
def test_roles_give_registers_back_at_places_of_their_own(other: str, undefined: bool) -> None:
    first, second = (f"setmaxnreg.dec.sync.aligned.u32 {count};\n" for count in ("40", other))
    body = f"setp.lt.u32 %p5, %r0, 64;\n@%p5 bra FIRST;\n{first}bra.uni OVER;\nFIRST:\n{second}OVER:\n"
    assert ("undefined-instruction" in rules(verdict_of(body, threads=128))) is undefined


TWO_BLOCKS = """
cvt.u64.u32 %d20, %r3;
cvta.shared.u64 %d20, %d20;
setp.eq.u32 %p6, %r0, 31;
selp.b64 %d20, %d20, %d0, %p6;
st.u32 [%d20], 1;
"""
APART = "setp.ge.u32 %p5, %r0, 30;\n@!%p5 bra REST;\n{gone}exit;\nREST:\n{rest}bar.sync 0;\n"


@pytest.mark.parametrize(
    ("gone", "rest", "differs"),
    [
        ("", "", False),
        ("", "setp.eq.u32 %p6, %r0, 3;\n@%p6 st.shared.u32 [%r3], 1;\n", False),
        ("st.shared.u32 [%r3], 1;\n", "", True),
        (TWO_BLOCKS, "", True),
        ("fence.acq_rel.cta;\n", "", True),
    ],
)
def test_lanes_that_went_another_way_and_did_something(gone: str, rest: str, differs: bool) -> None:
    said = found(APART.format(gone=gone, rest=rest), 32)
    assert any("went another way and have exited" in message for message in said) is differs, said


@pytest.mark.parametrize(
    ("line", "differs"),
    [("@%p5 bar.sync 0;", True), ("@!%p5 exit;\nbar.sync 0;", False), ("@%p5 barrier.sync 0;", False)],
)
def test_lanes_that_a_guard_leaves_out(line: str, differs: bool) -> None:
    """ "An aligned barrier instruction should only be used if it is known that all threads evaluate the condition
    identically, otherwise behavior is undefined" (barrier), also where the others only exit.
    """
    said = found(f"setp.lt.u32 %p5, %r0, 16;\n{line}\n", 32)
    assert any("by some lanes of a warp" in message for message in said) is differs, said


ROUNDS = """mov.u32 %r20, 0;
setp.lt.u32 %p2, %r0, 16;
L: setp.eq.u32 %p3, %r20, {left_out};
@%p3 bra INNER;
mov.u32 %r21, 0;
bra AT;
INNER: @{lanes} bra NEXT;
AT: {together}
NEXT: add.u32 %r20, %r20, 1;
setp.lt.u32 %p4, %r20, {rounds};
@%p4 bra L;
"""


@pytest.mark.parametrize(
    "together",
    [
        "bar.sync 0;",
        WARP["ldmatrix"],
        WARP["tcgen05.wait"],
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;",
    ],
)
@pytest.mark.parametrize(("lanes", "apart"), [("%p2", True), ("!%p2", True), ("%p4", False)])
def test_lanes_execute_it_in_one_round(together: str, lanes: str, apart: bool) -> None:
    """The first lanes leave it out in the first round: they come to it in the second one, where the others are in the
    first. %p4 is the same in all lanes.
    """
    body = "setp.ne.u32 %p4, %r0, %r0;\n" + ROUNDS.format(lanes=lanes, together=together, left_out=0, rounds=3)
    texts = found(body, 32)
    assert any("in different rounds of the loop" in text for text in texts) is apart, texts


def test_a_round_of_a_loop_begins_from_two_places() -> None:
    """Half of the lanes go on earlier (`continue` behind the barrier): all are in one round."""
    two_ends = """mov.u32 %r20, 0;
setp.lt.u32 %p2, %r0, 16;
L: bar.sync 0;
add.u32 %r20, %r20, 1;
setp.ge.u32 %p4, %r20, 3;
@%p4 bra END;
@%p2 bra L;
add.u32 %r21, %r20, 1;
bra L;
END:
"""
    assert not found(two_ends, 32)


IN_A_FUNCTION = ".func f() { bar.sync 0; ret; }\n"


@pytest.mark.parametrize("form", ["entered at its test", "out of line", "in a function"])
def test_loops_of_other_forms(form: str) -> None:
    body = "setp.ne.u32 %p4, %r0, %r0;\n" + ROUNDS.format(lanes="%p2", together="bar.sync 0;", left_out=0, rounds=3)
    if form == "entered at its test":
        body = body.replace("L: ", "bra TEST;\nL: ").replace("setp.lt.u32 %p4", "TEST: setp.lt.u32 %p4")
    elif form == "out of line":
        body = body.replace("AT: bar.sync 0;\n", "bra AT;\n") + "bra OVER;\nAT: bar.sync 0;\nbra NEXT;\nOVER:\n"
    else:
        body = body.replace("bar.sync 0;", "call.uni f;")
    texts = [one.message for one in verdict_of(body, 32, before=IN_A_FUNCTION).findings]
    assert any("in different rounds of the loop" in text for text in texts), texts


@pytest.mark.parametrize(
    "body",
    [
        # Lanes go round an inner loop a different number of times, and meet behind it in each round.
        "mov.u32 %r20, 0;\nL: mov.u32 %r21, 0;\nI: add.u32 %r21, %r21, 1;\nsetp.lt.u32 %p2, %r21, %r0;\n@%p2 bra I;\n"
        "bar.sync 0;\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 3;\n@%p3 bra L;",
        # One side of a branch does more in each round, and waits for the other.
        "mov.u32 %r20, 0;\nL: setp.lt.u32 %p2, %r0, 7;\n@%p2 bra N;\nst.shared.u32 [%r3], 1;\nN: bar.sync 0;\n"
        "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 3;\n@%p3 bra L;",
        # Lanes go round an inner loop a different number of times, and come to its barrier when they are there again.
        "mov.u32 %r20, 0;\nL: mov.u32 %r21, 0;\nI: setp.lt.u32 %p4, %r20, 2;\n@%p4 bra N;\nbar.sync 0;\n"
        "N: add.u32 %r21, %r21, 1;\nselp.u32 %r22, %r0, 2, %p4;\nsetp.lt.u32 %p2, %r21, %r22;\n@%p2 bra I;\n"
        "add.u32 %r20, %r20, 1;\nsetp.lt.u32 %p3, %r20, 3;\n@%p3 bra L;",
        # What some lanes do in each round stands behind the loop.
        "mov.u32 %r20, 0;\nL: setp.lt.u32 %p2, %r0, 7;\n@%p2 bra OUT;\nN: bar.sync 0;\nadd.u32 %r20, %r20, 1;\n"
        "setp.lt.u32 %p3, %r20, 3;\n@%p3 bra L;\nbra E;\nOUT: st.shared.u32 [%r3], 1;\nbra N;\nE:",
        # The loop is left in different rounds before the barrier is met.
        "mov.u32 %r20, 0;\nL: setp.lt.u32 %p4, %r20, 40;\n@%p4 bra N;\nbar.sync 0;\nN: add.u32 %r20, %r20, 1;\n"
        "setp.lt.u32 %p3, %r20, %r0;\n@%p3 bra L;\nbar.sync 0;",
    ],
)
def test_lanes_that_meet_are_in_one_round(body: str) -> None:
    assert not found(body, 32)

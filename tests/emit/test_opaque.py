"""What ptxas would compute or merge is written so that it cannot; special registers keep their meaning in a launch."""

from __future__ import annotations

import pytest

from memmodel.emit import Assembler, EmittedModule, emit
from memmodel.errors import InputError
from memmodel.litmus.parse import parse_litmus
from memmodel.source import Source


def module(declarations: str, *threads: str) -> EmittedModule:
    blocks = "\n".join(f"thread P{n} @ {thread}" for n, thread in enumerate(threads))
    return emit(parse_litmus(Source("t.litmus", f"PTX sample\n{declarations}\n{blocks}\nexists (true)\n")))


def code(body: str, declarations: str = ".global .u32 x; .global .u32 y;") -> list[str]:
    """The instructions of a thread as they are written, without line numbers."""
    lines = module(declarations, f"cta 0 {{ {body} }}").text.splitlines()
    start = lines.index("mm_thread_P0: // cta 0, gpu 0")
    first = next(n for n, line in enumerate(lines[start:], start) if "bra mm_end_P0;" in line)
    last = lines.index("mm_end_P0:")
    return [line.split("//")[0].strip() for line in lines[first + 1 : last]]


LOAD = "ld.relaxed.gpu.global.u32 %r0, [x];"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("xor.b32 %r1, %r0, %r0;", ["and.b32 %r1, %r0, %mm_zero32;"]),
        ("sub.s32 %r1, %r0, %r0;", ["and.b32 %r1, %r0, %mm_zero32;"]),
        ("sub.u64 %rd1, %rd0, %rd0;", ["and.b64 %rd1, %rd0, %mm_zero;"]),
        ("xor.b16 %h1, %h0, %h0;", ["and.b16 %h1, %h0, %mm_zero16;"]),
        ("and.b32 %r1, %r0, 0;", ["and.b32 %r1, %r0, %mm_zero32;"]),
        ("mul.lo.u32 %r1, 0, %r0;", ["mul.lo.u32 %r1, %mm_zero32, %r0;"]),
        ("mul.wide.u32 %rd1, %r0, 0;", ["mul.wide.u32 %rd1, %r0, %mm_zero32;"]),
        ("mad.lo.u32 %r1, %r0, 0, 5;", ["mad.lo.u32 %r1, %r0, %mm_zero32, 5;"]),
        ("shl.b32 %r1, %r0, 32;", ["and.b32 %r1, %r0, %mm_zero32;"]),
        ("setp.ge.u32 %p, %r0, 0;", ["setp.ge.u32 %p, %r0, %mm_zero32;"]),
        (
            "setp.eq.s32 %p, %r0, %r0;",
            ["and.b32 %mm_same32, %r0, %mm_zero32;", "setp.eq.s32 %p, %mm_same32, %mm_zero32;"],
        ),
        (
            "mov.u32 %r2, 0; and.b32 %r1, %r0, %r2;",
            ["mov.u32 %r2, %mm_zero32;", "and.b32 %r1, %r0, %r2;"],
        ),
    ],
)
def test_an_artificial_zero_keeps_its_dependency(line: str, wanted: list[str]) -> None:
    assert code(line) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "xor.b32 %r1, %r0, %r2;",
        "and.b32 %r1, %r0, 1;",
        "mad.lo.u32 %r1, %r0, 4, 0;",
        "add.u32 %r1, %r0, 0;",
        "mov.u32 %r1, 0;",
        "shl.b32 %r1, %r0, 31;",
        "shr.s32 %r1, %r0, 40;",
        "setp.ge.s32 %p, %r0, 0;",
    ],
)
def test_what_depends_on_its_operands_anyway_stays(line: str) -> None:
    assert code(line) == [line]


def test_a_register_that_nobody_sets_is_a_zero_that_ptxas_does_not_know() -> None:
    assert "mov.b32 %r2, %mm_zero32;" in module("", "cta 0 { and.b32 %r1, %r0, %r2; }").text


@pytest.mark.parametrize(
    ("body", "again"),
    [
        ("ld.global.u32 %r0, [x]; ld.global.u32 %r1, [x];", 1),
        ("st.global.u32 [x], 1; st.global.u32 [x], 2;", 1),
        ("st.relaxed.gpu.global.u32 [x], 1; st.relaxed.gpu.global.u32 [x], 2;", 1),
        ("st.global.u32 [x], 1; ld.global.u32 %r1, [x];", 1),
        ("ld.global.u32 %r0, [x]; ld.global.u32 %r1, [x]; ld.global.u32 %r2, [x+0];", 2),
        ("mov.u64 %rd0, x; ld.global.u32 %r0, [%rd0]; ld.global.u32 %r1, [x];", 1),
        ("ld.global.u32 %r0, [x]; ld.global.u32 %r1, [y];", 0),
        ("ld.relaxed.gpu.global.u32 %r0, [x]; ld.relaxed.gpu.global.u32 %r1, [x];", 0),
        ("st.release.gpu.global.u32 [x], 1; st.release.gpu.global.u32 [x], 2;", 0),
        ("ld.volatile.global.u32 %r0, [x]; ld.volatile.global.u32 %r1, [x];", 0),
    ],
)
def test_accesses_of_one_thread_are_not_merged(body: str, again: int) -> None:
    lines = code(body)
    assert sum(line.startswith("mad.lo.u64 %mm_z, %mm_zero,") for line in lines) == again
    assert sum("[%mm_z" in line for line in lines) == again


def test_the_third_access_has_an_address_of_its_own() -> None:
    lines = code("ld.global.u32 %r0, [x]; ld.global.u32 %r1, [x]; ld.global.u32 %r2, [x];")
    assert [line for line in lines if "mad" in line] == [
        "mad.lo.u64 %mm_z, %mm_zero, 1, %mm_z;",
        "mad.lo.u64 %mm_z, %mm_zero, 2, %mm_z;",
    ]


def test_the_zero_is_a_parameter_only_where_it_is_used() -> None:
    text = module("", "cta 0 { xor.b32 %r1, %r0, %r0; }").text
    assert ".param .u64 mm_zero" in text
    assert "zero (64 bits), which ptxas does not know" in text
    assert "mm_zero" not in module("", "cta 0 { xor.b32 %r1, %r0, %r2; }").text


def test_another_cta_s_shared_memory_twice() -> None:
    """Its address is a register of 32 bits."""
    made = module(
        ".shared .u32 s;",
        "cta 0, cluster 0 { st.shared::cluster.u32 [s@cta1], 1; st.shared::cluster.u32 [s@cta1], 2; }",
        "cta 1, cluster 0 { ld.shared.u32 %r0, [s]; ld.shared.u32 %r1, [s]; }",
    )
    assert "mad.lo.u32 %mm_z32, %mm_zero32, 1, %mm_a0;" in made.text
    assembles(made)


def assembles(made: EmittedModule) -> None:
    try:
        assembler = Assembler.find()
    except InputError:
        return
    assert assembler.assemble(made) == ()


# ---- clusters and special registers --------------------------------------------------------------------------


def test_a_cluster_of_one_cta_is_a_cluster() -> None:
    made = module("", "cta 0, cluster 0 { mov.u32 %r0, 1; }", "cta 0, cluster 1 { mov.u32 %r0, 1; }")
    assert ".reqnctapercluster 1, 1, 1" in made.text
    assert str(made.target) == "sm_90"


def test_a_test_without_clusters_runs_where_there_are_none() -> None:
    made = module("", "cta 0 { mov.u32 %r0, 1; }")
    assert "cluster" not in made.text
    assert str(made.target) == "sm_30"


def test_an_older_target_is_refused_for_a_test_with_clusters() -> None:
    text = "PTX sample\nthread P0 @ cta 0, cluster 0 { mov.u32 %r0, 1; }\nexists (true)\n"
    with pytest.raises(InputError, match="needs sm_90, not sm_80"):
        from memmodel.emit import Target

        emit(parse_litmus(Source("t.litmus", text)), Target.parse("sm_80"))


def test_special_registers_are_read() -> None:
    """They were once declared as registers of the thread, with the value 0."""
    made = module(
        "",
        "cta 0, cluster 0 { mov.u32 %r0, %cluster_ctarank; }",
        "cta 1, cluster 0 { mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %cluster_nctarank; mov.u32 %r2, %ctaid.x; }",
    )
    assert made.text.count("mov.u32 %r0, %cluster_ctarank;") == 2
    assert "mov.u32 %r1, %cluster_nctarank;" in made.text
    assert "mov.u32 %r2, %ctaid.x;" in made.text
    assert ".reg .b32 %c" not in made.text
    assembles(made)


def test_a_special_register_that_the_launch_has_otherwise_is_a_number() -> None:
    made = module("", "cta 5 { mov.u32 %r0, %ctaid.x; }", "cta 7 { mov.u32 %r0, %ctaid.x; }")
    assert "mov.u32 %r0, 5;" in made.text
    assert "mov.u32 %r0, 7;" in made.text

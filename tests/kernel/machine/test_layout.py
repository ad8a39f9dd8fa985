"""Where variables lie: PTX promises the alignment that each has, and nothing of what lies behind it."""

from __future__ import annotations

import pytest

from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
{module}
.visible .entry k()
{{
.reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<9>;
{variables}
{body}
ret;
}}
"""
DYNAMIC = ".extern .shared .align {} .b8 dynamic[];"


def verdict_of(body: str, module: str = "", variables: str = "", dynamic: int = 0) -> KernelVerdict:
    """The verdict on one thread with variables of the module and of the entry."""
    text = KERNEL.format(module=module, variables=variables, body=body)
    read = parse_module(Source("k.ptx", text))
    launch = parse_launch({"grid": [1, 1, 1], "block": [1, 1, 1], "dynamic_shared": dynamic, "params": []})
    return judge_case(KernelCase(read, entry_of(read, "k"), launch, load_model("ptx-9.4"), CheckOptions())).verdict


def found(verdict: KernelVerdict) -> set[str]:
    assert not verdict.open
    return {finding.rule for finding in verdict.findings}


@pytest.mark.parametrize(
    ("space", "module", "variables"),
    [
        ("shared", "", ".shared .align 16 .b8 a[64]; .shared .align 16 .b8 b[64];"),
        ("shared", ".shared .align 16 .b8 a[64];", ".shared .align 16 .b8 b[64];"),
        ("shared", DYNAMIC.format(16), ".shared .align 16 .b8 a[64];"),
        ("global", ".global .align 16 .b8 a[64]; .global .align 16 .b8 b[64];", ""),
        ("const", ".const .align 16 .b8 a[64]; .const .align 16 .b8 b[64];", ""),
    ],
)
@pytest.mark.parametrize(("first", "beyond"), [(60, False), (62, None), (64, True), (192, True)])
def test_what_reaches_beyond_a_variable_touches_no_other(
    space: str, module: str, variables: str, first: int, beyond: bool | None
) -> None:
    body = f"mov.u64 %d0, a;\nadd.u64 %d0, %d0, {first};\nld.{space}.b32 %r0, [%d0];"
    wrong = beyond is not False
    assert found(verdict_of(body, module, variables, 256)) == ({"undefined-address"} if wrong else set())


@pytest.mark.parametrize(
    ("align", "static", "lies_well"),
    [(4, "", True), (4, ".shared .align 8 .b64 bar;", False), (16, ".shared .align 8 .b64 bar;", True)],
)
def test_dynamic_shared_memory_is_aligned_as_it_says(align: int, static: str, lies_well: bool) -> None:
    """It begins where the static variables end. Without them it begins where the shared memory of a kernel does."""
    body = "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [dynamic];"
    assert (found(verdict_of(body, DYNAMIC.format(align), static, 16)) == set()) is lies_well


@pytest.mark.parametrize(("size", "enough"), [(128, False), (1120, False), (1136, True)])
def test_a_kernel_that_aligns_dynamic_shared_memory_needs_bytes_for_it(size: int, enough: bool) -> None:
    body = (
        "mov.u64 %d0, dynamic;\nadd.u64 %d0, %d0, 1023;\nand.b64 %d0, %d0, -1024;\nst.shared.b32 [%d0+124], 1;\n"
        "ld.shared.b32 %r0, [bar];"
    )
    static = ".shared .align 8 .b64 bar;"
    assert (found(verdict_of(body, DYNAMIC.format(16), static, size)) == set()) is enough


def test_all_of_shared_memory_may_be_used() -> None:
    """What lies between variables counts for nothing."""
    statics = "".join(f".shared .align 8 .b64 s{number};" for number in range(8))
    body = "st.shared.b32 [dynamic], 1;"
    assert found(verdict_of(body, DYNAMIC.format(16), statics, 232_448 - 64)) == set()


FOUR = "ld.{0}.v4.b32 {{%r0, %r1, %r2, %r3}}, [s];"
TILE = "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 32;\ncp.async.bulk.commit_group;\n"
"""A copy from shared memory."""


@pytest.mark.parametrize(
    ("module", "variables", "body", "sentence"),
    [
        ("", ".shared .align 4 .b8 s[64];", FOUR.format("shared"), "s, of .align 4, lies at a multiple of 16"),
        (".global .align 8 .b8 s[64];", "", FOUR.format("global"), "s, of .align 8, lies at a multiple of 16"),
        ("", ".shared .align 8 .b8 a[4]; .shared .align 4 .b8 s[64];", "ld.shared.b64 %d0, [s+4];",
         "s, of .align 4, lies 4 bytes behind a multiple of 8"),
        (".global .align 16 .b8 g[64];", ".shared .align 8 .b8 s[64];", TILE + "cp.async.bulk.wait_group 0;",
         "s, of .align 8, lies at a multiple of 16"),
        ("", ".shared .align 16 .b8 s[64];", FOUR.format("shared"), None),
        ("", ".shared .b64 s[8];", "ld.shared.b64 %d0, [s+8];", None),
        ("", ".shared .align 4 .b8 s[64]; .shared .align 16 .b8 t[64];", "st.shared.v2.b64 [t], {%d0, %d0};", None),
    ],
)  # fmt: skip
def test_what_is_aligned_by_chance_is_assumed(module: str, variables: str, body: str, sentence: str | None) -> None:
    verdict = verdict_of(body, module, variables)
    assert not found(verdict)
    assert [what for what in verdict.assumptions if "multiple" in what] == ([] if sentence is None else [sentence])

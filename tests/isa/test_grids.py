"""Grids that depend on one another and other additions to the table: as modules, in reports, under other models."""

from __future__ import annotations

import pytest
from helpers.isa_samples import read

from memmodel import api
from memmodel.base.resources import suite_dir
from memmodel.cat import parse_model
from memmodel.emit import emit
from memmodel.errors import InputError
from memmodel.source import Source

FOLDER = suite_dir() / "async" / "instructions"


def module(body: str, declarations: str = "") -> str:
    """The PTX of a test with one thread."""
    text = f"PTX t\n{declarations}\nthread P0 @ cta 0, cluster 0 {{ {body} }}\n"
    return emit(read(f"{text}thread P1 @ cta 1, cluster 0 {{ mov.u32 %r0, 0; }}\nexists (true)\n")).text


# ---- reports ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_grid_that_is_never_launched_is_named(engine: str) -> None:
    hang = api.check_all(FOLDER / "grid-waits-for-the-next.litmus", engine=engine)[1]
    text = hang.explain()
    assert "launch of grid 1: CTA 0 of grid 0 neither launches nor ends" in text


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_wait_for_a_grid_that_never_ends_is_counted(engine: str) -> None:
    text = """PTX t
.global .u32 x;
thread P0 @ cta 0 { ret; }
thread P1 @ cta 1 {
    griddepcontrol.launch_dependents;
L:  ld.relaxed.gpu.global.u32 %r0, [x];
    setp.eq.u32 %p, %r0, 0;
    @%p bra L;
}
thread P2 @ cta 0, grid 1 { griddepcontrol.wait; st.relaxed.gpu.global.u32 [x], 1; }
exists hang
"""
    found = api.check(text, engine=engine).explain()
    assert "P1 waits for ever" in found and "x stays 0" in found
    assert "end of grid 0: 1 of 2 arrivals" in found


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_the_first_launch_of_a_thread_counts(engine: str) -> None:
    """A later one of the same thread signals nothing; that of another thread may come first."""
    text = """PTX twice
.global .u32 x;
thread P0 @ cta 0 { griddepcontrol.launch_dependents; griddepcontrol.launch_dependents; }
thread P1 @ cta 0 { fence.sc.gpu; griddepcontrol.launch_dependents; }
thread P2 @ cta 0, grid 1 { ld.global.u32 %r0, [x]; }
exists (true)
"""
    flags = "flag ~empty [ARRIVE] ; po ; syncbar as later\nflag ~empty [F] ; po ; syncbar as other\n"
    model = parse_model(Source("m.cat", f"{flags}flag ~empty syncbar \\ ([ARRIVE] ; syncbar) as else"))
    assert set(api.check(text, model, engine=engine).answer.flags) == {"other"}


def test_a_witness_shows_where_a_grid_begins_and_threads_end() -> None:
    text = api.check(FOLDER / "grid-no-wait.litmus").explain()
    assert "griddepcontrol.launch_dependents (arrive, launch of grid 1)" in text
    assert "start of grid 1 (wait, launch of grid 1)" in text
    assert "end of thread (arrive, launch of grid 1)" in text


def test_a_multimem_access_shows_the_variable_and_the_address() -> None:
    assert "W.multimem y (both) = 5" in api.check(FOLDER / "multimem-store-no-alias-fence.litmus").explain()


@pytest.mark.parametrize("model", ["ptx-6.0", "ptx-7.5", "sc"])
def test_models_without_rules_for_grids_say_so(model: str) -> None:
    report = api.check(FOLDER / "grid-no-wait.litmus", model)
    assert f"{model} has no rules for grids that depend on one another" in report.explain()
    assert report.answer.observation.value == "sometimes"


# ---- modules ---------------------------------------------------------------------------------------------------------


def test_each_grid_is_a_kernel() -> None:
    text = emit(read((FOLDER / "grid-wait-chain.litmus").read_text())).text
    assert [f".visible .entry litmus{n}(" in text for n in range(4)] == [True, True, True, False]
    assert "// Launch litmus1, with programmatic stream serialization: grid 1, block 32." in text
    kernels = text.split(".visible .entry ")[1:]
    assert ["griddepcontrol.wait" in kernel for kernel in kernels] == [False, True, True]
    assert ["st.global.u32 [x], 1" in kernel for kernel in kernels] == [True, False, False]


def test_one_grid_is_the_kernel_that_it_was() -> None:
    text = module("griddepcontrol.launch_dependents; griddepcontrol.wait;")
    assert ".visible .entry litmus(" in text and "griddepcontrol.wait;" in text


def test_grids_on_several_gpus_are_no_module() -> None:
    text = "PTX t\nthread P0 @ cta 0, gpu 0 { ret; }\nthread P1 @ cta 0, grid 1, gpu 1 { ret; }\nexists (true)\n"
    with pytest.raises(InputError, match="several grids on several GPUs"):
        emit(read(text))


def test_defaults_that_ptxas_wants_to_see_are_written() -> None:
    declared = ".shared .u32 x; .shared .b64 bar = mbarrier(1);"
    text = module("red.async.relaxed.cluster.shared::cluster.add.u32 [x@cta1], 1, [bar@cta1];", declared)
    assert "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [" in text
    declared = ".global .u32 a; .global .u32 b; .global .u32 m = multimem(a, b);"
    text = module("multimem.red.add.u32 [m], 1; multimem.red.release.add.u32 [m], 1;", declared)
    assert "multimem.red.add.u32 [" in text and "multimem.red.release.sys.add.u32 [" in text
    text = module("multimem.red.gpu.add.u32 [m], 1;", declared)
    assert "multimem.red.relaxed.gpu.add.u32 [" in text


def test_a_multimem_address_is_passed_by_the_host() -> None:
    declared = ".global .u32 a; .global .u32 b; .global .u32 m = multimem(a, b);"
    text = module("multimem.st.b32 [m], 1;", declared)
    assert ".param .u64 mm_ptr_m" in text and "// m: a multimem address of a, b" in text
    assert ".visible .global .align 4 .u32 a" in text


def test_every_lane_names_a_row_of_a_matrix() -> None:
    text = module("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [t+32];", ".shared .align 128 .b32 t[80];")
    lines = [line.strip().partition(" //")[0] for line in text.splitlines()]
    at = lines.index("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%mm_row+32];")
    assert lines[at - 4 : at - 1] == [
        "and.b32 %mm_row, %mm_lane, 15;",
        "shl.b32 %mm_row, %mm_row, 4;",
        "add.u32 %mm_row, %mm_row, %mm_a0;",
    ]
    assert lines[at - 1] == lines[at + 1] == "bar.warp.sync 0xffffffff;"


def test_an_address_in_64_bits_gives_rows_in_64_bits() -> None:
    body = "mov.u64 %a, t; cvta.shared.u64 %b, %a; stmatrix.sync.aligned.m8n8.x1.b16 [%b+16], {%r0};"
    text = module(body, ".shared .align 128 .b32 t[80];")
    assert "add.u64 %mm_wide, %mm_wide, %b;" in text and "[%mm_wide+16], {%r0};" in text


def test_a_warpgroup_stores_a_matrix_once() -> None:
    store = "@!%p stmatrix.sync.aligned.m8n8.x1.b16 [%rd0], {%r0};"
    text = module(f"setp.eq.u32 %p, %r1, 0; setmaxnreg.dec.sync.aligned.u32 40; {store}")
    assert "setp.eq.and.u32 %mm_do, %mm_warp, 0, !%p;" in text
    assert "@%mm_do stmatrix.sync.aligned.m8n8.x1.b16 [%mm_wide], {%r0};" in text


def test_st_bulk_takes_its_address_in_a_register() -> None:
    text = module("st.bulk.shared::cta [t+8], 16, 0; st.bulk [%rd0], 8, 0;", ".shared .align 128 .b32 t[80];")
    assert "add.u32 %mm_a1, %mm_a0, 8;" in text and "st.bulk.shared::cta [%mm_a1], 16, 0;" in text
    assert "st.bulk [%rd0], 8, 0;" in text

"""ptxas: where it is, what its errors become, and the command around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.isa_samples import BLOCK_SAMPLES, blocks

from memmodel.cli.app import app
from memmodel.emit import Assembler, emit
from memmodel.emit.ptxas import architecture, complaints
from memmodel.errors import InputError
from memmodel.isa.lower import requirements
from memmodel.litmus.parse import parse_litmus
from memmodel.ptx.targets import Target, version_of
from memmodel.source import Source

GOOD = """PTX good
"assembles"
.global .u32 x = 0;
thread P0 @ cta 0, gpu 0 {
    st.relaxed.gpu.global.u32 [x], 1;
}
exists (x == 1)
"""
HOPPER = """PTX hopper
"wgmma is for sm_90a and for nothing newer"
thread P0 @ cta 0, gpu 0 {
    wgmma.fence.sync.aligned;
}
exists (true)
"""


NEW = [(9, 3), (9, 4)]
"""Versions whose words are assembled below one by one: older ones are in many tests of the corpus."""

NOT_TAKEN = ("%p|%q, %rd1, [bar]",)
"""What the pages have and ptxas 13.5 does not take: the operand reportValue of mbarrier.try_wait."""


def is_new(line: str) -> bool:
    """True if a sample has a word of a new version that ptxas takes."""
    new = any(version_of(since.version) in NEW for _, since in requirements(blocks(line)))
    return new and not any(text in line for text in NOT_TAKEN)


def assembler() -> Assembler:
    try:
        return Assembler.find()
    except InputError:
        pytest.skip("no ptxas: pip install 'memmodel[ptx]'")


def test_an_error_is_shown_at_its_litmus_line() -> None:
    module = emit(parse_litmus(Source("t.litmus", GOOD)))
    number = next(n for n, line in enumerate(module.text.splitlines(), 1) if "st.relaxed" in line)
    output = f"ptxas /tmp/m.ptx, line {number}; error   : Illegal modifier\n"
    output += "ptxas fatal   : Ptx assembly aborted due to errors\n"
    (found,) = complaints(module, output)
    assert found.render() == (
        "t.litmus:5:5: error: ptxas: Illegal modifier\n"
        "  5 |     st.relaxed.gpu.global.u32 [x], 1;\n"
        "    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )


def test_an_error_in_the_set_up_shows_the_line_of_the_module() -> None:
    module = emit(parse_litmus(Source("t.litmus", GOOD)))
    (found,) = complaints(module, "ptxas /tmp/m.ptx, line 7; fatal   : Unsupported .version 9.3")
    assert found.span is None
    assert found.render() == "error: ptxas: Unsupported .version 9.3\n  hint: in the module: .version 9.3"


def test_a_target_older_than_all_code_is_assembled_for_the_oldest() -> None:
    assert architecture(Target(70)) == Target(75)
    assert architecture(Target(90, "a")) == Target(90, "a")


def test_ptxas_says_the_same() -> None:
    run = assembler()
    assert run.assemble(emit(parse_litmus(Source("t.litmus", GOOD)))) == ()
    (found, *_) = run.assemble(emit(parse_litmus(Source("t.litmus", HOPPER)), Target(100)))
    assert found.span is not None
    assert found.span.text == "wgmma.fence.sync.aligned"


def test_the_command_prints_writes_and_assembles(tmp_path: Path) -> None:
    file = tmp_path / "good.litmus"
    file.write_text(GOOD)
    printed = CliRunner().invoke(app, ["ptx", str(file)])
    assert printed.exit_code == 0
    assert ".visible .entry litmus(" in printed.output
    folder = tmp_path / "out"
    assert CliRunner().invoke(app, ["ptx", str(file), "-o", str(folder)]).exit_code == 0
    assert (folder / "good.ptx").read_text() == printed.output


def test_two_tests_of_one_name_would_overwrite_each_other(tmp_path: Path) -> None:
    files = [tmp_path / name / "good.litmus" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text(GOOD)
    done = CliRunner().invoke(app, ["ptx", *map(str, files), "-o", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "would both be" in done.output


def test_a_refusal_of_ptxas_is_bad_input(tmp_path: Path) -> None:
    assembler()
    file = tmp_path / "hopper.litmus"
    file.write_text(HOPPER)
    done = CliRunner().invoke(app, ["ptx", "--assemble", "--target", "sm_100", str(file)])
    assert done.exit_code == 2
    assert "hopper.litmus:4:5: error: ptxas: " in done.output


def test_without_ptxas_the_command_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("memmodel.emit.ptxas._packaged", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "good.litmus"
    file.write_text(GOOD)
    done = CliRunner().invoke(app, ["ptx", "--assemble", str(file)])
    assert done.exit_code == 2
    assert "no ptxas found" in done.output and "memmodel[ptx]" in done.output


MORE_NEW = """
fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
fence.acquire.sync_restrict::shared::cluster.cluster;
fence.release.sync_restrict::shared::cta.cluster;
cp.async.bulk.global.shared::cta.bulk_group [x], [tile], 16;
cp.async.bulk.wait_group.read 0;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b [tile], [x], 16, [bar], 1;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster::32b.b64 [bar], %r1;
tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32 [tile], 96;
tcgen05.dealloc.exclusive.cta_group::1.sync.aligned.b32 %r1, 96;
st.bulk.weak.shared::cta [tile], 32, 0;
"""
"""Further words that came with PTX 8.6 or later and order or restrict something."""


def test_ptxas_takes_the_words_of_new_versions() -> None:
    """All of them in one thread, for the one target that has them all."""
    lines = [line for line in BLOCK_SAMPLES if is_new(line)] + MORE_NEW.strip().splitlines()
    module = emit(blocks("\n".join(lines)), Target(107, "a"))
    assert not assembler().assemble(module)
    for word in (word for line in lines for word in line.split()[0].rstrip(";").split(".")):
        assert word in module.text

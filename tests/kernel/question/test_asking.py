"""A launch that is given in part: what the module decides, what is guessed, and that nothing clean rests on a guess."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.examples import share
from helpers.kernel.samples import HEAD, NEIGHBOUR, kernel_text

from memmodel import check_kernel
from memmodel.cli.app import app
from memmodel.errors import InputError
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.question.comments import launch_comments
from memmodel.kernel.question.encoded_maps import extent, from_arguments
from memmodel.kernel.question.pointers import pointers, tensor_map_params
from memmodel.ptx.module.reader import parse_module, read_module
from memmodel.source import Source

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SYNCED = kernel_text(NEIGHBOUR.format(sync="bar.sync 0;"))
RACY = kernel_text(NEIGHBOUR.format(sync=""))


def run(*args: object, given: str = "") -> tuple[int, str]:
    result = CliRunner().invoke(app, ["kernel", *map(str, args)], input=given)
    return result.exit_code, result.output


# ---- where a launch may stand ----------------------------------------------------------------------------------------


def test_words_of_the_command_line(tmp_path: Path) -> None:
    """Exit code 0 takes a grid and a block; without them, what was guessed is undecided."""
    for text, whole, part in ((SYNCED, 0, 3), (RACY, 1, 3)):
        (tmp_path / "k.ptx").write_text(text)
        assert run(tmp_path / "k.ptx", "--grid", "2", "--block", "64")[0] == whole
        code, output = run(tmp_path / "k.ptx", "--block", "32x2")
        assert code == part and "the grid; " in output and "block 32×2×1" in output, output


@pytest.mark.parametrize("comment", [
    '// memmodel: launch {"grid": 2, "block": 64}\n',
    '// memmodel: launch {"grid": 2,\n//   "block": 64}\n// another comment\n',
    '/* memmodel: launch {"grid": 2,\n "block": [64]} */\n',
])  # fmt: skip
def test_standard_input_with_a_launch_in_a_comment(comment: str) -> None:
    for text, code in ((SYNCED, 0), (RACY, 1)):
        assert run("-", given=comment + text)[0] == code


def test_words_come_before_a_description_and_that_before_comments(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text('// memmodel: launch {"grid": 5, "block": 32, "dynamic_shared": 7}\n' + SYNCED)
    (tmp_path / "l.json").write_text('{"grid": 3, "block": 64}')
    launch = check_kernel(tmp_path / "k.ptx").launch
    assert (launch.grid, launch.block, launch.dynamic_shared) == ((5, 1, 1), (32, 1, 1), 7)
    code, output = run(tmp_path / "k.ptx", "-l", tmp_path / "l.json", "--grid", "4")
    assert code == 0 and "grid 4×1×1, block 64×1×1" in output


def test_of_a_text_with_launches_of_several_entries_each_is_judged(tmp_path: Path) -> None:
    second = SYNCED.removeprefix(HEAD).replace("k(", "j(").replace("k_param", "j_param")
    head = "".join(f'// memmodel: launch {{"kernel": "{name}", "grid": 1, "block": 64}}\n' for name in "kj")
    (tmp_path / "k.ptx").write_text(head + RACY + second)
    assert run(tmp_path / "k.ptx", "--entry", "k")[0] == 1
    assert run(tmp_path / "k.ptx", "--entry", "j")[0] == 0
    code, output = run(tmp_path / "k.ptx", "--short")
    assert code == 1 and [line.split()[:2] for line in output.splitlines()] == [["findings", "k"], ["clean", "j"]]
    (tmp_path / "k.ptx").write_text(head.replace('"j"', '"k"') + RACY + second)
    for code, output in (run(tmp_path / "k.ptx"), run("-", given=head + RACY + second)):
        assert code == 2 and "two launches" in output


@pytest.mark.parametrize(("args", "words"), [
    (("--grid", "0"), "grid"),
    (("--grid", "4,,1"), "--grid"),
    (("--block", "x"), "--block x: not one, two or three numbers"),
    (("--set", "n"), "not a parameter and its value"),
    (("--set", "k_param_1=4"), "no parameter k_param_1"),
    (("--set", "0=many"), "no number"),
    (("--set", "0+x=1"), "an offset"),
])  # fmt: skip
def test_words_that_say_nothing(tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    (tmp_path / "k.ptx").write_text(SYNCED)
    code, output = run(tmp_path / "k.ptx", *args)
    assert code == 2 and words in output, output


def test_a_comment_that_is_no_launch() -> None:
    for text in ("// memmodel: launch grid 4", "// memmodel: launch [1]", "/* memmodel: launch {"):
        with pytest.raises(InputError, match="in this comment"):
            launch_comments(Source("k.ptx", f"x\n{text}\n"))


# ---- what the module decides -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "expected"), [
    ("gemm_sm90", {"gemm_param_0", "gemm_param_1", "gemm_param_2", "gemm_param_6", "gemm_param_7"}),
    ("tma_pipeline", {"tma_pipeline_param_0", "tma_pipeline_param_1"}),
])  # fmt: skip
def test_pointers_are_told_from_numbers(name: str, expected: set[str]) -> None:
    entry = entry_of(read_module(EXAMPLES / "kernels" / f"{name}.ptx"), None)
    assert {part.name for part in pointers(entry)} == expected


def test_an_offset_that_is_added_to_a_pointer_is_none() -> None:
    body = """
    .reg .b64 %d<8>; .reg .b32 %r<8>;
    ld.param.u64 %d0, [p]; ld.param.u64 %d1, [n]; ld.param.u64 %d4, [s+8];
    cvta.to.global.u64 %d2, %d0; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r0; st.u32 [%d4+4], %r0;"""
    text = HEAD + ".entry e(.param .u64 p, .param .u64 n, .param .align 8 .b8 s[16]) {" + body + "ret; }"
    entry = parse_module(Source("e.ptx", text)).functions["e"]
    assert sorted(map(str, pointers(entry))) == ["p", "s + 8"]


BROKEN = ("dsmem", "last_block", "splitk", "scan", "st_async", "tma_pipeline")


@pytest.mark.parametrize("name", share(BROKEN, 3))
def test_no_hand_writes_the_launch_of_a_broken_kernel(name: str) -> None:
    """The bug is found in what the module decides and what is guessed; the sound kernel is not clean that way."""
    folder = EXAMPLES / "kernels"
    broken, sound = (check_kernel(folder / f"{name}{suffix}.ptx") for suffix in ("-broken", ""))
    assert broken.word == "findings" and broken.launch.guessed
    assert not sound.serious and sound.word == "undecided"
    assert any("not given" in reason for reason in sound.unsettled) or sound.open


def test_the_block_follows_from_the_shared_memory() -> None:
    """128 threads write beyond the tile of 64 words, 64 threads do not."""
    verdict = check_kernel(EXAMPLES / "first" / "reverse-fixed.ptx")
    assert verdict.launch.threads == 64 and verdict.word == "undecided"
    assert check_kernel(EXAMPLES / "first" / "reverse.ptx").word == "findings"


def test_a_number_that_the_run_does_not_need_stays_unknown(tmp_path: Path) -> None:
    """A factor of the data is no reason to ask; a number of rounds is one, and is never guessed to be 0."""
    text = SYNCED.replace("k_param_0)", "k_param_0, .param .f32 factor, .param .u32 rounds)")
    loop = "ld.param.u32 %r20, [rounds]; mov.u32 %r21, 0;\nL: bar.sync 0; add.u32 %r21, %r21, 1;"
    loop += "setp.lt.u32 %p3, %r21, %r20; @%p3 bra L;\nld.param.f32 %f1, [factor]; st.global.f32 [%d0], %f1;\nret;"
    (tmp_path / "k.ptx").write_text(text.replace("ret;", loop))
    given: dict[str, Any] = {"grid": 1, "block": 64, "params": {"k_param_0": {"bytes": 64, "type": "ptr"}}}
    verdict = check_kernel(tmp_path / "k.ptx", given)
    assert list(verdict.launch.guessed) == ["rounds; 256 was taken"]
    assert [param.value for param in verdict.launch.params] == [None, None, 256]
    given["params"]["rounds"] = 3
    verdict = check_kernel(tmp_path / "k.ptx", given)
    assert verdict.word == "clean" and not verdict.launch.guessed


def test_an_unedited_skeleton_is_undecided(tmp_path: Path) -> None:
    for name in ("first/reverse-fixed", "kernels/tma_pipeline", "kernels/dsmem"):
        ptx = EXAMPLES / f"{name}.ptx"
        code, output = run(ptx, "--init-launch")
        (tmp_path / "l.json").write_text(output)
        assert code == 0 and json.loads(output)["grid"] is None
        assert run(ptx, "-l", tmp_path / "l.json")[0] == 3


# ---- tensor maps -----------------------------------------------------------------------------------------------------

ENCODED = {
    "tensorDataType": "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", "tensorRank": 2, "globalDim": [64, 32],
    "globalStrides": [256], "boxDim": [32, 8], "elementStrides": [1, 1], "interleave": "CU_TENSOR_MAP_INTERLEAVE_NONE",
    "swizzle": "CU_TENSOR_MAP_SWIZZLE_64B", "l2Promotion": "CU_TENSOR_MAP_L2_PROMOTION_NONE",
}  # fmt: skip


def test_a_map_by_the_arguments_of_its_encoding() -> None:
    spec = from_arguments(ENCODED, "l")
    assert (spec["element_bytes"], spec["dims"], spec["strides_bytes"], spec["box"]) == (2, [64, 32], [256], [32, 8])
    assert extent(spec) == 31 * 256 + 64 * 2
    dense = from_arguments({key: value for key, value in ENCODED.items() if key != "globalStrides"}, "l")
    assert dense["strides_bytes"] == [128]


@pytest.mark.parametrize(("change", "words"), [
    ({"tensorDataType": "BFLOAT17"}, "BFLOAT17"),
    ({"tensorRank": 3}, "tensorRank is 3"),
    ({"interleave": "CU_TENSOR_MAP_INTERLEAVE_16B"}, "interleaved"),
])  # fmt: skip
def test_arguments_that_are_none(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        from_arguments(ENCODED | change, "l")


MAPPED = (
    HEAD
    + """.entry e(.param .align 64 .b8 m[128]) {
.reg .pred %p<2>; .reg .b64 %d<4>; .reg .b32 %r<8>;
.shared .align 128 .b8 s[512]; .shared .align 8 .b8 bar[8];
mov.b64 %d0, m; cvta.param.u64 %d0, %d0; mov.u32 %r0, s; mov.u32 %r1, bar;
mov.u32 %r2, %tid.x; setp.eq.u32 %p0, %r2, 0; mov.u32 %r3, 0;
@%p0 mbarrier.init.shared.b64 [%r1], 1;
@%p0 fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 %d1, [%r1], 512;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d0, {%r3, %r3}], [%r1];
WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; @!%p1 bra WAIT;
ld.shared.u32 %r4, [%r0];
ret; }"""
)


def test_the_buffer_of_a_tensor_follows_from_its_map(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(MAPPED)
    assert tensor_map_params(entry_of(read_module(tmp_path / "k.ptx"), None)) == ["m"]
    given = {"grid": 1, "block": 32, "tensormaps": [ENCODED]}
    verdict = check_kernel(tmp_path / "k.ptx", given)
    assert verdict.word == "clean", verdict
    assert [(buffer.name, buffer.bytes) for buffer in verdict.launch.buffers] == [("tensor of m", 31 * 256 + 128)]
    without = check_kernel(tmp_path / "k.ptx", {"grid": 1, "block": 32})
    (guess,) = (reason for reason in without.unsettled if "the tensor map m" in reason)
    assert without.word == "undecided" and "--set m=bf16:384x256:64x64:128B" in guess


def test_one_of_two_tensor_maps_is_described(tmp_path: Path) -> None:
    """Of the other one it is said that none was taken."""
    both = MAPPED.replace("m[128])", "m[128], .param .align 64 .b8 n[128])")
    again = both.replace("WAIT:", "mov.b64 %d0, n; cvta.param.u64 %d0, %d0; prefetch.tensormap [%d0];\nWAIT:")
    (tmp_path / "k.ptx").write_text(again)
    assert tensor_map_params(entry_of(read_module(tmp_path / "k.ptx"), None)) == ["m", "n"]
    for described, other in (("m", "n"), ("n", "m")):
        given = {"grid": 1, "block": 32, "tensormaps": [{**ENCODED, "param": described}]}
        guessed = [reason for reason in check_kernel(tmp_path / "k.ptx", given).unsettled if "the tensor map" in reason]
        assert len(guessed) == 1 and f"the tensor map {other};" in guessed[0], guessed


def test_a_pointer_and_a_number_in_a_structure(tmp_path: Path) -> None:
    """A member that is used as an address gets a buffer, and one that is given as a number stays one."""
    (tmp_path / "k.ptx").write_text(
        HEAD
        + """.entry e(.param .align 8 .b8 c[16]) {
.reg .b64 %d<4>; .reg .b32 %r<8>;
ld.param.u64 %d0, [c+8]; cvta.to.global.u64 %d0, %d0;
ld.param.u32 %r0, [c]; mov.u32 %r1, %tid.x; mul.lo.u32 %r2, %r1, %r0; mul.wide.u32 %d1, %r2, 4; add.s64 %d2, %d0, %d1;
st.global.u32 [%d2], %r1;
ret; }"""
    )
    for step, word in ((1, "clean"), (0, "findings")):
        members = [{"offset": 0, "type": "u32", "value": step}]
        params = [{"name": "c", "type": "bytes", "fields": members}]
        verdict = check_kernel(tmp_path / "k.ptx", {"grid": 1, "block": 32, "params": params})
        (struct,) = verdict.launch.params
        assert struct.fields is not None
        kinds = {member.offset: (member.type, member.address is not None) for member in struct.fields}
        assert kinds == {0: ("u32", False), 8: ("ptr", True)}
        assert verdict.word == word


def test_a_tensor_map_in_words(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(MAPPED)
    sizes = "--grid", 1, "--block", 32, "--set"
    code, output = run(tmp_path / "k.ptx", *sizes, "m=BFLOAT16:64x32:64x4:128B")
    assert code == 0, output
    (tmp_path / "l.json").write_text(json.dumps({"tensormaps": [{**ENCODED, "param": "m"}]}))
    code, output = run(tmp_path / "k.ptx", "--launch", tmp_path / "l.json", *sizes, "m=f32:64x32:32x2")
    assert code == 1 and "lacks 256 bytes that were announced" in output, output
    for wrong, why in (("bf16:64:64x4", "has 1 sizes, and its box 2"), ("bf16:a:b", "not a tensor map"),
                       ("bf16:64xa:64x4", "not a tensor map"),
                       ("xf16:64x32:64x4", "xf16 is not known")):  # fmt: skip
        code, output = run(tmp_path / "k.ptx", *sizes, f"m={wrong}")
        assert code == 2 and why in output, output
    for place in ("tensormaps.1.boxDim.0", "tensormaps.0.boxDim.2", "tensormaps.0.boxDim.2x", "tensormaps.0.swizzles"):
        code, output = run(tmp_path / "k.ptx", "--launch", tmp_path / "l.json", *sizes, f"{place}=4")
        assert code == 2 and "no number stands there" in output, output


def test_standard_input_that_is_no_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\x80\x81")))
    with pytest.raises(InputError, match="not a text file"):
        check_kernel("-")


def test_the_entry_of_a_name_among_several() -> None:
    empty = ".visible .entry {}()\n{{\nret;\n}}\n"
    read = parse_module(Source("k.ptx", HEAD + "".join(map(empty.format, ("a", "_Z1bi", "_Z1bf")))))
    assert [entry_of(read, name).name for name in ("_Z1bf", "a", "_Z1bi")] == ["_Z1bf", "a", "_Z1bi"]
    for name, words in ((None, "has 3 entries"), ("b", "has 2 entries b"), ("c", "has no entry c")):
        with pytest.raises(InputError, match=words):
            entry_of(read, name)

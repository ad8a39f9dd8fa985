"""Truncated, mutated and foreign PTX: an error with its line or a verdict, never a traceback, never without end.

MEMMODEL_KERNEL_MUTATIONS=20000 runs as many; MEMMODEL_KERNEL_SEED chooses others.
"""

from __future__ import annotations

import random
import re
import traceback
from pathlib import Path

import pytest
from helpers.examples import each_seed
from helpers.kernel.samples import NEIGHBOUR, copy, launch, module

from memmodel.cat.load import load_model
from memmodel.errors import InputError
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import entry_of
from memmodel.ptx.module.reader import parse_module, read_module
from memmodel.source import Source

SAMPLES = [
    module(copy()).source.text,
    module(NEIGHBOUR.format(sync="bar.sync 0;")).source.text,
    module(
        "L: ld.acquire.gpu.global.u32 %r9, [%d0];\nsetp.eq.u32 %p3, %r9, 1;\n@%p3 bra L;\n"
        "elect.sync %r5|%p5, -1;\nshfl.sync.bfly.b32 %r6, %r9, 1, 31, -1;\n{ .reg .b32 %t<2>; mov.b32 %t1, %r0; }\n"
        "atom.global.add.u32 %r10, [%d0], 1;\ncp.async.cg.shared.global [%r2], [%d0], 16;\ncp.async.wait_all;\n"
        "mov.b64 {%r7, %r8}, %d0;\nselp.b32 %r9, 1, 0, %p3;\nfence.sc.gpu;\nbar.sync 1, 64;",
        '.file 1 "a.cu"\n.global .align 4 .b8 table[16] = {1, 2, 3};\n.extern .shared .align 16 .b8 dyn[];',
    ).source.text,
]
WORDS = sorted({word for text in SAMPLES for word in re.findall(r"[%.\w]+|[^\s\w]", text)})
NUMBERS = ["0", "-1", "1", "32", "0x7fffffff", "4294967296", "18446744073709551616", "1e400", "0f3F800000", "08", ""]


def mutated(rng: random.Random, text: str) -> str:
    """One to three changes."""
    for _ in range(rng.randint(1, 3)):
        text = rng.choice((_cut, _line, _word, _number, _character, _splice))(rng, text)
    return text


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(3)
    if how == 0:
        del lines[one]
    elif how == 1:
        lines.insert(other, lines[one])
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def _pieces(text: str) -> list[str]:
    return re.findall(r"[%.\w]+|\s+|[^\s\w]", text) or [""]


def _word(rng: random.Random, text: str) -> str:
    pieces = _pieces(text)
    pieces[rng.randrange(len(pieces))] = rng.choice(WORDS)
    return "".join(pieces)


def _number(rng: random.Random, text: str) -> str:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + rng.choice(NUMBERS) + text[one.end() :]


def _character(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice("{}()[];,.@%!|+-<>\"'\\\0\t\u00e9\u2028") + text[at + rng.randrange(2) :]


def _splice(rng: random.Random, text: str) -> str:
    other = rng.choice(SAMPLES)
    first, end = sorted((rng.randrange(len(other)), rng.randrange(len(other))))
    at = rng.randrange(len(text) + 1)
    return text[:at] + other[first : min(end, first + 200)] + text[at:]


def survives(text: str, name: str) -> str:
    """What becomes of a text: the word of a verdict, or `error`."""
    try:
        read = parse_module(Source(name, text))
        verdict = judge(read, entry_of(read, None), launch(threads=40), load_model("ptx-9.4"), CheckOptions(2))
    except InputError as error:
        assert error.render().strip(), text
        return "error"
    assert verdict.word in ("clean", "findings", "undecided", "explored")
    return verdict.word


@each_seed(10)
def test_mutated_ptx(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memmodel.kernel.machine.run.MAX_STEPS", 3000)
    rng = random.Random(1000 + seed)
    words = set()
    for number in range(50):
        text = mutated(rng, rng.choice(SAMPLES))
        try:
            words.add(survives(text, f"mutant-{seed}-{number}.ptx"))
        except Exception:
            pytest.fail(f"{traceback.format_exc()}\n{text}")
    assert "error" in words and len(words) > 1


@pytest.mark.parametrize(
    "text", ["", "\n", "{", "int main() { return 0; }", "\x7fELF", '{"kernel": 1}', "; " * 1000, "." * 500]
)
def test_foreign_text(text: str) -> None:
    assert survives(text, "foreign.ptx") == "error"


def test_foreign_files(tmp_path: Path) -> None:
    file = tmp_path / "cubin.ptx"
    file.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(InputError, match="not a text file"):
        read_module(file)
    with pytest.raises(InputError, match="is a directory"):
        read_module(tmp_path)


def test_deep_nesting() -> None:
    assert survives(SAMPLES[1].replace("bar.sync 0;", "{" * 5000 + "}" * 5000), "deep.ptx") == "error"
    assert survives(SAMPLES[1].replace("bar.sync 0;", "mov.b32 %r1, " + "{" * 5000), "deep.ptx") == "error"
    assert survives(SAMPLES[1].replace("bar.sync 0;", "add.s32 %r1, %r1, " + "(" * 5000), "deep.ptx") == "error"


def test_a_word_of_two_megabytes_is_not_quoted_whole() -> None:
    with pytest.raises(InputError) as caught:
        parse_module(Source("k.ptx", "a" * 2_000_000))
    assert caught.value.span is not None and len(str(caught.value)) < 2_000


FAMILIES = [
    "mbarrier",
    "ld",
    "st",
    "atom",
    "red",
    "bar",
    "cp",
    "wgmma",
    "tcgen05",
    "setp",
    "shfl",
    "membar",
    "fence",
    "multimem",
    "mul",
    "cvt",
    "selp",
    "prmt",
]


@pytest.mark.parametrize("opcode", FAMILIES)
def test_opcodes_of_one_word(opcode: str) -> None:
    """A family of instructions with nothing behind its name is refused where it is reached."""
    loop = f"L: mbarrier.try_wait.parity.shared.b64 %p3, [%r4], 0;\n{opcode} %r5, %r6;\n@!%p3 bra L;\n{opcode};"
    for body in (f"bra E;\n{loop}\nE:", loop, f"{opcode} %r5, %r6;"):
        assert survives(module(body).source.text, "k.ptx") != "explored"

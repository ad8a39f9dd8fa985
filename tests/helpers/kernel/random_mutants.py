"""Random changes of the shipped tests that both roads judge alike: nearly right tests of all kinds of instructions."""

from __future__ import annotations

import random
import re
from functools import cache

from helpers.kernel.roundtrip import ROOT, TABLE
from memmodel.emit import emit
from memmodel.errors import InputError
from memmodel.isa.convert import convert
from memmodel.litmus import parse_litmus
from memmodel.litmus.printer import print_litmus
from memmodel.litmus.syntax import Layout
from memmodel.source import Source

WORDS = (
    ("release", "relaxed"), ("acquire", "relaxed"), ("acq_rel", "relaxed"), ("sc", "acq_rel"), ("relaxed", "weak"),
    ("cta", "gpu"), ("gpu", "cta"), ("cluster", "cta"), ("sys", "cta"), ("cta", "cluster"),
    ("relaxed", "release"), ("relaxed", "acquire"), ("acq_rel", "acquire"), ("acq_rel", "release"),
    ("async", "async.global"), ("async", "async.shared::cta"), ("before_thread_sync", "after_thread_sync"),
    ("read", ""), ("lt", "le"), ("eq", "ne"), ("ne", "eq"), ("sync", "arrive"), ("v2", ""), ("u64", "u32"),
    ("arrive", "arrive_drop"), ("try_wait", "test_wait"), ("noinc", ""), ("multicast::cluster", ""),
)  # fmt: skip
"""What a word between dots may become; nothing: it goes."""

INSERTED = (
    "bar.sync 0;", "fence.proxy.async;", "fence.acq_rel.gpu;", "fence.sc.cta;", "barrier.cluster.arrive;", "exit;",
    "barrier.cluster.wait;", "cp.async.bulk.wait_group.read 0;", "cp.async.wait_all;", "bar.warp.sync 0xffffffff;",
    "tcgen05.fence::after_thread_sync;", "tcgen05.wait::ld.sync.aligned;",
    "mov.u32 %zz, 0; ZZ: add.u32 %zz, %zz, 1; setp.lt.u32 %zp, %zz, 2; @%zp bra ZZ;",
)  # fmt: skip


@cache
def _names() -> tuple[str, ...]:
    """The shipped tests that are the same on both roads."""
    return tuple(row[0] for row in (line.split("\t") for line in TABLE.read_text().splitlines()) if row[1] == "same")


@cache
def _base(name: str) -> str:
    """A shipped test in block layout, without its question."""
    test = parse_litmus(Source.read(str(ROOT / "litmus" / name)))
    text = print_litmus(test if test.layout is Layout.BLOCKS else convert(test, Layout.BLOCKS))
    text = re.sub(r"\A(?:(?!\.|thread ).*\n)+", 'PTX mutant\n"A mutant."\n', text)
    return text[: text.rindex("\n}\n")] + "\n}\n\nexists true\n"


def mutant(seed: int) -> str:
    """One to three changes of a test, after which it is still a test, and reads no register that nothing writes."""
    pick = random.Random(seed)
    while True:
        base = _base(pick.choice(_names()))
        text = _changed(base, pick)
        if not unwritten(text) <= unwritten(base):
            continue
        try:
            emit(parse_litmus(Source("mutant.litmus", text)))
        except InputError:
            continue
        return text


_WRITTEN = re.compile(r"\s*(?!tcgen05\.dealloc)[a-z]\S* (\{[^}]*\}|(?:_\|)?%[\w|%]+)")


def unwritten(text: str) -> set[tuple[str, str]]:
    """Threads and their registers that no line begins with, after its mnemonic, before a line reads them."""
    registers = set()
    for name, body in re.findall(r"^thread (\S+)[^{]*\{(.*?)^\}", text, re.M | re.S):
        known: set[str] = set()
        for part in re.split(r"[;:\n]", body):
            guard, line = re.match(r"\s*(@!?%\w+)?(.*)", part, re.S).groups(default="")  # type: ignore[union-attr]
            first = _WRITTEN.match(line)
            read = set(re.findall(r"%[a-z]\w*", guard + (line[first.end() :] if first else line)))
            written = set(re.findall(r"%\w+", first[1])) if first else set()
            registers |= {(name, register) for register in read - known}
            known |= written
    return registers


def _changed(base: str, pick: random.Random) -> str:
    lines = base.split("\n")
    for _ in range(pick.choice((1, 1, 1, 2, 2, 3))):
        change = pick.choices((dropped, swapped, again, word, number, _inserted, _guarded), (4, 3, 1, 4, 3, 2, 1))
        change[0](lines, pick)
    return "\n".join(lines)


def places(lines: list[str]) -> list[int]:
    """Where instructions stand."""
    return [at for at, line in enumerate(lines) if line.startswith(" ") and ";" in line]


def dropped(lines: list[str], pick: random.Random) -> None:
    """One instruction less."""
    if where := places(lines):
        del lines[pick.choice(where)]


def swapped(lines: list[str], pick: random.Random) -> None:
    """Two neighbours in the other order."""
    pairs = [at for at in places(lines) if at + 1 < len(lines) and lines[at + 1].startswith(" ")]
    if pairs:
        at = pick.choice(pairs)
        lines[at], lines[at + 1] = lines[at + 1], lines[at]


def again(lines: list[str], pick: random.Random) -> None:
    """An instruction that stands elsewhere too."""
    if where := places(lines):
        lines.insert(pick.choice(where), lines[pick.choice(where)])


def word(lines: list[str], pick: random.Random) -> None:
    """Another scope, other semantics, another kind of wait."""
    options = [
        (at, old, new) for at in places(lines) for old, new in WORDS if re.search(rf"\.{old}(?![\w:])", lines[at])
    ]
    if options:
        at, old, new = pick.choice(options)
        lines[at] = re.sub(rf"\.{old}(?![\w:])", f".{new}" if new else "", lines[at], count=1)


def number(lines: list[str], pick: random.Random) -> None:
    """Another number: a parity, a count, some bytes, a trip count."""
    pattern = r"(?<=[ (,])\d+(?=[,;)])"
    options = [
        (at, digits)
        for at, line in enumerate(lines)
        if line.startswith((" ", ".shared"))
        for digits in re.finditer(pattern, line)
    ]
    if options:
        at, digits = pick.choice(options)
        value = int(digits[0])
        other = pick.choice((value ^ 1, value + 1, max(0, value - 1), 2 * value))
        lines[at] = lines[at][: digits.start()] + str(other) + lines[at][digits.end() :]


def _inserted(lines: list[str], pick: random.Random) -> None:
    if where := places(lines):
        lines.insert(pick.choice(where), f"    {pick.choice(INSERTED)}")


def _guarded(lines: list[str], pick: random.Random) -> None:
    """A predicate that this run does or does not fulfil."""
    where = [at for at in places(lines) if not lines[at].lstrip().startswith("@") and ":" not in lines[at].split()[0]]
    if where:
        at = pick.choice(where)
        lines[at] = f"    mov.pred %gp, {pick.choice('01')};\n    @%gp {lines[at].lstrip()}"

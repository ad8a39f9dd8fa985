"""Random straight programs whose values are followed as terms, and the numbers that they compute."""

from __future__ import annotations

import random

from helpers.kernel.samples import entry, launch, module
from memmodel.kernel.machine.run import run_launch
from memmodel.kernel.machine.values.naming import Naming

WORDS = [f"%r{n}" for n in range(10, 20)]
FLOATS = [f"%f{n}" for n in range(8)]
LONGS = [f"%d{n}" for n in range(10, 16)]
FLAGS = [f"%p{n}" for n in range(1, 6)]
NUMBERS = (0, 1, 2, 5, 255, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0x10002, 0x3F800000, 0xBF800000, 0x7FC00000, 0x7F800000)
FORMS = (
    "{add.s32|sub.s32|xor.b32|and.b32|or.b32|min.s32|max.u32|mul.lo.s32|add.u16x2} W, W, W;",
    "shfl.sync.{bfly|idx|up|down}.b32 W, W, {1|2|4|8|16|0|3}, {31|0x181f|0x1c1f}, -1;",
    "bar.warp.sync -1;",
    "shfl.sync.bfly.b32 W, W, {1|2|4|8|16}, 31, -1;",
    "setp.{lt.s32|eq.b32|ne.s32|gt.u32|hs.u32|le.s32} P, W, W;",
    "setp.{lt|gtu|eq|neu|nan|ge}.f32 P, F, F;",
    "setp.{lt|eq}.{and|or|xor}.s32 P|%p5, W, W, P;",
    "selp.b32 W, W, W, P;",
    "{and|or|xor}.pred P, P, P;",
    "{add|max|min|mul}.f32 F, F, F;",
    "mov.b32 F, W;",
    "mov.b32 W, F;",
    "mov.b64 {%r10, %r11}, D;",
    "mov.b64 D, {W, W};",
    "{shl.b64|shr.u64} D, D, {8|16|32|40};",
    "{or|xor|and}.b64 D, D, D;",
    "and.b32 W, W, {255|65535|0xff00|7};",
    "prmt.b32 W, W, W, {0x3210|0x5410|0x7632|0x0123};",
    "cvt.u32.u64 W, D;",
    "cvt.{u64.u32|s64.s32} D, W;",
    "st.shared.b32 [%r3+{0|256}], W; bar.warp.sync -1; ld.shared.{b32|u16|s8} W, [{%r2|%r3}+{0|256}];",
    "@P bra X#; add.s32 W, W, W; @P mov.b32 W, F; X#:",
    "@P bra X#; selp.b32 W, W, W, P; bra Y#; X#: and.b32 W, W, W; setp.lt.s32 P, W, W; Y#:",
    "redux.sync.{add.s32|min.s32|max.u32|xor.b32} W, W, -1;",
)


def program(shuffle: random.Random, length: int) -> str:
    """Registers are loaded, changed, and stored, each lane to a place of its own."""
    lines = ["mul.wide.u32 %d1, %r0, 4;", "add.s64 %d2, %d0, %d1;"]
    lines += [f"ld.global.b32 {one}, [{'%d2' if n % 3 else '%d0'}+{256 * n}];" for n, one in enumerate(WORDS)]
    lines += [f"mov.b32 {one}, {WORDS[n]};" for n, one in enumerate(FLOATS)]
    lines += [f"mov.b64 {one}, {{{WORDS[n]}, {WORDS[n + 1]}}};" for n, one in enumerate(LONGS)]
    lines += [f"setp.lt.s32 {one}, {WORDS[n]}, {WORDS[n + 1]};" for n, one in enumerate(FLAGS)]
    lines += [_filled(shuffle, shuffle.choice(FORMS)).replace("#", str(n)) for n in range(length)]
    for n, one in enumerate((*WORDS, *FLOATS)):
        lines.append(f"st.global.b32 [%d2+{8192 + 256 * n}], {one};")
    for n, one in enumerate(LONGS):
        lines.append(f"mov.b64 {{%r40, %r41}}, {one};\nst.global.b32 [%d2+{24576 + 512 * n}], %r40;")
        lines.append(f"st.global.b32 [%d2+{24832 + 512 * n}], %r41;")
    return "\n".join(lines)


def _filled(shuffle: random.Random, form: str) -> str:
    """A form with a word of each list, and registers in place of capital letters."""
    found, rest = "", form
    while "{" in rest:
        before, _, rest = rest.partition("{")
        inside, _, rest = rest.partition("}")
        found += before + (shuffle.choice(inside.split("|")) if "|" in inside else "{" + inside + "}")
    kinds = {"W": WORDS, "F": FLOATS, "D": LONGS, "P": FLAGS[:4]}
    return "".join(shuffle.choice(kinds[letter]) if letter in kinds else letter for letter in found + rest)


def disagreements(seed: int, cases: int, *, by_rows: bool = False) -> tuple[int, list[object]]:
    """How often one term is stored at several places, and the terms that are not one number in some case."""
    shuffle = random.Random(seed)
    read = module(program(shuffle, shuffle.randrange(10, 60)))
    body = entry(read).body or ()
    stores = frozenset(one.number for one in body if one.words[:2] == ("st", "global"))
    given = launch(threads=32)

    def stored(content: str | None, naming: Naming | None = None) -> dict[tuple[int, int], int | None]:
        param = given.params[0].model_copy(update={"hex": content})
        run = run_launch(read, entry(read), given.model_copy(update={"params": (param,)}), follower=naming)
        return {(one.thread, one.first): one.value for one in run.weak() if one.at in stores}

    places: dict[int, list[tuple[int, int]]] = {}
    for place, term in stored(None, Naming(body, stores, by_rows=by_rows)).items():
        if term is not None:
            places.setdefault(term, []).append(place)
    wrong: list[object] = []
    for case in range(cases):
        few = NUMBERS if case % 2 else shuffle.choices(NUMBERS, k=3)
        words = [shuffle.choice(few) if shuffle.random() < 0.9 else shuffle.getrandbits(32) for _ in range(2048)]
        numbers = stored(b"".join(one.to_bytes(4, "little") for one in words).hex())
        for term, where in places.items():
            known = {numbers[one] for one in where} - {None}
            if len(known) > 1 or (term >= 0 and known - {term}):
                wrong.append((seed, term, where[:2], known))
    return sum(len(one) > 1 for one in places.values()), wrong

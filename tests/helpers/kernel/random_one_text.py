"""Random kernels whose threads all execute one text, as compilers write them: right ones, and such with a mistake.

A kernel is one or two of the patterns below, and up to two random changes: a barrier that is missing, a scope that is
too narrow, an index that is off by one, a guard.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from helpers.kernel.one_text import OneText
from helpers.kernel.random_mutants import again, dropped, number, places, swapped, unwritten, word
from memmodel.errors import InputError
from memmodel.isa.lower import lower_test
from memmodel.litmus import parse_litmus
from memmodel.source import Source


class Writer:
    """Lines of a text in the making, for a launch of so many threads."""

    def __init__(self, pick: random.Random) -> None:
        self.pick = pick
        self.ctas = pick.choice((1, 1, 1, 2, 2, 3))
        shapes = ((1, 2), (1, 3), (2, 1), (2, 1), (2, 2), (3, 1), (4, 1)) if self.ctas < 3 else ((1, 1), (2, 1), (1, 2))
        self.warps, self.lanes = pick.choice(shapes)
        self.threads = self.warps * self.lanes
        self.cluster = 2 if self.ctas == 2 and pick.random() < 0.4 else 1
        if self.cluster == 2 and self.threads < 3 and pick.random() < 0.3:
            self.ctas = 4
        self.head: list[str] = []
        self.lines: list[str] = []
        self.ends: list[str] = []
        self.number = 0

    def name(self, kind: str) -> str:
        """A new register (r, d, p), label (L) or variable (v)."""
        self.number += 1
        return f"{'' if kind in 'Lv' else '%'}{kind}{self.number}"

    def add(self, *lines: str) -> None:
        """Write lines."""
        self.lines += lines

    def array(self, space: str, words: int) -> str:
        """A new array of words."""
        name = self.name("v")
        self.head.append(f".{space} .align 16 .u32 {name}[{words}];")
        return name

    def address(self, array: str, index: str) -> str:
        """The address of a word, whose index is in a register or a number."""
        address, base = self.name("d"), self.name("d")
        if index.isdigit():
            return f"[{array}+{4 * int(index)}]"
        self.add(
            f"mul.wide.u32 {address}, {index}, 4;",
            f"mov.u64 {base}, {array};",
            f"add.u64 {address}, {address}, {base};",
        )
        return f"[{address}]"

    def index(self, kind: str, among: int) -> str:
        """An index below `among` that follows from the number of the thread."""
        if kind == "zero":
            return "0"
        index = self.name("r")
        steps = {
            "own": f"mov.u32 {index}, %t;",
            "next": f"add.u32 {index}, %t, 1;",
            "pair": f"xor.b32 {index}, %t, 1;",
            "half": f"shr.u32 {index}, %t, 1;",
            "reverse": f"sub.u32 {index}, {among - 1}, %t;",
            "other": f"add.u32 {index}, %t, {self.lanes};",
            "grid": f"mad.lo.u32 {index}, %c, {self.threads}, %t;",
            "after": f"mad.lo.u32 {index}, %c, {self.threads}, 1;",
        }
        self.add(steps[kind])
        if kind in ("next", "pair", "other"):
            self.add(f"rem.u32 {index}, {index}, {among};")
        return index

    def guard(self, kind: str) -> str:
        """A predicate that holds for some threads; the words that begin an instruction with it."""
        if kind == "all":
            return ""
        guard = self.name("p")
        test = {
            "first": f"setp.eq.u32 {guard}, %t, 0;",
            "last": f"setp.eq.u32 {guard}, %t, {self.threads - 1};",
            "few": f"setp.lt.u32 {guard}, %t, {max(1, self.threads // 2)};",
            "warp": f"setp.eq.u32 {guard}, %w, 0;",
            "cta": f"setp.eq.u32 {guard}, %c, 0;",
            "elected": f"elect.sync _|{guard}, {(1 << self.lanes) - 1};",
        }[kind]
        self.add(test)
        return f"@{guard} "

    def load(self, space: str, where: str, guard: str = "") -> None:
        """A weak load of a word."""
        self.add(f"{guard}ld.{space}.u32 {self.name('r')}, {where};")

    def store(self, space: str, where: str, guard: str = "") -> None:
        """A weak store of a word that tells the thread."""
        self.add(f"{guard}st.{space}.u32 {where}, %t;")

    def meet(self) -> None:
        """All threads of the CTA meet."""
        kinds = ["bar.sync 0;", "bar.sync 0;", "barrier.sync 0;"]
        if self.warps == 1:
            kinds += [f"bar.warp.sync {(1 << self.lanes) - 1};"] * 3
        if self.lanes == 1:
            kinds.append(f"bar.sync 1, {32 * self.warps};")
        if self.cluster > 1 or self.ctas == 1:
            kinds.append("barrier.cluster.arrive; barrier.cluster.wait;")
        self.add(self.pick.choice(kinds))

    def poll(self, where: str, least: str, scope: str) -> None:
        """Wait until a word of global memory is as large."""
        label, word, less = self.name("L"), self.name("r"), self.name("p")
        self.add(
            f"{label}: ld.acquire.{scope}.global.u32 {word}, {where};",
            f"setp.lt.u32 {less}, {word}, {least};",
            f"@{less} bra {label};",
        )


Pattern = Callable[[Writer], None]


def exchange(w: Writer) -> None:
    """Each thread writes a word of its own and reads one of another thread; perhaps once more."""
    words = w.threads
    array = w.array("shared", words)
    for _ in range(w.pick.choice((1, 1, 2))):
        w.store("shared", w.address(array, w.index(w.pick.choice(("own", "own", "next", "reverse")), words)))
        w.meet()
        w.load("shared", w.address(array, w.index(w.pick.choice(("own", "next", "pair", "reverse", "other")), words)))
        if w.pick.random() < 0.8:
            w.meet()


def ping_pong(w: Writer) -> None:
    """A loop with two buffers in turn, and one meeting in each round."""
    array = w.array("shared", 2 * w.threads)
    turn, label, goes, base, where = w.name("r"), w.name("L"), w.name("p"), w.name("r"), w.name("r")
    w.add(
        f"mov.u32 {turn}, 0;", f"{label}: and.b32 {base}, {turn}, 1;", f"mad.lo.u32 {where}, {base}, {w.threads}, %t;"
    )
    w.store("shared", w.address(array, where))
    w.meet()
    other = w.index(w.pick.choice(("next", "other", "reverse")), w.threads)
    place = w.name("r")
    w.add(f"mad.lo.u32 {place}, {base}, {w.threads}, {other};")
    w.load("shared", w.address(array, place))
    w.add(
        f"add.u32 {turn}, {turn}, 1;", f"setp.lt.u32 {goes}, {turn}, {w.pick.choice((2, 3))};", f"@{goes} bra {label};"
    )


def tree(w: Writer) -> None:
    """A reduction in shared memory: in each level half of the threads add the word of another one."""
    array = w.array("shared", w.threads)
    own = w.index("own", w.threads)
    mine = w.address(array, own)
    w.store("shared", mine)
    w.meet()
    stride = 1
    while 2 * stride < w.threads:
        stride *= 2
    while stride:
        at, inside, sum_, more = w.name("r"), w.name("p"), w.name("r"), w.name("r")
        w.add(f"add.u32 {at}, %t, {stride};", f"setp.lt.u32 {inside}, {at}, {min(2 * stride, w.threads)};")
        place = w.address(array, at)
        w.add(
            f"@{inside} ld.shared.u32 {sum_}, {mine};",
            f"@{inside} ld.shared.u32 {more}, {place};",
            f"@{inside} add.u32 {sum_}, {sum_}, {more};",
            f"@{inside} st.shared.u32 {mine}, {sum_};",
        )
        w.meet()
        stride //= 2
    w.load("shared", f"[{array}]")


def shuffled(w: Writer) -> None:
    """A reduction of each warp by shuffles, then of the warps in shared memory."""
    array = w.array("shared", w.warps)
    value = w.name("r")
    w.add(f"mov.u32 {value}, %t;", f"shfl.sync.bfly.b32 {value}, {value}, 1, 31, {(1 << w.lanes) - 1};")
    place = w.address(array, "%w")
    first = w.name("p")
    w.add(f"setp.eq.u32 {first}, %l, 0;")
    w.store("shared", place, f"@{first} " if w.pick.random() < 0.85 else "")
    w.meet()
    guard = w.guard(w.pick.choice(("all", "warp", "first")))
    for warp in range(w.warps):
        w.load("shared", w.address(array, str(warp)), guard)


def broadcast(w: Writer) -> None:
    """One thread writes what all read."""
    array = w.array("shared", 1)
    guard = w.guard(w.pick.choice(("first", "first", "last", "elected")))
    w.store("shared", f"[{array}]", guard)
    w.meet()
    w.load("shared", f"[{array}]")


def strided(w: Writer) -> None:
    """A loop over words of global memory in strides, whose rounds depend on the thread."""
    every = w.ctas * w.threads
    words = every + w.pick.choice((0, 1, every))
    array = w.array("global", words)
    at, label, goes = w.index("grid", every), w.name("L"), w.name("p")
    w.add(f"{label}: setp.ge.u32 {goes}, {at}, {words};", f"@{goes} bra E{label};")
    w.store("global", w.address(array, at))
    w.add(f"add.u32 {at}, {at}, {every};", f"bra {label};", f"E{label}: mov.u32 {w.name('r')}, 0;")


def last_block(w: Writer) -> None:
    """The block that takes the last ticket reads what all have written."""
    array, counter, flag = w.array("global", w.ctas * w.threads), w.array("global", 1), w.array("shared", 1)
    w.store("global", w.address(array, w.index("grid", 0)))
    fence, scope = w.pick.random() < 0.5, w.pick.choice(("gpu", "gpu", "sys"))
    if fence:
        w.add(f"fence.acq_rel.{scope};")
    w.meet()
    guard, ticket, label, told, last = w.guard("first").strip(" @"), w.name("r"), w.name("L"), w.name("r"), w.name("p")
    w.add(
        f"@!{guard} bra {label};",
        f"atom.{'relaxed' if fence else 'acq_rel'}.{scope}.global.add.u32 {ticket}, [{counter}], 1;",
        f"st.shared.u32 [{flag}], {ticket};",
        f"{label}: mov.u32 {told}, 0;",
    )
    w.meet()
    w.add(f"ld.shared.u32 {told}, [{flag}];", f"setp.ne.u32 {last}, {told}, {w.ctas - 1};", f"@{last} bra E{label};")
    if fence:
        w.add(f"fence.acq_rel.{scope};")
    for cta in range(w.ctas):
        w.load("global", w.address(array, str(cta * w.threads)))
    w.add(f"E{label}: mov.u32 {told}, 0;")


def chain(w: Writer) -> None:
    """Each block waits for the one before it, reads its word, writes its own, and tells the next one."""
    array, flags = w.array("global", w.ctas), w.array("global", w.ctas)
    guard, label, done = w.guard("first").strip(" @"), w.name("L"), w.name("p")
    w.add(f"@!{guard} bra {label};", f"setp.eq.u32 {done}, %c, 0;", f"@{done} bra F{label};")
    before = w.name("r")
    w.add(f"sub.u32 {before}, %c, 1;")
    w.poll(w.address(flags, before), "1", "gpu")
    w.load("global", w.address(array, before))
    w.add(f"F{label}: mov.u32 {before}, %c;")
    w.store("global", w.address(array, "%c"))
    w.add(f"st.release.gpu.global.u32 {w.address(flags, '%c')}, 1;", f"{label}: mov.u32 {before}, 0;")


def grid_barrier(w: Writer) -> None:
    """All blocks meet at a counter."""
    array, counter = w.array("global", w.ctas * w.threads), w.array("global", 1)
    w.store("global", w.address(array, w.index("grid", 0)))
    w.meet()
    guard, label = w.guard("first").strip(" @"), w.name("L")
    w.add(
        f"@!{guard} bra {label};",
        f"{w.pick.choice(('atom.release.gpu.global.add.u32 %r0, ', 'red.release.gpu.global.add.u32 '))}[{counter}], 1;",
    )
    w.poll(f"[{counter}]", str(w.ctas), "gpu")
    w.add(f"{label}: mov.u32 {w.name('r')}, 0;")
    w.meet()
    at, every = w.index("grid", 0), w.ctas * w.threads
    w.add(f"add.u32 {at}, {at}, {w.threads};", f"rem.u32 {at}, {at}, {every};")
    w.load("global", w.address(array, at))


def objects(w: Writer) -> None:
    """The threads meet at an mbarrier object, in each round of a loop."""
    array, bar = w.array("shared", w.threads), w.name("v")
    w.head.append(f".shared .align 8 .b64 {bar};")
    guard = w.guard("first")
    w.add(f"{guard}mbarrier.init.shared::cta.b64 [{bar}], {w.threads};", "bar.sync 0;")
    mine = w.address(array, w.index("own", w.threads))
    other = w.address(array, w.index(w.pick.choice(("next", "reverse")), w.threads))
    label, done = w.name("L"), w.name("p")
    for turn in range(w.pick.choice((1, 2))):
        for half, access in enumerate((w.store, w.load)):
            access("shared", mine if not half else other)
            w.add(
                f"mbarrier.arrive{w.pick.choice(('', '', '', '.relaxed.cta'))}.shared::cta.b64 _, [{bar}];",
                f"W{label}{turn}{half}: mbarrier.try_wait.parity.shared::cta.b64 {done}, [{bar}], {half};",
                f"@!{done} bra W{label}{turn}{half};",
            )


def in_pairs(w: Writer) -> None:
    """Two warps each meet at a barrier of their own."""
    if w.lanes > 1 or w.warps % 2:  # a thread of the test counts as a warp
        own_objects(w)
        return
    array, pair = w.array("shared", w.threads), w.name("r")
    w.add(f"shr.u32 {pair}, %w, 1;", f"add.u32 {pair}, {pair}, 1;")
    w.store("shared", w.address(array, w.index("own", w.threads)))
    w.add(f"{w.pick.choice(('bar', 'barrier'))}.sync {pair}, 64;")
    other = w.index("own", w.threads)
    w.add(f"xor.b32 {other}, {other}, {w.lanes * w.pick.choice((1, 1, 2))};", f"rem.u32 {other}, {other}, {w.threads};")
    w.load("shared", w.address(array, other))


def own_objects(w: Writer) -> None:
    """Each thread arrives at an object of its own, and waits for that of another one."""
    array, bars = w.array("shared", w.threads), w.name("v")
    w.head.append(f".shared .align 8 .b64 {bars}[{w.threads}];")
    own, base, mine, done, label = w.index("own", w.threads), w.name("d"), w.name("d"), w.name("p"), w.name("L")
    w.add(f"mul.wide.u32 {mine}, {own}, 8;", f"mov.u64 {base}, {bars};", f"add.u64 {mine}, {mine}, {base};")
    w.add(f"mbarrier.init.shared::cta.b64 [{mine}], 1;", "bar.sync 0;")
    w.store("shared", w.address(array, own))
    w.add(f"mbarrier.arrive.shared::cta.b64 _, [{mine}];")
    kind = w.pick.choice(("next", "pair", "reverse"))
    other, theirs = w.index(kind, w.threads), w.name("d")
    w.add(
        f"mul.wide.u32 {theirs}, {other}, 8;",
        f"add.u64 {theirs}, {theirs}, {base};",
        f"W{label}: mbarrier.try_wait.parity.shared::cta.b64 {done}, [{theirs}], 0;",
        f"@!{done} bra W{label};",
    )
    w.load("shared", w.address(array, w.index(w.pick.choice((kind, kind, "own", "next")), w.threads)))


def flags(w: Writer) -> None:
    """Each thread tells another one, perhaps of another CTA, that its word is written."""
    every = w.ctas * w.threads
    array, told = w.array("global", every), w.array("global", every)
    own = w.index("grid", every)
    w.store("global", w.address(array, own))
    w.add(f"st.release.{w.pick.choice(('gpu', 'gpu', 'cta'))}.global.u32 {w.address(told, own)}, 1;")
    other = w.name("r")
    w.add(f"add.u32 {other}, {own}, {w.pick.choice((1, w.threads))};", f"rem.u32 {other}, {other}, {every};")
    w.poll(w.address(told, other), "1", "gpu")
    if w.pick.random() < 0.2:
        w.add(f"add.u32 {other}, {other}, 1;", f"rem.u32 {other}, {other}, {every};")
    w.load("global", w.address(array, other))


def specialised(w: Writer) -> None:
    """The first warp fills a slot in turn, the others read it: a full and an empty object."""
    if w.warps < 2:
        exchange(w)
        return
    slot, full, empty = w.array("shared", 4), w.name("v"), w.name("v")
    w.head += [f".shared .align 8 .b64 {bar};" for bar in (full, empty)]
    first = w.guard("first")
    readers = (w.warps - 1) * w.lanes
    w.add(
        f"{first}mbarrier.init.shared::cta.b64 [{full}], 1;",
        f"{first}mbarrier.init.shared::cta.b64 [{empty}], {readers};",
        "bar.sync 0;",
    )
    turn, parity, other, label, goes, done, warp, leader = (w.name(kind) for kind in "rrrLpppp")
    rounds = w.pick.choice((2, 2, 3))
    tma = w.pick.random() < 0.4
    w.add(
        f"mov.u32 {turn}, 0;",
        f"setp.ne.u32 {warp}, %w, 0;",
        f"setp.eq.u32 {leader}, %l, 0;",
        f"@{warp} bra C{label};",
        f"@!{leader} bra E{label};",
    )
    w.add(
        f"P{label}: and.b32 {parity}, {turn}, 1;",
        f"xor.b32 {other}, {parity}, 1;",
        f"X{label}: mbarrier.try_wait.parity.shared::cta.b64 {done}, [{empty}], {other};",
        f"@!{done} bra X{label};",
    )
    if tma:
        source = w.array("global", 4)
        w.add(
            f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [{full}], 16;",
            f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{slot}], [{source}], 16, [{full}];",
        )
    else:
        w.store("shared", f"[{slot}]")
        w.add(f"mbarrier.arrive.shared::cta.b64 _, [{full}];")
    w.add(
        f"add.u32 {turn}, {turn}, 1;",
        f"setp.lt.u32 {goes}, {turn}, {rounds};",
        f"@{goes} bra P{label};",
        f"bra E{label};",
    )
    w.add(
        f"C{label}: and.b32 {parity}, {turn}, 1;",
        f"Y{label}: mbarrier.try_wait.parity.shared::cta.b64 {done}, [{full}], {parity};",
        f"@!{done} bra Y{label};",
    )
    w.load("shared", f"[{slot}]")
    if tma:
        w.add("fence.proxy.async;")
    w.add(
        f"mbarrier.arrive.shared::cta.b64 _, [{empty}];",
        f"add.u32 {turn}, {turn}, 1;",
        f"setp.lt.u32 {goes}, {turn}, {rounds};",
        f"@{goes} bra C{label};",
        f"E{label}: mov.u32 {turn}, 0;",
    )


def copied(w: Writer) -> None:
    """A bulk copy into shared memory, for which all wait; then one out of it."""
    tile, source, bar = w.array("shared", 4), w.array("global", 4), w.name("v")
    w.head.append(f".shared .align 8 .b64 {bar};")
    guard, done, label = w.guard("first"), w.name("p"), w.name("L")
    w.add(
        f"{guard}mbarrier.init.shared::cta.b64 [{bar}], 1;",
        "bar.sync 0;",
        f"{guard}mbarrier.arrive.expect_tx.shared::cta.b64 _, [{bar}], 16;",
        f"{guard}cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{tile}], [{source}], 16, [{bar}];",
        f"W{label}: mbarrier.try_wait.parity.shared::cta.b64 {done}, [{bar}], 0;",
        f"@!{done} bra W{label};",
    )
    w.load("shared", w.address(tile, w.index("half", 4)))
    if w.pick.random() < 0.5:
        target = w.array("global", 4 * w.ctas)
        w.meet()
        few = w.guard("first")
        w.store("shared", f"[{tile}]", few)
        w.add("fence.proxy.async;")
        w.meet()
        at = w.name("r")
        w.add(f"shl.b32 {at}, %c, 2;")
        w.add(
            f"{few}cp.async.bulk.global.shared::cta.bulk_group {w.address(target, at)}, [{tile}], 16;",
            f"{few}cp.async.bulk.commit_group;",
            f"{few}cp.async.bulk.wait_group 0;",
        )


def copied_by_each(w: Writer) -> None:
    """Each thread copies its own word into shared memory, and reads that of another one."""
    tile, source = w.array("shared", w.threads), w.array("global", w.ctas * w.threads)
    own = w.address(tile, w.index("own", w.threads))
    w.add(
        f"cp.async.ca.shared::cta.global {own}, {w.address(source, w.index('grid', 0))}, 4;",
        w.pick.choice(("cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;")),
    )
    w.meet()
    w.load("shared", w.address(tile, w.index(w.pick.choice(("next", "reverse", "own")), w.threads)))


def added(w: Writer) -> None:
    """All add to words with atomic operations, and read them."""
    array = w.array("shared", 2)
    half = w.name("r")
    w.add(f"and.b32 {half}, %t, 1;")
    w.store("shared", w.address(array, "0"), w.guard("first"))
    w.meet()
    w.add(
        f"red.relaxed.{w.pick.choice(('cta', 'gpu'))}.shared.add.u32 {w.address(array, w.pick.choice((half, '0')))}, 1;"
    )
    w.meet()
    w.load("shared", w.address(array, w.pick.choice(("0", "1"))))


def to_the_peer(w: Writer) -> None:
    """Each CTA of a cluster writes into shared memory of the other one."""
    if w.cluster < 2:
        grid_barrier(w)
        return
    array = w.array("shared", w.threads)
    rank = w.name("r")
    w.add(f"xor.b32 {rank}, %c, 1;")
    place = w.address(array, w.index(w.pick.choice(("own", "reverse")), w.threads)).strip("[]")
    address = w.name("d")
    w.add(
        f"mapa.shared::cluster.u64 {address}, {place}, {rank};",
        f"st.shared::cluster.u32 [{address}], %t;",
        f"barrier.cluster.arrive{w.pick.choice(('', '', '.release', '.relaxed'))}; barrier.cluster.wait;",
    )
    w.load("shared", w.address(array, w.index(w.pick.choice(("own", "next")), w.threads)))


def rendezvous(w: Writer) -> None:
    """The first warp arrives at a barrier, for which the others wait; and the other way round."""
    if w.lanes > 1 or w.warps < 2:
        own_objects(w)
        return
    array, count = w.array("shared", 1), 32 * w.warps
    first, label = w.name("p"), w.name("L")
    w.add(f"setp.eq.u32 {first}, %w, 0;", f"@!{first} bra C{label};")
    w.store("shared", f"[{array}]")
    w.add(f"bar.arrive 1, {count};", f"bar.sync 2, {count};")
    w.store("shared", f"[{array}]")
    w.add(f"bra E{label};", f"C{label}: bar.sync 1, {count};")
    w.load("shared", f"[{array}]")
    w.add(f"bar.arrive 2, {count};", f"E{label}: mov.u32 {w.name('r')}, 0;")


def halves(w: Writer) -> None:
    """The threads of the cluster arrive, do something else, and wait."""
    array, other = w.array("global", w.ctas * w.threads), w.array("shared", w.threads)
    own = w.index("grid", 0)
    w.store("global", w.address(array, own))
    w.add(f"barrier.cluster.arrive{w.pick.choice(('', '', '.release', '.relaxed'))};")
    w.store("shared", w.address(other, "%t"))
    w.add("barrier.cluster.wait;")
    peer = w.index("grid", 0)
    w.add(f"add.u32 {peer}, {peer}, {w.pick.choice((1, w.threads))};", f"rem.u32 {peer}, {peer}, {w.ctas * w.threads};")
    w.load("global", w.address(array, peer))


def sent(w: Writer) -> None:
    """The first thread of each CTA of a cluster sends a word, or a tile, to the other one, or to both."""
    if w.cluster < 2:
        copied(w)
        return
    tile, source, bar = w.array("shared", 4), w.array("global", 4), w.name("v")
    w.head.append(f".shared .align 8 .b64 {bar};")
    kind = w.pick.choice(("st.async", "red.async", "copy", "multicast"))
    size = 4 if "async" in kind else 16
    expected = 2 * size if kind == "multicast" else size
    guard, done, label, peer = w.guard("first"), w.name("p"), w.name("L"), w.name("r")
    data, base, there, signal = w.name("d"), w.name("d"), w.name("d"), w.name("d")
    w.add(
        f"{guard}mbarrier.init.shared::cta.b64 [{bar}], 1;",
        f"{guard}mbarrier.arrive.expect_tx.shared::cta.b64 _, [{bar}], {expected};",
        "barrier.cluster.arrive; barrier.cluster.wait;",
        f"xor.b32 {peer}, %c, 1;",
        f"and.b32 {peer}, {peer}, 1;",
        f"mov.u64 {data}, {tile};",
        f"mov.u64 {base}, {bar};",
        f"mapa.shared::cluster.u64 {there}, {data}, {peer};",
        f"mapa.shared::cluster.u64 {signal}, {base}, {peer};",
    )
    tx = "mbarrier::complete_tx::bytes"
    w.add(
        guard
        + {
            "st.async": f"st.async.shared::cluster.{tx}.u32 [{there}], %c, [{signal}];",
            "red.async": f"red.async.relaxed.cluster.shared::cluster.{tx}.add.u32 [{there}], %c, [{signal}];",
            "copy": f"cp.async.bulk.shared::cluster.global.{tx} [{there}], [{source}], 16, [{signal}];",
            "multicast": f"cp.async.bulk.shared::cluster.global.{tx}.multicast::cluster "
            f"[{tile}], [{source}], 16, [{bar}], 3;",
        }[kind]
    )
    w.add(f"W{label}: mbarrier.try_wait.parity.shared::cta.b64 {done}, [{bar}], 0;", f"@!{done} bra W{label};")
    w.load("shared", f"[{tile}]")
    if w.pick.random() < 0.8:
        w.add("barrier.cluster.arrive; barrier.cluster.wait;")


def handed_back(w: Writer) -> None:
    """Each thread of a CTA reads shared memory of the peer, and tells it so at an object there."""
    if w.cluster < 2:
        flags(w)
        return
    array, bar = w.array("shared", w.threads), w.name("v")
    w.head.append(f".shared .align 8 .b64 {bar};")
    guard, done, label, peer = w.guard("first"), w.name("p"), w.name("L"), w.name("r")
    base, there, signal = w.name("d"), w.name("d"), w.name("d")
    w.add(f"{guard}mbarrier.init.shared::cta.b64 [{bar}], {w.threads};")
    own = w.address(array, w.index("own", w.threads))
    w.store("shared", own)
    w.add(
        "barrier.cluster.arrive; barrier.cluster.wait;",
        f"xor.b32 {peer}, %c, 1;",
        f"and.b32 {peer}, {peer}, 1;",
        f"mov.u64 {base}, {bar};",
        f"mapa.shared::cluster.u64 {there}, {own.strip('[]')}, {peer};",
        f"mapa.shared::cluster.u64 {signal}, {base}, {peer};",
        f"ld.shared::cluster.u32 {w.name('r')}, [{there}];",
        f"mbarrier.arrive.release{w.pick.choice(('.cluster', '.cluster', '.cta'))}.shared::cluster.b64 _, [{signal}];",
        f"W{label}: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 {done}, [{bar}], 0;",
        f"@!{done} bra W{label};",
    )
    w.store("shared", own)
    if w.pick.random() < 0.9:
        w.add("barrier.cluster.arrive; barrier.cluster.wait;")


def locked(w: Writer) -> None:
    """The first thread of each CTA adds to a word under a lock."""
    word, lock = w.array("global", 1), w.array("global", 1)
    guard, old, taken, label, sum_ = w.guard("first").strip(" @"), w.name("r"), w.name("p"), w.name("L"), w.name("r")
    w.add(
        f"@!{guard} bra E{label};",
        f"{label}: atom.{w.pick.choice(('acquire', 'acquire', 'acq_rel'))}.gpu.global.cas.b32 {old}, [{lock}], 0, 1;",
        f"setp.ne.u32 {taken}, {old}, 0;",
        f"@{taken} bra {label};",
        f"ld.global.u32 {sum_}, [{word}];",
        f"add.u32 {sum_}, {sum_}, 1;",
        f"st.global.u32 [{word}], {sum_};",
        w.pick.choice(
            (f"st.release.gpu.global.u32 [{lock}], 0;", f"atom.release.gpu.global.exch.b32 {old}, [{lock}], 0;")
        ),
        f"E{label}: mov.u32 {old}, 0;",
    )


def tickets(w: Writer) -> None:
    """Each thread takes a slot of its own with an atomic operation, and writes it; then all read."""
    array, counter = w.array("global", w.ctas * w.threads + 1), w.array("global", 1)
    ticket = w.name("r")
    w.add(f"atom.relaxed.{w.pick.choice(('gpu', 'gpu', 'cta'))}.global.add.u32 {ticket}, [{counter}], 1;")
    w.store("global", w.address(array, ticket))
    if w.pick.random() < 0.4:
        w.meet()
        w.load("global", w.address(array, "0"))


PATTERNS: tuple[Pattern, ...] = (
    exchange, ping_pong, tree, shuffled, broadcast, strided, last_block, chain, grid_barrier, objects, specialised,
    copied, copied_by_each, added, to_the_peer, in_pairs, own_objects, flags,
    rendezvous, halves, sent, handed_back, locked, tickets,
)  # fmt: skip


_GUARDABLE = re.compile(r" *(?:ld|st|red|fence|barrier|bar|mbarrier|cp)\b")
"""Registers are written by all threads, so that none is read before."""


def without_meeting(lines: list[str], pick: random.Random) -> None:
    """A barrier less."""
    if where := [at for at in places(lines) if re.search(r"\b(?:bar|barrier|wait_\w+|fence)\b", lines[at])]:
        del lines[pick.choice(where)]


def guarded(lines: list[str], pick: random.Random) -> None:
    """An instruction, a barrier too, that only some threads execute."""
    if where := [at for at in places(lines) if re.match(_GUARDABLE, lines[at])]:
        at = pick.choice(where)
        test = pick.choice(
            ("eq.u32 %pg, %t, 0", "ne.u32 %pg, %t, 0", "eq.u32 %pg, %w, 0", "ne.u32 %pg, %c, 0", "lt.u32 %pg, %t, 2")
        )
        lines[at] = f"    setp.{test}; @%pg {lines[at].lstrip()}"


def one_text(seed: int) -> str:
    """A text of all threads."""
    pick = random.Random(seed)
    while True:
        writer = Writer(pick)
        for _ in range(pick.choice((1, 1, 2))):
            pick.choice(PATTERNS)(writer)
        right = _text(writer)
        lines = right.split("\n")
        for _ in range(pick.choice((0, 1, 1, 1, 2))):
            pick.choices((without_meeting, dropped, swapped, again, word, number, guarded), (3, 2, 2, 1, 3, 2, 2))[0](
                lines, pick
            )
        text = "\n".join(lines)
        if ".u32 %d" not in text and _legal(text) and unwritten(text) <= unwritten(right):
            return text


def _text(w: Writer) -> str:
    body = "\n".join(f"    {line}" for line in w.lines)
    place = f"ctas {w.ctas}, cluster {w.cluster}, warps {w.warps}, lanes {w.lanes}"
    head = "\n".join(["PTX one-text", '"Random."', "", *w.head, ""])
    return f"{head}thread T @ {place} {{\n{body}\n}}\nexists true\n"


def _legal(text: str) -> bool:
    try:
        lower_test(parse_litmus(Source("t", OneText.of(text).litmus())))
    except InputError:
        return False
    return True

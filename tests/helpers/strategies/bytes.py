"""Hypothesis strategies for programs whose memory is bytes: computed addresses, sizes, vectors, barriers, copies.

In: nothing. Out: `Program`s of two or three threads on an array in global memory, one in shared memory, a pointer and
an mbarrier object. Accesses of all sizes overlap; their addresses come from names, from arithmetic, from memory or from
a peer's window, and some are bad. Some programs ask for a finding instead of a final state.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from helpers.strategies.programs import SCOPES, SEMANTICS, Line, Program

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "b128": 16, "v2.u16": 4, "v2.u32": 8, "v4.u8": 4, "v4.u32": 16}
ATOMIC = {
    "add.u32": ("1", 4),
    "add.u64": ("1", 8),
    "exch.b32": ("2", 4),
    "cas.b16": ("1, 2", 2),
    "cas.b32": ("0, 1", 4),
}
REDUCING = {"add.u32": ("1", 4), "or.b32": ("2", 4), "max.u64": ("2", 8)}

PLACES = (
    ("cta 0, cluster 0, gpu 0",) * 2,
    ("cta 0, cluster 0, gpu 0",) * 2,
    ("cta 0, cluster 0, gpu 0",) * 3,
    ("cta 0, cluster 0, gpu 0", "cta 1, cluster 0, gpu 0"),
)
DECLARATIONS = (
    ".global .align 16 .u32 g[4] = {1, 2, 0, 3};",
    ".global .u64 p = 0;",
    ".shared .align 16 .u32 s[4] = {0, 1, 0, 0};",
    ".shared .align 8 .b64 bar = mbarrier(1);",
)
ARRAY = 16
"""Bytes of g, and of s."""

FINDINGS = ("race", "undefined", "hang")


class _Thread:
    """Builds the body of one thread. `loaded`: registers with a number that was read."""

    def __init__(self, draw: st.DrawFn, cluster: bool) -> None:
        self.draw = draw
        self.cluster = cluster
        self.body: list[Line | str] = []
        self.loaded: list[str] = []
        self.count = 0
        self.work = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, *items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def strength(self, head: str) -> tuple[str, str | None]:
        sem = self.pick(*SEMANTICS[head])
        return sem, None if sem == "weak" else self.pick("cta", "cta", "gpu")

    # ---- addresses -------------------------------------------------------------------------------------------------

    def address(self, size: int) -> tuple[str, str]:
        """State space and address of an access of so many bytes."""
        base = self.pick("g", "g", "s")
        space = "global" if base == "g" else self.pick("shared", "shared::cta")
        # Low places, so that accesses meet; and places that are out of line, or outside.
        offset = size * self.pick(*range(max(1, ARRAY // 2 // size)))
        offset = self.pick(*(offset,) * 12, ARRAY - size, offset + 1, ARRAY)
        way = self.pick("name", "name", "name", "arithmetic", "arithmetic", "index", "pointer", "peer", "window")
        if way == "name":
            return space, f"[{base}+{offset}]"
        return getattr(self, way)(base, space, offset, size)

    def arithmetic(self, base: str, space: str, offset: int, size: int) -> tuple[str, str]:
        register = self.fresh("a")
        self.body += [f"mov.u64 %{register}, {base};", f"add.u64 %{register}, %{register}, {offset};"]
        return space, f"[%{register}]"

    def index(self, base: str, space: str, offset: int, size: int) -> tuple[str, str]:
        """The element that a number picks that was read before."""
        index, register = self.fresh("i"), self.fresh("a")
        number = f"%{self.loaded[-1]}" if self.loaded else "1"
        self.body += [
            f"and.b32 %{index}, {number}, 1;",
            f"mul.wide.u32 %{index}, %{index}, {size};",
            f"mov.u64 %{register}, {base};",
            f"add.u64 %{register}, %{register}, %{index};",
        ]
        return space, f"[%{register}]"

    def pointer(self, base: str, space: str, offset: int, size: int) -> tuple[str, str]:
        """The address that p holds, which is nowhere until somebody stores one there."""
        register = self.fresh("a")
        self.work += 1
        if self.pick(True, False):
            self.body += [f"mov.u64 %{register}, g;", Line("st", "weak", None, "u64", f"[p], %{register}")]
            return "global", "[g]"
        self.body.append(Line("ld", "weak", None, "u64", f"%{register}, [p]"))
        return "global", f"[%{register}]"

    def peer(self, base: str, space: str, offset: int, size: int) -> tuple[str, str]:
        """The shared memory of the other CTA, or the own one by its address in the cluster."""
        register = self.fresh("a")
        self.body += [
            f"mov.u64 %{register}, s;",
            f"mapa.shared::cluster.u64 %{register}, %{register}, {self.pick(0, 1) if self.cluster else 0};",
        ]
        return self.pick("shared::cluster", "shared::cluster", "shared::cta"), f"[%{register}+{offset}]"

    def window(self, base: str, space: str, offset: int, size: int) -> tuple[str, str]:
        """The state space of the other array."""
        register = self.fresh("a")
        self.body.append(f"mov.u64 %{register}, {base};")
        return self.pick("global", "shared::cta"), f"[%{register}+{offset}]"

    # ---- accesses --------------------------------------------------------------------------------------------------

    def access(self, guard: str = "") -> None:
        """A load or store of any size, an atomic operation or a reduction."""
        head = self.pick("ld", "ld", "ld", "st", "st", "st", "atom", "red")
        sem, scope = self.strength(head)
        if head in ("atom", "red"):
            self.work += 2
            op = self.pick(*(ATOMIC if head == "atom" else REDUCING))
            operands, size = (ATOMIC if head == "atom" else REDUCING)[op]
            space, where = self.address(size)
            result = f"%{self.load()}, " if head == "atom" else ""
            self.body.append(Line(head, sem, scope, op, f"{result}{where}, {operands}", guard, space))
            return
        self.work += 1
        op = self.pick("u32", "u32", "u32", *SIZES)
        space, where = self.address(SIZES[op])
        count = int(op[1]) if op.startswith("v") else 1
        if head == "ld":
            names = [f"%{self.fresh('q') if op == 'b128' else self.load()}" for _ in range(count)]
            operands = f"{_listed(names)}, {where}"
        elif op == "b128":
            register = self.fresh("q")
            self.body.append(f"mov.b128 %{register}, {{1, 2}};")
            operands = f"{where}, %{register}"
        else:
            values = ["1", "2", *(f"%{name}" for name in self.loaded[-1:])]
            operands = f"{where}, {_listed([self.pick(*values) for _ in range(count)])}"
        self.body.append(Line(head, sem, scope, op, operands, guard, space))

    def load(self) -> str:
        """A fresh register for a number that is read."""
        register = self.fresh("r")
        self.loaded.append(register)
        return register

    def fence(self) -> None:
        fence = Line("fence", self.pick(*SEMANTICS["fence"]), self.pick(*SCOPES))
        self.body.append(self.pick(fence, fence, "fence.proxy.async;"))

    def guarded(self) -> None:
        """An access under a predicate: of a number that was read, or of a test of the mbarrier object."""
        predicate = self.fresh("p")
        if self.loaded and self.pick(True, True, False):
            self.body.append(f"setp.ne.u32 %{predicate}, %{self.loaded[-1]}, 0;")
        else:
            sem = self.pick("relaxed", "acquire")
            self.body.append(f"mbarrier.test_wait.parity.{sem}.cta.shared::cta.b64 %{predicate}, [bar], 0;")
        self.access(guard=f"@%{predicate} ")

    # ---- barriers and copies ---------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """A named barrier of two or three warps, used again and again; or the barrier of the CTA."""
        reduced = f"bar.red.popc.u32 %{self.fresh('n')}, 1, 64, %p0;"
        syncs = ("bar.sync 1, 64;", "bar.sync 1, 64;", "bar.arrive 1, 64;", "bar.sync 1, 96;", "bar.sync 0;", reduced)
        self.body.append(self.pick(*syncs))

    def ends(self) -> None:
        """An exit, perhaps of no more than one lane in two."""
        self.body.append(self.pick("exit;", "@%p0 exit;"))

    def loop(self) -> None:
        """The two elements of an array one after the other, by a computed address."""
        label, counter, address, predicate = (self.fresh(prefix) for prefix in ("L", "c", "a", "p"))
        self.work += 2
        base, space = self.pick(("g", "global"), ("s", "shared::cta"))
        self.body += [f"mov.u32 %{counter}, 0;", f"mov.u64 %{address}, {base};", f"{label}:"]
        line = self.pick(
            Line("st", "weak", None, "u32", f"[%{address}], %{counter}", "", space),
            Line("red", "relaxed", "cta", "add.u32", f"[%{address}], 1", "", space),
            Line("ld", "weak", None, "u32", f"%{self.load()}, [%{address}]", "", space),
        )
        self.body += [
            line,
            f"add.u64 %{address}, %{address}, 4;",
            f"add.u32 %{counter}, %{counter}, 1;",
            f"setp.lt.u32 %{predicate}, %{counter}, 2;",
            f"@%{predicate} bra {label};",
        ]

    def begin(self) -> None:
        """A second life of the mbarrier object."""
        self.body += self.pick(
            ("mbarrier.inval.shared::cta.b64 [bar];",),
            ("mbarrier.inval.shared::cta.b64 [bar];", "mbarrier.init.shared::cta.b64 [bar], 1;"),
        )

    def arrive(self) -> None:
        self.body.append(f"mbarrier.arrive.{self.pick('relaxed', 'release')}.cta.shared::cta.b64 _, [bar];")

    def wait(self) -> None:
        label, predicate = self.fresh("W"), self.fresh("p")
        sem = self.pick("relaxed", "acquire", "acquire")
        self.body += [
            f"{label}:",
            f"mbarrier.try_wait.parity.{sem}.cta.shared::cta.b64 %{predicate}, [bar], 0;",
            f"@!%{predicate} bra {label};",
        ]

    def copy_in(self) -> None:
        """A bulk copy into shared memory that completes on the mbarrier object, usually expected and waited for."""
        self.work += 2
        if self.pick(True, True, True, False):
            self.body.append("mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;")
        head = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
        self.body.append(f"{head} [s], [g], 16, [bar];")
        if self.pick(True, True, False):
            self.wait()

    def copy_out(self) -> None:
        """A bulk copy or reduction from shared memory to global memory, perhaps waited for."""
        self.work += 2
        self.body += [
            self.pick(
                "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;",
                "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;",
                "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [s], 16;",
            ),
            "cp.async.bulk.commit_group;",
            *self.pick((), ("cp.async.bulk.wait_group 0;",), ("cp.async.bulk.wait_group.read 0;",)),
        ]

    def copy_small(self) -> None:
        """A cp.async of 4 or 8 bytes, perhaps cut short, perhaps waited for."""
        self.work += 2
        size = self.pick(4, 8)
        source = self.pick("", "", f", {size // 2}", f", {size}")
        self.body.append(f"cp.async.ca.shared.global [s], [g], {size}{source};")
        if self.pick(True, True, False):
            self.body.append("cp.async.wait_all;")


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else "{" + ", ".join(items) + "}"


@st.composite
def programs(draw: st.DrawFn, *, most: int = 6, finding: bool = True) -> Program:
    """Programs with about `most` reads and writes. `finding`: some ask for a race, undefined behaviour or a hang."""
    places = draw(st.sampled_from(PLACES))
    makers = [_Thread(draw, len(set(places)) > 1) for _ in places]
    kinds = (*("access",) * 5, "fence", "guarded", "barrier", "barrier", "arrive", "wait")
    kinds += ("copy_in", "copy_out", "copy_small", "loop", draw(st.sampled_from(("begin", "ends", "access"))))
    for maker in makers:
        for _ in range(draw(st.integers(1, 3))):
            left = most - sum(one.work for one in makers)
            getattr(maker, draw(st.sampled_from(kinds if left > 1 else ("fence", "barrier"))))()
    registers = [f"P{t}:{name}" for t, maker in enumerate(makers) for name in maker.loaded]
    if finding and draw(st.integers(0, 4)) == 0:
        question = draw(st.sampled_from(("exists", "~exists"))) + " " + draw(st.sampled_from(FINDINGS))
    else:
        question = draw(_questions(registers))
    return Program(places, tuple(tuple(maker.body) for maker in makers), question, DECLARATIONS)


@st.composite
def _questions(draw: st.DrawFn, registers: list[str]) -> str:
    """A condition on a register or two and an element of g."""
    terms = draw(st.lists(st.sampled_from(registers), max_size=2, unique=True)) if registers else []
    terms += draw(st.lists(st.sampled_from(("g", "g[1]")), min_size=0 if terms else 1, max_size=1))
    atoms = [f"{term} {draw(st.sampled_from(('==', '!=')))} {draw(st.integers(0, 3))}" for term in terms]
    joined = draw(st.sampled_from((r" /\ ", r" \/ "))).join(atoms)
    return f"exists ({joined})"

"""Hypothesis strategies for small asynchronous programs: two threads that hand something over.

In: nothing. Out: `Program`s in the block layout, whose `Line`s know how they can be made stronger, so that a law can
do it. The first thread works on shared, global or tensor memory and hands over in one of the ways of PTX (an arrive, a
copy that completes on an mbarrier, a commit, a cluster barrier, a flag); the second waits and works on. Either may lack
a fence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

SCOPES = ("cta", "cluster", "gpu", "sys")
STRONGER: dict[str, tuple[str, ...]] = {
    "ld weak": ("relaxed", "acquire"),
    "ld relaxed": ("acquire",),
    "st weak": ("relaxed", "release"),
    "st relaxed": ("release",),
    "fence acquire": ("acq_rel", "sc"),
    "fence release": ("acq_rel", "sc"),
    "fence acq_rel": ("sc",),
    "arrive relaxed": ("release",),
    "wait relaxed": ("acquire",),
    "barrier relaxed": ("release",),
    "proxy async.shared::cta": ("async.shared::cluster", "async"),
    "proxy async.shared::cluster": ("async",),
    "proxy async.global": ("async",),
    "half release.sync_restrict::shared::cta": ("release", "acq_rel"),
    "half acquire.sync_restrict::shared::cluster": ("acquire", "acq_rel"),
}
"""Kind of line and semantics -> what is stronger. A fence that names less memory counts as weaker."""

FENCES = (
    *(("fence", sem, scope) for sem in ("acquire", "release", "acq_rel", "sc") for scope in ("cta", "cluster", "gpu")),
    *(("proxy", space, None) for space in ("async", "async.shared::cta", "async.global", "alias")),
    *(("tcgen05", when, None) for when in ("before_thread_sync", "after_thread_sync")),
    ("half", "release.sync_restrict::shared::cta", "cluster"),
    ("half", "acquire.sync_restrict::shared::cluster", "cluster"),
    ("init", "mbarrier_init.release", "cluster"),
)
_FENCE_TEXT = {
    "fence": "fence.{};",
    "proxy": "fence.proxy.{};",
    "tcgen05": "tcgen05.fence::{};",
    "half": "fence.{};",
    "init": "fence.{};",
}


@dataclass(frozen=True)
class Line:
    """One instruction, or a loop around one: `text` with a hole for semantics and scope; `top`: the widest scope."""

    kind: str
    text: str
    sem: str = ""
    scope: str | None = None
    top: str = "sys"

    def __str__(self) -> str:
        return self.text.format(".".join(word for word in (self.sem, self.scope) if word))

    @property
    def wider(self) -> tuple[str, ...]:
        """Scopes that include the one given."""
        return SCOPES[SCOPES.index(self.scope) + 1 : SCOPES.index(self.top) + 1] if self.scope else ()

    @property
    def stronger(self) -> tuple[str, ...]:
        return STRONGER.get(f"{self.kind} {self.sem}", ())


@dataclass(frozen=True)
class Program:
    """Two threads; `count` arrivals end a phase of bar."""

    cluster: bool
    count: int
    bodies: tuple[tuple[Line, ...], ...]

    @property
    def text(self) -> str:
        parts = [
            "PTX generated",
            ".global .align 16 .u32 g[8] = {3};",
            ".global .u32 y = 0;",
            ".shared .align 16 .u32 s[8] = {0};",
            ".shared .align 16 .u32 sb[4] = {1};",
            f".shared .align 8 .b64 bar = mbarrier({self.count});",
            ".tensor .b32 t = 0;",
        ]
        for number, body in enumerate(self.bodies):
            cta = number if self.cluster else 0
            parts.append(f"thread P{number} @ cta {cta}, cluster 0, gpu 0 {{")
            if any("tcgen05.mma" in line.text for line in body):
                parts += ["mov.u64 %desc_s, s;", "mov.u64 %desc_sb, sb;", "mov.u32 %idesc, 0x8100010;"]
                parts.append("mov.pred %clear, 0;")
            parts += [*(f"    {line}" for line in body), "}"]
        return "\n".join([*parts, "exists (true)", ""])

    def lines(self) -> Iterator[tuple[int, int, Line]]:
        """(thread, position, line) of every line."""
        return ((t, i, line) for t, body in enumerate(self.bodies) for i, line in enumerate(body))

    def changed(self, thread: int, position: int, *lines: Line) -> Program:
        """The same program with these lines in place of one."""
        body = self.bodies[thread]
        body = (*body[:position], *lines, *body[position + 1 :])
        return replace(self, bodies=(*self.bodies[:thread], body, *self.bodies[thread + 1 :]))


def fences() -> st.SearchStrategy[Line]:
    """Any fence."""
    tops = {"half": "cluster", "init": "cluster"}
    return st.sampled_from(
        [Line(kind, _FENCE_TEXT[kind], sem, scope, tops.get(kind, "sys")) for kind, sem, scope in FENCES]
    )


class _Maker:
    """Builds the two bodies. `home`: where the shared memory and the barrier of the hand-over are, seen from P0."""

    def __init__(self, draw: st.DrawFn, cluster: bool) -> None:
        self.draw = draw
        self.bodies: tuple[list[Line], list[Line]] = ([], [])
        self.home = "@cta1" if cluster else ""
        self.window = "shared::cluster" if cluster else "shared::cta"
        self.cluster = cluster
        self.count = 0

    def pick(self, *items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def add(self, thread: int, kind: str, text: str, sem: str = "", scope: str | None = None, top: str = "sys") -> None:
        self.bodies[thread].append(Line(kind, text, sem, scope, top))

    def maybe_fence(self, thread: int) -> None:
        """Often a fence, of the kinds that matter most."""
        if self.pick(True, True, False):
            self.bodies[thread].append(self.draw(fences()))

    # ---- work ------------------------------------------------------------------------------------------------------

    def load(self, thread: int, *places: tuple[str, str]) -> None:
        space, where = self.pick(*places)
        sem = self.pick("weak", "weak", "relaxed", "acquire")
        scope = None if sem == "weak" else self.pick("cta", "cluster", "gpu")
        self.add(thread, "ld", f"ld.{{}}.{space}.u32 %r{self.fresh()}, {where};", sem, scope)

    def store(self, thread: int, *places: tuple[str, str]) -> None:
        space, where = self.pick(*places)
        sem = self.pick("weak", "weak", "relaxed", "release")
        scope = None if sem == "weak" else self.pick("cta", "cluster", "gpu")
        self.add(thread, "st", f"st.{{}}.{space}.u32 {where}, {self.pick(1, 2)};", sem, scope)

    def buffer(self, thread: int) -> tuple[str, str]:
        """State space and address of the buffer that is handed over: that of P1."""
        return ("shared::cta", "[s]") if thread else (self.window, f"[s{self.home}]")

    def store_tile(self, thread: int) -> None:
        """A bulk store of the thread's own buffer, waited for in one way or the other."""
        read = self.pick("", ".read")
        for text in (
            "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;",
            "cp.async.bulk.commit_group;",
            f"cp.async.bulk.wait_group{read} 0;",
        ):
            self.add(thread, "copy", text)

    def multiply(self, thread: int) -> None:
        self.add(thread, "mma", "tcgen05.mma.cta_group::1.kind::f16 [t], %desc_s, %desc_sb, %idesc, %clear;")

    def tensor(self, thread: int, kind: str) -> None:
        """A load or store of tensor memory, perhaps waited for."""
        if kind == "ld":
            self.add(thread, "tensor", f"tcgen05.ld.sync.aligned.32x32b.x1.b32 {{{{%r{self.fresh()}}}}}, [t];")
        else:
            number = self.fresh()
            self.add(thread, "move", f"mov.b32 %v{number}, {self.pick(4, 5)};")
            self.add(thread, "tensor", f"tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {{{{%v{number}}}}};")
        if self.pick(True, True, False):
            self.add(thread, "tensor", f"tcgen05.wait::{kind}.sync.aligned;")

    def writes(self, thread: int, theme: str) -> None:
        """Change what is handed over."""
        if theme == "buffer":
            self.store(thread, self.buffer(thread), self.buffer(thread), ("global", "[y]"))
        elif theme == "tile":
            self.pick(self.store_tile, lambda one: self.store(one, ("global", "[g]")))(thread)
        else:
            self.pick(self.multiply, lambda one: self.tensor(one, "st"))(thread)

    def reads(self, thread: int, theme: str) -> None:
        """Look at it."""
        if theme == "buffer":
            units = (self.store_tile, *(() if self.cluster else (self.multiply,)))
            self.pick(*units, lambda one: self.load(one, self.buffer(one), ("global", "[y]")))(thread)
        elif theme == "tile":
            self.load(thread, ("global", "[g]"))
        else:
            self.tensor(thread, "ld")

    # ---- handing over ----------------------------------------------------------------------------------------------

    def arrive(self, thread: int) -> None:
        where = "bar" if thread else f"bar{self.home}"
        space = "shared::cta" if thread else self.window
        sem, scope = self.pick("relaxed", "release", "release"), self.pick("cta", "cluster")
        self.add(thread, "arrive", f"mbarrier.arrive.{{}}.{space}.b64 _, [{where}];", sem, scope, "cluster")

    def expect(self, size: int) -> None:
        sem, scope = self.pick("relaxed", "release"), self.pick("cta", "cluster")
        text = f"mbarrier.arrive.expect_tx.{{}}.shared::cta.b64 _, [bar], {size};"
        self.add(1, "arrive", text, sem, scope, "cluster")

    def wait(self) -> None:
        """Wait for the first phase, or look at it once."""
        sem, scope = self.pick("relaxed", "acquire", "acquire"), self.pick("cta", "cluster")
        text = "W: mbarrier.try_wait.parity.{}.shared::cta.b64 %p, [bar], 0;\n    @!%p bra W;"
        once = "mbarrier.test_wait.parity.{}.shared::cta.b64 %p, [bar], 0;"
        self.add(1, "wait", self.pick(text, text, text, once), sem, scope, "cluster")

    def by_arrive(self) -> int:
        """Arrivals that the barrier counts."""
        self.arrive(0)
        both = self.pick(False, True)
        if both:
            self.arrive(1)
        self.wait()
        return 1 + both

    def by_copy(self) -> int:
        head, size = "cp.async.bulk.shared::cluster", self.pick(16, 16, 32)
        where = f"[s{self.home}], [g], {size}, [bar{self.home}]"
        self.add(0, "copy", f"{head}.global.mbarrier::complete_tx::bytes {where};")
        self.expect(self.pick(size, size, size, 16))
        self.wait()
        return 1

    def by_store(self) -> int:
        head = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
        self.add(0, "store", f"{head}.u32 [s{self.home}], 1, [bar{self.home}];")
        self.expect(4)
        self.wait()
        return 1

    def by_commit(self) -> int:
        head = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
        self.add(0, "commit", f"{head} [bar];")
        self.wait()
        return 1

    def by_barrier(self) -> int:
        for thread in (0, 1):
            self.add(thread, "barrier", "barrier.cluster.arrive.{};", self.pick("relaxed", "release"))
            self.add(thread, "barrier", "barrier.cluster.wait;")
        return 1

    def by_flag(self) -> int:
        sem, scope = self.pick("relaxed", "release"), self.pick("cta", "cluster", "gpu")
        self.add(0, "st", "st.{}.global.u32 [y], 1;", sem, scope)
        sem, scope = self.pick("relaxed", "acquire"), self.pick("cta", "cluster", "gpu")
        text = "W: ld.{}.global.u32 %w, [y];\n    setp.eq.u32 %p, %w, 0;\n    @%p bra W;"
        self.add(1, "ld", text, sem, scope)
        return 1


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Work, a fence or none, a hand-over, a fence or none, work; about a dozen memory accesses at most."""
    cluster = draw(st.booleans())
    maker = _Maker(draw, cluster)
    theme = maker.pick("buffer", "tile", "buffer" if cluster else "tensor")
    first, second = maker.pick((maker.writes, maker.reads), (maker.reads, maker.writes))
    for _ in range(draw(st.integers(1, 2))):
        first(0, theme)
        maker.maybe_fence(0)
    ways = ("arrive", "arrive", "copy", "store" if cluster else "commit", "barrier", "flag")
    count = getattr(maker, f"by_{maker.pick(*ways)}")()
    maker.maybe_fence(1)
    for _ in range(draw(st.integers(1, 2))):
        second(1, theme)
    return Program(cluster, count, (tuple(maker.bodies[0]), tuple(maker.bodies[1])))

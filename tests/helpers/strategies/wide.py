"""Hypothesis strategies for programs of many instructions: threads that are lines drawn from a theme.

In: nothing. Out: `Program`s in the block layout. A theme is a list of lines; `<a|b>` in a line stands for one of its
words, `#` for a number of its own, `@peer` for the other CTA. Lines of a theme share memory, so that some programs hand
something over; most lack a step, and are undefined, racy, or wait for ever: engines agree on these too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

DECLARATIONS = """PTX wide
.global .align 16 .u32 g[8] = {1, 2, 3, 4};
.global .u32 f = 0;
.global .u32 y = 0;
.global .u32 m = multimem(f, y);
h aliases g;
.shared .align 16 .u32 s[8] = {5, 6};
.shared .align 16 .u32 u[4] = {1};
.shared .align 16 .b128 answer;
.shared .align 8 .b64 bar = mbarrier(COUNT);
.shared .align 8 .b64 baz;
.const .align 64 .b8 map[128] = tensormap(g, {4}, {8});
.global .align 128 .b8 gmap[128] = tensormap(g, {4}, {8});
.tensor .b32 t[4] = {7, 8};
"""
SET_UP = "mov.u64 %da, s; mov.u64 %db, u; mov.u64 %gg, g; mov.pred %yes, 1; mov.pred %no, 0; mov.b16 %mask, 0xff;"

LOAD = "ld.<weak|relaxed.cta|acquire.cta|acquire.gpu|volatile>.<shared.u32 %r#, [<s|s+4|u>]|global.u32 %r#, [<g|f>]>;"
STORE = "st.<weak|relaxed.cta|release.cta|release.gpu>.<shared.u32 [<s|s+4|u>]|global.u32 [<g|f>]>, <1|2|3>;"
FENCE = (
    "fence.<acq_rel.gpu|sc.gpu|acquire.cluster|release.cta|proxy.async|proxy.async.shared::cta|proxy.async.global"
    "|release.sync_restrict::shared::cta.cluster|acquire.sync_restrict::shared::cluster.cluster|mbarrier_init.release"
    ".cluster>;"
)
WAIT = (
    "W#: mbarrier.try_wait.parity<|.acquire.cluster|.relaxed.cluster>.b64 %w#, [<bar|bar|baz>], <0|0|1>; @!%w# bra W#;"
)
EXPECT = "mbarrier.arrive.expect_tx<|.relaxed.cluster>.shared::cta.b64 _, [bar], <4|16|16>;"
MEET = "barrier.cluster.arrive<|.relaxed>; barrier.cluster.wait;"
GROUP = "cp.async.bulk.commit_group; cp.async.bulk.wait_group<|.read> 0;"
SHARED_STORE = "st.<weak|release.cluster>.shared::cluster.u32 [s@peer], 4;"
COMMIT = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster"
HEAD, DONE = "cp.async.bulk.shared::cluster", "mbarrier::complete_tx::bytes"

THEMES: dict[str, tuple[str, ...]] = {
    "objects": (
        LOAD,
        STORE,
        "mbarrier.arrive<|.release.cluster|.relaxed.cluster>.shared::cta.b64 <_|%t0|%t0>, [<bar|bar|baz>];",
        "mbarrier.<arrive|arrive_drop><|.noComplete>.b64 %t0, [bar], <1|2>;",
        "mbarrier.<expect_tx|complete_tx>.relaxed.cta.shared::cta.b64 [<bar|baz>], <4|16>;",
        "mbarrier.<init.shared.b64 [baz], <1|2>|inval.shared.b64 [<bar|baz>]>;",
        "mbarrier.test_wait<|.relaxed.cta>.b64 %w#, [<bar|bar|baz>], %t0;",
        "mbarrier.pending_count.b64 %n#, %t0;",
        WAIT,
        WAIT,
        FENCE,
    ),
    "copies": (
        LOAD,
        STORE,
        FENCE,
        "cp.async.<ca.shared.global [s+<0|4>], [g], 4<|, 2>|cg.shared.global [s], [g], 16>;",
        "cp.async.<wait_all;|commit_group; cp.async.wait_group <0|1>;|mbarrier.arrive<|.noinc>.shared.b64 [bar];>",
        f"cp.async.bulk.shared::cta.global.{DONE} [s], [g], 16, [bar];",
        "cp.async.bulk.global.shared::cta.bulk_group [<g|h>], [s], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [u], 16;",
        "<st.async.release.gpu.global.u32|red.async.release.gpu.global.add.u32> [f], 1;",
        GROUP,
        EXPECT,
        WAIT,
    ),
    "cluster": (
        LOAD,
        STORE,
        FENCE,
        SHARED_STORE,
        f"{HEAD}.global.{DONE}.multicast::cluster [s], [g], 16, [bar], <1|2|3>;",
        f"{HEAD}.shared::cta.{DONE} [s@peer], [u], 16, [bar@<peer|cta0>];",
        f"cp.reduce.async.bulk.shared::cluster.shared::cta.{DONE}.add.u32 [s@peer], [u], 16, [bar@peer];",
        f"st.async.weak.shared::cluster.{DONE}.<u32 [s@peer], 1|v2.u32 [s@peer], {{1, 2}}>, [bar@peer];",
        "mbarrier.arrive<|.release.cluster|.relaxed.cluster>.shared::cluster.b64 _, [bar@peer];",
        EXPECT,
        WAIT,
        MEET,
    ),
    "pairs": (
        "tcgen05.mma.cta_group::2.kind::<f16|tf32> [t], <%da|[t+2]>, %db, %idesc, <%no|%yes>;",
        "tcgen05.mma.cta_group::2.kind::f16.collector::a::<fill|use|lastuse> [t], %da, %db, %idesc, %no;",
        "tcgen05.cp.cta_group::2.<4x256b|128x128b|32x128b.warpx4> [<t|t+2>], %da;",
        "tcgen05.shift.cta_group::2.down [t];",
        "tcgen05.ld.sync.aligned.32x32b.<x1.b32 {%r#}|x2.b32 {%r#, %q#}>, [<t|t+2>];<| tcgen05.wait::ld.sync.aligned;>",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [<t|t+1|t+2>], {%v};<| tcgen05.wait::st.sync.aligned;>",
        f"{COMMIT}<.multicast::cluster.b64 [bar], <1|3>|.b64 [bar]>;",
        "tcgen05.fence::<before|after>_thread_sync;",
        FENCE,
        MEET,
        WAIT,
    ),
    "sizes": (
        LOAD,
        STORE,
        FENCE,
        "ld.<weak|acquire.gpu>.<v2.u32 {%r#, %q#}|u64 %r#|u16 %r#>, [<g|s>];",
        "st.<weak|release.gpu>.<v2.u32 [<g|s>], {1, 2}|u64 [<g|s>], 7|u8 [<g+1|s+1>], 9>;",
        "mov.b128 %b#, {3, 4}; atom.<relaxed|acq_rel>.gpu.global.exch.b128 %o#, [g], %b#;",
        "atom.<relaxed|acq_rel>.<cta|gpu>.global.<add.u32 %r#, [<g|f>], 1|cas.b64 %r#, [g], 1, 9>;",
        "red.<relaxed|release>.gpu.global.add.u32 [f], 1;",
        "ld.weak.global.u32 %r#, [f]; setp.eq.u32 %p, %r#, <0|1>; @%p st.weak.global.u32 [g], 6;",
        "mov.b32 %i, 0; L#: red.gpu.global.add.u32 [f], 1; add.u32 %i, %i, 1; setp.ne.u32 %p, %i, 2; @%p bra L#;",
        "ld.weak.global.u32 %r#, [f]; and.b32 %x, %r#, 1; mul.wide.u32 %x, %x, 4; add.u64 %x, %gg, %x; st.u32 [%x], 9;",
        "isspacep.<global|shared::cta> %p, %<gg|da>; @%p st.weak.u32 [%<gg|da>], 8;",
        "bar.sync 0;",
        "st.bulk.weak.shared::cta [s], 8, 0;",
    ),
    "places": (
        LOAD,
        STORE,
        FENCE,
        SHARED_STORE,
        "ld.<weak|acquire.cluster>.shared::cluster.u32 %r#, [s@peer];",
        "<ld.weak.global.u32 %r#, [h];|st.weak.global.u32 [h], 5;|fence.proxy.alias;|ldu.global.u32 %r#, [g];>",
        "multimem.<ld_reduce.<weak|acquire.gpu>.global.add.u32 %r#, [m]|st.relaxed.gpu.global.u32 [m], 2>;",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [bar];",
        "ld.shared.b128 %b#, [answer]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p#, %b#;",
        f"cp.async.bulk.tensor.1d.shared::cta.global.tile.{DONE} [s], [<map|gmap>, {{<0|4|-2>}}], [bar];",
        "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [<map|gmap>, {0}], [s];",
        "tensormap.replace.tile.box_dim.global.b1024.b32 [gmap], 0, 2;",
        "fence.proxy.tensormap::generic.<release.gpu|acquire.gpu [gmap], 128>;",
        "setp.eq.u32 %p, %r0, 0; @%p exit;",
        EXPECT,
        WAIT,
        MEET,
        GROUP,
    ),
}
PAIRED = ("pairs", "places", "cluster")
"""Themes whose threads are always in two CTAs."""

_CHOICE = re.compile(r"<([^<>]*)>")


@dataclass(frozen=True)
class Program:
    """Threads of lines, thread k in CTA k modulo `ctas`; `count` arrivals end a phase of bar.

    `grids`: thread k is in grid k modulo 2, and all are in CTA 0.
    """

    ctas: int
    count: int
    bodies: tuple[tuple[str, ...], ...]
    declarations: str = DECLARATIONS
    set_up: str = SET_UP
    grids: bool = False

    @property
    def text(self) -> str:
        parts = [self.declarations.replace("COUNT", str(self.count))]
        for number, body in enumerate(self.bodies):
            cta, grid = (0, f", grid {number % 2}") if self.grids else (number % self.ctas, "")
            lines = [f"    {line}".replace("@peer", f"@cta{1 - cta if self.ctas > 1 else 0}") for line in body]
            parts.append(
                f"thread P{number} @ cta {cta}, cluster 0{grid}, gpu 0 {{\n    {self.set_up}\n"
                + "\n".join(lines)
                + "\n}"
            )
        return "\n".join([*parts, "exists (true)", ""])

    def lines(self) -> list[tuple[int, int, str]]:
        """(thread, position, line) of every line."""
        return [(t, i, line) for t, body in enumerate(self.bodies) for i, line in enumerate(body)]

    def changed(self, thread: int, position: int, line: str) -> Program:
        """The same program with another line in the place of one."""
        body = self.bodies[thread]
        body = (*body[:position], line, *body[position + 1 :])
        return replace(self, bodies=(*self.bodies[:thread], body, *self.bodies[thread + 1 :]))


@st.composite
def programs(draw: st.DrawFn, themes: Sequence[str] = tuple(THEMES)) -> Program:
    """Two or three threads with up to four lines each."""
    theme = draw(st.sampled_from(themes))
    ctas = 2 if theme in PAIRED else draw(st.sampled_from((1, 2)))
    bodies = bodies_of(draw, THEMES[theme])
    return Program(ctas, draw(st.sampled_from((1, 1, 2))), bodies)


def bodies_of(draw: st.DrawFn, lines: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Two or three threads of a theme."""
    many = draw(st.sampled_from((2, 2, 3)))
    chosen = [draw(st.lists(st.sampled_from(lines), min_size=1, max_size=6 - many)) for _ in range(many)]
    pick = lambda words: draw(st.sampled_from(words))  # noqa: E731
    return tuple(tuple(filled(line, pick, number) for number, line in enumerate(body)) for body in chosen)


def filled(line: str, pick: Callable[[list[str]], str], number: int) -> str:
    """A line with one word in the place of each choice, from the inside out, and a number of its own."""
    while (found := _CHOICE.search(line)) is not None:
        line = line[: found.start()] + pick(found[1].split("|")) + line[found.end() :]
    return line.replace("#", str(number))


def fillings(line: str) -> Iterator[str]:
    """A line with every combination of words in place of its choices."""
    found = _CHOICE.search(line)
    if found is None:
        yield line.replace("#", "0")
        return
    for word in found[1].split("|"):
        yield from fillings(line[: found.start()] + word + line[found.end() :])

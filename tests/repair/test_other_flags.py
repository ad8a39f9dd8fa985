"""Repairs of flags, counters and locks of several threads: another flag, all arrivals, a lock that is waited for."""

from __future__ import annotations

import pytest

from memmodel import api
from memmodel.cat import load_model
from memmodel.engine import Options
from memmodel.repair.edits import apply
from memmodel.repair.exchanging.lock_order import one_lock
from memmodel.repair.fix import fix
from memmodel.source import Source

MODELS = (load_model("ptx-9.4"),)
SPIN = "setp.eq.u32 %p, %t, 0;\n    @%p bra S;"

FLAG_OF_ANOTHER_TILE = f"""PTX tile
.global .u32 d[2];
.global .u32 f[2];
thread P @ cta 0 {{
    st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1;
    st.global.u32 [d+4], 2; st.release.gpu.global.u32 [f+4], 1;
}}
thread C @ cta 1 {{
S:  ld.acquire.gpu.global.u32 %t, [f];
    {SPIN}
    ld.global.u32 %r, [d+4];
}}
~exists (C:r == 0)
"""
COUNT_OF_BEFORE = """PTX epoch
.global .u32 n;
.global .u32 x;
thread A @ cta 0 {
    red.release.gpu.global.add.u32 [n], 1;
    st.global.u32 [x], 1;
    red.release.gpu.global.add.u32 [n], 1;
}
thread B @ cta 1 {
S:  ld.acquire.gpu.global.u32 %t, [n];
    setp.lt.u32 %p, %t, 1;
    @%p bra S;
    ld.global.u32 %r, [x];
}
~exists (B:r == 0)
"""
ONE_FLAG_OF_TWO = """PTX two
.global .u32 d[2];
.global .u32 f;
thread A @ cta 0 { st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1; }
thread B @ cta 1 { st.global.u32 [d+4], 2; st.release.gpu.global.u32 [f], 1; }
thread R @ cta 2 {
S:  ld.acquire.gpu.global.u32 %t, [f];
    setp.ne.u32 %p, %t, 1;
    @%p bra S;
    ld.global.u32 %x, [d];
    ld.global.u32 %y, [d+4];
}
~exists (R:x == 0 \\/ R:y == 0)
"""
NOT_LOOKED_AT = """PTX lock
.global .u32 lock;
.global .u32 v;
thread A @ cta 0 {
    atom.acquire.gpu.global.exch.b32 %o, [lock], 1;
    st.global.u32 [v], 1;
    st.release.gpu.global.u32 [lock], 0;
}
thread B @ cta 1 {
    atom.acquire.gpu.global.exch.b32 %o, [lock], 1;
    setp.ne.u32 %p, %o, 0;
    @%p bra OUT;
    st.global.u32 [v], 2;
    st.release.gpu.global.u32 [lock], 0;
OUT:
}
~exists race
"""


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (FLAG_OF_ANOTHER_TILE, "ld.acquire.gpu.global.u32 %t, [f+4];"),
        (COUNT_OF_BEFORE, "setp.lt.u32 %p, %t, 2;"),
        (ONE_FLAG_OF_TWO, "red.release.gpu.global.add.u32 [f], 1; }\nthread R"),
        (NOT_LOOKED_AT, "cas.b32 %o, [lock], 0, 1;\n    setp.ne.b32 %early, %o, 0;"),
    ],
)
def test_the_flag_that_is_meant_is_waited_for(text: str, changed: str) -> None:
    assert changed not in text
    assert any(changed in repair.new for repair in fix("t", text, MODELS, Options()).repairs)


NO_ANSWER = """PTX mailbox
.global .u32 m;
.global .u32 seq;
thread S @ cta 0 {
    st.global.u32 [m], 1; st.release.gpu.global.u32 [seq], 1;
    st.global.u32 [m], 2; st.release.gpu.global.u32 [seq], 2;
}
thread R @ cta 1 {
S:  ld.acquire.gpu.global.u32 %t, [seq];
    setp.lt.u32 %p, %t, 1;
    @%p bra S;
    ld.global.u32 %x, [m];
}
~exists (R:x == 2)
"""


def test_the_reader_of_a_mailbox_tells_its_writer() -> None:
    """To wait for the second message would make the outcome certain."""
    story, *_ = api.explain(NO_ANSWER).stories
    assert story.first is not None and story.first.thread == "R"
    assert story.obstacles[0].text.startswith("nothing orders")
    (repair, *_) = fix("t", NO_ANSWER, MODELS, Options()).repairs
    assert repair.new.index("st.release.gpu.global.u32 [done], 1;") > repair.new.index("ld.global.u32 %x, [m];")


TAKE = "L: atom.acquire.gpu.global.cas.b32 %o, [{0}], 0, 1; setp.ne.u32 %p, %o, 0; @%p bra L;"
TWO_LOCKS = f"""PTX locks
.global .u32 la;
.global .u32 lb;
.global .u32 v;
thread A @ cta 0 {{ {TAKE.format("la")} st.global.u32 [v], 1; st.release.gpu.global.u32 [la], 0; }}
thread B @ cta 1 {{ {TAKE.format("lb")} st.global.u32 [v], 2; st.release.gpu.global.u32 [lb], 0; }}
~exists race
"""


def test_one_lock_for_two() -> None:
    mine, others = one_lock(api.lowered(Source("t", TWO_LOCKS)))
    assert (mine.what, others.what) == ("B: lb -> la, one lock for both", "A: la -> lb, one lock for both")
    assert apply(TWO_LOCKS, (mine,)).count("[la]") == 4
    assert fix("t", apply(TWO_LOCKS, (mine,)), MODELS, Options()).wrong == ()

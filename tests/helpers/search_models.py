"""Broken copies of ptx-9.4, one for each shipped property: one rule knocked out with `override let`.

Each has a vocabulary and a size at which the property fails (of a property that says `possible`: is not shown).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memmodel.base.resources import axioms_dir


@dataclass(frozen=True)
class Broken:
    """`words` None: the property's own vocabulary. `size`: the counterexample has so many instructions.
    `shape`: only programs with these threads are tried, to save time."""

    property: str
    override: str
    size: int
    words: str | None = None
    shape: tuple[str, ...] | None = None


_SIGNALS_PUBLISH = """override let any-sync = pattern-sync | D10-acquired(phase-sync) | barrier-sync | sync_fence
                    | iss ; [SIGNAL] ; phase-observed ; phase-acquire"""

BROKEN = (
    Broken("coherence", "override let in-scope = 0", 3, "ld.relaxed,st.relaxed"),
    Broken("partial-coherence", "empty ((W * W) & loc) \\ (co | co^-1 | id) as Total", 3),
    Broken("no-thin-air", "override let dependency = 0", 4, "ld.relaxed,st.data.relaxed"),
    Broken("composition", "override let thread-causality = po | synchronizes", 4),
    Broken("composition-barriers", "override let barrier-sync = 0", 4, None, ("st bar", "bar ld")),
    Broken(
        "composition-fences",
        "override let release-fence = 0",
        6,
        "ld.weak,ld.relaxed,st.weak,st.relaxed,fence.acq_rel",
        ("st st", "ld ld"),
    ),
    Broken(
        "composition-atomics",
        "override let observation = observed",
        5,
        "ld.weak,ld.acquire,st.weak,st.release,atom.relaxed",
        ("st st", "ld ld", "atom"),
    ),
    Broken(
        "composition-breaks",
        "override let in-scope = [strong] ; ext ; [strong]",
        4,
        "ld.weak,ld.acquire,st.weak,st.release",
    ),
    Broken(
        "synchronizes-only-if-named",
        "override let release-pattern = [W & REL] | ([W & REL] | [release-fence]) ; po ; [strong-write]",
        5,
        "ld.relaxed,st.release,fence.acq_rel",
    ),
    Broken(
        "synchronizes-only-if-named-atomics",
        "override let strong-read = R \\ WEAK",
        4,
        "st.release,red.relaxed,fence.acq_rel",
    ),
    Broken(
        "synchronizes-objects",
        "override let phase-release = [MBARRIVE | SIGNAL]",
        2,
    ),
    Broken("async-proxy-fencing", "override let generic-to-other = [M & generic] ; base-from-X ; [other-proxy]", 2),
    Broken("async-proxy-bridged", "override let leave-implicitly = 0", 3, "ld.shared.weak,copy.in,wait.acquire"),
    Broken(
        "complete-tx",
        _SIGNALS_PUBLISH,
        4,
        "st.tile.weak,ld.tile.weak,copy.in,wait.acquire",
        ("st.tile copy.in", "wait ld.tile"),
    ),
    Broken(
        "commit-carries",
        _SIGNALS_PUBLISH,
        4,
        "st.shared.weak,ld.shared.weak,tcgen05.commit,wait.acquire",
        ("st.shared tcgen05.commit", "wait ld.shared"),
    ),
    Broken(
        "composition-breaks-signal",
        _SIGNALS_PUBLISH,
        4,
        "st.tile.weak,ld.tile.weak,copy.in,wait.acquire",
        ("st.tile copy.in", "wait ld.tile"),
    ),
    Broken(
        "composition-breaks-restricted",
        "override let unrestricted = _",
        6,
        "st.weak,ld.weak,arrive.relaxed,wait.relaxed,fence.release.restricted,fence.acquire.restricted",
        ("st arrive", "wait ld"),
    ),
    Broken(
        "composition-objects",
        "override let phase-sync = 0",
        4,
        "st.shared.weak,ld.shared.weak,arrive,wait",
        ("st.shared arrive", "wait ld.shared"),
    ),
    Broken(
        "synchronizes-barriers",
        "override let barrier-sync = [ARRIVE] ; syncbar ; [WAIT]",
        4,
        "cluster.arrive,cluster.wait",
    ),
    Broken("tensor-pipeline", "override let pipelined = 0", 2, "tcgen05.mma"),
    Broken("tensor-pairs", "override let in-pipeline = issued-before & (tensor * tensor)", 2),
    Broken(
        "drf-sc",
        "override let any-sync = pattern-sync | D10-acquired(phase-sync) | barrier-sync | fenced-barrier-sync",
        6,
        "ld.relaxed,st.relaxed,fence.sc",
    ),
    Broken(
        "fences-forced",
        "override let overwrite-forced = coherence-forced | rf^-1 ; coherence-forced^-1",
        4,
    ),
    Broken("drf-sc-barriers", "override let racing = 0", 3),
    Broken("monotonicity", "override let acquire-pattern = [R & RLX & strong-read]", 4, "ld,st.release,st.weak"),
    Broken("fence-or-race", "override let racing = 0", 5, "ld.acquire,ld.weak,st.relaxed,st.weak,fence.acq_rel"),
)


def write_broken(one: Broken, folder: Path) -> str:
    """The broken model as a file."""
    path = folder / f"broken-{one.property}.cat"
    path.write_text(f'"PTX 9.4, broken"\ninclude "{axioms_dir() / "ptx-9.4.cat"}"\n{one.override}\n')
    return str(path)

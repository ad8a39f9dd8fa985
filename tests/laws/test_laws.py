"""What the model ptx-9.4 promises of every program: more synchronization never adds an outcome, and names mean nothing.

Each law compares the sets of final states of a generated program and of a changed one; more synchronization adds no
race either. Two tests at the end show that the laws, and the shipped suite, can fail: a model that is wrong on purpose
breaks them. Known exceptions: none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from helpers.agreement import lowered
from helpers.examples import examples
from helpers.strategies import bytes as strategies_bytes
from helpers.strategies import programs as strategies_programs
from helpers.strategies.programs import SCOPES, SEMANTICS, Line, Program, judged
from hypothesis import assume, given
from hypothesis import strategies as st

from memmodel import api, batch, engine
from memmodel.answer import Budget
from memmodel.base.resources import suite_dir
from memmodel.cat import load_model, parse_model
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.source import Source

States = frozenset[frozenset[tuple[str, int]]]

LITTLE = Options("auto", Budget(effort=20_000_000), bound=2)
STRONGER = {
    "ld": {"weak": ("relaxed", "acquire"), "relaxed": ("acquire",)},
    "st": {"weak": ("relaxed", "release"), "relaxed": ("release",)},
    "atom": {"relaxed": ("acquire", "release", "acq_rel"), "acquire": ("acq_rel",), "release": ("acq_rel",)},
    "red": {"relaxed": ("release",)},
    "fence": {"acquire": ("acq_rel", "sc"), "release": ("acq_rel", "sc"), "acq_rel": ("sc",)},
}

# Every final state, not only what one condition tells apart.
plain_programs = strategies_programs.programs(most=6).map(lambda program: replace(program, question="exists (true)"))
byte_programs = strategies_bytes.programs(most=5).map(lambda program: replace(program, question="exists (true)"))
whole_programs = st.one_of(plain_programs, byte_programs)


def states(text: str, model: Model, original: Callable[[str], str] = str) -> States:
    """All final states; `original` gives a register or location back the name that it is compared by.

    Registers that hold addresses (%a1) are left out: where variables lie is nobody's business.
    """
    found = engine.outcomes(lowered(text), model, LITTLE)
    judged(found.complete)
    return frozenset(
        frozenset((original(name), value) for name, value in state.values if not re.search(r":a\d", name))
        for state in found.states
    )


def only_removes(program: Program, changed: Program, model: Model) -> None:
    """The changed program has no final state, and no kind of race, that the program does not have."""
    added = states(changed.text, model) - states(program.text, model)
    assert not added, f"{[sorted(one) for one in added]} are new in\n{changed.text}\ncompared with\n{program.text}"
    more = races(changed.text, model) - races(program.text, model)
    assert not more, f"{sorted(more)} are new in\n{changed.text}\ncompared with\n{program.text}"


def races(text: str, model: Model) -> frozenset[str]:
    """The flags of races that are raised."""
    found = api.judge(lowered(text), model, LITTLE)
    judged(not found.unsearched)
    return frozenset(flag for flag in found.flags if kind_of(flag) in (FindingKind.RACE, FindingKind.MIXED))


@st.composite
def widened(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program, and the same with one scope widened."""
    program = draw(whole_programs)
    places = [(t, i, line) for t, i, line in program.lines() if line.scope not in (None, "sys")]
    assume(places)
    t, i, line = draw(st.sampled_from(places))
    wider = draw(st.sampled_from(SCOPES[SCOPES.index(line.scope or "") + 1 :]))
    return program, program.changed(t, i, replace(line, scope=wider))


@st.composite
def strengthened(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program, and the same with one semantics strengthened; a weak access gets any scope."""
    program = draw(whole_programs)
    places = [(t, i, line) for t, i, line in program.lines() if line.sem in STRONGER[line.head]]
    assume(places)
    t, i, line = draw(st.sampled_from(places))
    sem = draw(st.sampled_from(STRONGER[line.head][line.sem]))
    scope = line.scope or draw(st.sampled_from(SCOPES))
    return program, program.changed(t, i, replace(line, sem=sem, scope=scope))


@st.composite
def fenced(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program, and the same with a fence in front of some instruction or after it."""
    program = draw(whole_programs)
    places = program.lines()
    assume(places)
    t, i, line = draw(st.sampled_from(places))
    fences: list[Line | str] = [
        "fence.proxy.alias;",
        "fence.proxy.async;",
        Line("fence", draw(st.sampled_from(SEMANTICS["fence"])), draw(st.sampled_from(SCOPES))),
    ]
    fence = draw(st.sampled_from(fences))
    return program, program.changed(t, i, *((fence, line) if draw(st.booleans()) else (line, fence)))


@examples(18)
@given(pair=widened())
def test_widening_a_scope_only_removes_outcomes(pair: tuple[Program, Program]) -> None:
    only_removes(*pair, load_model("ptx-9.4"))


@examples(18)
@given(pair=strengthened())
def test_strengthening_a_semantics_only_removes_outcomes(pair: tuple[Program, Program]) -> None:
    only_removes(*pair, load_model("ptx-9.4"))


@examples(18)
@given(pair=fenced())
def test_adding_a_fence_only_removes_outcomes(pair: tuple[Program, Program]) -> None:
    only_removes(*pair, load_model("ptx-9.4"))


def renamed(text: str) -> str:
    """Other names for threads, locations and places, and declarations the other way round."""
    names = {"x": "late", "y": "early", "a": "other", "t": "table", "P0": "T9", "P1": "T4", "P2": "T7"}
    text = re.sub(r"(?<![%\w.])(x|y|a|t|P[012])\b", lambda found: names[found[1]], text)
    text = re.sub(r"\bcta (\d)", lambda found: f"cta {7 - int(found[1])}", text)
    text = re.sub(r"\bgpu (\d)(?!;)", lambda found: f"gpu {3 - int(found[1])}", text)
    head, rest = text.split("thread ", 1)
    title, first, second, *others = head.splitlines()
    return "\n".join([title, *others, second, first, "thread " + rest])


@examples(15)
@given(program=plain_programs)
def test_names_mean_nothing(program: Program) -> None:
    model = load_model("ptx-9.4")
    names = {"late": "x", "early": "y", "table": "t", "table[1]": "t[1]", "T9": "P0", "T4": "P1", "T7": "P2"}

    def original(name: str) -> str:
        owner, colon, register = name.partition(":")
        return names.get(owner, owner) + colon + register

    assert states(renamed(program.text), model, original) == states(program.text, model), program.text


@examples(15)
@given(program=whole_programs, data=st.data())
def test_the_order_of_threads_means_nothing(program: Program, data: st.DataObject) -> None:
    model = load_model("ptx-9.4")
    order = data.draw(st.sampled_from(list(permutations(range(len(program.places))))))
    moved = replace(
        program,
        places=tuple(program.places[old] for old in order),
        bodies=tuple(program.bodies[old] for old in order),
    )

    def original(name: str) -> str:
        return re.sub(r"^P(\d):", lambda found: f"P{order[int(found[1])]}:", name)

    assert states(moved.text, model, original) == states(program.text, model), program.text


# ---- the laws and the suite can fail ---------------------------------------------------------------------------

MP = Program(
    ("cta 0, gpu 0", "cta 1, gpu 0"),
    (
        (Line("st", "weak", None, "", "[x], 1"), Line("st", "release", "gpu", "", "[y], 1")),
        (Line("ld", "acquire", "gpu", "", "%r0, [y]"), Line("ld", "weak", None, "", "%r1, [x]")),
    ),
    "exists (true)",
)


def test_a_model_in_which_a_wider_scope_is_weaker_breaks_the_law() -> None:
    wrong = parse_model(
        Source(
            "wrong.cat",
            "let sync = [W & REL] ; (rf & (GPU * GPU)) ; [R & ACQ]\n"
            "irreflexive (rf | fr) ; (po | sync)+ as Causality\n",
        )
    )
    wider = MP.changed(0, 1, Line("st", "release", "sys", "", "[y], 1"))
    with pytest.raises(AssertionError, match="are new in"):
        only_removes(MP, wider, wrong)


def test_the_shipped_suite_notices_a_wrong_model(tmp_path) -> None:
    """Coherence order made total, as other architectures have it: tests of racing writes differ, and only a few."""
    wrong = tmp_path / "wrong.cat"
    wrong.write_text('include "ptx-9.4.cat"\nempty (W * W & loc) \\ (co | co^-1 | id) as Total\n')
    plan = batch.plan([str(suite_dir() / "generic"), str(suite_dir() / "isa")], [str(wrong)])
    entries = [entry for group in batch.run(plan, batch.Settings(against="ptx-9.4")) for entry in group]
    differ = [Path(entry.path).stem for entry in entries if entry.outcome is batch.Outcome.DIFFERS]
    assert "H1" in differ
    assert 0 < len(differ) < len(entries) / 2

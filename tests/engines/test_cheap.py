"""What is left for later, or given up early: witnesses, instances of frozen classes, trials of enumeration."""

from __future__ import annotations

import gc
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from time import monotonic, sleep

import pytest
from helpers.patience import PATIENCE

from memmodel import api
from memmodel.answer import Budget, EvaluatedExecution, Witness
from memmodel.collecting import ALLOCATIONS
from memmodel.concrete.meter import USUAL, Meter
from memmodel.errors import BudgetSpent
from memmodel.limits import Limits, outside, settle

SB = """PTX SB
{ x = 0; y = 0; }
P0 | P1 ;
st.weak x, 1 | st.weak y, 1 ;
ld.weak r0, y | ld.weak r0, x ;
exists (P0:r0 == 0)
"""


@dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: int = 2
    c: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class More(Frozen):
    d: int = 4


class Other(Frozen):
    """Not a dataclass itself."""


@pytest.mark.parametrize("kind", [Frozen, More, Other])
def test_instances_are_of_their_own_class_and_frozen(kind: type[Frozen]) -> None:
    made = kind(1)
    assert type(made) is kind and made == kind(1, 2) and replace(made, b=3) == kind(1, 3)
    with pytest.raises(FrozenInstanceError):
        made.a = 2  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(made))
    assert again == made and type(again) is kind


def test_a_witness_is_spelled_out_once_and_survives_pickling() -> None:
    calls = []

    def spell() -> Witness:
        calls.append(1)
        return Witness((), {}, {("P0", "r0"): 1}, {})

    witness = Witness.of(EvaluatedExecution(None, {}, spell))
    assert not calls and witness.registers == {("P0", "r0"): 1} and not witness.events and len(calls) == 1
    with pytest.raises(AttributeError):
        witness.nothing  # type: ignore[attr-defined] # noqa: B018
    found = api.check(SB, engine="enumerate").answer.witness
    assert found is not None
    assert pickle.loads(pickle.dumps(found)).events == found.events != ()


def test_a_trial_is_given_up_when_it_does_not_seem_to_end() -> None:
    meter = Meter(Budget(effort=1300), 1000)
    meter.ready()
    meter.spend(150)
    meter.expect(0.01)  # too early to say
    meter.spend(150)
    meter.expect(0.5)
    with pytest.raises(BudgetSpent):
        meter.expect(0.05)
    with pytest.raises(BudgetSpent):
        meter.needs(800)
    preparing = Meter(Budget(effort=1300), 1000)
    preparing.spend(150)
    with pytest.raises(BudgetSpent):
        preparing.spend(100)
    large = Meter(Budget(effort=1300), 1000)
    large.ready()
    large.weigh(4 * USUAL)  # takes eight times as long
    with pytest.raises(BudgetSpent):
        large.spend(200)
    Meter(Budget(effort=1300)).expect(0.0)  # no trial: nothing is given up


def test_auto_gives_up_what_does_not_seem_to_end() -> None:
    fences = 5
    threads = [[f"st.weak x{i}, 1", "fence.sc.gpu", f"ld.weak r0, x{(i + 1) % fences}"] for i in range(fences)]
    rows = [" | ".join(column) + " ;" for column in zip(*threads, strict=True)]
    head = " | ".join(f"P{i}@cta {i},gpu 0" for i in range(fences)) + " ;"
    zero = " ".join(f"x{i} = 0;" for i in range(fences))
    stale = r" /\ ".join(f"P{i}:r0 == 0" for i in range(fences))
    answer = api.check("\n".join(["PTX ring", f"{{ {zero} }}", head, *rows, f"exists ({stale})", ""])).answer
    assert (answer.engine, answer.observation.value) == ("z3", "never")


def test_cycles_are_looked_for_rarely_while_answers_are_made() -> None:
    before = gc.get_threshold()
    with Limits(Budget()):
        assert gc.get_threshold()[0] >= ALLOCATIONS
        with Limits(Budget()):
            pass
        assert gc.get_threshold()[0] >= ALLOCATIONS
    assert gc.get_threshold() == before


def test_what_is_held_back_comes_where_it_may() -> None:
    until = monotonic() + PATIENCE
    with pytest.raises(BudgetSpent, match=r"0\.01 seconds"), Limits(Budget(seconds=0.01)), outside(lambda: None):
        while monotonic() < until:
            sleep(0.01)
            settle()
    assert monotonic() < until

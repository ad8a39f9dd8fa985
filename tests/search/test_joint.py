"""mbarrier objects of a superposed program: few operations, which say of each program what its own would."""

from __future__ import annotations

from collections import Counter

from memmodel.base.logic import FALSE
from memmodel.encode.base import BaseFormulas
from memmodel.encode.object_order import START
from memmodel.events.graph import EventGraph, ObjectEvent
from memmodel.search.solving.joint import with_joint_operations
from memmodel.search.solving.layouts import ThreadLayout
from memmodel.search.solving.superposed import Superposed
from memmodel.search.vocabulary import vocabulary

COPIES = "copy.in,copy.in.relaxed,st.async,arrive,tcgen05.commit,cp.async.arrive,wait,st.shared.weak"


def joined(words: str, lengths: tuple[int, ...] = (2, 1)) -> tuple[EventGraph, EventGraph]:
    """The events of a superposed program, and as objects see them."""
    program = Superposed(
        vocabulary(words.split(","), ["cta"], 2, 1), ThreadLayout(lengths, ((0, 0, 0),) * len(lengths))
    )
    graph = program.graph()
    return graph, with_joint_operations(graph, program.owners(graph))


def test_alternatives_that_do_the_same_are_one_operation() -> None:
    """Of each slot: a test; an arrive of a thread and one of the hardware; an expected and a signalled copy."""
    graph, joint = joined(COPIES)
    assert len(graph.events) == len(joint.events)
    assert all(a.uid == b.uid and a.label == b.label for a, b in zip(graph.events, joint.events, strict=True))
    by_visit = Counter(event.action.name for event in joint.of_kind(ObjectEvent))
    assert by_visit == {"TEST": 3, "ARRIVE": 9, "COMPLETE_TX": 3}
    assert len(graph.of_kind(ObjectEvent)) == 3 * 10
    assert {event.bytes for event in joint.of_kind(ObjectEvent)} == {0, 1}


def test_bytes_that_are_not_always_signalled_by_what_expects_them_are_counted() -> None:
    """An object that is initialised again forgets what was expected, but not what will be signalled."""
    _, joint = joined("copy.in,init,wait")
    assert {event.bytes for event in joint.of_kind(ObjectEvent)} == {0, 16}


def test_an_object_takes_the_arrivals_that_the_program_has() -> None:
    _, joint = joined("arrive.release,wait.acquire")
    ((cell, sizes),) = joint.sizes.items()
    assert sorted(sizes) == [1, 2, 3]
    phases = BaseFormulas(joint, joint).mbarriers.phases[cell]
    assert phases.most == {START: 1}
    assert phases.over[START, 0] != FALSE

"""Base names of a run in which some labels are changed: what is shared with the run itself is what the tables say."""

from __future__ import annotations

from helpers.kernel.samples import entry, launch, module

from kernel.mutate.test_same_runs import ELECTED
from memmodel.base.relations import RELATION_ROWS
from memmodel.base.sets import SET_ROWS
from memmodel.cat.load import load_model
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.mutate.mutations import REMOVED, mutations
from memmodel.kernel.mutate.same_run import SameRun
from memmodel.kernel.order.flags import ASKED, Flags
from memmodel.kernel.order.frame import KernelFrame, RelabelledFrame

MODEL = load_model("ptx-9.4")


def test_a_changed_label() -> None:
    read = module(ELECTED)
    kernel = judge_case(KernelCase(read, entry(read), launch(), MODEL, CheckOptions()))
    assert kernel.representative is not None and kernel.representative.judgement.flags is not None
    run = kernel.representative.run
    same = SameRun(run, MODEL, kernel.representative.judgement.flags)
    shared = compared = 0
    for change in mutations(entry(read)):
        execution = same._execution((change,)) if change.what != REMOVED else None
        if execution is None or not isinstance(execution.frame, RelabelledFrame):
            continue
        compared += 1
        frame = execution.frame
        plain = KernelFrame(frame.events, frame._ranged, frame._same_location)
        for name in RELATION_ROWS.keys() - execution.chosen_relations.keys():
            assert frame.relation(name) == plain.relation(name), (change, name)
            shared += frame.relation(name) is frame.whole.relation(name)
        assert all(frame.relation(name) is frame.whole.relation(name) for name in ("po", "iss", "samebar"))
        for name in SET_ROWS.keys() - execution.chosen_sets.keys():
            assert frame.set(name) == plain.set(name), (change, name)
        mine, theirs = Flags(MODEL, execution, same._whole), Flags(MODEL, execution)
        assert mine.raised() == theirs.raised()
        assert all(mine.relation(name) == theirs.relation(name) for name in ASKED)
    assert compared and shared

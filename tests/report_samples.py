"""Hand-made tests and answers, so that reports are tested without any engine."""

from __future__ import annotations

from memmodel.answer import Answer, Observation, Race, ShownEvent, Times, Witness
from memmodel.cat.syntax import Model
from memmodel.litmus.syntax import And, Compare, Expectation, LitmusTest, Number, Quantifier, RegValue, Thread
from memmodel.ptx import Place
from memmodel.report.report import Report
from memmodel.source import Source

MODEL = Model("ptx-9.3", "a model", (), ())

TEXT = """PTX MP
"Message passing"
{ x=0; y=0; }
 P0@cta 0,gpu 0       | P1@cta 1,gpu 0          ;
 st.weak x, 1         | ld.acquire.gpu r0, y    ;
 st.release.gpu y, 1  | ld.weak r1, x           ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
SOURCE = Source("MP.litmus", TEXT)
PLACES = {"P0": Place(0, None, 0), "P1": Place(0, None, 1)}


def shown(uid: int, label: str, thread: str | None, text: str, spelled: str = "") -> ShownEvent:
    """An event whose span is the instruction as spelled in TEXT."""
    place = PLACES[thread] if thread else None
    start = TEXT.find(spelled) if spelled else -1
    span = SOURCE.span(start, start + len(spelled)) if spelled and start >= 0 else None
    tags = frozenset((text[0], "WEAK") if ".weak" in text else text[0])
    return ShownEvent(uid, label, thread, place, text, tags, text.split()[1], 0, span)


def mp_witness() -> Witness:
    events = (
        shown(0, "i0", None, "W x = 0"),
        shown(1, "i1", None, "W y = 0"),
        shown(2, "a", "P0", "W.weak x = 1", "st.weak x, 1"),
        shown(3, "b", "P0", "W.release.gpu y = 1", "st.release.gpu y, 1"),
        shown(4, "c", "P1", "R.acquire.gpu y = 1", "ld.acquire.gpu r0, y"),
        shown(5, "d", "P1", "R.weak x = 0", "ld.weak r1, x"),
    )
    edges = {
        "po": ((2, 3), (4, 5)),
        "rf": ((3, 4), (0, 5)),
        "co": ((0, 2), (1, 3)),
        "fr": ((5, 2),),
        "sync": ((3, 4),),
    }
    return Witness(events, edges, {("P1", "r0"): 1, ("P1", "r1"): 0}, {"x": 1, "y": 1})


def mp_race() -> Race:
    events = mp_witness().events
    return Race("data-race", events[2], events[5])


def litmus_test(*expected: str, quantifier: Quantifier = Quantifier.EXISTS) -> LitmusTest:
    """MP with `model:word` expectations."""
    condition = And(
        (
            Compare(RegValue("P1", "r0"), "==", Number(1)),
            Compare(RegValue("P1", "r1"), "==", Number(0)),
        )
    )
    words = tuple(Expectation(*entry.split(":"), SOURCE.span(0, 6)) for entry in expected)
    threads = tuple(Thread(name, place, ()) for name, place in PLACES.items())
    return LitmusTest("MP", ("Message passing",), words, (), (), threads, quantifier, condition, source=SOURCE)


def sometimes(**changes: object) -> Answer:
    return Answer(
        Observation.SOMETIMES, "z3", witness=mp_witness(), races=(mp_race(),), times=Times(1.5, 2.25, 3.125), **changes
    )  # type: ignore[arg-type]


def never(**changes: object) -> Answer:
    return Answer(Observation.NEVER, "z3", axioms=("Causality",), counter=mp_witness(), **changes)  # type: ignore[arg-type]


def report(answer: Answer, expected: str | None = None, quantifier: Quantifier = Quantifier.EXISTS) -> Report:
    return Report.of(litmus_test(quantifier=quantifier), MODEL, answer, expected)

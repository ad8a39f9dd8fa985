"""Hand-made tests and answers, so that reports are tested without any engine."""

from __future__ import annotations

from dataclasses import replace

from memmodel.answer import HANG, Answer, Finding, Observation, ShownEvent, Times, Witness
from memmodel.cat.syntax import Model
from memmodel.isa.lower import lower_test
from memmodel.litmus.syntax import And, Compare, Expectation, LitmusTest, Number, Quantifier, RegValue, Thread
from memmodel.ptx.vocabulary import Place
from memmodel.report.report import Report
from memmodel.source import Source

MODEL = Model("ptx-9.4", "a model", (), ())

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
    """The execution in which the flag is seen and the message is not."""
    events = (
        shown(0, "init x", None, "W x = 0"),
        shown(1, "init y", None, "W y = 0"),
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
    return Witness(events, edges, {("P1", "r0"): 1, ("P1", "r1"): 0}, {"x": "1", "y": "1"})


def early_witness() -> Witness:
    """Another execution, in which neither is seen; its labels stand for other events than those of mp_witness."""
    first = mp_witness()
    c, d = first.events[4:]
    renamed = (
        replace(c, label="a", text="R.acquire.gpu y = 0"),
        replace(d, label="b"),
        replace(first.events[2], label="c"),
        replace(first.events[3], label="d"),
    )
    edges = {**first.edges, "rf": ((1, 4), (0, 5)), "fr": ((5, 2), (4, 3)), "sync": ()}
    registers = {("P1", "r0"): 0, ("P1", "r1"): 0}
    return replace(first, events=(*first.events[:2], *renamed), edges=edges, registers=registers)


def finding(
    flag: str, first: str | None = None, second: str | None = None, *, witness: Witness | None = None
) -> Finding:
    """A finding in an execution (None: mp_witness), about the events with these labels there."""
    witness = witness or mp_witness()
    event = {one.label: one for one in witness.events}
    return Finding(flag, witness, event.get(first or ""), event.get(second or first or ""))


def mp_race() -> Finding:
    return finding("data-race", "a", "d")


def hanging(*waits: str) -> Finding:
    """A hang, in an execution in which P1 has not loaded anything yet."""
    first = mp_witness()
    edges = {"po": ((2, 3),), "co": ((0, 2), (1, 3))}
    return Finding(HANG, replace(first, events=first.events[:4], edges=edges, registers={}, waits=waits))


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
        Observation.SOMETIMES,
        "z3",
        witness=mp_witness(),
        findings=(mp_race(),),
        times=Times(1.5, 2.25, 3.125),
        **changes,
    )  # type: ignore[arg-type]


def never(**changes: object) -> Answer:
    return Answer(Observation.NEVER, "z3", axioms=("Causality",), counter=mp_witness(), **changes)  # type: ignore[arg-type]


def report(answer: Answer, expected: str | None = None, quantifier: Quantifier = Quantifier.EXISTS) -> Report:
    return Report.of(lower_test(litmus_test(quantifier=quantifier)), MODEL, answer, expected)

"""What a person reads of small tests, from the text on: every label and value belongs to the execution that is shown.

Text, JSON and pictures of a computed address, a vector, a bad address, a race, a hang and a mixed-size race.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from xml.etree import ElementTree

import pytest

import memmodel
from memmodel.answer import Observation
from memmodel.base.resources import suite_dir
from memmodel.report.picture.draw import draw
from memmodel.report.report import Report

ENGINES = ("z3", "enumerate")

COMPUTED = """PTX computed
.global .u32 a[8] = {10, 11, 12, 13, 14, 15, 16, 17};
.global .u32 index = 5;
thread P0 @ cta 0, gpu 0 {
    mov.u64 %base, a;
    ld.global.u32 %i, [index];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %at, %base, %offset;
    ld.global.u32 %r0, [%at-4];
}
forall (P0:r0 == 14)
"""
VECTOR = """PTX vector
.global .align 8 .u32 x[2] = {0, 0};
thread P0 @ cta 0, gpu 0 {
    st.relaxed.gpu.global.v2.u32 [x], {1, 2};
}
thread P1 @ cta 1, gpu 0 {
    ld.relaxed.gpu.global.v2.u32 {%lo, %hi}, [x];
}
exists (P1:lo == 1 /\\ P1:hi == 0)
"""
BAD = """PTX bad
.global .align 4 .u32 x[2] = {1, 2};
thread P0 @ cta 0, gpu 0 {
    mov.u64 %at, x;
    add.u64 %at, %at, 2;
    ld.global.u32 %r0, [x];
    st.global.u32 [%at], 7;
    mov.u32 %r0, 9;
}
exists undefined
"""
RACE = """PTX race
.global .u32 x = 0;
.global .u32 flag = 0;
thread P0 @ cta 0, gpu 0 {
    st.global.u32 [x], 1;
    st.relaxed.gpu.global.u32 [flag], 1;
}
thread P1 @ cta 1, gpu 0 {
    ld.relaxed.gpu.global.u32 %f, [flag];
    setp.ne.u32 %p, %f, 0;
    @%p ld.global.u32 %r0, [x];
}
exists (P1:f == 0)
"""
HANG = """PTX hang
.shared .b64 bars[2] = mbarrier(1);
.global .u32 x = 0;
thread P0 @ cta 0, gpu 0 {
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bars], 0;
    @!%p bra WAIT;
    mbarrier.arrive.shared::cta.b64 _, [bars+8];
}
thread P1 @ cta 0, gpu 0 {
    st.global.u32 [x], 3;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bars+8], 0;
    @!%p bra WAIT;
    mbarrier.arrive.shared::cta.b64 _, [bars];
}
exists (x == 3)
"""
MIXED = """PTX mixed
.global .align 8 .u64 w = 0;
thread P0 @ cta 0, gpu 0 {
    st.relaxed.gpu.global.u16 [w+2], 0xbeef;
}
thread P1 @ cta 1, gpu 0 {
    ld.relaxed.gpu.global.u64 %r0, [w];
}
exists (P1:r0 == 0)
"""
SAMPLES = {"computed": COMPUTED, "vector": VECTOR, "bad": BAD, "race": RACE, "hang": HANG, "mixed": MIXED}
SHIPPED = (
    "bytes/B2-undefined", "bytes/B3-first-parity", "bytes/B8-undefined", "bytes/B10-flag-first", "bytes/B12-all",
    "async/proxy/A12-undefined", "async/tcgen05/T13-register", "async/mbarrier/over-arrival", "control/spin+crossed",
)  # fmt: skip


@cache
def told(name: str, engine: str) -> Report:
    test = SAMPLES[name] if name in SAMPLES else suite_dir() / f"{name}.litmus"
    return memmodel.check(test, engine=engine)


def lines(name: str, engine: str) -> list[str]:
    return [line.strip() for line in told(name, engine).explain().splitlines()]


def picture(report: Report, finding: str | None = None) -> list[str]:
    root = ElementTree.fromstring(draw(report, finding=finding))
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


# ---- one execution at a time -----------------------------------------------------------------------------------------

_END = re.compile(r"(?:at|between|and) (\w+): (.+?) \((?:\w+, )?line (\d+)\)(?= and|$)")
_EVENT = re.compile(r" *(?:\w+ +)?(\w+): +(.+?) *(?:  from .+)?  line (\d+)$")


def blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """The lines above each execution that is printed, from the one before on, and the lines of that execution."""
    above: list[str] = []
    shown: list[str] = []
    inside = len(text)
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if indent > inside:
            shown.append(line)
            continue
        if shown:
            yield above, shown
            above, shown, inside = [], [], len(text)
        if line.strip().startswith("an execution "):
            inside = indent
        else:
            above.append(line)
    if shown:
        yield above, shown


@pytest.mark.share(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*SAMPLES, *SHIPPED])
def test_labels_and_values_of_a_finding_are_those_of_the_execution_that_is_printed(name: str, engine: str) -> None:
    report = told(name, engine)
    text = report.explain()
    for finding in report.answer.findings:
        for event in (finding.first, finding.second):
            assert event is None or event in finding.witness.events
    labelled = [line for line in text.splitlines() if _END.search(line)]
    found = 0
    for above, shown in blocks(text):
        events = {match.groups() for line in shown if (match := _EVENT.match(line))}
        assert len(events) == len({label for label, *_ in events}) > 0
        for line in above:
            ends = _END.findall(line)
            assert set(ends) <= events, (line, shown)
            found += bool(ends)
    assert found == len(labelled)
    assert bool(labelled) is any(finding.first for finding in report.answer.findings)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [*SAMPLES, *SHIPPED])
def test_every_execution_of_the_record_is_one_execution(name: str, engine: str) -> None:
    record = json.loads(json.dumps(told(name, engine).to_json()))
    findings = [*record["races"], *record["hazards"], *record["undefined"]]
    executions = [record["witness"], record["counter"], record["hanging"], *(one["witness"] for one in findings)]
    for execution in filter(None, executions):
        event = {one["label"]: one for one in execution["events"]}
        assert len(event) == len(execution["events"])
        for write, read in execution["edges"]["rf"]:
            assert event[write]["location"] == event[read]["location"]
            assert event[write]["value"] == event[read]["value"]
    for one in findings:
        assert one["first"] in one["witness"]["events"] and one["second"] in one["witness"]["events"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("question", ["exists (P1:f == 1 /\\ P1:r0 == 0)", "forall (P1:f == 0)"])
def test_a_finding_that_the_execution_shown_has_as_well_is_told_of_that_one(question: str, engine: str) -> None:
    report = memmodel.check(RACE.rpartition("exists")[0] + question + "\n", engine=engine)
    shown = report.answer.witness if question.startswith("exists") else report.answer.counter
    assert [one.witness == shown for one in report.answer.findings] == [True]
    assert "an execution with it" not in report.explain()


# ---- what each of them says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_computed_address_is_told_as_the_element_that_it_names(engine: str) -> None:
    report = told("computed", engine)
    assert report.answer.observation is Observation.ALWAYS
    assert any(re.match(r"b: R a\[4\] = 14 +from init a\[4\] +line 9", line) for line in lines("computed", engine))
    assert re.fullmatch(r"at the end: P0:r0 = 14; (a\[4\] = 14, index = 5|index = 5, a\[4\] = 14)",
                        lines("computed", engine)[-1])  # fmt: skip
    assert {"init a[4] = 14", "b: ld.global.u32 %r0, [%at-4]", "   R a[4] = 14"} <= set(picture(report))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_elements_of_a_vector_are_accesses_that_nothing_orders(engine: str) -> None:
    report = told("vector", engine)
    assert report.answer.observation is Observation.SOMETIMES
    execution = report.to_json()["witness"]
    assert execution["edges"]["po"] == []  # type: ignore[index]
    shown = lines("vector", engine)
    for wanted in (
        r"W.relaxed.gpu.v2 x = 1 ",
        r"W.relaxed.gpu.v2 x\[1\] = 2 ",
        r"R.relaxed.gpu.v2 x\[1\] = 0 +from init",
    ):
        assert any(re.search(wanted, line) for line in shown), wanted
    drawn = picture(report)
    assert "po" not in drawn
    assert {"   W x = 1", "   W x[1] = 2", "   R x = 1", "   R x[1] = 0"} <= set(drawn)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bad_address_ends_its_thread_and_is_told_with_its_place_and_rule(engine: str) -> None:
    report = told("bad", engine)
    assert report.holds is True
    (finding,) = report.answer.findings
    bad = f"address {finding.witness.registers['P0', 'at']:#x} is misaligned for its access"
    shown = lines("bad", engine)
    place = shown.index(f"undefined behaviour at b: st.global.u32: {bad} (P0, line 7)")
    assert shown[place + 1].startswith("rule: An address outside every object, misaligned for its access")
    assert shown[-1] == "at the end: x = 1", "registers that no question names are left out"
    (record,) = report.to_json()["undefined"]  # type: ignore[misc]
    assert (record["rule"], record["first"]["line"], record["first"]["location"]) == (bad, 7, None)
    drawn = " ".join(picture(report)).replace("   ", "")
    assert drawn.count(bad) == 2  # above the picture and in the box


@pytest.mark.parametrize("engine", ENGINES)
def test_a_race_is_told_with_its_own_execution_where_the_answer_is_another(engine: str) -> None:
    report = told("race", engine)
    assert report.answer.observation is Observation.SOMETIMES
    shown = lines("race", engine)
    ends = r"a: W x = 1 \(P0, line 5\) and d: R x = [01] \(P1, line 11\)"
    place = next(n for n, line in enumerate(shown) if re.fullmatch(f"data race between {ends}", line))
    assert shown[place + 1 : place + 5] == [
        "because b: W.relaxed.gpu flag = 1 (P0, line 6) is relaxed where a release is needed"
        " [relaxed or weak where acquire or release is needed]",
        "and c: R.relaxed.gpu flag = 1 (P1, line 9) is relaxed where an acquire is needed"
        " [relaxed or weak where acquire or release is needed]",
        "this happens in none of the executions that satisfy the condition",
        "an execution with it:",
    ]
    assert "P1:f = 0" in shown[-1]
    (record,) = report.to_json()["races"]  # type: ignore[misc]
    assert record["witness"]["registers"]["P1:f"] == 1
    assert any(re.fullmatch(f"Data race between {ends}\\.", line) for line in picture(report, "race"))
    assert "This execution satisfies the condition." in picture(report)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_deadlock_is_told_with_an_execution_that_shows_it(engine: str) -> None:
    report = told("hang", engine)
    assert report.answer.observation is Observation.VACUOUS
    waits = [
        "P0 waits for ever at <text>:7:5: bars phase 0: 0 of 1 arrivals",
        "P1 waits for ever at <text>:14:5: bars[1] phase 0: 0 of 1 arrivals",
    ]
    shown = lines("hang", engine)
    assert [line.removeprefix("hang: ") for line in shown if line.startswith("hang: ")] == waits
    start = shown.index("an execution with it:")
    block = shown[start:]
    assert any(re.fullmatch(r"P1  b: W x = 3 +line 11", line) for line in block)
    assert any(re.fullmatch(r"c: mbarrier.try_wait.parity.shared::cta.b64 bars\[1\] +line 13", line) for line in block)
    assert [line for line in block if "waits for ever" in line] == waits
    record = report.to_json()
    assert record["hang"] == waits
    assert record["witness"] is None and record["hanging"]["memory"] == {"x": "3"}  # type: ignore[index]
    drawn = picture(report)
    assert set(waits) <= set(drawn)
    assert "   bars[1]" in drawn and "   W x = 3" in drawn
    assert picture(report, "hang") == drawn


@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_mixed_size_race_only_the_race_is_told(engine: str) -> None:
    report = told("mixed", engine)
    assert report.answer.observation is Observation.UNDECIDED and report.holds is None
    shown = lines("mixed", engine)
    ends = r"a: W.relaxed.gpu w\+2..3 = (\d+) \(P0, line 4\) and \w: R.relaxed.gpu w\+2..3 = (\d+) \(P1, line 7\)"
    (place,) = (n for n, line in enumerate(shown) if re.fullmatch(f"mixed-size data race between {ends}", line))
    assert "belong to accesses that overlap only in part" in shown[place + 1]
    assert "an execution that shows it:" not in shown
    assert any(line.startswith("Mixed-size data race between a: W.relaxed.gpu w+2..3") for line in picture(report))

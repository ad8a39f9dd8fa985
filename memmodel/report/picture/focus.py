"""What a picture is about: the cycle, or the two accesses with the way between them and what is missing on it.

In: a report. Out: `Focus`: an execution with the events on that way alone, its edges, and what to mark. None where the
report cannot be explained; then the whole execution is drawn.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from memmodel.answer import HANG, Finding, ShownEvent, Witness
from memmodel.base.classes import dataclass, replace
from memmodel.report.expect import is_called
from memmodel.report.graph import BASIC, Edge, shown_edges
from memmodel.why.explanation import first_findings, shown_outcome, why_never
from memmodel.why.records import PathStep, Story
from memmodel.why.story import finding_story, outcome_story

if TYPE_CHECKING:
    from memmodel.report.report import Report

MISSING = "stopped: "
"""The name of an arrow that is not there begins so; what stops the order follows."""

MANY = 40
"""A hang of more events than this is folded to the last events of its threads."""


@dataclass(frozen=True, slots=True)
class Focus:
    """`witness`: the execution, less what is folded. `po`: program order to draw. `marked`: boxes in colour.

    `said`: sentences above the picture. `folded`: how many events are left out.
    """

    witness: Witness
    edges: tuple[Edge, ...]
    po: tuple[tuple[int, int], ...]
    marked: frozenset[int]
    said: tuple[str, ...]
    folded: int = 0


def focus_of(
    report: Report, finding: str | None, show: Collection[str] = (), hide: Collection[str] = ()
) -> Focus | None:
    """The focus of a report's picture, or of a finding of a kind. `show`, `hide`: relations to add and to leave out."""
    found = _of_hang(report, finding) or _of_story(report, finding) or (None if finding else _of_cycle(report))
    if found is None:
        return None
    known = {event.uid for event in found.witness.events}
    more = [edge for edge in shown_edges(found.witness) if edge.name in show and {edge.first, edge.second} <= known]
    edges = tuple(dict.fromkeys(edge for edge in (*found.edges, *more) if edge.name not in hide))
    return replace(found, edges=edges, po=() if "po" in hide else found.po)


def _of_story(report: Report, finding: str | None) -> Focus | None:
    subject = report.subject
    if subject is None:
        return None
    story: Story | None = None
    shown = shown_outcome(subject.lowered, report.answer)
    if finding is None and shown is not None and shown is report.execution:
        story = outcome_story(subject.model, shown)
    findings: list[Finding] = first_findings(report.answer, 1)
    if (story is None and report.execution is None) or finding is not None:
        wanted = next((one for one in findings if finding is None or is_called(one.flag, finding)), None)
        story = None if wanted is None else finding_story(subject.model, wanted, report.rule(wanted.flag))
    if story is None or story.first is None or story.second is None or not story.steps:
        return None
    uids = _uids(story.witness)
    reason = MISSING + story.obstacles[0].reason.value
    links = _links(story.steps, uids, reason)
    ends = {uids[one.label] for one in (story.first, story.second)}
    beside = {uids[place.label] for one in story.obstacles for place in one.events if place.label in uids}
    said = [f"Because of {one.reason.value}: {one.text}." for one in story.obstacles]
    return _focus(story.witness, links, frozenset(ends), said, beside)


def _of_cycle(report: Report) -> Focus | None:
    subject = report.subject
    if subject is None:
        return None
    found = why_never(subject.lowered, subject.model, report.answer, subject.options, first=True)
    if not found:
        return None
    one = found[0]
    links = _links(one.steps, _uids(one.witness), "")
    said = [f"An execution that {one.axiom} alone forbids.", one.rule]
    marked = frozenset(end for link in links[:1] for end in link[1:])
    return _focus(one.witness, links, marked, said, set())


def _of_hang(report: Report, finding: str | None) -> Focus | None:
    """The last events of the threads that wait, marked."""
    hang = report.answer.hang
    if (
        hang is None
        or finding not in (None, HANG)
        or (finding is None and report.execution not in (None, hang.witness))
    ):
        return None
    witness = hang.witness
    last: dict[str, int] = {event.thread: event.uid for event in witness.events if event.thread and not _async(event)}
    stuck = {uid for thread, uid in last.items() if any(text.startswith(f"{thread} waits") for text in witness.waits)}
    edges = shown_edges(witness)
    kept = {event.uid for event in witness.events}
    if len(kept) > MANY:
        kept = stuck | {end for edge in edges for end in (edge.first, edge.second) if {edge.first, edge.second} & stuck}
    links = [(edge.name, edge.first, edge.second) for edge in edges if {edge.first, edge.second} <= kept]
    links += [("po", a, b) for a, b in witness.edges.get("po", ()) if {a, b} <= kept]
    return _focus(witness, links, frozenset(stuck), list(witness.waits), kept)


def _async(event: ShownEvent) -> bool:
    return "ASYNC" in event.tags


Named = tuple[str, int, int]


def _uids(witness: Witness) -> dict[str, int]:
    return {event.label: event.uid for event in witness.events}


def _links(steps: tuple[PathStep, ...], uids: dict[str, int], reason: str) -> list[Named]:
    """The edges of a path between events that there are; across what is missing, one edge that says so."""
    found: list[Named] = []
    begun: int | None = None
    for step in steps:
        first, second = uids.get(step.first.label), uids.get(step.second.label)
        if first is not None and second is not None:
            found.append((step.relation if step.holds else reason, first, second))
            begun = None
        elif first is not None:
            begun = first
        elif second is not None and begun is not None:
            found.append((reason, begun, second))
            begun = None
    return found


def _focus(
    witness: Witness, links: list[Named], marked: frozenset[int], said: list[str], beside: Collection[int]
) -> Focus:
    """The execution folded to what the links relate, its communication among these, and their issues."""
    kept = {end for _, *ends in links for end in ends} | marked | set(beside)
    kept |= {a for a, b in witness.edges.get("iss", ()) if b in kept}
    kept |= {write for write, read in witness.edges.get("rf", ()) if read in marked}
    told = {(a, b) for _, a, b in links}
    edges = [Edge(name, a, b) for name, a, b in links if name != "po"]
    for edge in shown_edges(witness):
        both = edge.first in kept and edge.second in kept and (edge.first, edge.second) not in told
        if both and (edge.name in BASIC or edge.name == "iss"):
            edges.append(edge)
    events = tuple(event for event in witness.events if event.uid in kept)
    order = [event.uid for event in events if not _async(event) and event.thread is not None]
    before = set(witness.edges.get("po", ()))
    po = [(a, b) for a, b in before if a in order and b in order]
    near = [(a, b) for a, b in po if not any((a, c) in before and (c, b) in before for c in order)]
    return Focus(
        replace(witness, events=events),
        tuple(edges),
        tuple(sorted(near)),
        marked,
        tuple(filter(None, said)),
        len(witness.events) - len(events),
    )

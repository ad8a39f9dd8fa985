"""What a picture is about: the cycle, or the two accesses with the way between them and what is missing on it.

In: a report, perhaps with its explanation. Out: `Focus`: an execution with the events on that way alone, its edges, and
what to mark. None where the report cannot be explained; then the whole execution is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from memmodel.answer import HANG, Witness
from memmodel.errors import InputError, suggestion
from memmodel.report.because import story_of_outcome
from memmodel.report.execution import waiting
from memmodel.report.expect import FINDINGS, is_called
from memmodel.report.findings import sentence, word_of
from memmodel.report.graph import BASIC, Edge, shown_edges
from memmodel.report.picture.lanes import is_async, iterations
from memmodel.report.picture.phases import Phase, phases_of, places_line
from memmodel.report.picture.svg import STOPPED
from memmodel.why.explanation import first_findings, why_never
from memmodel.why.records import Explanation, PathStep, Reason, Story
from memmodel.why.story import finding_story
from memmodel.why.stuck import stuck

if TYPE_CHECKING:
    from memmodel.report.report import Report

MANY = 14
"""A hang of more events than this is folded to the waits and what was done towards them."""

BEFORE = 2
"""At most this many events of a thread are shown before the one that breaks a rule."""


Named = tuple[str, int, int]
"""A relation, and the events that it relates."""


@dataclass(frozen=True, slots=True)
class Focus:
    """`witness`: the execution, less what is folded. `po`: program order to draw. `marked`: the accesses it is about.

    `path`: the pairs of events that the story goes through; `stops`: the events where it stops. `sentences`: above the
    picture; `below`: under it. `folded`: how many events are left out. `more`: other arrows between the events, not
    drawn unless they are asked for. `rounds`: iterations of events in loops.
    """

    witness: Witness
    edges: tuple[Edge, ...]
    po: tuple[tuple[int, int], ...]
    marked: frozenset[int]
    path: frozenset[tuple[int, int]]
    stops: frozenset[int] = frozenset()
    sentences: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    folded: int = 0
    more: tuple[Edge, ...] = ()
    phases: tuple[Phase, ...] = ()
    rounds: Mapping[int, int] = field(default_factory=dict)


def focus_of(
    report: Report,
    finding: str | None,
    show: Collection[str] = (),
    hide: Collection[str] = (),
    explanation: Explanation | None = None,
) -> Focus | None:
    """The focus of a report's picture, or of a finding of a kind. `show`, `hide`: relations to add and to leave out.

    `explanation`: that of the report, if it is known; it saves work. Raises InputError for an unknown relation.
    """
    asked = finding or report.finding
    focus = _of_hang(report, asked) or (None if asked else _of_cycle(report, explanation)) or _of_story(report, asked)
    if focus is None:
        return None
    known_relations((*show, *hide), focus.witness, focus.edges)
    known = {event.uid for event in focus.witness.events}
    drawn = set(focus.edges)
    more = [edge for edge in shown_edges(focus.witness) if {edge.first, edge.second} <= known and edge not in drawn]
    edges = (*focus.edges, *(edge for edge in more if edge.name in show))
    return replace(
        focus,
        edges=tuple(dict.fromkeys(edge for edge in edges if edge.name not in hide)),
        more=tuple(edge for edge in more if edge.name not in show),
        po=() if "po" in hide else focus.po,
    )


def known_relations(names: Collection[str], witness: Witness, edges: Collection[Edge]) -> None:
    """Raises InputError for a name that neither the execution nor one of these edges has."""
    known = {*witness.edges, *(edge.name for edge in edges)}
    for name in names:
        if name not in known:
            hint = suggestion(name, known) or f"there are {', '.join(sorted(witness.edges))}"
            raise InputError(f"no relation `{name[:40]}` is known in this execution", hint=hint)


def _of_story(report: Report, finding: str | None) -> Focus | None:
    subject = report.subject
    if subject is None:
        return None
    stories = [story_of_outcome(report)] if finding is None else []
    for candidate in first_findings(report.answer):
        if not any(map(_drawable, stories)) and (finding is None or is_called(candidate.flag, finding)):
            stories.append(finding_story(subject.model, candidate, report.rule(candidate.flag)))
    story = next(filter(_drawable, stories), None)
    if story is None:
        return None
    uids = _uids(story.witness)
    sentences = [] if story.about == "outcome" else [f"{_headline(story)}."]
    sentences += [
        f"Because of {obstacle.reason.value}: {obstacle.text}."
        for obstacle in story.obstacles
        if obstacle.text != story.rule
    ]
    sentences += [f"Rule: {story.rule}"] if story.rule and not story.steps else []
    beside = {uids[place.label] for obstacle in story.obstacles for place in obstacle.events if place.label in uids}
    reason = STOPPED + story.obstacles[0].reason.value
    links = _links(story.steps, uids, reason)
    ends = {uids[at.label] for at in (story.first, story.second) if at is not None} or _closing(links)
    near = set() if story.steps else _before(story.witness, ends)
    orders = story.obstacles[0].reason not in (Reason.RULE, Reason.NOTHING_MISSING)
    if orders and story.first and story.second and all(name != reason for name, *_ in links):
        links.append((reason, uids[story.first.label], uids[story.second.label]))
    return replace(
        _focus(story.witness, links, frozenset(ends), sentences, beside | near), stops=frozenset(beside - ends)
    )


def _headline(story: Story) -> str:
    """What is found, and between which accesses."""
    ends = " and ".join(str(place) for place in (story.first, story.second) if place is not None)
    word = word_of(story.about)
    what = word[:1].upper() + word[1:]
    return f"{what} between {ends}" if story.second is not None else f"{what}: {ends}"


def _drawable(story: Story | None) -> bool:
    """True if a story names events or steps to draw."""
    return story is not None and (story.first is not None or bool(story.steps))


def _before(witness: Witness, ends: Collection[int]) -> set[int]:
    """The last events of the threads before these events."""
    issuer = {second: first for first, second in witness.edges.get("iss", ())}
    before: set[int] = set()
    for end in ends:
        earlier = [first for first, second in witness.edges.get("po", ()) if second == issuer.get(end, end)]
        before |= set(sorted(earlier)[-BEFORE:])
    return before


def _of_cycle(report: Report, explanation: Explanation | None) -> Focus | None:
    subject = report.subject
    if subject is None:
        return None
    if explanation is not None:
        contradictions = explanation.contradictions
    else:
        contradictions = why_never(subject.lowered, subject.model, report.answer, subject.options, first=True)
    if not contradictions:
        return None
    contradiction = contradictions[0]
    links = _links(contradiction.steps, _uids(contradiction.witness), "")
    sentences = [f"An execution that {contradiction.axiom} alone forbids.", contradiction.rule]
    for finding in first_findings(report.answer):
        word = next((word for word in FINDINGS if is_called(finding.flag, word)), "")
        drawn = f"; --finding {word} draws one." if word else "."
        sentences.append(f"Other executions have a finding: {sentence(finding, labelled=False)}{drawn}")
    return _focus(contradiction.witness, links, frozenset(_closing(links)), sentences, set())


def _closing(links: Sequence[Named]) -> set[int]:
    """The two accesses on which a cycle closes: the ends of its communication, else the ends of all of it."""
    closing = [{first, second} for name, first, second in links if name in BASIC]
    return closing[0] if closing else {links[0][1], links[-1][2]} if links else set()


def _of_hang(report: Report, finding: str | None) -> Focus | None:
    """The last events of the threads that wait, marked."""
    hang = report.answer.hang
    settles = finding is None and report.execution in (None, hang.witness if hang else None)
    if hang is None or not (settles or finding == HANG):
        return None
    witness = hang.witness
    last = {event.uid for event in waiting(witness)}
    edges = shown_edges(witness)
    kept = {event.uid for event in witness.events if event.thread is not None}
    if len(kept) > MANY:
        phases = [phase.events for phase in phases_of(witness) if not phase.over and phase.events & last]
        touched = [{edge.first, edge.second} for edge in edges if {edge.first, edge.second} & last]
        kept = last.union(*phases, *touched)
        kept |= {a for a, b in witness.edges.get("iss", ()) if b in kept}
    links = [(edge.name, edge.first, edge.second) for edge in edges if {edge.first, edge.second} <= kept]
    sentences = []
    for stopped in stuck(witness).waiting:
        text = re.sub(rf"{re.escape(report.path)}:(\d+):\d+", r"line \1", stopped.text) if report.path else stopped.text
        sentences.append(f"{text}; {stopped.reason.value}.")
        if stopped.goes_on and len(sentences) == 1:
            sentences.append(f"It would go on with {stopped.goes_on}.")
    focus = _focus(witness, links, frozenset(last), sentences, kept)
    return replace(focus, path=frozenset())


def _uids(witness: Witness) -> dict[str, int]:
    return {event.label: event.uid for event in witness.events}


def _links(steps: tuple[PathStep, ...], uids: dict[str, int], reason: str) -> list[Named]:
    """The edges of a path between events that there are; across what is missing, one edge that says so."""
    named: list[Named] = []
    begun: int | None = None
    for step in steps:
        first, second = uids.get(step.first.label), uids.get(step.second.label)
        if first is not None and second is not None:
            name = step.relation if step.holds else reason
            inverse = name.endswith("^-1")
            named.append((name.removesuffix("^-1"), *((second, first) if inverse else (first, second))))
            begun = None
        elif first is not None:
            begun = first
        elif second is not None and begun is not None:
            named.append((reason, begun, second))
            begun = None
    return named


def _focus(
    witness: Witness, links: list[Named], marked: frozenset[int], sentences: list[str], beside: Collection[int]
) -> Focus:
    """The execution folded to what the links relate, its communication among these, and their issues."""
    kept = {end for _, *ends in links for end in ends} | marked | set(beside)
    kept |= {write for write, read in witness.edges.get("rf", ()) if read in marked}
    kept |= {a for a, b in witness.edges.get("iss", ()) if b in kept}
    pairs = {(a, b) for _, a, b in links}
    edges = [Edge(name, a, b) for name, a, b in links if name != "po"]
    for edge in shown_edges(witness):
        both = edge.first in kept and edge.second in kept and (edge.first, edge.second) not in pairs
        if both and (edge.name in BASIC or edge.name == "iss"):
            edges.append(edge)
    events = tuple(event for event in witness.events if event.uid in kept)
    order = [event.uid for event in events if not is_async(event) and event.thread is not None]
    before = set(witness.edges.get("po", ()))
    po = [(a, b) for a, b in before if a in order and b in order]
    near = [(a, b) for a, b in po if not any((a, c) in before and (c, b) in before for c in order)]
    all_rounds = iterations(witness)
    return Focus(
        replace(witness, events=events),
        tuple(edges),
        tuple(sorted(near)),
        marked,
        frozenset(pairs),
        frozenset(),
        tuple(filter(None, sentences)),
        (places_line(witness, kept),),
        len(witness.events) - len(events),
        (),
        tuple(phase for phase in phases_of(witness) if phase.events & kept),
        {uid: number for uid, number in all_rounds.items() if uid in kept},
    )

"""Explanations as text.

In: the records of this room. Out: lines: the one or two of `check`, and all of `explain`.
"""

from __future__ import annotations

import textwrap

from memmodel.report.execution import Style, execution_lines, plain
from memmodel.why.records import (
    At,
    Contradiction,
    Dependence,
    Explanation,
    HangExplanation,
    Obstacle,
    PathStep,
    Reason,
    Story,
)
from memmodel.why.unfold import UNORDERED

WIDTH = 118
WORDS = {
    "po": "program order",
    "rf": "{0} is read by {1}",
    "fr": "{0} reads what {1} overwrites",
    "co": "{0} comes before {1} in coherence order",
    UNORDERED: "{1} does not come before {0} in coherence order",
    "rf^-1": "{0} reads from {1}",
    "iss": "{0} issues {1}",
    "iss^-1": "{1} issues {0}",
    "compl": "{1} tells of the end of {0}",
    "complwg": "{1} waits for the end of {0}",
    "mbarobs": "{1} sees the phase of {0} over",
    "mbarseen": "{1} sees the phase of {0} over",
    "mbarended": "{1} is about the phase in which {0} ended",
    "syncbar": "{0} and {1} meet at a barrier",
    "sync_fence": "{0} comes before {1} in Fence-SC order",
    "sr": "{0} and {1} are morally strong",
    "any": "{0} is there before {1}, whatever the threads do",
}
"""Base relations in words, with their two events."""

WOULD = {
    "sync_fence": "would come first in Fence-SC order",
    "sr": "{0} and {1} would be morally strong",
    "rf": "{0} would have to be read by {1}, both strong",
    "mbarobs": "{1} would see the phase of {0} over",
    "compl": "would tell of its end",
    "co": "{0} would come before {1} in coherence order",
}
"""The same of edges that are not there yet."""

MISSED = "{0} asks for what no execution with this outcome has"
"""What a negated axiom forbids."""

BESIDE = "beside it, in executions with other outcomes:"
"""Above the findings of a test whose outcome is forbidden: no execution has both."""

ITSELF = "is related to itself by"


def brief_story(story: Story, style: Style = plain) -> list[str]:
    """`because …`: the first things that are missing, a line each."""
    lines = []
    for number, obstacle in enumerate(story.obstacles[:2]):
        head = "because " if number == 0 else "and "
        lines.append(f"{head}{obstacle.text} [{style(obstacle.reason.value, 'name')}]")
    if len(story.obstacles) > 2:
        lines[-1] += f", and {len(story.obstacles) - 2} more"
    return lines


CLOSING = {
    "fr": "yet the read returns what that write overwrites",
    "co": "yet coherence order has them the other way round",
    UNORDERED: "yet coherence order does not have them so",
    "rf": "yet the first reads from the second",
    "rf^-1": "yet the first reads from the second",
}
"""What closes a cycle on two accesses, of which the first comes before the second."""


def brief_contradiction(contradiction: Contradiction) -> list[str]:
    """`because …`: the two accesses that a cycle closes on, the way between them, and what closes it; or the path that
    is forbidden."""
    steps = contradiction.steps
    if not steps:
        return _wrapped("because ", MISSED.format(contradiction.axiom))
    closing = [number for number, step in enumerate(steps) if step.relation in CLOSING]
    closes = steps[0].first == steps[-1].second
    if len(closing) != 1 or len(steps) < 2 or not closes:
        links = "; ".join(_words(step, _bare(step.first), _bare(step.second)) for step in steps)
        return _wrapped("because of a cycle: " if closes and len(steps) > 1 else "because ", links)
    way = (*steps[closing[0] + 1 :], *steps[: closing[0]])
    links = "; ".join(_words(step, _bare(step.first), _bare(step.second)) for step in way if step.relation != "po")
    head = f"because {_bare(way[0].first)} comes before {_bare(way[-1].second)}"
    ending = f"; {CLOSING[steps[closing[0]].relation]}"
    return _wrapped(head, (f": {links}" if links else " in program order") + ending)


def _bare(place: At) -> str:
    return f"{place.text} ({place.where})" if place.where else place.text


def _words(step: PathStep, first: str, second: str) -> str:
    """A step in a few words; program order with its events where it is not a part."""
    if step.relation == "po":
        return f"{first} comes before {second} in program order"
    if step.parts:
        parts = (
            WORDS["po"] if part.relation == "po" else _words(part, _bare(part.first), _bare(part.second))
            for part in step.parts
        )
        return ", ".join(parts)
    if step.first == step.second:
        return f"{first} {ITSELF} {step.relation}"
    return WORDS.get(step.relation, f"{{0}} {step.relation} {{1}}").format(first, second)


def lines_of(explanation: Explanation, style: Style = plain) -> list[str]:
    """The whole explanation."""
    title, observation = style(explanation.test, "title"), style(explanation.observation, "name")
    lines = [f"{title} under {explanation.model}: {explanation.question}: {observation}"]
    if explanation.contradictions:
        names = ", ".join(style(contradiction.axiom, "name") for contradiction in explanation.contradictions)
        needed = (
            "all of them are needed" if len(explanation.contradictions) > 1 else "without it the outcome could be seen"
        )
        lines.append(f"  forbidden by {names}; {needed}")
    for contradiction in explanation.contradictions:
        lines += _contradiction(contradiction, style)
    if explanation.never:
        lines += _note(explanation)
        lines += [f"  {BESIDE}"] if explanation.stories else []
    for number, story in enumerate(explanation.stories):
        lines += _story(story, explanation.stories[:number], style)
        if all(later.witness != story.witness for later in explanation.stories[number + 1 :]):
            lines.append("    the execution:")
            lines += [f"      {line}" for line in execution_lines(story.witness, style)]
    if explanation.stuck is not None:
        lines += _stuck(explanation.stuck, style)
    for dependence in explanation.depends:
        lines += _dependence(dependence, style)
    if not explanation.never:
        lines += _note(explanation)
    if len(lines) == 1:
        lines.append("  nothing to explain: nothing is found, and no outcome is forbidden or asked for")
    return lines


def _note(explanation: Explanation) -> list[str]:
    return [f"  {line}" for line in explanation.note.splitlines()]


def _story(story: Story, before: tuple[Story, ...], style: Style) -> list[str]:
    what = "the outcome can be seen" if story.about == "outcome" else story.about.replace("-", " ")
    lines = [f"  {style(what, 'warning')}"]
    if story.first is not None and story.second not in (None, story.first):
        lines[0] += ": between" if story.about != "outcome" else ": nothing orders"
        lines += [f"    {story.first}", f"    {story.second}"]
    elif story.first is not None:
        lines[0] += f": {story.first}"
    if story.rule and story.obstacles[0].text != story.rule:
        lines += _wrapped("    rule: ", story.rule)
    if any(earlier.obstacles == story.obstacles and earlier.witness == story.witness for earlier in before):
        return [*lines, "    for the same reason"]
    lines += _obstacles(story.obstacles, style)
    if story.steps:
        lines.append("    how far the order gets:")
        lines += _steps(story.steps, style)
        if story.about == "outcome":
            lines.append(f"    with what is missing, {story.axiom} forbids this execution")
    return lines


def _obstacles(obstacles: tuple[Obstacle, ...], style: Style) -> list[str]:
    lines = []
    for obstacle in obstacles:
        if obstacle.reason is Reason.NOTHING_MISSING:
            lines += _wrapped("    ", obstacle.text)
            continue
        lines += _wrapped(f"    because {style(obstacle.reason.value, 'bad')}: ", obstacle.text)
        if obstacle.repair:
            lines += _wrapped(f"      {obstacle.would_do}: ", obstacle.repair)
    return lines


def _steps(steps: tuple[PathStep, ...], style: Style) -> list[str]:
    lines: list[str] = []
    last: At | None = None
    for step in steps:
        if step.first != last:
            lines.append(f"      {_place(step.first, style)}")
        if not (step.first.missing or step.second.missing) or step.relation != "po":
            mark = "|" if step.holds else style("x", "bad")
            lines.append(f"        {mark} {_link(step)}")
        if step.first != step.second or step.parts:
            lines.append(f"      {_place(step.second, style)}")
        last = step.second
    return lines


def _place(place: At, style: Style) -> str:
    return style(f"+ missing: {place.text}", "bad") if place.missing else str(place)


def _link(step: PathStep) -> str:
    """A step between two lines that show its ends."""
    first, second = step.first.label or "it", step.second.label or "it"
    if not step.holds and step.relation in WOULD:
        return WOULD[step.relation].format(first, second)
    if not step.holds and not step.clause and "sync" in step.relation:
        return "would synchronize with"
    if not step.holds:
        return f"would be related by {step.relation}" + (f' ("{step.clause}")' if step.clause else "")
    if step.parts:
        clause = f', "{step.clause}"' if step.clause else ""
        parts = ", ".join(_link(part) for part in step.parts)
        head = f"synchronizes ({step.relation}{clause})" if "sync" in step.relation else step.relation
        return f"{head}: {parts}"
    if step.first == step.second:
        return f"{first} {ITSELF} {step.relation}"
    return WORDS.get(step.relation, step.relation).format(first, second)


def _contradiction(contradiction: Contradiction, style: Style) -> list[str]:
    lines = [f"  {style(contradiction.axiom, 'name')}: in an execution that only this axiom forbids"]
    if contradiction.rule:
        lines += _wrapped("    ", contradiction.rule)
    if not contradiction.steps:
        return [*lines, *_wrapped("    ", MISSED.format(contradiction.axiom))]
    lines += _steps(contradiction.steps, style)
    rests = "; ".join(f"{place.text} ({place.where})" for place in contradiction.rests_on)
    lines += _wrapped("    it rests on ", rests)
    return lines


def _stuck(hang: HangExplanation, style: Style) -> list[str]:
    lines = [f"  {style('hang', 'warning')}"]
    for waiting in hang.waiting:
        lines.append(f"    {waiting.text}")
        lines.append(f"      because {style(waiting.reason.value, 'bad')}")
        if waiting.goes_on:
            lines += _wrapped("      would go on with ", waiting.goes_on)
    lines.append("    the execution so far:")
    lines += [f"      {line}" for line in execution_lines(hang.witness, style) if line not in hang.witness.waits]
    return lines


def _dependence(dependence: Dependence, style: Style) -> list[str]:
    lines = [f"  it depends on {style(dependence.decision, 'name')}: {dependence.question}"]
    lines += _wrapped("    default: ", dependence.default)
    lines += _wrapped(f"    {dependence.decision}: ", dependence.other)
    lines.append(f"    the outcome can be seen under {dependence.allowed_by}")
    lines += _wrapped("    left open by ", dependence.source)
    if dependence.obstacles:
        lines.append("    it would not matter with")
        for obstacle in dependence.obstacles:
            lines += _wrapped("      ", obstacle.repair or obstacle.text)
    return lines


def _wrapped(head: str, text: str) -> list[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    return textwrap.wrap(head + text, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [head]

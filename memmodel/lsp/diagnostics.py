"""What is wrong with a document: errors and warnings from its text, at once, and what a check finds, later.

In: Document. Out: diagnostics as the protocol has them. Settled here: a finding that the file expects is information.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memmodel import api
from memmodel.answer import HANG, Budget, Finding, Observation, ShownEvent
from memmodel.engine import Options
from memmodel.errors import InputError, TooLarge
from memmodel.lint.warnings import doubts
from memmodel.litmus.text.places import passage_of, questions_of
from memmodel.lsp.cat_files import model_of
from memmodel.lsp.document import Document, Json
from memmodel.program.lowered import LoweredTest
from memmodel.recovery.every_error import MOST_ERRORS, without
from memmodel.report.because import first_contradiction, says, stories_of_findings, story_of_outcome
from memmodel.report.expect import FINDINGS, is_called
from memmodel.report.findings import sentence
from memmodel.report.report import Report, Status
from memmodel.report.why_text import brief_contradiction
from memmodel.source import Source, Span
from memmodel.why.records import At, Story
from memmodel.why.stuck import stuck

ERROR, WARNING, INFORMATION = 1, 2, 3

MOST_FINDINGS = 20
MOST_SHOWN = 4000
"""Characters of one message."""

_MEANT = re.compile(r"did you mean [`'\"]?([\w.:%$-]+?)[`'\"]?\?")
_PLACE = re.compile(r":(\d+):(\d+): warning: (.*)", re.DOTALL)


# ---- by the text alone -------------------------------------------------------------------------------------------


def of_text(document: Document) -> list[Json]:
    """Errors and warnings of the text itself."""
    try:
        match document.kind:
            case "litmus":
                return _litmus(document)
            case "cat":
                return _cat(document)
            case _:
                return _ptx(document)
    except (RecursionError, MemoryError):
        return [made(document, None, ERROR, "this text is nested too deeply, or too large, to be read", "limit")]


def _litmus(document: Document) -> list[Json]:
    diagnostics: list[Json] = []
    if not _readable(document, diagnostics):
        return diagnostics
    try:
        steps = api.read_test(document.source)
    except InputError as error:
        return [{**shown, **_suggestion(document.source, error, each)} for each, shown in _all(document, error)]
    return list(_warnings(document, steps))


def _all(document: Document, error: InputError) -> list[tuple[InputError, Json]]:
    """Each error of a text, with its diagnostic."""
    errors = (error, *error.more)
    shown = [(each, of_error(document, each)) for each in errors]
    if error.cut:
        shown.append((error, made(document, None, WARNING, f"only the first {len(errors)} errors are shown", "limit")))
    return shown


def _suggestion(source: Source, first: InputError, error: InputError) -> Json:
    """The word that an error suggests, where the error is gone with it: the first one has the others."""
    meant, span = _MEANT.search(error.hint or ""), error.span
    if meant is None or span is None or span.source.text != source.text:
        return {}
    for other in (first, *first.more):
        passage = passage_of(source, other.span) if other.span is not None and other.span != span else None
        if passage is not None and not passage.span.start <= span.start < passage.span.end:
            source = without(source, passage)
    word = meant[1] if span.text.startswith(".") else meant[1].removeprefix(".")
    try:
        api.lowered(Source(source.name, source.text[: span.start] + word + source.text[span.end :]))
    except InputError as other:
        if other.span is None or other.span.start < span.start + len(word):
            return {}
    return {"data": {"write": word}}


def _readable(document: Document, diagnostics: list[Json]) -> bool:
    try:
        return bool(document.source)
    except InputError as error:
        diagnostics.append(of_error(document, error))
        return False


def _warnings(document: Document, steps: LoweredTest) -> Iterator[Json]:
    for warned in doubts(steps):
        yield made(document, warned.span, WARNING, _with_hint(warned.message, warned.hint), "doubtful")
    for text in steps.test.warnings:
        place = _PLACE.search(text.removeprefix(steps.test.source.name))
        if place is not None:
            start = document.offset(int(place[1]) - 1, 0) + int(place[2]) - 1
            word = re.compile(r"[\w%$:@.]+").match(document.source.text, start)
            span = document.source.span(start, word.end() if word else start + 1)
            yield made(document, span, WARNING, place[3], "doubtful")


def _cat(document: Document) -> list[Json]:
    try:
        model = model_of(document)
    except InputError as error:
        return [shown for _, shown in _all(document, error)]
    return [
        made(document, notice.span, WARNING, _with_hint(notice.message, notice.hint), "name")
        for notice in model.notices
        if notice.span is None or notice.span.source.text == document.source.text
    ]


def _ptx(document: Document) -> list[Json]:
    from memmodel.isa.lowered import lowered
    from memmodel.isa.place import CTAS
    from memmodel.ptx.module.reader import parse_module

    try:
        module = parse_module(document.source)
    except InputError as error:
        return [shown for _, shown in _all(document, error)]
    instructions = (instruction for function in module.functions.values() for instruction in function.body or ())
    refusals = {instruction.span.start: lowered(instruction, CTAS).refusal for instruction in instructions}
    return [
        made(document, refusal.span, WARNING, _with_hint(refusal.message, refusal.hint), "unknown")
        for _, refusal in sorted(refusals.items(), key=lambda entry: entry[0])
        if refusal is not None
    ][:MOST_ERRORS]


def of_error(document: Document, error: InputError) -> Json:
    """An error at its place; one in another file at the beginning, with that place as related information."""
    span = error.span
    code = "limit" if isinstance(error, TooLarge) else "error"
    message = _with_hint(error.message, error.hint)
    if span is None or document.name == span.source.name or document.source.text == span.source.text:
        return made(document, span, ERROR, message, code)
    elsewhere = document.other(span.source)
    related: list[Json] = [{"location": {"uri": elsewhere.uri, "range": elsewhere.at(span)}, "message": error.message}]
    return made(document, None, ERROR, f"{span}: {message}", code, related)


def _with_hint(message: str, hint: str | None) -> str:
    return f"{message}\nhint: {hint}" if hint else message


def made(
    document: Document,
    span: Span | None,
    severity: int,
    message: str,
    code: str,
    related: list[Json] | None = None,
) -> Json:
    """A diagnostic as JSON of the protocol."""
    diagnostic: Json = {
        "range": document.at(span),
        "severity": severity,
        "code": code,
        "source": "memmodel",
        "message": message[:MOST_SHOWN],
    }
    if related:
        diagnostic["relatedInformation"] = related
    return diagnostic


# ---- by a check --------------------------------------------------------------------------------------------------


def of_check(document: Document, model: str, effort: int, seconds: float, memory: int) -> list[Json]:
    """What a check of the test finds. Nothing for a text with errors: `of_text` has them."""
    try:
        steps = api.lowered(document.source)
        loaded = api.load(model)
    except (InputError, RecursionError, MemoryError):
        return []
    options = Options(budget=Budget(effort, seconds, memory))
    places = questions_of(document.source)
    diagnostics: dict[str, Json] = {}
    for number, asked in enumerate(api.questions(steps)):
        span = places[number] if number < len(places) else None
        try:
            report = api.report_on(asked, loaded, options)
        except InputError as error:
            diagnostics.setdefault(str(error), of_error(document, error))
            continue
        for diagnostic in (_verdict(document, report, span), *_findings(document, report)):
            diagnostics.setdefault(str(diagnostic), diagnostic)
    return list(diagnostics.values())


def _verdict(document: Document, report: Report, span: Span | None) -> Json:
    """What happens to the question, at the question."""
    answer = report.answer
    lines = [f"{report.question}: {answer.observation.value} under {report.model}"]
    related: list[Json] = []
    if report.status is Status.DIFFERS:
        lines[0] += f", and the file expects {report.expected}"
    if answer.observation is Observation.UNDECIDED:
        lines.append(answer.reason)
    story, cycle = story_of_outcome(report), first_contradiction(report)
    if story is not None and says(story):
        lines += _because(story)
        related = _related(document, story, None)
    elif cycle is not None:
        lines += [f"forbidden by {', '.join(answer.axioms)}", *brief_contradiction(cycle)]
        related = [_place(document, at) for at in cycle.rests_on if at.span is not None]
    elif answer.axioms:
        lines.append(f"forbidden by {', '.join(answer.axioms)}")
    if answer.unsearched and answer.unsearched != answer.reason:
        lines.append(f"there may be other findings: {answer.unsearched}")
    severity = ERROR if report.status is Status.DIFFERS else INFORMATION
    return made(document, span, severity, "\n".join(filter(None, lines)), answer.observation.value, related)


def _findings(document: Document, report: Report) -> Iterator[Json]:
    stories = stories_of_findings(report)
    words = (report.expected or "").split("+")
    for finding in report.answer.findings[:MOST_FINDINGS]:
        expected = report.finding is not None or any(
            is_called(finding.flag, word) for word in words if word in FINDINGS
        )
        severity = INFORMATION if expected else WARNING
        if finding.flag == HANG:
            yield from _hang(document, finding, severity)
            continue
        story = stories.get(id(finding))
        lines = [sentence(finding), report.rule(finding.flag) or finding.rule]
        lines += _because(story) if story is not None and says(story) else ()
        where = next(
            (event.span for event in (finding.second, finding.first) if event is not None and event.span), None
        )
        related = _related(document, story, finding)
        yield made(document, where, severity, "\n".join(filter(None, lines)), finding.flag, related)


def _hang(document: Document, finding: Finding, severity: int) -> Iterator[Json]:
    for waiting in stuck(finding.witness).waiting:
        lines = [waiting.text, f"because {waiting.reason.value}"]
        if waiting.goes_on:
            lines.append(f"would go on with {waiting.goes_on}")
        yield made(document, waiting.span, severity, "\n".join(lines), HANG)


def _because(story: Story) -> list[str]:
    lines = []
    for obstacle in story.obstacles:
        lines.append(f"because {obstacle.reason.value}: {obstacle.text}")
        lines += [f"{obstacle.would_do}: {obstacle.repair}"] if obstacle.repair else []
    return lines


def _related(document: Document, story: Story | None, finding: Finding | None) -> list[Json]:
    """The two accesses, and where something is missing."""
    related: list[Json] = []
    for event in (finding.first, finding.second) if finding is not None else ():
        if event is not None and event.span is not None:
            related.append(_place(document, event))
    if story is not None:
        places = [] if finding is not None else [story.first, story.second]
        for at in (*places, *(at for obstacle in story.obstacles for at in obstacle.events)):
            if at is not None and at.span is not None:
                related.append(_place(document, at))
    unique = {str(place): place for place in related}
    return list(unique.values())


def _place(document: Document, at: At | ShownEvent) -> Json:
    return {"location": {"uri": document.uri, "range": document.at(at.span)}, "message": f"{at.label}: {at.text}"}

"""What the commands that list many things print: suites, models, names.

In: plans and tables. Out: lines, files and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter

from memmodel import api
from memmodel.batch import Entry, Outcome, Running, Settings, Worklist, summary
from memmodel.cat.decisions import decisions
from memmodel.cli.exits import Exit, complain, say, worst
from memmodel.cli.results import Results
from memmodel.cli.tables import TextTable
from memmodel.cli.terminal import style_for, ticker
from memmodel.errors import InputError, TooLarge, nearest
from memmodel.report.record import Record, failure

_CODES = {
    Outcome.AS_EXPECTED: Exit.AS_EXPECTED,
    Outcome.NO_EXPECTATION: Exit.AS_EXPECTED,
    Outcome.DIFFERS: Exit.DIFFERS,
    Outcome.KNOWN: Exit.AS_EXPECTED,
    Outcome.BAD: Exit.BAD_INPUT,
    Outcome.UNDECIDED: Exit.UNDECIDED,
    Outcome.INTERNAL: Exit.INTERNAL,
}

_QUIET = (Outcome.AS_EXPECTED, Outcome.NO_EXPECTATION)


def code(entry: Entry) -> Exit:
    """The exit code that one entry asks for."""
    return _CODES[entry.outcome]


def entry_record(entry: Entry) -> Record:
    """The JSON object of one entry."""
    if entry.report is not None:
        return entry.report.to_json()
    kind = {Outcome.INTERNAL: "internal", Outcome.UNDECIDED: "limit"}.get(entry.outcome, "input")
    return failure(entry.path, entry.model, kind, entry.message, entry.span)


def run_suite(
    plan: Worklist,
    settings: Settings,
    jobs: int,
    *,
    json_out: str | None,
    junit_out: str | None,
    verbose: bool,
    no_expect: bool = False,
) -> Exit:
    """Run a plan; print a line for every surprise and the summary last; keep the files asked for as it goes.

    A signal ends the run; what is done by then is in the files and in the summary.
    """
    out = sys.stderr if "-" in (json_out, junit_out) else sys.stdout
    style = style_for(out)
    started = perf_counter()
    entries: list[Entry] = []
    stopped: KeyboardInterrupt | None = None
    with Results(json_out, junit_out) as results, ticker(len(plan.jobs)) as tick:

        def take(group: Sequence[Entry]) -> None:
            for entry in group:
                entries.append(entry)
                results.record(entry_record(entry))
                results.case(entry)
                if verbose or entry.outcome not in _QUIET:
                    tick.hide()
                    say(entry_line(entry, style), out)
            tick.done(group[0].path)

        running = Running(plan, settings, jobs)
        try:
            for group in running.groups():
                take(group)
        except KeyboardInterrupt as signal:
            stopped = signal
            for group in running.done():
                take(group)
    for line in results.complaints():
        complain(line)
    if stopped is None:
        _known(settings.against, entries, no_expect)
    seconds = perf_counter() - started
    done, planned = len({entry.path for entry in entries}), len(plan.jobs) + len(plan.missing)
    head = "" if stopped is None else f"stopped after {done} of {planned}: "
    say(head + summary(entries, len(plan.unlisted), seconds), out)
    if stopped is not None:
        raise stopped
    return worst([*map(code, entries), *(Exit.BAD_INPUT for _ in results.complaints())])


def _known(against: str | None, entries: Sequence[Entry], no_expect: bool) -> None:
    """Raise InputError if no test says what to expect: such a run could not fail."""
    if any(entry.outcome is not Outcome.NO_EXPECTATION for entry in entries):
        return
    if against is None:
        if no_expect or not entries:
            return
        hint = "write `Expect=ptx-9.3:never` into the tests, or pass --no-expect to see the verdicts with --verbose"
        raise InputError("no test says what is expected of it, so nothing was checked", hint=hint)
    from memmodel.cat import shipped_models

    near = nearest(against, shipped_models())
    raise InputError(
        f"--against {against[:80]}: no test says what it expects of this model",
        hint=f"did you mean {near}?" if near and near != against else None,
    )


def run_readings(files: Sequence[str], settings: Settings, ask: tuple[str, ...] = (), *, json_out: str | None) -> Exit:
    """Ask every reading about each file; print what its condition depends on, and write the JSON asked for."""
    codes: list[Exit] = []
    with Results(json_out) as results, ticker(len(files) * len(api.reading_models())) as tick:
        for path in files:
            try:
                asked = api.readings_all(
                    path,
                    ask=ask,
                    engine=settings.engine,
                    budget=settings.budget,
                    bound=settings.bound,
                    progress=tick.done,
                )
            except InputError as error:
                limit = isinstance(error, TooLarge)
                tick.hide()
                complain(error.render())
                results.record(failure(path, None, "limit" if limit else "input", error.render(), error.span))
                codes.append(Exit.UNDECIDED if limit else Exit.BAD_INPUT)
                continue
            for found in asked:
                results.record(found.to_json())
                codes.append(Exit.UNDECIDED if found.undecided else Exit.AS_EXPECTED)
                if json_out != "-":
                    tick.hide()
                    say(found.explain(style_for(sys.stdout)))
    return finished(results, codes)


def finished(results: Results, codes: Sequence[Exit]) -> Exit:
    """The code of a run, once it is said what its files lack."""
    missing = results.complaints()
    for line in missing:
        complain(line)
    return worst([*codes, *(Exit.BAD_INPUT for _ in missing)])


def entry_line(entry: Entry, style: Callable[[str, str], str]) -> str:
    """One entry as a line; an error keeps the lines of its message."""
    role = {
        Outcome.AS_EXPECTED: "good",
        Outcome.NO_EXPECTATION: "name",
        Outcome.UNDECIDED: "undecided",
        Outcome.KNOWN: "undecided",
    }
    word = style(f"{entry.outcome.value:<15}", role.get(entry.outcome, "bad"))
    report = entry.report
    if report is None:
        return f"{word} {entry.message}"
    line = f"{word} {entry.path} under {report.model}: {report.answer.observation.value}"
    if report.ok is False:
        line += f", expected {report.expected}"
    if entry.outcome is Outcome.KNOWN:
        line += f" ({entry.message.removeprefix('known difference: ')})"
    return f"{line} ({report.answer.reason})" if report.answer.reason else line


def base_names() -> list[TextTable]:
    """The base sets and the base relations."""
    from memmodel.cat import BASE_NAMES

    found: dict[str, list[tuple[str, str, str]]] = {}
    for entry in BASE_NAMES:
        found.setdefault(entry.kind.value, []).append(
            (entry.name, entry.kind.value, f"{entry.meaning} [{entry.source}]")
        )
    return [TextTable(f"Base {kind}s", ("name", "kind", "meaning"), rows) for kind, rows in found.items()]


def model_names(name: str) -> list[TextTable]:
    """A model's definitions and checks, and for the default model what it decides."""
    model = api.load(name)
    rows = [(entry.name, entry.kind.value, _first_line(entry.doc)) for entry in model.definitions]
    rows += [(check.name, "flag" if check.flag else "axiom", _first_line(check.doc)) for check in model.checks]
    tables = [TextTable(f"{model.name}: {model.title}", ("name", "kind", "meaning"), rows)]
    if model.name != api.DEFAULT_MODEL:
        return tables
    sides: list[tuple[str, str, str]] = []
    for one in decisions():
        sides.append((f"{one.number} {one.default.name}", "default", f"{one.question} {one.default.answer}"))
        sides += [(f"{one.number} {side.name}", "reading", side.answer) for side in one.readings]
    return [*tables, TextTable("What the documents leave open", ("decision", "side", "answer"), sides)]


def shipped() -> TextTable:
    """The shipped models with their titles, and the readings with the question that each answers differently."""
    from memmodel.cat import load_model, shipped_models

    rows = [(name, "model", load_model(name).title) for name in shipped_models()]
    for one in decisions():
        rows += [(side.model or "", "reading", f"{one.question} {side.answer}") for side in one.readings]
    return TextTable("", ("name", "kind", "what it says"), rows)


def _first_line(doc: str) -> str:
    return " ".join(doc.split())[:160]

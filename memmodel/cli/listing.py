"""What the commands that list many things print: suites, models, names.

In: plans and tables. Out: lines, files and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from memmodel import api
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.batch import Entry, Outcome, Settings, Worklist, trouble, workers
from memmodel.cli.exits import Exit, complain, not_kept, say
from memmodel.cli.results import Results
from memmodel.cli.tables import TextTable, is_ruled, show
from memmodel.cli.terminal import style_for, ticker
from memmodel.errors import InputError, TooLarge, nearest
from memmodel.isa.lower import refuse_beyond
from memmodel.library import SuiteResult, models
from memmodel.ptx.targets import PtxLevel
from memmodel.report.report import Report

_QUIET = (Outcome.AS_EXPECTED, Outcome.NO_EXPECTATION)


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
    """Run a plan; print a line for every surprise and the summary last; write the files asked for as it goes.

    On a terminal the lines are one table, printed at the end. A signal ends the run; what is done by then is in the
    table, the files and the summary.
    """
    out = sys.stderr if "-" in (json_out, junit_out) else sys.stdout
    style, ruled = style_for(out), is_ruled(out)
    trouble(settings)  # a file that cannot be used is one error, before anything runs
    started = perf_counter()
    entries: list[Entry] = []
    with Results(json_out, junit_out) as results, ticker(len(plan.jobs)) as tick:

        def take(group: Sequence[Entry]) -> None:
            for entry in group:
                entries.append(entry)
                results.entry(entry)
                if not ruled and (verbose or entry.outcome not in _QUIET):
                    tick.hide()
                    say(entry_line(entry, style), out)
            tick.done(group[0].path)

        for entry in plan.missing:
            take([entry])
        stopped = workers(plan, settings, jobs).each(take)
    listed = [entry for entry in entries if verbose or entry.outcome not in _QUIET]
    if ruled and listed:
        show([entry_table(listed)], out)
    result = SuiteResult(tuple(entries), plan.unlisted, perf_counter() - started, no_expect)
    code = results.exit_code([result.exit_code])
    if stopped is not None:
        done, planned = len({entry.path for entry in entries}), len(plan.jobs) + len(plan.missing)
        say(f"stopped after {done} of {planned}: {result.summary}", out)
        if settings.resume is not None:
            say(f"the same command goes on from {settings.resume}", out)
        raise stopped
    _refuse_empty_expectations(settings.against, result)
    say(result.summary, out)
    not_kept(trouble(settings))
    return code


def _refuse_empty_expectations(against: str | None, result: SuiteResult) -> None:
    """Raise InputError if no test says what to expect: such a run could not fail."""
    if any(entry.outcome is not Outcome.NO_EXPECTATION for entry in result):
        return
    if against is None:
        if not result.expected_nothing or result.no_expect:
            return
        expecting = f"write `Expect={DEFAULT_MODEL}:never` into the tests"
        hint = f"{expecting}, or pass --no-expect to see the verdicts with --verbose"
        raise InputError("no test says what is expected of it, so nothing was checked", hint=hint)
    from memmodel.cat import shipped_models

    near = nearest(against, shipped_models())
    raise InputError(
        f"--against {against[:80]}: no test says what it expects of this model",
        hint=f"did you mean {near}?" if near and near != against else None,
    )


def run_readings(
    files: Sequence[str],
    settings: Settings,
    ask: tuple[str, ...] = (),
    *,
    json_out: str | None,
) -> Exit:
    """Ask every reading about each file; print what its condition depends on, and write the JSON asked for."""
    codes: list[Exit] = []
    with Results(json_out) as results, ticker(len(files) * len(api.reading_models())) as tick:
        for path in files:
            try:
                if settings.level != PtxLevel():
                    refuse_beyond(api.lowered(path).test, settings.level)
                asked = api.readings_all(
                    path,
                    ask=ask,
                    engine=settings.engine,
                    budget=settings.budget,
                    bound=settings.bound,
                    progress=tick.done,
                )
            except InputError as error:
                tick.hide()
                complain(error.render())
                results.record(partial(_error_record, path, error))
                codes.append(Exit.UNDECIDED if isinstance(error, TooLarge) else Exit.BAD_INPUT)
                continue
            for report in asked:
                results.record(report.to_json)
                codes.append(Exit.UNDECIDED if report.undecided else Exit.AS_EXPECTED)
                if json_out != "-":
                    tick.hide()
                    say(report.explain(style_for(sys.stdout)))
    return results.exit_code(codes)


def _error_record(path: str, error: InputError) -> dict[str, object]:
    from memmodel.report.record import failure

    return failure(path, None, "limit" if isinstance(error, TooLarge) else "input", error.render(), error.span)


_ROLES = {
    Outcome.AS_EXPECTED: "good",
    Outcome.NO_EXPECTATION: "name",
    Outcome.UNDECIDED: "undecided",
    Outcome.KNOWN: "undecided",
}


def entry_line(entry: Entry, style: Callable[[str, str], str]) -> str:
    """One entry as a line; an error keeps the lines of its message."""
    word = style(f"{entry.outcome.value:<15}", _ROLES.get(entry.outcome, "bad"))
    if entry.report is None:
        return f"{word} {entry.message}"
    return f"{word} {entry.path} under {entry.report.model}: {_observed(entry, entry.report)}"


def entry_table(entries: Sequence[Entry]) -> TextTable:
    """Entries as a table; the last column has an error's message."""
    rows = [
        (
            entry.outcome.value,
            entry.path,
            entry.model or "",
            entry.message if entry.report is None else _observed(entry, entry.report),
        )
        for entry in entries
    ]
    roles = [_ROLES.get(entry.outcome, "bad") for entry in entries]
    return TextTable("", ("outcome", "test", "model", "what happens"), rows, roles)


def _observed(entry: Entry, report: Report) -> str:
    """What happens, what was expected instead, and why there is no answer."""
    line = report.answer.observation.value
    if report.ok is False:
        line += f", expected {report.expected}"
    if entry.outcome is Outcome.KNOWN:
        line += f" ({entry.message.removeprefix('known difference: ')})"
    return f"{line} ({report.answer.reason})" if report.answer.reason else line


def base_names() -> list[TextTable]:
    """The base sets and the base relations."""
    from memmodel.cat import BASE_NAMES

    rows: dict[str, list[tuple[str, str, str]]] = {}
    for base in BASE_NAMES:
        kind = base.kind.value
        rows.setdefault(kind, []).append((base.name, kind, f"{base.meaning} [{base.source}]"))
    return [TextTable(f"Base {kind}s", ("name", "kind", "meaning"), of_kind) for kind, of_kind in rows.items()]


def model_names(name: str) -> list[TextTable]:
    """A model's definitions and checks, and for the default model what it decides."""
    model = api.load(name)
    rows = [(named.name, named.kind.value, _first_line(named.doc)) for named in model.definitions]
    rows += [(check.name, "flag" if check.flag else "axiom", _first_line(check.doc)) for check in model.checks]
    tables = [TextTable(f"{model.name}: {model.title}", ("name", "kind", "meaning"), rows)]
    if model.name != DEFAULT_MODEL:
        return tables
    from memmodel.cat.decisions import decisions

    sides: list[tuple[str, str, str]] = []
    for decision in decisions():
        number, default = decision.number, decision.default
        sides.append((f"{number} {default.name}", "default", f"{decision.question} {default.answer}"))
        sides += [(f"{number} {side.name}", "reading", side.answer) for side in decision.readings]
    return [*tables, TextTable("What the documents leave open", ("decision", "side", "answer"), sides)]


def shipped() -> TextTable:
    """The shipped models with their titles, and the readings with the question that each answers differently."""
    rows = [(model.name, "reading" if model.reading else "model", model.title) for model in models()]
    return TextTable("", ("name", "kind", "what it says"), rows)


def _first_line(doc: str) -> str:
    return " ".join(doc.split())[:160]

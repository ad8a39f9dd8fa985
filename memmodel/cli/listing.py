"""What the commands that list many things print: suites, models, names.

In: plans and tables. Out: lines, files and an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

from memmodel.cli.exits import Exit, say, worst
from memmodel.cli.terminal import style_for, ticker
from memmodel.report.record import Record, failure
from memmodel.suite import Entry, Outcome, Plan, Settings, run, summary

_CODES = {
    Outcome.AS_EXPECTED: Exit.AS_EXPECTED,
    Outcome.NO_EXPECTATION: Exit.AS_EXPECTED,
    Outcome.DIFFERS: Exit.DIFFERS,
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
    plan: Plan,
    settings: Settings,
    jobs: int,
    *,
    json_out: str | None,
    junit_out: str | None,
    verbose: bool,
    write: Callable[[str, str], None],
) -> Exit:
    """Run a plan; print a line for every surprise and the summary last; write the files asked for."""
    out = sys.stderr if "-" in (json_out, junit_out) else sys.stdout
    style = style_for(out)
    started = perf_counter()
    entries: list[Entry] = []
    with ticker(len(plan.jobs)) as tick:
        for group in run(plan, settings, jobs):
            entries += group
            for entry in group:
                if verbose or entry.outcome not in _QUIET:
                    tick.hide()
                    say(entry_line(entry, style), out)
            tick.done(group[0].path)
    if json_out:
        import json

        write(json_out, json.dumps([entry_record(entry) for entry in entries], indent=1) + "\n")
    if junit_out:
        from memmodel.report.junit import junit

        write(junit_out, junit(entries))
    say(summary(entries, len(plan.unlisted), perf_counter() - started), out)
    return worst(map(code, entries))


def entry_line(entry: Entry, style: Callable[[str, str], str]) -> str:
    """One entry as a line; an error keeps the lines of its message."""
    role = {Outcome.AS_EXPECTED: "good", Outcome.NO_EXPECTATION: "name", Outcome.UNDECIDED: "undecided"}
    word = style(f"{entry.outcome.value:<15}", role.get(entry.outcome, "bad"))
    report = entry.report
    if report is None:
        return f"{word} {entry.message}"
    line = f"{word} {entry.path} under {report.model}: {report.answer.observation.value}"
    if report.ok is False:
        line += f", expected {report.expected}"
    return f"{line} ({report.answer.reason})" if report.answer.reason else line


def base_names() -> list[str]:
    """The base sets and relations as a table."""
    from memmodel.cat import BASE_NAMES

    return _table([(entry.name, entry.kind.value, f"{entry.meaning} [{entry.source}]") for entry in BASE_NAMES])


def model_names(name: str) -> list[str]:
    """A model's definitions and checks as a table."""
    from memmodel.cat import load_model

    model = load_model(name)
    rows = [(entry.name, entry.kind.value, _first_line(entry.doc)) for entry in model.definitions]
    rows += [(check.name, "flag" if check.flag else "axiom", _first_line(check.doc)) for check in model.checks]
    return [f"{model.name}: {model.title}", *_table(rows)]


def shipped() -> list[str]:
    """The shipped models with their titles."""
    from memmodel.cat import load_model, shipped_models

    return _table([(name, "model", load_model(name).title) for name in shipped_models()])


def _first_line(doc: str) -> str:
    return " ".join(doc.split())[:160]


def _table(rows: list[tuple[str, str, str]]) -> list[str]:
    first, second = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    return [f"{a:<{first}}  {b:<{second}}  {c}".rstrip() for a, b, c in rows]

"""The commands: read what was typed, call the library, print what it returns, choose the exit code.

In: argv. Out: text and an exit code. Nothing is decided here; each command loads only the stages that it runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from memmodel.cli.diff import diff
from memmodel.cli.exits import Exit, complain, guarded, say, worst
from memmodel.cli.kernel import kernel
from memmodel.cli.options import (
    Ask,
    Bound,
    BudgetText,
    CheckedModels,
    Engine,
    EngineName,
    File,
    Files,
    FindingWord,
    JsonOut,
    MemoryText,
    ModelName,
    ModelNames,
    StrictNames,
    Timeout,
    parse_budget,
)
from memmodel.cli.ptx import ptx
from memmodel.cli.repair import fix, weaken
from memmodel.cli.search import synth, verify
from memmodel.cli.terminal import style_for
from memmodel.errors import InputError
from memmodel.litmus.syntax import Layout

app = typer.Typer(
    name="memmodel",
    help="What does the PTX memory model let these threads observe?",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main(argv: Sequence[str] | None = None) -> None:
    """The program: run one command and exit with its code."""
    app(args=list(argv) if argv is not None else None, prog_name="memmodel")


def _version(wanted: bool) -> None:
    if wanted:
        import memmodel

        typer.echo(f"memmodel {memmodel.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    from memmodel.cli.config import defaults

    try:
        context.default_map = dict(defaults())
    except InputError as error:
        complain(error.render())
        raise typer.Exit(Exit.BAD_INPUT) from error


@app.command()
@guarded
def check(
    files: Files,
    model: CheckedModels = None,
    strict_names: StrictNames = False,
    ask: Ask = None,
    engine: EngineName = Engine.AUTO,
    bound: Bound = 3,
    budget: BudgetText = None,
    timeout: Timeout = None,
    memory: MemoryText = None,
    json_out: JsonOut = None,
    readings: Annotated[
        bool, typer.Option("--readings", help="Ask every reading of the documents: forbidden, allowed, depends.")
    ] = False,
) -> Exit:
    """Say what happens to each test's condition, and why.

    A question is `exists (P1:r0 == 0)`, `~exists …`, `forall …`, or `exists` with race, hang, hazard or undefined.
    Also whether that is what the file expects of the model. Exit code: 0 as expected, 1 differs, 2 bad input, 3
    undecided. With --readings the answer is forbidden, allowed or depends, and the code 0 if every model could tell.
    """
    from memmodel import batch
    from memmodel.api import DEFAULT_MODEL
    from memmodel.cli.listing import code, entry_record, run_readings
    from memmodel.cli.models import hear
    from memmodel.report.text import explain

    settings = batch.Settings(engine.value, parse_budget(budget, timeout, memory), bound)
    if readings:
        if model:
            raise InputError("--readings runs the default model and its readings", hint="drop --model")
        found = batch.collect(files, missing=True)
        return run_readings(found, settings, tuple(ask or ()), json_out=json_out, write=_write)
    models = tuple(model or (DEFAULT_MODEL,))
    hear(models, strict_names=strict_names)
    batch.preload(models)
    entries = []
    for path in batch.collect(files, missing=True):
        for entry in batch.run_job(batch.Job(path, models, ask=tuple(ask or ())), settings):
            entries.append(entry)
            if entry.report is None:
                complain(entry.message)
            elif json_out != "-":
                say(explain(entry.report, style_for(sys.stdout)))
    if json_out:
        _write(json_out, _json([entry_record(entry) for entry in entries]))
    return worst(code(entry) for entry in entries)


@app.command()
@guarded
def outcomes(
    file: File,
    model: ModelName = "ptx-9.3",
    engine: EngineName = Engine.AUTO,
    bound: Bound = 3,
    budget: BudgetText = None,
    timeout: Timeout = None,
    memory: MemoryText = None,
    json_out: JsonOut = None,
) -> Exit:
    """List all final states, and which of them satisfy the condition."""
    from memmodel import api
    from memmodel.cli.models import hear
    from memmodel.report.record import states
    from memmodel.report.text import outcomes_lines

    hear((model,))
    found = api.outcomes(file, model, engine=engine.value, budget=parse_budget(budget, timeout, memory), bound=bound)
    if json_out != "-":
        say("\n".join(outcomes_lines(found, style_for(sys.stdout))))
    if json_out:
        _write(json_out, _json(states(found)))
    return Exit.AS_EXPECTED if found.complete else Exit.UNDECIDED


@app.command()
@guarded
def suite(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH...]", help="Files and directories; none: the shipped suite.")
    ] = None,
    model: ModelNames = None,
    expected: Annotated[
        str | None, typer.Option("--expected", metavar="CSV", help="Columns path,holds (1 or 0); only its rows run.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="NAME", help="Expect what the files say of this model.")
    ] = None,
    under: Annotated[
        list[str] | None,
        typer.Option("--under", metavar="NAME|PATH", help="Run every test under this model or reading as well."),
    ] = None,
    no_expect: Annotated[
        bool, typer.Option("--no-expect", help="Run even if no test says what is expected of it.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=256, help="Processes.")] = 1,
    json_out: JsonOut = None,
    junit: Annotated[str | None, typer.Option("--junit", metavar="OUT", help="Write JUnit XML there.")] = None,
    engine: EngineName = Engine.AUTO,
    bound: Bound = 3,
    budget: BudgetText = None,
    timeout: Timeout = None,
    memory: MemoryText = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="A line for every test.")] = False,
) -> Exit:
    """Run many tests and list those that are not as expected.

    Without --model each test runs under the models that its Expect line names. A model of your own has no Expect
    words: `--model my.cat --against ptx-9.3` shows what changes.
    """
    from memmodel import batch
    from memmodel.cli.listing import run_suite
    from memmodel.cli.models import hear
    from memmodel.limits import shared

    cost = shared(parse_budget(budget, timeout, memory), jobs)
    settings = batch.Settings(engine.value, cost, bound, against, tuple(under or ()))
    hear(model or ())
    work = batch.plan(paths or (), model or (), expected)
    batch.preload(settings.under)
    return run_suite(
        work, settings, jobs, json_out=json_out, junit_out=junit, verbose=verbose, no_expect=no_expect, write=_write
    )


@app.command()
@guarded
def draw(
    file: File,
    output: Annotated[str, typer.Option("--output", "-o", metavar="OUT", help="A .svg or .dot file; - prints SVG.")],
    model: ModelName = "ptx-9.3",
    engine: EngineName = Engine.AUTO,
    bound: Bound = 3,
    budget: BudgetText = None,
    timeout: Timeout = None,
    memory: MemoryText = None,
    finding: Annotated[
        FindingWord | None, typer.Option("--finding", help="Draw an execution with such a finding instead.")
    ] = None,
) -> Exit:
    """Draw the execution that settles the test's question."""
    from memmodel import api
    from memmodel.cli.models import hear
    from memmodel.report.draw import draw as picture
    from memmodel.report.draw import format_of
    from memmodel.report.text import verdict

    form = format_of(output)
    hear((model,))
    report = api.check(file, model, engine=engine.value, budget=parse_budget(budget, timeout, memory), bound=bound)
    text = picture(report, form, finding.value if finding is not None else None)
    if output != "-":
        say(verdict(report, style_for(sys.stdout)))
    _write(output, text)
    return Exit.AS_EXPECTED


@app.command()
@guarded
def fmt(
    file: File,
    layout: Annotated[Layout | None, typer.Option("--layout", help="Default: the file's own.")] = None,
    in_place: Annotated[bool, typer.Option("--in-place", "-i", help="Rewrite the file.")] = False,
) -> Exit:
    """Print a test in its canonical form, or in the other layout.

    What --layout prints means the same; what the other layout cannot say is refused.
    """
    from memmodel.isa.convert import convert
    from memmodel.litmus import parse_litmus, print_litmus
    from memmodel.source import Source

    source = Source.read(file)
    test = parse_litmus(source)
    text = print_litmus(convert(test, layout or test.layout))
    if not in_place:
        say(text.rstrip("\n"))
    elif text != source.text:
        _write(file, text)
    return Exit.AS_EXPECTED


@app.command()
@guarded
def names(
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME|PATH", help="List this model's own names as well.")
    ] = None,
) -> Exit:
    """List the sets and relations that a cat file may use.

    With --model also what that model defines and checks, and for the default model the decisions behind it.
    """
    from memmodel.cli.listing import base_names, model_names
    from memmodel.cli.tables import show

    show([*base_names(), *(model_names(model) if model is not None else ())])
    return Exit.AS_EXPECTED


@app.command()
@guarded
def models() -> Exit:
    """List the shipped models, and the readings of the default.

    A reading is the default model with one open question of the documents answered the other way.
    """
    from memmodel.cli.listing import shipped
    from memmodel.cli.tables import show

    show([shipped()])
    return Exit.AS_EXPECTED


app.command()(ptx)
app.command()(kernel)
app.command()(fix)
app.command()(weaken)
app.command()(diff)
app.command()(synth)
app.command()(verify)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"


def _write(path: str, text: str) -> None:
    if path == "-":
        say(text.rstrip("\n"))
        return
    with open(path, "w", encoding="utf-8", newline="\n") as handle:
        handle.write(text)

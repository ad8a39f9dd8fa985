"""The commands: read what was typed, call the library, print what it returns, choose the exit code.

In: argv. Out: text and an exit code. Nothing is decided here; each command loads only the stages that it runs.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import click

from memmodel.cli.exits import Exit, complain, give, guarded, not_kept, say
from memmodel.cli.grammar import Argument, Commands, Option
from memmodel.cli.options import (
    Ask,
    CheckedModels,
    File,
    Files,
    FindingWord,
    Includes,
    JsonOut,
    Judging,
    ModelName,
    ModelNames,
    NoCache,
    StrictNames,
)
from memmodel.cli.terminal import style_for
from memmodel.errors import InputError
from memmodel.litmus.syntax import Layout
from memmodel.output import STANDARD_OUTPUT, replace_text, write_text

COMMANDS = {
    "check": "memmodel.cli.app:check",
    "outcomes": "memmodel.cli.app:outcomes",
    "suite": "memmodel.cli.app:suite",
    "draw": "memmodel.cli.app:draw",
    "fmt": "memmodel.cli.app:fmt",
    "names": "memmodel.cli.app:names",
    "models": "memmodel.cli.app:models",
    "ptx": "memmodel.cli.commands.ptx:ptx",
    "kernel": "memmodel.cli.commands.kernel:kernel",
    "explain": "memmodel.cli.commands.explain:explain",
    "fix": "memmodel.cli.commands.repair:fix",
    "weaken": "memmodel.cli.commands.repair:weaken",
    "report": "memmodel.cli.commands.report:report",
    "schema": "memmodel.cli.commands.schema:schema",
    "diff": "memmodel.cli.commands.diff:diff",
    "synth": "memmodel.cli.commands.search:synth",
    "verify": "memmodel.cli.commands.search:verify",
    "lsp": "memmodel.cli.commands.lsp:lsp",
    "cache": "memmodel.cli.commands.cache:cache",
}
"""The commands in the order in which help lists them, and where each stands."""


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        import memmodel

        say(f"memmodel {memmodel.__version__}")
        context.exit()


def _completion(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is None:
        return
    from memmodel.cli.completion import install, script, shell_of

    try:
        chosen = shell_of(shell)
        say(script(app, chosen) if parameter.name == "show_completion" else install(app, chosen))
    except InputError as error:
        complain(error.render())
        context.exit(Exit.BAD_INPUT)
    context.exit()


def _completion_option(name: str, help: str) -> click.Option:
    return click.Option(
        [name],
        metavar="[SHELL]",
        is_flag=False,
        flag_value="auto",
        expose_value=False,
        is_eager=True,
        callback=_completion,
        help=help,
    )


def _options() -> None:
    """What every command begins with: defaults from the project."""
    from memmodel.cli.config import defaults

    context = click.get_current_context()
    try:
        context.default_map = {name: dict(values) for name, values in defaults().items()}
    except InputError as error:
        complain(error.render())
        context.exit(Exit.BAD_INPUT)


app = Commands(
    "memmodel",
    "What does the PTX memory model let these threads observe?",
    COMMANDS,
    callback=_options,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_version,
            help="Print the version and exit.",
        ),
        _completion_option("--install-completion", "Install completion for a shell; default: the one in $SHELL."),
        _completion_option("--show-completion", "Print the completion script of a shell."),
    ],
)


@guarded
def check(
    files: Files,
    model: CheckedModels = None,
    strict_names: StrictNames = False,
    ask: Ask = None,
    judging: Judging = Judging(),
    json_out: JsonOut = None,
    no_cache: NoCache = False,
    include: Includes = None,
    readings: Annotated[
        bool, Option("--readings", help="Ask every reading of the documents: forbidden, allowed, depends.")
    ] = False,
) -> Exit:
    """Say what happens to each test's condition, and why.

    A question is `exists (P1:r0 == 0)`, `~exists …`, `forall …`, or `exists` with race, hang, hazard or undefined.
    Also whether that is what the file expects of the model. Exit code: 0 as expected, 1 differs, 2 bad input, 3
    undecided. With --readings the answer is forbidden, allowed or depends, and the code 0 if every model could tell.
    """
    from memmodel import batch
    from memmodel.api import DEFAULT_MODEL
    from memmodel.cli.listing import code, finished, run_readings
    from memmodel.cli.models import hear
    from memmodel.cli.results import Results
    from memmodel.report.text import explain as text_of

    # A kept verdict has no execution to explain, so a check judges anew; only models are kept.
    settings = batch.Settings(judging.engine.value, judging.cost(), judging.bound)
    if readings:
        if model:
            raise InputError("--readings runs the default model and its readings", hint="drop --model")
        found = batch.collect(files, missing=True)
        return run_readings(found, settings, tuple(ask or ()), json_out=json_out)
    models = tuple(model or (DEFAULT_MODEL,))
    hear(models, include, strict_names=strict_names, kept=not no_cache)
    batch.preload(models)
    codes: list[Exit] = []
    found = batch.collect(files, missing=True)
    with Results(json_out) as results:
        for path in found:
            for entry in batch.run_job(batch.Job(path, models, ask=tuple(ask or ())), settings):
                codes.append(code(entry))
                results.entry(entry, explained=True)
                if entry.report is None:
                    complain(entry.message)
                elif json_out != "-":
                    say(text_of(entry.report, style_for(sys.stdout)))
    not_kept(batch.trouble(settings))
    return finished(results, codes)


@guarded
def outcomes(
    file: File,
    model: ModelName = "ptx-9.3",
    judging: Judging = Judging(),
    json_out: JsonOut = None,
    include: Includes = None,
) -> Exit:
    """List all final states, and which of them satisfy the condition."""
    from memmodel import api
    from memmodel.cli.models import hear
    from memmodel.report.text import outcomes_lines

    hear((model,), include)
    found = api.outcomes(file, model, engine=judging.engine.value, budget=judging.cost(), bound=judging.bound)
    if json_out != "-":
        say("\n".join(outcomes_lines(found, style_for(sys.stdout))))
    if json_out:
        from memmodel.report.record import states

        _write(json_out, _json(states(found, file, model)))
    return Exit.AS_EXPECTED if found.complete else Exit.UNDECIDED


@guarded
def suite(
    paths: Annotated[
        list[str] | None, Argument(metavar="[PATH...]", help="Files and directories; none: the shipped suite.")
    ] = None,
    model: ModelNames = None,
    expected: Annotated[
        str | None, Option("--expected", metavar="CSV", help="Columns path,holds (1 or 0); only its rows run.")
    ] = None,
    against: Annotated[
        str | None, Option("--against", metavar="NAME", help="Expect what the files say of this model.")
    ] = None,
    under: Annotated[
        list[str] | None,
        Option("--under", metavar="NAME|PATH", help="Run every test under this model or reading as well."),
    ] = None,
    no_expect: Annotated[bool, Option("--no-expect", help="Run even if no test says what is expected of it.")] = False,
    jobs: Annotated[int, Option("--jobs", "-j", min=1, max=256, help="Processes.")] = 1,
    json_out: JsonOut = None,
    include: Includes = None,
    junit: Annotated[str | None, Option("--junit", metavar="OUT", help="Write JUnit XML there.")] = None,
    judging: Judging = Judging(),
    no_cache: NoCache = False,
    resume: Annotated[
        str | None, Option("--resume", metavar="FILE", help="Keep what is done there, and go on from it.")
    ] = None,
    verbose: Annotated[bool, Option("--verbose", "-v", help="A line for every test.")] = False,
) -> Exit:
    """Run many tests and list those that are not as expected.

    Without --model each test runs under the models that its Expect line names. A model of your own has no Expect
    words: `--model my.cat --against ptx-9.3` shows what changes. Control-C ends a run with what is done in the files
    and in the sum; with --resume the same command goes on from there.
    """
    from memmodel import batch
    from memmodel.cli.listing import run_suite
    from memmodel.cli.models import hear
    from memmodel.limits import shared

    cost = shared(judging.cost(), jobs)
    extra, below = tuple(under or ()), tuple(include or ())
    settings = batch.Settings(
        judging.engine.value, cost, judging.bound, against, extra, below, kept=not no_cache, resume=resume
    )
    hear(model or (), include, kept=not no_cache)
    work = batch.plan(paths or (), model or (), expected)
    batch.preload(settings.under)
    return run_suite(work, settings, jobs, json_out=json_out, junit_out=junit, verbose=verbose, no_expect=no_expect)


@guarded
def draw(
    file: File,
    output: Annotated[str, Option("--output", "-o", metavar="OUT", help="A .svg, .dot or .graphml file; - is SVG.")],
    model: ModelName = "ptx-9.3",
    judging: Judging = Judging(),
    finding: Annotated[
        FindingWord | None, Option("--finding", help="Draw an execution with such a finding instead.")
    ] = None,
    everything: Annotated[bool, Option("--all", help="Every event, not only those of the story.")] = False,
    readings: Annotated[
        bool, Option("--readings", help="Say which reading of the documents makes a difference.")
    ] = False,
    show: Annotated[list[str] | None, Option("--show", metavar="REL", help="Draw this relation too.")] = None,
    hide: Annotated[list[str] | None, Option("--hide", metavar="REL", help="Leave this relation out.")] = None,
    include: Includes = None,
) -> Exit:
    """Draw the story of the test's answer.

    A never is drawn as the cycle that is forbidden, anything else as the two accesses, the way between them and what is
    missing on it; of a hang, the threads that wait are marked.
    """
    from memmodel import api
    from memmodel.cli.models import hear
    from memmodel.report.picture.draw import draw as picture
    from memmodel.report.picture.draw import draw_focus, format_of
    from memmodel.report.text import verdict

    form = format_of(output)
    hear((model,), include)
    report = api.check(file, model, engine=judging.engine.value, budget=judging.cost(), bound=judging.bound)
    word = finding.value if finding is not None else None
    if everything:
        text = picture(report, form, word, show or (), hide or ())
    else:
        depends = api.depends(report) if readings else ()
        text = draw_focus(report, form, word, show or (), hide or (), depends)
    if output != "-":
        say(verdict(report, style_for(sys.stdout)))
    _write(output, text)
    return Exit.AS_EXPECTED


@guarded
def fmt(
    file: File,
    layout: Annotated[Layout | None, Option("--layout", help="Default: the file's own.")] = None,
    in_place: Annotated[bool, Option("--in-place", "-i", help="Rewrite the file.")] = False,
) -> Exit:
    """Print a test in its canonical form, or in the other layout.

    What --layout prints means the same; what the other layout cannot say is refused.
    """
    from memmodel.library import format
    from memmodel.source import Source

    source = Source.read(file)
    text = format(source, layout)
    if not in_place:
        say(text.rstrip("\n"))
    elif text != source.text:
        replace_text(file, text)
    return Exit.AS_EXPECTED


@guarded
def names(
    model: Annotated[
        str | None, Option("--model", "-m", metavar="NAME|PATH", help="List this model's own names as well.")
    ] = None,
    include: Includes = None,
) -> Exit:
    """List the sets and relations that a cat file may use.

    With --model also what that model defines and checks, and for the default model the decisions behind it.
    """
    from memmodel.cli.listing import base_names, model_names
    from memmodel.cli.models import hear
    from memmodel.cli.tables import show

    hear((model,) if model is not None else (), include)
    show([*base_names(), *(model_names(model) if model is not None else ())])
    return Exit.AS_EXPECTED


@guarded
def models() -> Exit:
    """List the shipped models, and the readings of the default.

    A reading is the default model with one open question of the documents answered the other way.
    """
    from memmodel.cli.listing import shipped
    from memmodel.cli.tables import show

    show([shipped()])
    return Exit.AS_EXPECTED


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"


def _write(path: str, text: str) -> None:
    if path == STANDARD_OUTPUT:
        give(text)
    else:
        write_text(path, text)

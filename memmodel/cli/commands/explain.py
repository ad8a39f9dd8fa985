"""The commands that say why: `explain` in words, `draw` as a picture.

In: what was typed. Out: the explanation of each question as text or JSON, or the picture of one, and an exit code.
"""

from __future__ import annotations

import sys

import click

from memmodel.cli.exits import Exit, guarded, say, write_json, write_out
from memmodel.cli.options import (
    Judging,
    ask_option,
    file_argument,
    include_option,
    json_option,
    judging_options,
    one_model_option,
)
from memmodel.cli.terminal import style_for
from memmodel.output import STANDARD_OUTPUT


@click.command()
@file_argument
@one_model_option
@ask_option
@click.option("--readings", is_flag=True, help="Also which reading of the documents makes a difference.")
@judging_options
@json_option
@guarded
def explain(
    file: str, model: str, ask: tuple[str, ...], readings: bool, judging: Judging, json_out: str | None
) -> Exit:
    """Say why each question is answered as it is.

    For an outcome or finding: the two accesses, how far the order between them gets, and what stops it. For a never:
    the axioms and the cycle. For a hang: who waits for what. Exit code: 0, or 3 undecided.
    """
    from memmodel import api
    from memmodel.answer import Observation
    from memmodel.cli.models import warn_about_models
    from memmodel.records.explain import ExplanationRecord
    from memmodel.report.why_text import lines_of

    warn_about_models((model,))
    explanations = list(
        api.explain_all(
            file,
            model,
            ask=ask,
            engine=judging.engine,
            budget=judging.cost(),
            bound=judging.bound,
            readings=readings,
        )
    )
    if json_out != STANDARD_OUTPUT:
        for explanation in explanations:
            say("\n".join(lines_of(explanation, style_for(sys.stdout))))
    if json_out:
        write_json(json_out, [ExplanationRecord.of(explanation).json_values() for explanation in explanations])
    undecided = any(explanation.observation == Observation.UNDECIDED.value for explanation in explanations)
    return Exit.UNDECIDED if undecided else Exit.AS_EXPECTED


@click.command()
@file_argument
@click.option("--output", "-o", required=True, metavar="OUT", help="A .svg, .dot or .graphml file; - is SVG.")
@one_model_option
@judging_options
@click.option(
    "--finding",
    type=click.Choice(["race", "hang", "hazard", "undefined"]),
    help="Draw an execution with such a finding instead.",
)
@click.option("--all", "everything", is_flag=True, help="Every event, not only those of the story.")
@click.option("--readings", is_flag=True, help="Say which reading of the documents makes a difference.")
@click.option("--show", multiple=True, metavar="REL", help="Draw this relation too.")
@click.option("--hide", multiple=True, metavar="REL", help="Leave this relation out.")
@include_option
@guarded
def draw(
    file: str,
    output: str,
    model: str,
    judging: Judging,
    finding: str | None,
    everything: bool,
    readings: bool,
    show: tuple[str, ...],
    hide: tuple[str, ...],
    include: tuple[str, ...],
) -> Exit:
    """Draw the story of the test's answer.

    A never is drawn as the cycle that is forbidden, anything else as the two accesses, the way between them and what is
    missing on it; of a hang, the threads that wait are marked.
    """
    from memmodel import api
    from memmodel.cli.models import warn_about_models
    from memmodel.limits import within_budget
    from memmodel.report.picture.draw import draw as picture
    from memmodel.report.picture.draw import draw_focus, format_of
    from memmodel.report.text import verdict

    form = format_of(output)
    warn_about_models((model,), include)
    cost = judging.cost()
    with within_budget(cost):
        report = api.check(file, model, engine=judging.engine, budget=cost, bound=judging.bound)
        if everything:
            text = picture(report, form, finding, show, hide)
        else:
            depends = api.depends(report) if readings else ()
            text = draw_focus(report, form, finding, show, hide, depends)
    if output != STANDARD_OUTPUT:
        say(verdict(report, style_for(sys.stdout)))
    write_out(output, text)
    return Exit.AS_EXPECTED

"""`memmodel diff`: where two models differ.

In: two models, a size. Out: what `cli.search` prints, and an exit code.
"""

from __future__ import annotations

from typing import Annotated

import typer

from memmodel.cli.exits import Exit, guarded
from memmodel.cli.options import JsonOut
from memmodel.cli.search import (
    Executor,
    Into,
    Jobs,
    Places,
    Plot,
    Resume,
    Scopes,
    Seconds,
    Show,
    Spread,
    Threads,
    Words,
    search_differences,
)
from memmodel.errors import InputError


@guarded
def diff(
    first: Annotated[str, typer.Argument(metavar="MODEL_A", help="A shipped model or a cat file.")],
    second: Annotated[str, typer.Argument(metavar="MODEL_B", help="Another.")],
    search: Annotated[
        int | None, typer.Option("--search", metavar="N", min=1, max=12, help="Try all programs of N instructions.")
    ] = None,
    outcomes: Annotated[bool, typer.Option("--outcomes", help="Leave findings out: only outcomes count.")] = False,
    words: Words = None,
    scopes: Scopes = None,
    spread: Spread = None,
    threads: Threads = None,
    places: Places = 3,
    jobs: Jobs = 0,
    seconds: Seconds = None,
    resume: Resume = None,
    executor: Executor = None,
    into: Into = None,
    plot: Plot = None,
    show: Show = 10,
    json_out: JsonOut = None,
) -> Exit:
    """Find the smallest programs on which two models differ.

    Exit code: 0 no difference up to the bound, 1 they differ, 2 bad input, 3 stopped before the bound.
    """
    if search is None:
        raise InputError("how many instructions may a program have?", hint="--search 4")
    return search_differences(
        first,
        second,
        search,
        words=words,
        scopes=scopes,
        spread=spread,
        threads=threads,
        places=places,
        outcomes=outcomes,
        jobs=jobs,
        seconds=seconds,
        resume=resume,
        executor=executor,
        into=into,
        plot=plot,
        show=show,
        json_out=json_out,
    )

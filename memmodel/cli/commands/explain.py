"""The command that says why: `explain`.

In: what was typed. Out: the explanation of each question, as text or JSON, and an exit code.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

from memmodel.cli.exits import Exit, give, guarded, say
from memmodel.cli.grammar import Option
from memmodel.cli.options import (
    Ask,
    File,
    JsonOut,
    Judging,
    ModelName,
)
from memmodel.cli.terminal import style_for
from memmodel.output import STANDARD_OUTPUT, write_text


@guarded
def explain(
    file: File,
    model: ModelName = "ptx-9.3",
    ask: Ask = None,
    readings: Annotated[
        bool, Option("--readings", help="Also which reading of the documents makes a difference.")
    ] = False,
    judging: Judging = Judging(),
    json_out: JsonOut = None,
) -> Exit:
    """Say why each question is answered as it is.

    For an outcome or finding: the two accesses, how far the order between them gets, and what stops it. For a never:
    the axioms and the cycle. For a hang: who waits for what. Exit code: 0, or 3 undecided.
    """
    from memmodel import api
    from memmodel.answer import Observation
    from memmodel.cli.models import hear
    from memmodel.report.why_record import explained
    from memmodel.report.why_text import lines_of

    hear((model,))
    found = list(
        api.explain_all(
            file,
            model,
            ask=tuple(ask or ()),
            engine=judging.engine.value,
            budget=judging.cost(),
            bound=judging.bound,
            readings=readings,
        )
    )
    if json_out != STANDARD_OUTPUT:
        for told in found:
            say("\n".join(lines_of(told, style_for(sys.stdout))))
    if json_out:
        text = json.dumps([explained(told) for told in found], indent=1) + "\n"
        if json_out == STANDARD_OUTPUT:
            give(text)
        else:
            write_text(json_out, text)
    undecided = any(told.observation == Observation.UNDECIDED.value for told in found)
    return Exit.UNDECIDED if undecided else Exit.AS_EXPECTED

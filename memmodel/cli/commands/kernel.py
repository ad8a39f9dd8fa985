"""The command `kernel`: a compiled kernel with its launch, judged for every schedule.

In: what was typed. Out: the verdict as text or JSON, and an exit code.
"""

from __future__ import annotations

import json
from typing import Annotated

from memmodel.cli.exits import Exit, give, guarded, say
from memmodel.cli.grammar import Argument, Option
from memmodel.cli.options import BudgetText, Includes, JsonOut, MemoryText, ModelName, Timeout, parse_budget
from memmodel.errors import InputError
from memmodel.output import write_text


@guarded
def kernel(
    file: Annotated[str, Argument(metavar="FILE.ptx", help="PTX as a compiler wrote it.")],
    launch: Annotated[
        str | None, Option("--launch", "-l", metavar="L.json", help="Grid, block, parameters, buffers.")
    ] = None,
    entry: Annotated[str | None, Option("--entry", metavar="NAME", help="Default: what the launch says.")] = None,
    model: ModelName = "ptx-9.3",
    budget: BudgetText = None,
    timeout: Timeout = None,
    memory: MemoryText = None,
    json_out: JsonOut = None,
    include: Includes = None,
    init_launch: Annotated[bool, Option("--init-launch", help="Print a launch description to fill in.")] = False,
    launch_schema: Annotated[
        bool, Option("--launch-schema", help="Print the JSON schema of launch descriptions.")
    ] = False,
) -> Exit:
    """Check a compiled kernel for races and hangs.

    The launch is run once; its order under the model speaks for every schedule where the conditions of docs/kernels.md
    hold. Exit code: 0 clean, 1 findings, 2 bad input, 3 undecided.
    """
    from memmodel import cat
    from memmodel.kernel.check import check_kernel, entry_of
    from memmodel.kernel.launch import schema, template
    from memmodel.kernel.report import lines, record
    from memmodel.kernel.text.reader import read_module

    if launch_schema:
        say(json.dumps(schema(), indent=1))
        return Exit.AS_EXPECTED
    if init_launch:
        say(json.dumps(template(entry_of(read_module(file), entry)), indent=1))
        return Exit.AS_EXPECTED
    if launch is None:
        raise InputError("--launch is missing", hint="--init-launch prints a launch description to fill in")
    cat.settle(include or (), kept=True)
    verdict = check_kernel(file, launch, entry=entry, model=model, budget=parse_budget(budget, timeout, memory))
    if json_out != "-":
        say("\n".join(lines(verdict)))
    if json_out:
        text = json.dumps(record(verdict), indent=1) + "\n"
        if json_out == "-":
            give(text)
        else:
            write_text(json_out, text)
    return {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS, "undecided": Exit.UNDECIDED}[verdict.word]

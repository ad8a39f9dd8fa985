"""The command `kernel`: a compiled kernel with its launch, judged for every schedule.

In: what was typed. Out: the verdict as text or JSON, and an exit code.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from memmodel.cli.exits import Exit, guarded, say
from memmodel.cli.options import JsonOut, ModelName
from memmodel.errors import InputError


@guarded
def kernel(
    file: Annotated[str, typer.Argument(metavar="FILE.ptx", help="PTX as a compiler wrote it.")],
    launch: Annotated[
        str | None, typer.Option("--launch", "-l", metavar="L.json", help="Grid, block, parameters, buffers.")
    ] = None,
    entry: Annotated[str | None, typer.Option("--entry", metavar="NAME", help="Default: what the launch says.")] = None,
    model: ModelName = "ptx-9.3",
    json_out: JsonOut = None,
    init_launch: Annotated[bool, typer.Option("--init-launch", help="Print a launch description to fill in.")] = False,
    launch_schema: Annotated[
        bool, typer.Option("--launch-schema", help="Print the JSON schema of launch descriptions.")
    ] = False,
) -> Exit:
    """Check a compiled kernel for races and hangs.

    The launch is run once; its order under the model speaks for every schedule where the conditions of docs/kernels.md
    hold. Exit code: 0 clean, 1 findings, 2 bad input, 3 undecided.
    """
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
    verdict = check_kernel(file, launch, entry=entry, model=model)
    if json_out != "-":
        say("\n".join(lines(verdict)))
    if json_out:
        text = json.dumps(record(verdict), indent=1) + "\n"
        if json_out == "-":
            say(text.rstrip("\n"))
        else:
            with open(json_out, "w", encoding="utf-8", newline="\n") as handle:
                handle.write(text)
    return {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS, "explored": Exit.UNDECIDED, "undecided": Exit.UNDECIDED}[verdict.word]

"""The command `ptx`: litmus tests as PTX modules, and what ptxas says of them.

In: what was typed. Out: modules on stdout or in files, errors at their litmus lines, and an exit code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memmodel.cli.exits import Exit, complain, give, guarded, say, worst
from memmodel.cli.options import asked_level, ptx_version_option
from memmodel.errors import InputError
from memmodel.output import write_text
from memmodel.ptx.targets import PtxLevel

if TYPE_CHECKING:
    from memmodel.emit import Assembler, EmittedModule, Target


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", help="Litmus tests; - is standard input.")
@click.option("--output", "-o", metavar="DIR", help="Write DIR/NAME.ptx for each test.")
@click.option("--target", metavar="ARCH", help="Such as sm_90a; default: the oldest that will do.")
@ptx_version_option
@click.option("--assemble", is_flag=True, help="Run ptxas; its errors point at the test.")
@guarded
def ptx(
    files: tuple[str, ...], output: str | None, target: str | None, ptx_version: str | None, assemble: bool
) -> Exit:
    """Print each test as a complete PTX module.

    The module has one kernel, which runs the threads of the test. Exit code: 0 done, 2 bad input or an instruction
    that ptxas refuses.
    """
    from memmodel.emit import Assembler, Target

    wanted = Target.parse(target) if target is not None else None
    level = asked_level(ptx_version, None)
    assembler = Assembler.find() if assemble else None
    places = _places(files, output)
    return worst(_print(file, place, wanted, level, assembler) for file, place in places)


def _places(files: tuple[str, ...], output: str | None) -> list[tuple[str, Path | None]]:
    """Where each module goes; None: stdout. Raises InputError for two tests with one name."""
    if output is None:
        return [(file, None) for file in files]
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    taken: dict[Path, str] = {}
    for file in files:
        place = folder / f"{Path(file).stem}.ptx"
        if place in taken:
            raise InputError(f"{taken[place]} and {file} would both be {place}", hint="write them to two directories")
        taken[place] = file
    return [(file, place) for place, file in taken.items()]


def _print(file: str, place: Path | None, target: Target | None, level: PtxLevel, assembler: Assembler | None) -> Exit:
    from memmodel import api
    from memmodel.emit import emit
    from memmodel.isa.lower import refuse_beyond

    try:
        test = api.read_test(file).test
        refuse_beyond(test, level)
        module = emit(test, target)
    except InputError as error:
        complain(error.render())
        return Exit.BAD_INPUT
    if place is not None:
        write_text(str(place), module.text)
    elif assembler is None:
        give(module.text)
    return Exit.AS_EXPECTED if assembler is None else _assemble(file, module, assembler)


def _assemble(file: str, module: EmittedModule, assembler: Assembler) -> Exit:
    complaints = assembler.assemble(module)
    for complaint in complaints:
        complain(complaint.render() if complaint.span is not None else f"{file}: {complaint.render()}")
    if complaints:
        return Exit.BAD_INPUT
    say(f"{file}: assembles for {module.target}")
    return Exit.AS_EXPECTED

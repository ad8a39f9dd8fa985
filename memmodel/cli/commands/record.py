"""The command `record`: a program is run, and every launch that it makes is written down.

In: what was typed. Out: PTX and launch descriptions in a folder, a line for each launch that differs, verdicts if they
are asked for. The exit code is that of the program, unless something is worse.
"""

from __future__ import annotations

import shlex
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memmodel.cli.exits import Exit, complain, guarded, say, worst
from memmodel.cli.kernels.several import run_kernel, say_run
from memmodel.cli.options import Seconds, TakesWordsAfterDashes, one_model_option
from memmodel.errors import InputError

if TYPE_CHECKING:
    from memmodel.record.kernels import RecordedKernels

FOLDER = "memmodel-record"


class WithProgram(TakesWordsAfterDashes):
    """A command whose words after `--` are a program and its arguments."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- PROGRAM [ARGS]..."]


@click.command(cls=WithProgram)
@click.option(
    "--output", "-o", metavar="DIR", default=FOLDER, show_default=True, help="Where PTX and launch descriptions go."
)
@click.option("--check", is_flag=True, help="Judge each of them when the program has ended.")
@click.option("--jobs", "-j", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes that judge.")
@click.option("--timeout", type=Seconds(0.1, 1e6), metavar="SECONDS", help="For each verdict.")
@click.option("--short", is_flag=True, help="One line about each verdict.")
@one_model_option
@guarded
def record(
    output: str, check: bool, jobs: int, timeout: float | None, short: bool, model: str, after_dashes: tuple[str, ...]
) -> int:
    """Write down the launches that a program makes.

    It runs as it would without. Exit code: that of the program; if that is 0, 3 where nothing was recorded, or not all.
    With --check, that of the verdicts comes first.
    """
    from memmodel.record.kernels import write_kernels
    from memmodel.record.library import built
    from memmodel.record.lines import read_recording
    from memmodel.record.running import run_watched

    if not after_dashes:
        raise InputError("no program is given", hint="memmodel record -- ./program arguments")
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        raw = tempfile.TemporaryDirectory(prefix=".recording-", dir=folder.resolve())
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from error
    with raw:
        ended = run_watched(after_dashes, built(Path(raw.name)), Path(raw.name))
        kernels = write_kernels(read_recording(Path(raw.name)), folder)
    code = _summary(kernels, output)
    if check:
        options = ["--model", model, *(("--timeout", str(timeout)) if timeout else ()), *(["--short"] if short else ())]
        code = worst((code, _verdicts(kernels, options, jobs)))
    if ended:
        complain(f"{after_dashes[0]} ended with exit code {ended}")
    return ended if code == Exit.AS_EXPECTED or (ended and not check) else code


def _summary(kernels: RecordedKernels, output: str) -> Exit:
    """Say what was recorded, and what was not."""
    for item in kernels.launches:
        say(f"memmodel kernel {shlex.join(item.words)}  # {item.title}")
        for unknown in item.unknown:
            say(f"  not known: {unknown}")
    for note in kernels.notes:
        say(f"note: {note}")
    launches = len(kernels.launches)
    if not launches:
        complain(
            "no launch was recorded: the program launched no kernel, or it does not load libcuda.so.1 (it is linked "
            "statically, for 32 bits, or runs with other rights)"
        )
        return Exit.UNDECIDED
    count = kernels.count
    say(f"{count} kernel{'' if count == 1 else 's'} in {launches} launch{'' if launches == 1 else 'es'}: {output}")
    return Exit.UNDECIDED if kernels.notes else Exit.AS_EXPECTED


def _verdicts(kernels: RecordedKernels, options: list[str], jobs: int) -> Exit:
    """Judge each launch in a process of its own, and print what it says."""
    with ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(run_kernel, [*options, *item.words]) for item in kernels.launches]
        return worst([say_run(run.result()) for run in runs])

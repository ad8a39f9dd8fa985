"""Several kernels at once: each is judged by a process of its own, so that one costs the others nothing.

In: the command as it was typed, files, entries. Out: what each process says, in order; one JSON list, one SARIF log,
one baseline; the worst exit code.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from memmodel.cli.exits import Exit, complain, give, worst, write_json
from memmodel.errors import InputError
from memmodel.source import STANDARD_INPUT

if TYPE_CHECKING:
    from memmodel.cli.kernels.request import KernelRequest

OUTPUTS = ("json_out", "sarif_out", "write_baseline")
NOT_HANDED_ON = ("files", "entries", "jobs", *OUTPUTS)
"""Parameters of the command that are not handed on as they are."""
_SIGKILL = 9


@dataclass(frozen=True, slots=True)
class KernelRun:
    """One kernel: what its process said, and its exit code."""

    code: int
    text: str
    errors: str


def judge_all(context: click.Context, asked: KernelRequest) -> Exit:
    """Judge every entry of every file. `context`: of the command as it was typed. Raises InputError."""
    if STANDARD_INPUT in asked.files:
        raise InputError("standard input is one kernel, and several are asked for")
    options = list(_options(context))
    kernels = list(product(asked.files, asked.entries or (None,)))
    with TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        wanted = [name for name in OUTPUTS if context.params[name]]
        outputs = [[(name, f"{folder}/{name}{number}") for name in wanted] for number in range(len(kernels))]
        runs = [
            pool.submit(_run, options, file, entry, asked.after_dashes, paths)
            for (file, entry), paths in zip(kernels, outputs, strict=True)
        ]
        quiet = "-" in (asked.json_out, asked.sarif_out)
        codes = [say_run(run.result(), quiet=quiet) for run in runs]
        for name in wanted:
            written = [Path(folder, f"{name}{number}") for number in range(len(kernels))]
            data = [json.loads(path.read_text(encoding="utf-8")) for path in written if path.exists()]
            write_json(context.params[name], _joined(name, data))
    return worst(codes)


def _run(
    options: Sequence[str], file: str, entry: str | None, compiler: Sequence[str], outputs: Sequence[tuple[str, str]]
) -> KernelRun:
    flags = {"json_out": "--json", "sarif_out": "--sarif", "write_baseline": "--write-baseline"}
    words = [*options, *(word for name, path in outputs for word in (flags[name], path))]
    words += [*(() if entry is None else ("--entry", entry)), file, *(("--", *compiler) if compiler else ())]
    return run_kernel(words)


def run_kernel(words: Sequence[str]) -> KernelRun:
    """`memmodel kernel` with these words, in a process of its own."""
    command = [sys.executable, "-m", "memmodel", "kernel", *words]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    text, errors = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    if done.returncode == -_SIGKILL:
        errors += f"undecided: `memmodel kernel {shlex.join(words)}` was killed (did memory run out?)\n"
        return KernelRun(int(Exit.UNDECIDED), text, errors)
    return KernelRun(done.returncode, text, errors)


def say_run(run: KernelRun, *, quiet: bool = False) -> Exit:
    """Print what a process said, or only its errors if `quiet`; its exit code."""
    if not quiet:
        give(run.text)
    if run.errors.strip():
        complain(run.errors.rstrip("\n"))
    return Exit(run.code) if run.code in set(Exit) else Exit.INTERNAL


def _options(context: click.Context) -> Iterator[str]:
    """The options that were typed, as words again."""
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if param.name in NOT_HANDED_ON or not isinstance(param, click.Option) or value in (None, (), False):
            continue
        if param.is_flag:
            yield param.opts[-1]
        elif param.multiple:
            yield from (word for part in value for word in (param.opts[0], str(part)))
        else:
            yield from (param.opts[0], str(value))


def _joined(name: str, data: list[Any]) -> Any:
    """What several processes wrote, as one."""
    if name == "json_out":  # a list of launches has a list of verdicts
        return [verdict for part in data for verdict in (part if isinstance(part, list) else [part])]
    if name == "sarif_out":
        return {**data[0], "runs": [run for log in data for run in log["runs"]]} if data else {}
    listed = {(item["kernel"], item["rule"], *item["places"]): item for part in data for item in part["findings"]}
    return {"findings": list(listed.values())}

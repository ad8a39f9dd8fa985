"""The command `schema`: the JSON Schema of what other commands write or read.

In: a name. Out: JSON on standard output. docs/schema has the same as files.
"""

from __future__ import annotations

from typing import Any

import click

from memmodel.cli.exits import Exit, guarded, say, write_json
from memmodel.errors import InputError, suggestion
from memmodel.output import STANDARD_OUTPUT

NAMES = {
    "check": "what `check --json` and `suite --json` write",
    "readings": "what `check --readings --json` writes",
    "explain": "what `explain --json` writes",
    "outcomes": "what `outcomes --json` writes",
    "diff": "what `diff --format json` writes",
    "mutate-model": "what `mutate-model --json` writes",
    "kernel": "what `kernel --json` writes",
    "sweep": "what `kernel --sweep --json` writes",
    "launch": "what `kernel --launch` reads",
    "fix": "what `fix --json` writes",
    "weaken": "what `weaken --json` writes",
    "sync": "what `sync --json` writes",
}
"""The schemas, each with what has it."""


@click.command()
@click.argument(
    "name",
    required=False,
    metavar="[NAME]",
    shell_complete=lambda _context, _parameter, incomplete: [name for name in NAMES if name.startswith(incomplete)],
    help=f"One of {', '.join(NAMES)}.",
)
@guarded
def schema(name: str | None) -> Exit:
    """Print the JSON Schema of an output, or list them."""
    if name is None:
        for known, what in NAMES.items():
            say(f"{known:<12} {what}")
        return Exit.AS_EXPECTED
    write_json(STANDARD_OUTPUT, json_schema(name))
    return Exit.AS_EXPECTED


def json_schema(name: str) -> dict[str, Any]:
    """The schema of that name. Raises InputError for any other."""
    name = "check" if name == "suite" else name
    if name not in NAMES:
        hint = suggestion(name, NAMES) or f"one of {', '.join(NAMES)}"
        raise InputError(f"no schema `{name[:40]}`", hint=hint)
    from pydantic import TypeAdapter

    from memmodel.kernel.launch import schema as launch_schema
    from memmodel.records.answers import ErrorRecord, OutcomesRecord, ReadingsRecord, ReportRecord
    from memmodel.records.compare import DiffRecord
    from memmodel.records.explain import ExplanationRecord
    from memmodel.records.kernels import (
        FixRecord,
        KernelRecord,
        KernelSweepRecord,
        SyncRecord,
        UnjudgedKernelRecord,
        WeakenRecord,
    )
    from memmodel.records.mutate import StrengthRecord

    kinds: dict[str, Any] = {
        "check": list[ReportRecord | ErrorRecord],
        "readings": list[ReadingsRecord | ErrorRecord],
        "explain": list[ExplanationRecord],
        "outcomes": OutcomesRecord,
        "diff": DiffRecord,
        "mutate-model": StrengthRecord,
        "kernel": KernelRecord | list[KernelRecord | UnjudgedKernelRecord],
        "sweep": KernelSweepRecord,
        "fix": FixRecord,
        "weaken": WeakenRecord,
        "sync": SyncRecord,
    }
    schema = launch_schema() if name == "launch" else TypeAdapter(kinds[name]).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"memmodel {name}", **schema}

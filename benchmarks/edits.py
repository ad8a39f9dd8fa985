"""One-rule edits of the default model: does the plain `memmodel diff` tell each apart, how large is its smallest
program, how long does it take?

    python -m benchmarks.edits [NAME…] [--jobs N] [--timeout SECONDS]
    python -m benchmarks.edits [NAME…] --processor SECONDS

The edits are tests/data/edits.toml, each with the size of a witness that was worked out by hand. On a machine that does
other work as well, `--processor` counts the seconds that one process has the processor, and ends with a program that is
no larger: sixty seconds on two cores are 120.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, process_time
from typing import Any
from unittest.mock import patch

from memmodel.base.resources import DEFAULT_MODEL, axioms_dir
from memmodel.search.edits.edited import WhatDiffers, edited
from memmodel.search.edits.tasks import sides_of
from memmodel.search.work import HereAndNow

EDITS = Path(__file__).parent.parent / "tests" / "data" / "edits.toml"


def edits() -> list[dict[str, Any]]:
    """The edits, as the file has them."""
    read: list[dict[str, Any]] = tomllib.loads(EDITS.read_text(encoding="utf-8"))["edit"]
    return read


def edited_model(edit: dict[str, Any], folder: Path) -> Path:
    """The edited default model, in a copy of the shipped ones below a folder."""
    copy = folder / edit["name"]
    shutil.copytree(axioms_dir(), copy)
    file = copy / edit["file"]
    text = file.read_text(encoding="utf-8")
    if text.count(edit["old"]) != 1:
        raise ValueError(f"{edit['name']}: {edit['file']} has not exactly one such text")
    file.write_text(text.replace(edit["old"], edit["new"]), encoding="utf-8")
    model = copy / f"{edit['name']}.cat"
    (copy / f"{DEFAULT_MODEL}.cat").rename(model)
    return model


class SmallEnough(KeyboardInterrupt):
    """A program was found that is no larger than the one worked out by hand."""


_CLOCKS = (
    "memmodel.limits.usage",
    "memmodel.workers",
    *(f"memmodel.search.{name}" for name in ("work", "edits.edited", "edits.tasks", "edits.witness")),
)


def by_processor(edit: dict[str, Any], model: Path, seconds: float) -> tuple[WhatDiffers, float]:
    """What the plain command finds in some seconds of the processor, and how many it took."""
    began, found = process_time(), WhatDiffers()

    def stage(name: str) -> None:
        if found.size is not None and found.size <= edit.get("size", 0):
            raise SmallEnough

    with ExitStack() as stack:
        for module in _CLOCKS:
            stack.enter_context(patch(f"{module}.monotonic", process_time))
        stack.enter_context(patch("memmodel.search.edits.edited.WhatDiffers", lambda: found))
        edited(sides_of(DEFAULT_MODEL, str(model)), HereAndNow(), seconds, stage)
    return found, process_time() - began


def main() -> None:
    """Print a row for each edit, and how many are told apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--timeout", default="60")
    parser.add_argument("--processor", type=float)
    asked = parser.parse_args()
    told = right = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for edit in edits():
            if asked.names and edit["name"] not in asked.names:
                continue
            model, began = edited_model(edit, Path(folder)), monotonic()
            wanted = edit.get("size")
            tried += 1
            if asked.processor is not None:
                found, cpu = by_processor(edit, model, asked.processor)
                told += found.size is not None
                right += (found.size is not None and found.size <= wanted) if wanted else found.size is None
                print(
                    f"{edit['name']:32} size {found.size} (by hand {wanted})  {cpu:.0f} s of processor; "
                    f"{found.reach()}",
                    flush=True,
                )
                for result in found.results[:1]:
                    print(result["text"], flush=True)
                continue
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = ["diff", DEFAULT_MODEL, str(model), "--format", "json", "-j", asked.jobs]
            done = subprocess.run(
                [sys.executable, "-m", "memmodel", *command, "--timeout", asked.timeout],
                capture_output=True,
                text=True,
                check=False,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            answer = json.loads(done.stdout)
            size = min((result["size"] for result in answer["results"]), default=None)
            differs = done.returncode == 1
            told += differs
            right += (size is not None and size <= wanted) if wanted else not differs
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(
                f"{edit['name']:32} {'differs' if differs else 'no difference':14} size {size} (by hand {wanted})  "
                f"{monotonic() - began:.0f} s, {cpu:.0f} s of processor; {answer['tried']}",
                flush=True,
            )
    print(f"{told} of {tried} differ, {right} as worked out by hand")


if __name__ == "__main__":
    main()

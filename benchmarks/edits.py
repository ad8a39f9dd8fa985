"""One-rule edits of the default model: does the plain `memmodel diff` tell each apart, how large is its smallest
program, how long does it take?

    python -m benchmarks.edits [NAME…] [--jobs N] [--timeout SECONDS]

The edits are tests/data/edits.toml, each with the size of a witness that was worked out by hand.
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
from pathlib import Path
from time import monotonic
from typing import Any

from memmodel.base.resources import DEFAULT_MODEL, axioms_dir

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


def main() -> None:
    """Print a row for each edit, and how many are told apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--timeout", default="60")
    asked = parser.parse_args()
    told = right = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for edit in edits():
            if asked.names and edit["name"] not in asked.names:
                continue
            model, began = edited_model(edit, Path(folder)), monotonic()
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
            differs, wanted = done.returncode == 1, edit.get("size")
            tried += 1
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

"""What memmodel makes of published cat files: which load, and what they say of a few small tests.

`python benchmarks/published.py FOLDER...` prints a row of a Markdown table for each `.cat` file. The files are not part
of this project; docs/cat-published.md has the table for those of herd and Dartagnan.
"""

from __future__ import annotations

import sys
from pathlib import Path

from memmodel import api
from memmodel.answer import Budget, Observation
from memmodel.cat import load_model
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.program.lowered import LoweredTest
from memmodel.source import Source

STORE = {"": "st.weak.u32", "rlx": "st.relaxed.sys.u32", "rel": "st.release.sys.u32"}
LOAD = {"": "ld.weak.u32", "rlx": "ld.relaxed.sys.u32", "acq": "ld.acquire.sys.u32"}


def _test(rows: list[list[str]], condition: str) -> LoweredTest:
    lines = [" | ".join(row[n] if n < len(row) else "" for row in rows) + " ;" for n in range(max(map(len, rows)))]
    heads = " | ".join(f"P{n}" for n in range(len(rows)))
    text = "\n".join(("PTX published", "{ x = 0; y = 0; }", f"{heads} ;", *lines, f"exists ({condition})", ""))
    return api.lowered(Source("published.litmus", text))


def _shape(name: str, access: str, fence: str, flag: tuple[str, str] | None = None) -> LoweredTest:
    middle = [f"fence.{fence}.sys"] if fence else []
    store, load = STORE[access], LOAD[access]
    if name == "MP":
        to, of = flag or (access, access)
        writer = [f"{store} x, 1", *middle, f"{STORE[to]} y, 1"]
        reader = [f"{LOAD[of]} r0, y", *middle, f"{load} r1, x"]
        return _test([writer, reader], "P1:r0 == 1 /\\ P1:r1 == 0")
    first, second = (
        (f"{store} {{}}, 1", f"{load} r0, {{}}") if name == "SB" else (f"{load} r0, {{}}", f"{store} {{}}, 1")
    )
    rows = [[first.format(a), *middle, second.format(b)] for a, b in ("xy", "yx")]
    value = 0 if name == "SB" else 1
    return _test(rows, f"P0:r0 == {value} /\\ P1:r0 == {value}")


TESTS = {
    "MP": _shape("MP", "", ""),
    "rlx": _shape("MP", "rlx", ""),
    "rel+acq": _shape("MP", "", "", ("rel", "acq")),
    "ar": _shape("MP", "rlx", "acq_rel"),
    "sc": _shape("MP", "rlx", "sc"),
    "SB": _shape("SB", "", ""),
    "SB rlx": _shape("SB", "rlx", ""),
    "SB ar": _shape("SB", "rlx", "acq_rel"),
    "SB sc": _shape("SB", "rlx", "sc"),
    "LB": _shape("LB", "", ""),
    "LB rlx": _shape("LB", "rlx", ""),
    "LB ar": _shape("LB", "rlx", "acq_rel"),
    "LB sc": _shape("LB", "rlx", "sc"),
}
_LETTERS = {Observation.NEVER: "–", Observation.SOMETIMES: "+", Observation.ALWAYS: "+!"}


def _judged(model: Model) -> list[str]:
    budget = Budget(seconds=60)
    found = (api.judge(test, model, Options(budget=budget), findings=False) for test in TESTS.values())
    return [_LETTERS.get(answer.observation, answer.observation.value) for answer in found]


def main(folders: list[str]) -> None:
    """Print the table."""
    print("| file | axioms | " + " | ".join(TESTS) + " |")
    print("|---|---|" + "---|" * len(TESTS))
    for path in sorted(path for folder in folders for path in Path(folder).glob("*.cat")):
        try:
            model = load_model(path)
        except InputError as error:
            where = f", at {error.span.source.name.split('/')[-1]}:{error.span.line}" if error.span else ""
            print(
                f"| `{path.name}` | refused{where}: {error.message.replace('|', chr(92) + '|')} |" + " |" * len(TESTS)
            )
            continue
        cells = _judged(model) if model.axioms else [""] * len(TESTS)
        print(f"| `{path.name}` | {len(model.axioms)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])

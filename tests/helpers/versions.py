"""What ptxas says of versions and targets: an oracle for `since` and `later` of the rows that shares nothing with them.

`python -m helpers.versions` in `tests` reads the instructions of tests/data/versions.tsv and writes what ptxas says of
each; it needs ptxas 13.5 (`pip install '.[ptx]'`). A new instruction is a new line with nothing behind it. ptxas names
the version of each word that is too new for the `.version` of a module, all in one run; targets are tried one by one.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.places import ROOT
from memmodel.emit import Assembler
from memmodel.emit.ptxas import architecture
from memmodel.ptx.targets import Target, version_of

TABLE = ROOT / "tests" / "data" / "versions.tsv"

OLDEST, NEWEST = "2.0", "9.5"
"""The PTX of sm_20, where the table of instructions begins, and of ptxas 13.5."""

_NUMBERS = (75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121)
TARGETS = tuple(
    Target(number, suffix)
    for suffix in ("", "a", "f")
    for number in _NUMBERS
    if Target(number, suffix).known  # what is older ptxas 13 no longer generates code for
)

AT_ONCE = 100
MISTAKE = "add.u32 %h1, %r1, %r2;"

_REMOVED = Target(60)
"""A target that has what later ones have no longer."""

HEADER = """.version {version}
.target {target}
.address_size 64
.global .align 128 .b8 x[1024];
.const .align 128 .b8 c[1024];
.global .texref tx;
.global .surfref su;
.visible .func (.param .b32 ret) callee (.param .b32 par)
{{ ret; }}
.visible .entry k(.param .align 64 .b8 pa[128])
{{
.shared .align 128 .b8 s[1024];
.local .align 128 .b8 l[1024];
.reg .pred %p<40>; .reg .b16 %h<40>; .reg .b32 %r<140>; .reg .b64 %rd<140>; .reg .b128 %q<40>;
L0:
T0: .branchtargets L0;
"""
"""What the instructions of the table name."""

_ERROR = re.compile(r"ptxas module\.ptx, line (\d+); (?:error|fatal)\s*: (.*)")
_NEEDS = re.compile(r"requires PTX ISA \.version (\d+\.\d+)")


@dataclass(frozen=True)
class Fact:
    """What ptxas says of an instruction: the least version, at least `OLDEST`, and which of `TARGETS` have it."""

    version: str
    targets: frozenset[str]

    def __str__(self) -> str:
        """As the table has it: `sm_90` and every later one, or targets by name."""
        plain = [target.number for target in TARGETS if not target.suffix and str(target) in self.targets]
        later = {str(target) for target in TARGETS if plain and target.number >= min(plain)}
        return f"{self.version}\t{f'sm_{min(plain)}+' if plain and later == self.targets else self._named()}"

    def _named(self) -> str:
        return " ".join(str(target) for target in TARGETS if str(target) in self.targets) or "none"

    @staticmethod
    def read(version: str, targets: str) -> Fact:
        """A line of the table, behind the instruction."""
        if not targets.endswith("+"):
            return Fact(version, frozenset(targets.split()) - {"none"})
        least = Target.parse(targets.removesuffix("+")).number
        return Fact(version, frozenset(str(target) for target in TARGETS if target.number >= least))


def table() -> dict[str, Fact]:
    """The table: what ptxas says of each instruction."""
    lines = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines())
    return {line: Fact.read(version, targets) for line, version, targets in lines}


def knows(version: str, assembler: Assembler) -> bool:
    """True if ptxas takes modules of a version of PTX."""
    return bool(_complaints([MISTAKE], version, Target(90), assembler))


def asked(lines: Sequence[str], assembler: Assembler) -> dict[str, Fact]:
    """What ptxas says now. Raises AssertionError for a line that no target has."""
    having: defaultdict[str, set[str]] = defaultdict(set)
    latest: dict[str, Target] = {}
    for target in (_REMOVED, *TARGETS):
        errors = _errors(lines, NEWEST, target, assembler)
        for line in (line for line in lines if line not in errors):
            having[line].add(str(target))
            latest[line] = target
    assert having.keys() == set(lines), set(lines) - having.keys()
    facts: dict[str, Fact] = {}
    for target in set(latest.values()):  # a word may be newer on an older target
        some = [line for line in lines if latest[line] == target]
        errors = _errors(some, OLDEST, target, assembler)
        for line in some:
            versions = [OLDEST, *(match[1] for text in errors[line] for match in _NEEDS.finditer(text))]
            facts[line] = Fact(max(versions, key=version_of), frozenset(having[line] - {str(_REMOVED)}))
    return facts


def _errors(lines: Sequence[str], version: str, target: Target, assembler: Assembler) -> defaultdict[str, list[str]]:
    """The complaints of ptxas about each of the lines. There are some after which it stops: then it did not complain
    about the mistake at the end, and is asked again with fewer lines.
    """
    errors: defaultdict[str, list[str]] = defaultdict(list)
    todo = [list(lines[first : first + AT_ONCE]) for first in range(0, len(lines), AT_ONCE)]
    while todo:
        some = todo.pop()
        complaints = _complaints([*some, MISTAKE], version, target, assembler)
        if len(some) > 1 and MISTAKE not in (line for line, _ in complaints):
            todo += [some[: len(some) // 2], some[len(some) // 2 :]]
            continue
        for line, text in complaints:
            errors[line].append(text)
    return errors


def _complaints(lines: Sequence[str], version: str, target: Target, assembler: Assembler) -> list[tuple[str, str]]:
    head = HEADER.format(version=version, target=target)
    begin = head.count("\n") + 1
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "module.ptx").write_text(head + "\n".join(lines) + "\nret;\n}\n", encoding="utf-8")
        command = [str(assembler.path), f"-arch={architecture(target)}", "module.ptx", "-o", "module.cubin"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    found = [(int(match[1]) - begin, match[2]) for match in _ERROR.finditer(done.stdout + done.stderr)]
    return [(lines[number], text) for number, text in found if 0 <= number < len(lines)]


if __name__ == "__main__":
    instructions = [line.split("\t")[0] for line in TABLE.read_text(encoding="utf-8").splitlines()]
    answers = asked(sorted(set(instructions)), Assembler.find())
    TABLE.write_text("".join(f"{line}\t{answers[line]}\n" for line in sorted(answers)), encoding="utf-8")

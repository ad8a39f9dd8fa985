"""Shipped tests with one address made bad: both engines find the undefined behaviour, and where it is.

An address is moved out of line, out of its object, or through a register into the window of another state space. The
execution before it counts, so the rest of the answer has to agree as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from helpers.agreement import agree

from memmodel.base.resources import suite_dir
from memmodel.cat import load_model

SHIPPED = (
    "isa/MP",
    "generic/G2",
    "generic/G17",
    "async/mbarrier/G3",
    "async/mbarrier/G11",
    "async/mbarrier/count",
    "async/proxy/A1",
    "async/proxy/A6",
    "async/proxy/A11",
    "async/proxy/A14-wait_all",
    "async/tcgen05/T3",
    "bytes/B1",
    "bytes/B4",
    "bytes/B6",
    "bytes/B7",
)
WAYS = ("misaligned", "outside", "window")

_LINE = re.compile(r"^(?P<before>\s*(?:\w+:\s*)?)(?P<head>[a-z][\w.:]*)\s(?P<operands>.*\[.*\].*);$")
_PLACE = re.compile(r"\[(?P<name>[a-z]\w*)(?P<offset>\+\d+)?\]")
_OTHER = {"global": "shared::cta", "shared": "global", "shared::cta": "global"}


@dataclass(frozen=True)
class Mutant:
    """A test with one bad address. `line`: where it is."""

    text: str
    line: int


def mutants(text: str, way: str) -> list[Mutant]:
    """Every test that differs in one address of a variable."""
    lines = text.split("\n")
    body = next(number for number, line in enumerate(lines) if line.startswith("thread"))
    found = []
    for number, line in enumerate(lines[body:], start=body):
        instruction = _LINE.match(line)
        if instruction is None:
            continue
        for place in _PLACE.finditer(line):
            changed = _moved(line, place, way) if way != "window" else _elsewhere(instruction, place, line)
            if changed is not None:
                # Whatever is put in front stands in the same line, so that places stay.
                found.append(Mutant("\n".join([*lines[:number], changed, *lines[number + 1 :]]), number + 1))
    return found


def _moved(line: str, place: re.Match[str], way: str) -> str | None:
    """The address by one byte, or by more than the variables of a test take."""
    if way == "misaligned" and re.search(r"\b[usb]8\b", line) and ".v" not in line:
        return None
    by = 1 if way == "misaligned" else 1 << 15
    offset = int((place["offset"] or "+0")[1:]) + by
    return f"{line[: place.start()]}[{place['name']}+{offset}]{line[place.end() :]}"


def _elsewhere(instruction: re.Match[str], place: re.Match[str], line: str) -> str | None:
    """The address in a register, and another state space in the name of a load or store."""
    parts = instruction["head"].split(".")
    space = next((part for part in parts if part in _OTHER), None)
    if parts[0] not in ("ld", "st", "atom", "red") or space is None:
        return None
    head = ".".join(_OTHER[part] if part == space else part for part in parts)
    operands = line[instruction.start("operands") : place.start()]
    rest = f"[%elsewhere{place['offset'] or ''}]{line[place.end() :]}"
    return f"{instruction['before']}mov.u64 %elsewhere, {place['name']}; {head} {operands}{rest}"


CASES = [(path, way) for path in SHIPPED for way in WAYS]


@pytest.mark.share(3)
@pytest.mark.parametrize(("path", "way"), CASES)
def test_a_bad_address_is_undefined_at_its_place(path: str, way: str) -> None:
    possible = mutants((suite_dir() / f"{path}.litmus").read_text(), way)
    if not possible:
        pytest.skip("no load or store names a state space")
    mutant = possible[CASES.index((path, way)) % len(possible)]
    answer = agree(mutant.text, load_model("ptx-9.4"))
    found = [one for one in answer.findings if one.flag == "undefined-address"]
    assert [one.first.span.line for one in found if one.first and one.first.span] == [mutant.line], mutant.text
    assert found[0].rule
    assert any(event.uid == found[0].first.uid for event in found[0].witness.events)


def test_there_are_enough_of_them() -> None:
    assert sum(bool(mutants((suite_dir() / f"{path}.litmus").read_text(), way)) for path, way in CASES) >= 33

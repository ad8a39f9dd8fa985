"""Mutated inputs (`.ci/run` tries a thousand more, the night twenty thousand), and inputs once taken wrongly."""

from __future__ import annotations

import pytest
from helpers import fuzz


@pytest.mark.parametrize("part", range(2))
def test_mutations(part: int) -> None:
    said: list[str] = []
    assert fuzz.run(80, seed=100 + part, say=said.append) == 0, "\n".join(said)


LAUNCHES = [
    ("half a character", fuzz.KERNEL, {**fuzz.LAUNCH, "params": [{**fuzz.LAUNCH["params"][0], "type": "\ud800"}]}),
    ("no target", fuzz.KERNEL.replace("bra WAIT", "bra "), fuzz.LAUNCH),
    ("a buffer of 4 GB", fuzz.KERNEL, {**fuzz.LAUNCH, "params": [{**fuzz.LAUNCH["params"][0], "bytes": 1 << 32}]}),
]


@pytest.mark.parametrize("name, kernel, launch", LAUNCHES)
def test_kernels_that_were_taken_wrongly(name: str, kernel: str, launch: object, tmp_path, monkeypatch) -> None:
    import json

    monkeypatch.chdir(tmp_path)
    argv = ("kernel", "k.ptx", "--launch", "l.json", *fuzz.BUDGET)
    assert fuzz.fault(fuzz.Input("ptx", {"k.ptx": kernel, "l.json": json.dumps(launch)}, argv)) == ""


def test_a_required_option_that_is_missing_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.litmus").write_text("PTX t\n")
    code, _, err = fuzz._run(("draw", "t.litmus"))
    assert code == 2 and "Missing option '--output'" in err

"""A plugin of pytest: which changes of conditions make no difference in any test that is run.

    INFECTED=repair python -m pytest -p benchmarks.infecting tests/repair

`INFECTED` names rooms of memmodel, with commas between. At the end the changes are printed that no test reaches, or
whose expression comes to the same in all of them: none of these tests can notice one (`benchmarks.infected`).
"""

from __future__ import annotations

import os

import pytest

from benchmarks.infected import watch

INFECTION = watch(os.environ["INFECTED"].split(","))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left = [mutant for number, mutant in enumerate(INFECTION.mutants) if number not in INFECTION.seen]
    for mutant in left:
        terminalreporter.write_line(f"no difference: line {mutant.line} of {mutant.name}")
    whole = len(INFECTION.mutants)
    terminalreporter.write_line(f"{whole - len(left)} of {whole} changes make a difference in some test")

"""The first run: what it shows where the budget ends before it is judged, and what it takes a test for."""

from __future__ import annotations

import pytest
from helpers.kernel.samples import judged

from memmodel.errors import BudgetSpent
from memmodel.kernel.check import conductor


@pytest.mark.parametrize(
    ("body", "rules"), [("@%p0 trap;", {"trap"}), ("ld.shared.u32 %r9, [s];", set())], ids=["it traps", "nothing"]
)
def test_a_run_that_was_not_judged_says_what_it_shows_by_itself(
    body: str, rules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(*_: object) -> None:
        raise BudgetSpent("time is up")

    monkeypatch.setattr(conductor, "judged_run", spent)
    verdict = judged(body, 32)
    assert verdict.spent and "time is up" in verdict.open
    assert {finding.rule for finding in verdict.findings} == rules
    assert verdict.word == ("findings" if rules else "undecided")


def test_before_any_run_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object) -> None:
        raise BudgetSpent("time is up")

    monkeypatch.setattr(conductor, "_judge_part_and_whole", spent)
    verdict = judged("@%p0 trap;", 32)
    assert (verdict.word, verdict.findings, verdict.open) == ("undecided", [], ["time is up"])


ALTERNATES = """@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
mov.u32 %r5, 0;
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r4], {parity};
xor.b32 %r5, %r5, 1;
@!%p2 bra W;
"""


@pytest.mark.parametrize(("parity", "rules"), [("%r5", set()), ("0", {"hang"})])
def test_a_test_that_is_repeated_with_another_parity_is_no_wait(parity: str, rules: set[str]) -> None:
    """Nobody arrives. The phase before the first one is over, so that the second round ends the loop."""
    verdict = judged(ALTERNATES.format(parity=parity), 32)
    assert {finding.rule for finding in verdict.findings} == rules
    assert verdict.word == ("findings" if rules else "undecided")

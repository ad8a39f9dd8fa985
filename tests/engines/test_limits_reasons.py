"""Saying why is a part of the answer's budget, and so is every question that a command asks besides."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from threading import Thread, current_thread
from time import monotonic, sleep

import pytest
import z3
from helpers.patience import PATIENCE, eventually, processor_seconds

from benchmarks.bounded import fences, states
from memmodel import api, limits
from memmodel.answer import Budget
from memmodel.base.identity import by_identity
from memmodel.base.logic import Logic
from memmodel.cli import main
from memmodel.errors import BudgetSpent
from memmodel.limits import Limits, usage
from memmodel.solve.formulas import Satisfiable
from memmodel.solve.solver import Solver
from memmodel.why import diagnose, limited
from memmodel.why.records import Reason

pytestmark = pytest.mark.turns(2)


@pytest.fixture(scope="module")
def answered():
    """A test with races, in which a repair needs many fence.sc whose orders are all open."""
    return api.check(states(8, 4))


@pytest.mark.parametrize("orders", [10**9, diagnose.ORDERS])  # what the second one finds is kept
def test_a_reason_that_takes_too_long_is_left_out(answered, monkeypatch, orders):
    monkeypatch.setattr(diagnose, "ORDERS", orders)
    monkeypatch.setattr(limited, "MOST", 1.0)
    with processor_seconds(15):
        said = answered.explain()
    assert said.startswith("large under ptx-9.4: sometimes") and "an execution that shows it:" in said
    if orders == 10**9:
        assert said.endswith(limited.CUT)


@pytest.mark.parametrize(("least", "cut"), [(60.0, False), (0.05, True)])
def test_a_search_that_ends_in_silence_when_the_time_is_over_is_cut(answered, monkeypatch, least, cut):
    monkeypatch.setattr(limited, "LEAST", least)
    with limited.reasons(answered.answer, Budget(seconds=0.001)) as time:
        _spin(0.1)
    assert time.cut is cut


def test_a_search_that_was_cut_does_not_say_that_nothing_is_missing(monkeypatch):
    """Of three fences one is no fence.sc. That is found where there is time, though many more could be put in."""
    text = "PTX three\n" + "".join(f".global .u32 {name} = 0;\n" for name in "xyz")
    for number, (mine, other) in enumerate(("xy", "yz", "zx")):
        text += f"thread P{number} @ cta {number}, gpu 0 {{\n  st.relaxed.gpu.global.u32 [{mine}], 1;\n"
        text += f"  fence.{'acq_rel' if number == 2 else 'sc'}.gpu;\n  ld.relaxed.gpu.global.u32 %r, [{other}];\n}}\n"
    text += "exists (P0:r == 0 /\\ P1:r == 0 /\\ P2:r == 0)\n"
    assert [it.reason for it in api.explain(text).stories[0].obstacles] == [Reason.NO_FENCE_SC]
    monkeypatch.setattr(diagnose.Diagnosing, "diagnosis", lambda _: _spin(0.1))
    monkeypatch.setattr(limited, "LEAST", 0.05)
    monkeypatch.setattr(limited, "MOST", 0.05)
    cut = api.explain(text)
    assert cut.stories == () and limited.CUT in cut.note


def test_explain_says_that_its_reason_was_cut_short(monkeypatch):
    """It may take so long, and no longer."""
    monkeypatch.setattr(diagnose, "ORDERS", 10**9)
    monkeypatch.setattr(limited, "MOST", 0.3)
    with processor_seconds(15):
        explained = api.explain(states(8, 4))
    assert explained.note == limited.CUT


def test_both_models_of_diff_share_one_budget_and_a_picture_without_an_answer_is_undecided(tmp_path, capsys):
    test = tmp_path / "large.litmus"
    test.write_text(fences(8, 16))
    for command in (["diff", "sc", "ptx-9.4"], ["draw", "-o", "-"], ["explain"]):
        with processor_seconds(15), pytest.raises(SystemExit) as left:
            main([*command, str(test), "--timeout", "1"])
        assert left.value.code == 3, command
    assert "budget of 1 seconds ran out" in capsys.readouterr().err


def test_what_an_answer_leaves_of_its_budget(answered, monkeypatch):
    """A reason takes no longer than its answer did, if that was not quick."""
    monkeypatch.setattr(limited, "QUICK", 4.0)
    monkeypatch.setattr(limited, "MOST", 10.0)
    times = answered.answer.times
    as_long = max(limited.QUICK, min(limited.MOST, (times.encode + times.solve) / 1000))
    for seconds, most in ((120.0, as_long), (0.001, limited.LEAST)):
        began = monotonic()
        with limited.reasons(answered.answer, Budget(seconds=seconds)):
            left = limited.available(Budget()).seconds
        assert most - (monotonic() - began) <= left <= most


# ---- the second thread -----------------------------------------------------------------------------------------------


def _spin(seconds: float) -> None:
    end = monotonic() + seconds
    while monotonic() < end:
        pass


def test_limits_hold_while_the_work_runs():
    with pytest.raises(BudgetSpent, match=r"budget of 0\.01 seconds") as spent, limits.Limits(Budget(seconds=0.01)):
        _spin(PATIENCE)
    assert str(pickle.loads(pickle.dumps(spent.value))) == str(spent.value), "a worker hands it over"


def test_what_answers_share_is_made_anew_after_one_was_broken_off():
    """It may be half made: the next answer about the same model was an internal error, or could be wrong."""
    shared, model = by_identity(4)(lambda _: list[str]()), object()
    with pytest.raises(BudgetSpent), limits.Limits(Budget(seconds=0.01)):
        shared(model).append("half")
        _spin(PATIENCE)
    assert shared(model) == []


def test_limits_that_nobody_holds_stop_nothing():
    """An exception may come before the first line of `__exit__`: limits of such a block must not stop what follows."""
    limits.Limits(Budget(seconds=0.01)).__enter__()
    _spin(1.5)


@pytest.mark.parametrize("error", [AttributeError, OSError, MemoryError, RuntimeError])
def test_no_failure_ends_the_second_thread(monkeypatch, error):
    failed = []

    def failing() -> int:
        """The memory in use, which is more than the budget after two looks that failed."""
        if current_thread().name != "memmodel-limits":
            return 0
        if len(failed) < 2:
            failed.append(error)
            raise error
        return 200_000_000

    monkeypatch.setattr(usage, "memory_in_use", failing)
    budget = Budget(seconds=PATIENCE, memory=100_000_000)
    with pytest.raises(BudgetSpent, match="budget of 100 MB of memory"), limits.Limits(budget):
        _spin(PATIENCE)
    assert len(failed) == 2


# ---- signals while the solver works ----------------------------------------------------------------------------------


def test_a_solver_without_memory_has_used_up_its_budget(monkeypatch):
    """Z3 says so in an exception of its general kind, from whichever call the system refuses memory."""

    def refused(*arguments: object) -> None:
        raise z3.Z3Exception(b"out of memory")

    monkeypatch.setattr(z3, "Z3_solver_check_assumptions", refused)
    with pytest.raises(BudgetSpent, match="the budget of 100 MB of memory"), limits.Limits(Budget(memory=100_000_000)):
        _pigeons(Budget()).check()


def _pigeons(budget: Budget) -> Solver:
    """Fourteen pigeons in thirteen holes: beyond the solver for longer than a test may take."""
    logic = Logic()
    sits = [[logic.var(f"sits({pigeon},{hole})") for hole in range(13)] for pigeon in range(14)]
    for row in sits:
        logic.require(*row)
    for hole in zip(*sits, strict=True):
        for first, second in combinations(hole, 2):
            logic.require(-first, -second)
    return Solver(logic, budget, monotonic())


UNENDING = Budget(effort=10**12, seconds=PATIENCE)


class Asked(Exception):
    pass


@contextmanager
def _signals(handlers: list[Callable[[], None]]) -> Iterator[None]:
    """While the block runs, signals come one after another, and each is handled so."""
    handled = 0

    def handle(number: int, frame: object) -> None:
        nonlocal handled
        handled += 1
        handlers[handled - 1]()

    def send() -> None:
        for number in range(len(handlers)):
            sleep(0.5)
            os.kill(os.getpid(), signal.SIGUSR1)
            assert eventually(lambda: handled > number)  # noqa: B023

    before = signal.signal(signal.SIGUSR1, handle)
    sender = Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def _asks() -> None:
    raise Asked


def test_a_signal_is_handled_while_the_solver_works():
    solver = _pigeons(UNENDING)
    with _signals([_asks]), Limits(UNENDING), pytest.raises(Asked):
        solver.check()
    assert solver.reason == ""


def test_a_signal_whose_handler_lets_the_work_go_on_spends_no_budget():
    """The solver is still at work when the next one comes."""
    solver = _pigeons(UNENDING)
    with _signals([lambda: None, _asks]), Limits(UNENDING), pytest.raises(Asked):
        solver.check()
    assert solver.reason == ""


def test_who_listened_to_signals_before_hears_of_them():
    ours, its = os.pipe()
    os.set_blocking(its, False)
    before = signal.set_wakeup_fd(its)
    try:
        with _signals([_asks]), Limits(UNENDING), pytest.raises(Asked):
            _pigeons(UNENDING).check()
        assert os.read(ours, 1) == bytes([signal.SIGUSR1])
    finally:
        assert signal.set_wakeup_fd(before) == its
        os.close(ours)
        os.close(its)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("timeout", "the budget of 100 seconds ran out"),
        ("max. resource limit exceeded", "the budget of 1,000 solver steps ran out"),
        ("max. memory exceeded", "the solver gave up: max. memory exceeded"),
        ("(incomplete quantifiers)", "the solver gave up: (incomplete quantifiers)"),
        ("canceled", ""),
        ("interrupted from keyboard", ""),
    ],
)
def test_an_unknown_is_called_what_it_is(said, reason):
    assert _pigeons(Budget(effort=1000, seconds=100.0))._why_unknown(said) == reason


def test_steps_run_out():
    solver = _pigeons(Budget(effort=100_000))
    assert solver.check() is Satisfiable.UNKNOWN
    assert solver.reason == "the budget of 100,000 solver steps ran out"

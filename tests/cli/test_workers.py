"""Processes that work for a command, one of which is killed."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor

import pytest

from memmodel.workers import Workers, settle


def test_a_process_that_is_killed_while_jobs_are_begun_costs_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    submit = ProcessPoolExecutor.submit

    def kills_after_two(pool: ProcessPoolExecutor, *work: object) -> object:
        """Begin a job; before the third one, kill a process and wait until the pool knows."""
        if pool._queue_count == 2 and not pool._broken:  # type: ignore[attr-defined]
            os.kill(next(iter(pool._processes)), signal.SIGKILL)
            for _ in range(1_000):
                if pool._broken:  # type: ignore[attr-defined]
                    break
                time.sleep(0.01)
        return submit(pool, *work)  # type: ignore[arg-type]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", kills_after_two)
    workers = Workers(range(6), 2, abs, lambda job, killed: -1, settle)
    assert [*workers.results()] == [0, 1, 2, 3, 4, 5]

"""What holds for all tests: none of them sees, or leaves, a verdict in the user's cache, and all have the same seed."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import SEED, TIMES, keep_shares
from helpers.patience import reasons_have_time

os.environ["MEMMODEL_CACHE"] = "off"

# For `benchmarks`; last, so that an installed memmodel is the one that is tested.
sys.path.append(str(Path(__file__).resolve().parent.parent))


def processes_share_models() -> None:
    """A process that a test starts takes shipped models from the one before, and no verdict; it would read thirty of
    them anew. This process reads each itself.
    """
    from memmodel.base.resources import cache_dir
    from memmodel.cat import kept

    kept.models_dir = cache_dir
    if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker inherits it
        folder = os.environ["MEMMODEL_MODELS"] = tempfile.mkdtemp(prefix="memmodel-models-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


processes_share_models()

# A job that a script starts with `&` ignores SIGINT, and its children inherit that: also the programs that tests send a
# SIGINT to. A signal that has a handler is at its default in children; so they stop, and this run still does not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, lambda number, frame: None)


@pytest.fixture(autouse=True)
def models_as_at_the_start() -> None:
    """A command that an earlier test called in this process leaves its folders and its `--no-cache` behind."""
    from memmodel.cat.load import configure

    configure((), kept=True)


@pytest.fixture(autouse=True, scope="session")
def no_reason_is_cut_short() -> None:
    reasons_have_time()


@pytest.fixture(autouse=True, scope="module")
def what_stays_is_collected_once() -> Iterator[None]:
    """Models and tables that are kept make every later collection slower: a test of bounded time took seven times its
    own at the end of a run.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: Python does not look for cycles among it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one worker: what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before the plugin of Hypothesis looks for its option."""
    if SEED and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = {config.invocation_params.dir / argument.partition("::")[0] for argument in config.args}
    config.hook.pytest_deselected(items=keep_shares(items, named))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if SEED:
        terminalreporter.write_line(f"generated tests: MEMMODEL_EXAMPLES={TIMES} MEMMODEL_SEED={SEED}")

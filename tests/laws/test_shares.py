"""What a run of all tests leaves for other days: each function and each case has its day, and the night has all."""

from pathlib import Path

import pytest
from helpers import examples
from helpers.examples import keep_shares

pytestmark = pytest.mark.skipif(examples.TIMES != 1, reason="more examples run everything")

pytest_plugins = ["pytester"]

ONE = """
import pytest
pytestmark = pytest.mark.turns(2)

pytest_plugins = ["pytester"]
@pytest.mark.parametrize("number", range(4))
def test_first(number): pass
@pytest.mark.share(2)
@pytest.mark.parametrize("number", range(4))
def test_second(number): pass
def test_third(): pass
"""


@pytest.fixture
def kept(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """The names of the tests that stay on a day."""
    path = pytester.makepyfile(ONE)
    pytester.makeini("[pytest]\nmarkers =\n    turns(of): functions\n    share(of): cases\n")
    items = pytester.genitems([pytester.getpathnode(path)])

    def of(day: str, named: tuple[Path, ...] = ()) -> list[str]:
        monkeypatch.setattr(examples, "SAMPLE", day)
        mine = list(items)
        left = keep_shares(mine, named)
        assert len(mine) + len(left) == len(items)
        return [item.name for item in mine]

    return of


def test_functions_take_turns_and_keep_their_cases(kept) -> None:
    for day in map(str, range(20)):
        functions = [name.partition("[")[0] for name in kept(day)]
        assert len(set(functions)) == 2 and functions.count("test_first") in (0, 4)
        assert functions.count("test_second") in (0, 2)


def test_everything_has_its_day(kept) -> None:
    every = kept("all")
    assert len(every) == 9
    assert {name for day in range(60) for name in kept(str(day))} == set(every)


def test_a_file_that_is_named_is_run_as_a_whole(kept, pytester: pytest.Pytester) -> None:
    assert len(kept("1", named=tuple(pytester.path.glob("*.py")))) == 9

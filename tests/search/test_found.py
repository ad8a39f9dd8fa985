"""What the search says at a terminal, placements, and its answer against that of Z3 choosing the program."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from memmodel.cli import main
from memmodel.search.sketches import Sketch, renamed, sketches
from memmodel.search.tasks import DifferenceTask
from memmodel.search.vocabulary import Vocabulary, vocabulary

MODEL = '"PTX 9.4"\ninclude "ptx-9.4.cat"\n'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run a command; its exit code and what it prints."""

    def call(*words: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in words])
        return int(left.value.code or 0), capsys.readouterr().out

    return call


def test_a_finding_is_a_difference(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    quiet = tmp_path / "quiet.cat"
    quiet.write_text(MODEL + "override let racing = 0\n")
    words = ("diff", "ptx-9.4", quiet, "--search", 2, "--vocabulary", "plain", "--spread", "one", "-j", 1)
    code, said = run(*words)
    assert code == 1 and "data-race, 2 instructions" in said and "exists race" in said
    code, said = run(*words, "--outcomes")
    assert code == 0 and "no difference, up to 2 instructions (ld.weak, st.weak;" in said


def test_a_reformulation_says_the_bound(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    again = tmp_path / "again.cat"
    again.write_text(MODEL + "override let thread-causality = po | po? ; (synchronizes ; po?)+\n")
    words = ("--search", 3, "--vocabulary", "ld.acquire,st.release", "--spread", "one", "-j", 1)
    code, said = run("diff", "ptx-9.4", again, *words)
    assert code == 0 and "no difference, up to 3 instructions" in said


def test_a_release_pattern_on_two_locations_is_found(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """No shape is given: the vocabulary is that of the pattern, and the size is that of the program."""
    loose = tmp_path / "loose.cat"
    loose.write_text(
        MODEL + "override let release-pattern = [W & REL] | ([W & REL] | [release-fence]) ; po ; [strong-write]\n"
    )
    words = (
        "--vocabulary",
        "st.release,st.relaxed,ld.relaxed,fence.acq_rel",
        "--scopes",
        "gpu",
        "--threads",
        2,
        "--spread",
        "one",
    )
    code, said = run("diff", "ptx-9.4", loose, "--search", 5, *words, "--outcomes", "-j", 1)
    assert code == 1 and "ptx-9.4 allows" in said and "5 instructions" in said


# ---- readings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reading", "names", "size", "spread", "scope"),
    [
        ("D6-issuer", "copy.in,wait.acquire,ld.shared.weak", 3, "cluster", "cta"),
        ("D9-letter", "reduce,st.tile.relaxed", 2, "one", "gpu"),
        ("D12-issue", "wgmma,st.shared.weak,fence.proxy.async", 3, "one", "cta"),
        ("D2-anywhere", "ld.shared.weak,copy.in,fence.proxy.async", 4, "cluster", "cluster"),
    ],
)
def test_a_reading_is_told_apart(reading: str, names: str, size: int, spread: str, scope: str) -> None:
    words = vocabulary(names.split(","), [scope], 2, 1, [spread])
    task = DifferenceTask("ptx-9.4", f"readings/{reading}", words, size, True)
    assert any(task.judge(sketch) for most in range(1, size + 1) for sketch in sketches(words, most))


# ---- placements ------------------------------------------------------------------------------------------------------


def placed(it: Sketch, words: Vocabulary) -> object:
    """A sketch with its placement, by the smallest spelling under every order of its threads."""
    found = []
    for order in permutations(range(len(it.threads))):
        threads = [it.threads[one] for one in order]
        new = renamed(threads, words.accesses)
        names: dict[object, object] = {}
        for old, mine in zip(threads, new, strict=True):
            for (use, before), (_, after) in zip(old, mine, strict=True):
                for kind, one, two in zip(words.accesses[use].places, before, after, strict=True):
                    names[kind, one] = (kind, two)
        together = tuple(
            (it.seats[a][1] == it.seats[b][1], it.seats[a][2] == it.seats[b][2])  # type: ignore[index]
            for a in order
            for b in order
        )
        homes = tuple(
            sorted(
                (names[place], tuple(it.seats[one][2] == cta for one in order))  # type: ignore[index]
                for place, cta in it.homes
            )
        )
        found.append((new, together, homes))
    return min(found, key=repr)


def test_every_placement_once() -> None:
    words = vocabulary(["arrive", "wait", "st.shared.weak"], locations=1, spread=("cta", "cluster"))
    made = list(sketches(words, 3))
    assert len({repr(placed(it, words)) for it in made}) == len(made)
    far = [it for it in made if it.seats and {cta for _, cta in it.homes} < {cta for _, _, cta in it.seats}]
    assert far, "some place is in another CTA than one of its users"

"""The search: every program once, all spellings judged as the engines judge each, and what it finds."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
from helpers.patience import eventually

from memmodel import api
from memmodel.engine import Options, outcomes
from memmodel.errors import InputError
from memmodel.search.differences import ModelPair
from memmodel.search.judging.alike import labels_of
from memmodel.search.judging.frames import ways
from memmodel.search.judging.slices import WorldGrid
from memmodel.search.programs import Ready
from memmodel.search.sketches import Sketch, canonical, connected, sketches
from memmodel.search.tasks import DifferenceTask, SynthesisTask
from memmodel.search.text import asked
from memmodel.search.vocabulary import Vocabulary, vocabulary
from memmodel.search.work import KILLED, HereAndNow, Processes, Record, run

pytestmark = pytest.mark.turns(2)

# ---- every program once ------------------------------------------------------------------------------------------


def brute_force(words: Vocabulary, size: int) -> set[object]:
    """Every program of so many instructions, however spelt, by its smallest spelling."""
    accesses = words.accesses
    uses = [
        (name, places)
        for name, one in enumerate(accesses)
        for places in product(range(words.locations), repeat=len(one.places))
    ]
    found: set[object] = set()
    for body in product(uses, repeat=size):
        for cuts in product((False, True), repeat=size - 1):
            threads, now = [], [body[0]]
            for cut, use in zip(cuts, body[1:], strict=True):
                if cut:
                    threads.append(tuple(now))
                    now = []
                now.append(use)
            threads.append(tuple(now))
            if len(threads) <= words.threads and connected(threads, accesses):
                found.add(canonical(threads, accesses))
    return found


@pytest.mark.parametrize(
    ("names", "size"), [("ld.weak,st.weak", 3), ("ld.weak,st.weak", 4), ("ld.weak,st.weak,bar", 3)]
)
def test_every_sketch_once(names: str, size: int) -> None:
    words = vocabulary(names.split(","), spread=("one",))
    made = [sketch.threads for sketch in sketches(words, size)]
    assert len(made) == len(set(made))
    assert set(made) == brute_force(words, size)


def test_worlds_are_numbered() -> None:
    grid = WorldGrid((2, 3, 2))
    for world in range(grid.count):
        choice = grid.choice(world)
        assert grid.number(choice) == world
        assert all(grid.worlds_with(at, one) >> world & 1 for at, one in enumerate(choice))
    moved = grid.moved(grid.full, 1, 2, 0)
    assert moved == grid.worlds_with(1, 2)


# ---- all spellings at once -----------------------------------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("few", "names", "size", "first", "second"),
    [
        (0, "core,atom", 4, "ptx-9.4", "ptx-6.0"),
        (0, "dependencies,red,bar", 3, "ptx-7.5", "ptx-9.4"),
        (0, "objects", 3, "ptx-9.4", "readings/D10-dependent"),
        (0, "st.shared,copy.out,wait_group,fence.proxy.async,fence.acq_rel", 3, "ptx-9.4", "readings/D2-anywhere"),
        (1 << 40, "st.relaxed,ld.acquire,fence.sc,bar", 3, "ptx-9.4", "sc"),
        (1 << 40, "dependencies,red,bar", 3, "ptx-7.5", "ptx-9.4"),
        (1 << 40, "objects", 3, "ptx-9.4", "readings/D10-dependent"),
        (1 << 40, "async,fence.acq_rel", 3, "ptx-9.4", "readings/D2-anywhere"),
    ],
)
def test_slices_agree_with_the_engine(
    few: int, names: str, size: int, first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates one after the other (few worlds: 0), and side by side."""
    monkeypatch.setattr("memmodel.search.judging.judge.FEW", few)
    words = vocabulary(names.split(","))
    pair = ModelPair(first, second, outcomes=True)
    choose = random.Random(names)
    for sketch in choose.sample(list(sketches(words, size)), 6):
        ready = Ready(sketch, words, size + 1)
        verdicts = pair._judge.judge(ready)
        for world in choose.choices(range(ready.grid.count), k=2):
            specimen = ready.specimen(ready.grid.choice(world))
            names_ = asked(ready.draft, words)
            lowered = api.lowered(specimen.text(f"exists ({specimen.condition((0,) * len(names_))})"))
            for number, model in enumerate(pair.models):
                states = outcomes(lowered, model, Options("enumerate")).states
                expected = {tuple(_value(state.values, name) for name in names_) for state in states}
                found = {key for key, worlds in verdicts.allowed[number].items() if worlds >> world & 1}
                assert found == expected, specimen.text("exists (true)")


# ---- programs on which two models cannot differ --------------------------------------------------------------------

ASYNC = vocabulary(["async"])
TENSOR = vocabulary(["tensor", "tcgen05.mma", "tcgen05.commit"], threads=2, locations=1)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("second", "words", "least"),
    [
        ("readings/D2-accessor", ASYNC, 0.1),
        ("readings/D7-anywhere", ASYNC, 0.1),
        ("readings/D10-dependent", ASYNC, 0.5),
        ("readings/D11-unfinished", ASYNC, 0.2),
        ("readings/D4b-acquire", ASYNC, 1.0),
        ("readings/D4b-acquire", TENSOR, 0.1),
        ("readings/D1-issuer", ASYNC, 0.0),
    ],
)
def test_what_is_left_out_does_not_differ(second: str, words: Vocabulary, least: float) -> None:
    pair = ModelPair("ptx-9.4", second, outcomes=True)
    every = [sketch for size in (2, 3) for sketch in sketches(words, size)]
    left_out = []
    for sketch in every:
        ready = Ready(sketch, words, 4)
        if pair._filter.excludes(ready):
            left_out.append(ready)
    assert len(left_out) >= least * len(every)
    for ready in random.Random(second).sample(left_out, min(12, len(left_out))):
        verdicts = pair._judge.judge(ready)
        assert verdicts.allowed[0] == verdicts.allowed[1]


def test_labels_depend_on_instructions_alone() -> None:
    """What the filter learns of one program with some instructions is true of all with the same."""
    known: dict[object, set[object]] = {}
    every = [sketch for size in (2, 3) for sketch in sketches(ASYNC, size)]
    for sketch in random.Random(7).sample(every, 120):
        ready = Ready(sketch, ASYNC, 4)
        kinds = frozenset(ways(ready.draft, spot, ASYNC) for spot in ready.spots)
        labels = set(labels_of(ready))
        assert known.setdefault(kinds, labels) == labels


def _value(values: tuple[tuple[str, int], ...], name: str) -> int:
    found = dict(values)
    return found[name] if name in found else found[name.removesuffix("[0]")]


def test_no_outcome_is_left_out(tmp_path: Path) -> None:
    """A release pattern of two writes: the one that synchronizes is on no cycle of communication."""
    model = tmp_path / "without.cat"
    model.write_text('"PTX 9.4"\ninclude "ptx-9.4.cat"\noverride let release-pattern = [W & REL]\n')
    names = ["ld.acquire", "ld.weak", "st.weak", "st.relaxed", "st.release"]
    words = vocabulary(names, ["gpu"], 2, 2, spread=("one",))
    task = DifferenceTask("ptx-9.4", str(model), words, 5, True)
    threads = (((1, (0,)), (1, (1,)), (1, (1,))), ((0, (1,)), (0, (0,))))
    shape = Sketch(canonical(threads, words.accesses))
    assert {record["size"] for record in task.judge(shape)} == {5}


# ---- what is found -------------------------------------------------------------------------------------------------


def difference(first: str, second: str, names: str, size: int, **options: object) -> list[dict[str, object]]:
    words = vocabulary(names.split(","), spread=("one",))
    return run(DifferenceTask(first, second, words, size, True), HereAndNow()).results


def test_a_model_does_not_differ_from_itself_or_its_reformulation(tmp_path: Path) -> None:
    again = tmp_path / "again.cat"
    again.write_text(
        '"PTX 9.4"\ninclude "ptx-9.4.cat"\noverride let thread-causality = po | po? ; (synchronizes ; po?)+\n'
    )
    assert not difference("ptx-9.4", str(again), "core", 3)


@pytest.mark.parametrize(
    ("second", "names", "size", "spellings"),
    [
        ("readings/D12-proxy-fence", "wgmma.registers,st.shared.weak,fence.proxy.async,wgmma.fence", 3, 1),
        ("readings/D8-mma-cp", "tcgen05.mma,tcgen05.cp", 2, 2),
    ],
)
def test_matrix_instructions_in_several_spellings(second: str, names: str, size: int, spellings: int) -> None:
    """An operand in registers, and two shapes of a copy to tensor memory."""
    words = vocabulary(names.split(","), ["cta"], threads=1, locations=2, spread=("one",))
    found = run(DifferenceTask("ptx-9.4", second, words, size, True), HereAndNow()).results
    assert [(one["size"], one["spellings"]) for one in found] == [(size, spellings)]


def test_two_plus_two_writes_is_found() -> None:
    found = difference("sc", "ptx-6.0", "st.weak", 4)
    assert [one["size"] for one in found] == [4]


def test_a_change_that_no_shipped_test_notices_is_found(tmp_path: Path) -> None:
    """The second write of a release pattern may go to another location."""
    loose = tmp_path / "loose.cat"
    loose.write_text(
        '"PTX 9.4"\ninclude "ptx-9.4.cat"\noverride let release-pattern = [W & REL] | '
        "([W & REL] | [release-fence]) ; po ; [strong-write]\n"
    )
    words = "st.release,st.relaxed,ld.relaxed,ld.weak,fence.acq_rel"
    task = DifferenceTask("ptx-9.4", str(loose), vocabulary(words.split(","), ["gpu"], 2, spread=("one",)), 5, True)
    shapes = [it for it in sketches(task.vocabulary, 4) if sorted(_names(it, task.vocabulary)) == ["ld ld", "st st"]]
    assert any(task.judge(sketch) for sketch in shapes)


def _names(it: object, words: Vocabulary) -> list[str]:
    return [" ".join(words.accesses[name].name for name, _ in body) for body in it.threads]  # type: ignore[attr-defined]


def test_minimally_forbidden_programs() -> None:
    found = run(SynthesisTask("ptx-9.4", vocabulary(["core"], spread=("one",)), 3), HereAndNow()).results
    assert {one["size"] for one in found} == {2, 3} or {one["size"] for one in found} == {3}
    for one in found:
        assert api.check(str(one["text"])).answer.observation.value == "never"


def test_each_instruction_of_a_forbidden_program_is_needed() -> None:
    """Also of those on no cycle of communication; a load more that changes nothing is not shown."""
    words = vocabulary(["ld.weak", "ld.relaxed", "st.weak", "st.relaxed"], ["cta"], 2, 1, spread=("one",))
    found = run(SynthesisTask("ptx-9.4", words, 4), HereAndNow()).results
    conditions = {str(record["text"]).splitlines()[-1] for record in found}
    assert "exists (P0:r0 == 2 /\\ P0:r2 == 2 /\\ x == 1)" in conditions and len(found) == 7


# ---- work ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deadly:
    """Eight parts, of which one ends its process whenever it is judged, and one when it is judged first."""

    folder: Path
    most: int = 1
    chunk: int = 1
    first_only: bool = False

    def key(self) -> str:
        return "deadly"

    def parts(self, size: int) -> list[int]:
        return list(range(8))

    def judge(self, part: int) -> list[Record]:
        if part == 2 or (part == 5 and not (self.folder / "seen").exists()):
            (self.folder / "seen").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [{"part": part}]


@pytest.mark.parametrize("count", [1, 2])
def test_a_process_that_is_killed_costs_its_own_part(tmp_path: Path, count: int) -> None:
    (tmp_path / "seen").unlink(missing_ok=True)
    journal = tmp_path / "kept"
    rows = run(Deadly(tmp_path), Processes(count), journal=str(journal), killed=lambda part: [{"killed": part}])
    assert rows.results == [{"killed": 2} if part == 2 else {"part": part} for part in range(8)]
    assert not rows.interrupted
    searched = run(Deadly(tmp_path), Processes(count), journal=str(journal))  # tries the one that is left again
    assert searched.results == [{"part": part} for part in range(8) if part != 2]
    assert (searched.interrupted, searched.reason, searched.bound) == (True, KILLED, 0)


def test_processes_find_the_same_and_a_file_keeps_it(tmp_path: Path) -> None:
    words = vocabulary(["plain"], spread=("one",))
    task = DifferenceTask("sc", "ptx-6.0", words, 4, True)
    journal = tmp_path / "kept.jsonl"
    alone = run(task, HereAndNow())
    several = run(task, Processes(2), journal=str(journal))
    assert several.results == alone.results
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines[:-2], lines[-2][:20]]) + "\n")
    again = run(task, HereAndNow(), journal=str(journal))
    assert again.results == alone.results
    other = DifferenceTask("sc", "ptx-7.5", words, 4, True)
    with pytest.raises(InputError, match="another search"):
        run(other, HereAndNow(), journal=str(journal))


def test_time_runs_out(tmp_path: Path) -> None:
    task = DifferenceTask("sc", "ptx-6.0", vocabulary(["core"]), 6, True)
    found = run(task, HereAndNow(), seconds=0.5, whole=7.0)
    assert found.interrupted and found.bound < 6
    assert found.reason == "the budget of 7 seconds ran out"  # of which half a second was left


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers, each a process of its own, on loopback."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    base = [sys.executable, "-m", "distributed.cli"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    arguments = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show", "--scheduler-file", str(file)]
    started = [subprocess.Popen([*base[:2], f"{base[2]}.dask_scheduler", *arguments], **quiet)]  # type: ignore[call-overload]
    try:
        assert eventually(lambda: file.exists() and file.stat().st_size)
        address = str(json.loads(file.read_text())["address"])
        worker = [*base[:2], f"{base[2]}.dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny"]
        started += [
            subprocess.Popen([*worker, "--host", "127.0.0.1", "--local-directory", str(tmp_path)], **quiet)  # type: ignore
            for _ in range(2)
        ]
        yield address, started
    finally:
        for one in reversed(started):
            one.kill()
            one.wait()


def test_a_dask_cluster_finds_the_same_though_a_worker_dies(
    cluster: tuple[str, list[subprocess.Popen[bytes]]],
) -> None:
    from memmodel.search.work import DaskCluster

    address, processes = cluster
    task = DifferenceTask("sc", "ptx-6.0", vocabulary(["plain"], spread=("one",)), 4, True)
    where = DaskCluster(address)
    where.wait_for(2)
    killed = []

    def told(size: int, done: int, total: int) -> None:
        if not killed and size == 4 and done * 2 >= total:
            processes[1].kill()
            killed.append(done)

    found = run(task, where, report=told)
    assert killed
    assert found.results == run(task, HereAndNow()).results


# ---- what people type ----------------------------------------------------------------------------------------------


def test_words_that_are_no_instruction() -> None:
    with pytest.raises(InputError, match="no instruction 'lod'"):
        vocabulary(["lod"])
    with pytest.raises(InputError, match="ld has no form 'release'"):
        vocabulary(["ld.release"])
    with pytest.raises(InputError, match="unknown scope"):
        vocabulary(["ld"], ["block"])
    with pytest.raises(InputError, match="not a fence"):
        vocabulary(["fence.sc"])


def test_bounds_are_drawn_for_several_searches() -> None:
    from memmodel.search.explain import bound_plot

    drawn = bound_plot({"core": {3: 0.5, 4: 20.0}, "a<b": {3: 1.0}, "nothing": {}})
    assert drawn.count('<path d="M') >= 3 and ">core<" in drawn and "a&lt;b" in drawn and "nothing" not in drawn
    assert ">100 s<" in drawn and bound_plot({}).startswith("<svg")


def test_the_lattice_of_models() -> None:
    pytest.importorskip("networkx")
    from memmodel.search.lattice import implications, lattice, lattice_svg

    names = ["sc", "ptx-6.0", "ptx-9.4"]
    found = implications(names, vocabulary(["plain"], spread=("one",)), 4)
    assert ("sc", "ptx-6.0") in found and ("ptx-6.0", "sc") not in found
    drawn = lattice_svg(lattice(names, found))
    assert drawn.startswith("<svg") and "ptx-9.4" in drawn

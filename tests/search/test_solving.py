"""The search by solving: its formulas say of each program what the engines say, and it finds what listing finds."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations, product
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.examples import share

from memmodel.base.labels import Access, Side
from memmodel.base.resources import axioms_dir
from memmodel.cli.app import app
from memmodel.errors import BudgetSpent, TooLarge
from memmodel.events import builder
from memmodel.isa.rows.ingredients import Form
from memmodel.search.differences import ModelPair
from memmodel.search.programs import Specimen
from memmodel.search.solving.folded import Folded
from memmodel.search.solving.layouts import ThreadLayout, layouts
from memmodel.search.solving.question import ProgramQuestion
from memmodel.search.solving.superposed import Superposed
from memmodel.search.solving.task import SolvingTask
from memmodel.search.solving.wellformed import constrain
from memmodel.search.tasks import DifferenceTask
from memmodel.search.vocabulary import Vocabulary, vocabulary
from memmodel.search.work import HereAndNow, run
from memmodel.solve.cadical import CaDiCaL
from memmodel.solve.formulas import Satisfiable

pytestmark = pytest.mark.turns(2)

ONE_CTA = ((0, 0, 0), (0, 0, 0))
TWO_CTAS = ((0, 0, 0), (0, 1, 1))


def edited(directory: Path, rule: str) -> str:
    """The default model with one rule changed."""
    path = directory / "edited.cat"
    path.write_text(f'"edited"\ninclude "{axioms_dir() / "ptx-9.4.cat"}"\n{rule}\n')
    return str(path)


def test_an_access_has_as_many_events_as_the_other_words_cut_its_bytes():
    """The labels of an instruction are kept for the next vocabulary, in which the same bytes may be one cell."""
    for words in (["tcgen05.ld", "tcgen05.mma", "tcgen05.shift"], ["tcgen05.ld", "tcgen05.mma"]):
        words_of_two = vocabulary(words)
        for layout in layouts(words_of_two, 2):
            program = Superposed(words_of_two, layout)
            graph = program.graph()
            assert len(program.labels(graph)) == len(graph.events)


def test_events_share_a_lane_only_if_no_execution_has_both() -> None:
    """A copy by a tensor map has the events of each map that it may find there: one or the other is executed."""
    words = vocabulary(["copy.map", "tensormap.replace", "st.tile.weak"], locations=1)
    folded = Folded(Superposed(words, ThreadLayout((1, 1), ONE_CTA)))
    constrain(folded)
    lanes: dict[int, list[int]] = {}
    for event, lane in zip(folded.graph.events, folded.lane_of, strict=True):
        lanes.setdefault(lane, []).append(folded.base.runs[event.uid])
    solver = CaDiCaL(folded.logic)
    for runs in lanes.values():
        for one, other in combinations(runs, 2):
            assert solver.check([folded.logic.both(one, other)]) is Satisfiable.UNSAT
    assert any(
        folded.owners[first] == folded.owners[second] is not None
        for first, second in combinations(range(len(folded.lane_of)), 2)
        if folded.lane_of[first] == folded.lane_of[second]
    )


@pytest.mark.parametrize(("words", "events"), [("", 1), ("reduce", 2), ("tcgen05.shift", 4)])
def test_no_word_cuts_a_tile_without_need(words: str, events: int):
    """What is copied to tensor memory is as large as a tile, or as the word of it that a reduction adds; a shift moves
    columns. Copies have as many events for a tile as that leaves."""
    names = "ld.shared ld.tile copy.in copy.out st.async wgmma tcgen05.mma tcgen05.cp tcgen05.st tcgen05.ld"
    spelt = vocabulary([*names.split(), *words.split()])
    program = Superposed(spelt, next(iter(layouts(spelt, 2))))
    graph = program.graph()
    copies = {
        (slot, number)
        for slot, options in enumerate(program.options)
        for number, option in enumerate(options)
        if option.ingredient is not None and option.ingredient.name == "copy.out"
    }
    written = Counter(
        owner
        for event, owner in zip(graph.events, program.owners(graph), strict=True)
        if owner in copies and isinstance(event.label, Access) and event.label.side is Side.WRITE
    )
    assert written.keys() == copies and set(written.values()) == {events}


# ---- one program at a time -----------------------------------------------------------------------------------------


def random_programs(question: ProgramQuestion, count: int, choose: random.Random) -> Iterator[list[int]]:
    """Programs of a layout, as the variables that hold."""
    folded, solver, programs = question.folded, question.solver, question.programs[-1]
    for _ in range(count):
        wanted: list[int] = []
        for slot, options in enumerate(question.program.options):
            for number in choose.sample(range(len(options)), len(options)):
                form = choose.randrange(len(options[number].forms))
                if solver.check([programs, *wanted, folded.form(slot, number, form)]).value == "sat":
                    wanted.append(folded.form(slot, number, form))
                    break
        assert solver.check([programs, *wanted]).value == "sat"
        yield wanted


def outcomes(question: ProgramQuestion, program: list[int], model: int) -> set[frozenset[int]]:
    """What tells the outcomes of a program apart, by the formulas: whom answering reads read from, what tests return,
    what is left in memory."""
    folded, solver = question.folded, question.solver
    shown = [
        formula
        for row in folded.base.communication.rf
        for read, formula in row.items()
        if (owner := folded.owners[read]) is not None
        and (it := question.program.options[owner[0]][owner[1]].ingredient) is not None
        and it.answers
    ]
    shown += [formula for cell in folded.base.communication.finals.values() for formula in cell.values()]
    shown += folded.base.mbarriers.done.values()
    found: set[frozenset[int]] = set()
    barred: list[int] = []
    while solver.check([*program, question.ends, question.allowed[model], *barred]).value == "sat":
        true = [formula if solver.holds(formula) else -formula for formula in shown]
        barred.append(-question.logic.conj(true))
        found.add(frozenset(formula for formula in true if solver.holds(formula)))
    return found


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("words", "lengths", "seats"),
    [
        ("ld,st,atom,fence.sc,fence.acq_rel", (3, 2), ONE_CTA),
        ("ld,st,fence.sc,fence.acq_rel", (3, 3), TWO_CTAS),
        ("ld.weak,ld.relaxed,st.data", (2, 2), ONE_CTA),
        ("ld.shared,st.shared,arrive,wait,fence.acq_rel", (2, 2), ONE_CTA),
        ("ld.weak,st.weak,bar", (2, 2), ONE_CTA),
        ("st.async.release,ld.weak,ld.acquire,ld.alias,st.weak,fence.proxy.alias.release", (2, 2), TWO_CTAS),
        ("st.async,cp.async,cp.async.wait,cp.async.arrive,ld.shared.weak,wait.acquire", (2, 1), ONE_CTA),
        ("init,inval,arrive.release,wait.acquire,st.shared.weak,ld.shared.weak", (3, 2), ONE_CTA),
        ("tcgen05.alloc,tcgen05.dealloc,tcgen05.relinquish,tcgen05.st,tcgen05.ld,tcgen05.wait::st", (3, 2), ONE_CTA),
    ],
)
def test_the_formulas_say_of_a_program_what_the_engines_say(
    words: str, lengths: tuple[int, ...], seats: tuple[tuple[int, int, int], ...]
) -> None:
    pair = ModelPair("sc" if "fence.sc" in words else "ptx-9.4", "ptx-9.3", outcomes=True)
    idle = not {"arrive", "async"} & {*re.split(r"[,.]", words)}  # what nothing waits for has many executions
    question = ProgramQuestion(pair, replace(vocabulary(words.split(",")), idle=idle), ThreadLayout(lengths, seats))
    for program in share(random_programs(question, 6, random.Random(3)), 2):
        assert question.solver.check(program).value == "sat"
        specimen, literals = question.candidate()
        assert set(literals) == set(program)
        for number, model in enumerate(pair.models):
            engine = specimen.outcomes(model)
            assert len(outcomes(question, program, number)) == len(engine), specimen.text("exists (true)")


def test_what_is_too_large_is_all_programs_at_once_and_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "MAX_EVENTS", 10)
    with pytest.raises(
        TooLarge, match="all programs of 4 instructions in 2 threads, taken together: more than 10"
    ) as it:
        ProgramQuestion(ModelPair("sc", "ptx-9.4"), vocabulary(["core"]), ThreadLayout((2, 2), ONE_CTA))
    assert "--threads" in str(it.value.hint) and "loop" not in str(it.value.hint)


@pytest.mark.parametrize("seats", [ONE_CTA, TWO_CTAS])
def test_the_formulas_find_in_a_program_what_the_engine_finds(seats: tuple[tuple[int, int, int], ...]) -> None:
    """Tensor memory that is allocated, freed and accessed in any order: most programs have some of the findings."""
    words = vocabulary(["tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish", "tcgen05.st", "tcgen05.wait::st"])
    pair = ModelPair("ptx-9.4", "ptx-9.3")
    question = ProgramQuestion(pair, replace(words, idle=True), ThreadLayout((3, 2), seats))
    found: set[str] = set()
    for program in random_programs(question, 4, random.Random(5)):
        assert question.solver.check(program).value == "sat"
        specimen, _ = question.candidate()
        flags = specimen.flags(pair.models[0])
        for flag, parts in question.raised[0].items():
            raised = question.logic.disj(parts.values())
            shown = question.satisfiable(*program, question.ends, question.allowed[0], raised)
            assert shown is (flag in flags), specimen.text("exists (true)")
        found |= flags
    assert len([flag for flag in found if flag.startswith("undefined-tensor-memory")]) > 1


def programs(words: Vocabulary, size: int) -> Iterator[Specimen]:
    """Every program of so many instructions that the formulas have, each in every order of threads that they leave."""
    pair = ModelPair("sc", "sc", outcomes=True)
    for layout in layouts(words, size):
        question = ProgramQuestion(pair, words, layout)
        while question.solver.check([question.programs[-1]]).value == "sat":
            specimen, literals = question.candidate()
            yield specimen
            question.logic.require(*(-literal for literal in literals))


def test_programs_are_those_that_are_listed() -> None:
    """Up to renaming, the programs of the formulas are those of the sketches: here those without a spelling."""
    words = vocabulary(["ld.weak", "st.weak"], locations=2, spread=("one",))
    made = {bodies(specimen) for specimen in programs(words, 4)}
    from memmodel.search.sketches import canonical, sketches

    listed = {sketch.threads for sketch in sketches(words, 4)}
    assert listed <= {canonical(threads, words.accesses) for threads in made}


Text = tuple[tuple[tuple[Form, tuple[int, ...]], ...], ...]
"""Threads of forms, each with its places."""


@pytest.mark.parametrize(
    ("names", "size", "places"),
    [
        ("ld.weak,st.weak,fence.acq_rel,fence.sc", 3, 2),
        ("ld.weak,red.relaxed,st.data", 3, 1),
        ("arrive,wait,st.shared.weak", 3, 1),
        ("copy.out,wait_group,st.shared.weak,fence.proxy.async,fence.acq_rel", 3, 1),
        ("tcgen05.alloc,tcgen05.dealloc,tcgen05.relinquish,tcgen05.st", 3, 1),
    ],
)
def test_no_program_is_lost_as_idle(names: str, size: int, places: int) -> None:
    """With those of idle instructions, the programs are all texts up to renaming: no model can tell more apart."""
    words = replace(vocabulary(names.split(","), ("cta",), 2, places, ("one",)), idle=True)
    made = {renamed(text_of(specimen), words) for specimen in programs(words, size)}
    uses = [
        (form, where)
        for it in words.accesses
        for where in product(range(places), repeat=len(it.places))
        for form in it.forms
    ]
    every = [*uses, *((form, ()) for form in words.fences)]
    texts = set()
    for text in product(every, repeat=size):
        for cut in range(1, size + 1):
            threads = [text[:cut], text[cut:]]
            if all(loads_before(thread, words) for thread in threads) and allocated_in_turn(threads):
                texts.add(renamed(tuple(thread for thread in threads if thread), words))
    assert made == texts


def text_of(specimen: Specimen) -> Text:
    """A program as forms and places."""
    return tuple(
        tuple((spot.forms[0], () if spot.use is None else spot.use[1]) for spot in body if spot.forms[0] is not None)
        for body in specimen.draft.threads
    )


def renamed(threads: Text, words: Vocabulary) -> Text:
    """One of the programs that differ by the order of threads and the names of places alone."""
    kinds = {form: it.places for it in words.accesses for form in it.forms}
    every = []
    for order in permutations(threads):
        known: dict[str, dict[int, int]] = {}
        every.append(
            tuple(
                tuple(
                    (
                        form,
                        tuple(
                            (mine := known.setdefault(kind, {})).setdefault(place, len(mine))
                            for kind, place in zip(kinds.get(form, ""), places, strict=True)
                        ),
                    )
                    for form, places in body
                )
                for body in order
            )
        )
    return min(every, key=repr)


def loads_before(thread: tuple[tuple[Form, tuple[int, ...]], ...], words: Vocabulary) -> bool:
    """True if each value that depends on a load has one before it."""
    loading = {form for it in words.accesses if it.answers and {"r", "u"} & set(it.does) for form in it.forms}
    return all(
        not form.data or any(before in loading for before, _ in thread[:at]) for at, (form, _) in enumerate(thread)
    )


def allocated_in_turn(threads: Sequence[tuple[tuple[Form, tuple[int, ...]], ...]]) -> bool:
    """True if no place is allocated by two threads, or by one before it freed what it had allocated."""
    done = [
        [(number, word) for form, _ in thread for word in ("alloc", "dealloc") if f"tcgen05.{word}." in form.text]
        for number, thread in enumerate(threads)
    ]
    pairs = [pair for mine in done for pair in pairwise(mine)]
    allocating = {number for mine in done for number, word in mine if word == "alloc"}
    return len(allocating) <= 1 and all((first[1], second[1]) != ("alloc", "alloc") for first, second in pairs)


FLAGGED = {
    "alone": ("R", "ld.weak,st.weak", 1),
    "only read": ("[R] ; po & loc ; [R] ; po & loc ; [R]", "ld.weak,st.weak", 3),
    "fence at the end": ("F \\ domain(po)", "ld.weak,st.weak,fence.sc", 1),
    "fences side by side": ("[W] ; po ; [F] ; po ; [F] ; po ; [W]", "st.weak,fence.sc", 4),
    "wait for nothing": ("WAITGROUP \\ range(po)", "copy.out,wait_group,st.shared.weak", 1),
    "no arrival": ("[MBTEST] ; po ; [MBTEST]", "arrive,wait,st.shared.weak", 2),
}
"""What a model reports, words, and the size of the smallest program: each has an instruction that is idle under PTX."""


@pytest.mark.parametrize("name", FLAGGED)
def test_what_is_idle_under_one_model_may_not_be_under_another(name: str, tmp_path: Path) -> None:
    reported, names, size = FLAGGED[name]
    words = vocabulary(names.split(","), ("cta",), 2, 1, ("one",))
    models = []
    for number, body in enumerate(("0", reported)):
        models.append(str(tmp_path / f"m{number}.cat"))
        Path(models[-1]).write_text(f'"m{number}"\nflag ~empty {body} as data-race\n')
    assert smallest(SolvingTask(*models, replace(words, idle=True), size)) == size
    assert smallest(SolvingTask(*models, words, size)) is None


def bodies(specimen: Specimen) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]:
    """The instructions of a program without spellings and fences."""
    return tuple(tuple(spot.use for spot in body if spot.use is not None) for body in specimen.draft.threads)


# ---- both ways -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """`size`: of the smallest program that shows it; None: none does up to `most`."""

    rule: str
    words: str
    size: int | None
    most: int = 4
    spread: tuple[str, ...] = ("cta",)
    outcomes: bool = True
    threads: int = 3
    places: int = 2
    scopes: tuple[str, ...] = ("cta", "gpu")


COPIES = "copy.in,wait.acquire,ld.shared.weak"
OBJECTS = "ld.shared.weak,st.shared.weak,arrive,wait"
FENCED = "ld.weak,ld.relaxed,st.weak,st.release,fence.acq_rel"
ALLOCATED = "tcgen05.alloc,tcgen05.dealloc,tcgen05.st"
HANDED_OVER = "ld.weak,ld.acquire,st.weak,st.release"

EDITS = {
    "scope": Edit("override let in-scope = [strong] ; ext ; [strong]", "ld,st", 3),
    "composition": Edit("override let thread-causality = po | synchronizes", HANDED_OVER, 4),
    "fence": Edit("override let acquire-fence = (F & ACQ) \\ UNI", FENCED, 5, 5, scopes=("cta",)),
    "dependency": Edit("override let dependency = 0", "ld.relaxed,st.data.relaxed", 4),
    "barrier": Edit("override let barrier-sync = 0", "ld.weak,st.weak,bar", 4),
    "phase": Edit("override let phase-release = 0", OBJECTS, 4, 4, ("one",), places=1),
    "implicit": Edit("override let D3-implicit = WGMMA | CLC", COPIES, 3, 3, ("one",), places=1),
    "far": Edit("override let D6-in-scope = sri", COPIES, 3, 3, ("cta", "cluster"), places=1),
    "pipelined": Edit("override let D8-pipelined = MMA * CP", "tcgen05.mma,tcgen05.cp", 2, 2, ("one",)),
    "race": Edit("override let racing = conflict \\ apart", "ld.relaxed,st.relaxed", 2, 2, outcomes=False),
    "reformulated": Edit("override let observation = (observed ; rmw)* ; observed", "ld,st,atom.relaxed", None, 3),
    "freed": Edit("override let freed-twice = 0", ALLOCATED, 3, 3, ("one",), False, 2, 1),
    "unallocated": Edit("override let never-allocated = 0", ALLOCATED, 2, 2, ("one",), False, 2),
    "elsewhere": Edit("override let D8-pipelined = MMA * CP", "ld,st,fence.sc", None, outcomes=False),
}  # fmt: skip


def smallest(task: SolvingTask | DifferenceTask) -> int | None:
    """The size of the smallest program that the models tell apart."""
    results = run(task, HereAndNow(), enough=bool).results
    return min((int(record["size"]) for record in results), default=None)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", share(EDITS, 4))
def test_solving_finds_what_listing_finds(name: str, tmp_path: Path) -> None:
    it = EDITS[name]
    searched: Vocabulary = vocabulary(it.words.split(","), it.scopes, it.threads, it.places, it.spread)
    model = edited(tmp_path, it.rule)
    assert smallest(SolvingTask("ptx-9.4", model, searched, it.most, it.outcomes)) == it.size
    assert smallest(DifferenceTask("ptx-9.4", model, searched, it.most, it.outcomes)) == it.size


def test_as_many_programs_are_found() -> None:
    """Of models that differ in much, too: there other orders of the writes refute most candidates."""
    words = vocabulary(["ld.weak", "ld.relaxed", "st.weak", "st.relaxed"], ["gpu"], 3, 1, ["one"])
    pair = ModelPair("sc", "ptx-6.0", outcomes=True)
    made: set[object] = set()
    for layout in layouts(words, 3):
        question = ProgramQuestion(pair, words, layout)
        while question.differences():
            specimen, literals = question.candidate()
            question.logic.require(*(-literal for literal in literals))
            threads = [tuple((spot.use, spot.forms) for spot in body) for body in specimen.draft.threads]
            made.add(min(permutations(threads), key=repr))
    listed = run(DifferenceTask("sc", "ptx-6.0", words, 3, True), HereAndNow()).results
    assert len(made) == sum(int(record["spellings"]) for record in listed) > 10


# ---- the command ---------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    model = edited(tmp_path, EDITS["scope"].rule)
    command = ["diff", "ptx-9.4", model, "--search", "4", "--by", "solving", "--jobs", "1", "--outcomes"]
    differ = CliRunner().invoke(app, command)
    assert differ.exit_code == 1, differ.output
    assert "the smallest programs have 3 instructions" in differ.output
    same = CliRunner().invoke(app, ["diff", "ptx-9.4", "ptx-9.4", "--search", "2", "--by", "solving", "--jobs", "1"])
    assert same.exit_code == 0, same.output
    assert "no difference, up to 2 instructions" in same.output
    assert "idle instructions too" in same.output


def test_idle_instructions_are_left_out_if_asked() -> None:
    verify = ["verify", "async-proxy-fencing", "--vocabulary", "ld.shared.weak,copy.out", "--size", "2", "--jobs", "1"]
    result = CliRunner().invoke(app, [*verify, "--by", "solving", "--no-idle"])
    assert result.exit_code == 0, result.output
    assert "none idle" in result.output


def test_time_that_runs_out_is_no_answer(tmp_path: Path) -> None:
    """Of models that do not differ, so that however fast the search is, no program ends it."""
    it = EDITS["reformulated"]
    model = edited(tmp_path, it.rule)
    command = ["diff", "ptx-9.4", model, "--search", "8", "--by", "solving", "--timeout", "1", "--jobs", "1"]
    result = CliRunner().invoke(app, [*command, "--vocabulary", it.words, "--outcomes"])
    assert result.exit_code == 3, result.output
    assert "seconds ran out" in result.output


def test_programs_that_could_allocate_too_much_are_not_asked_for() -> None:
    words = vocabulary(["tcgen05.alloc"], threads=1, locations=3)
    assert Superposed(words, ThreadLayout((5,), ONE_CTA[:1])).options
    with pytest.raises(BudgetSpent, match="512 columns"):
        Superposed(words, ThreadLayout((6,), ONE_CTA[:1]))

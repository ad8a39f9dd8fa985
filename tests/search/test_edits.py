"""What the plain `memmodel diff` finds: the labels of programs, smaller programs, and what it says was tried."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from helpers.examples import share

from benchmarks.edits import by_processor, edited_model, edits
from memmodel import api
from memmodel.answer import Budget
from memmodel.base.labels import Access, Fault, Undefined
from memmodel.base.resources import suite_dir
from memmodel.cli import main
from memmodel.cli.searches import Changed, Searching
from memmodel.concrete.meter import Meter
from memmodel.enumeration.problem import prepare
from memmodel.errors import BudgetSpent, InputError
from memmodel.isa.rows.row import Effect
from memmodel.isa.searching.not_searched import NOT_SEARCHED
from memmodel.isa.searching.searched import SEARCHED
from memmodel.isa.table import HEADS, TABLE
from memmodel.ptx.vocabulary import Sem
from memmodel.search.differences import compared_flags
from memmodel.search.edits import edited
from memmodel.search.edits.comparing import EFFORT, MORE_EFFORT, ComparedModels, labels_in
from memmodel.search.edits.completing import by_flags, by_word, joined, reached, spelt_out
from memmodel.search.edits.identical import identical
from memmodel.search.edits.reducing import bare, size_of
from memmodel.search.edits.tasks import sides_of
from memmodel.search.edits.variants import respelt
from memmodel.search.edits.witness import Shrinker, read_again, shown
from memmodel.search.edits.word_labels import word_labels
from memmodel.search.edits.words import ChosenWords
from memmodel.search.properties import load_property
from memmodel.search.vocabulary import SCOPES, every_word, vocabulary
from memmodel.search.work import HereAndNow, Progress

pytestmark = pytest.mark.turns(2)

EDITS = {edit["name"]: edit for edit in edits()}


@pytest.fixture
def model(tmp_path):
    return lambda name: str(edited_model(EDITS[name], tmp_path))


def test_every_edit_is_read_and_only_reformulations_are_proved_equal(tmp_path):
    sized, same = ([edit for edit in EDITS.values() if ("size" in edit) is has] for has in (True, False))
    assert len(sized) >= 50 and len(same) >= 2
    default = api.load("ptx-9.4")
    for edit in [*share(sized, 8), *same]:
        models = default, api.load(str(edited_model(edit, tmp_path)))
        assert identical(models, compared_flags(models)) is ("size" not in edit), edit["name"]


def test_no_event_has_a_label_that_its_step_has_not():
    """Otherwise programs on which models differ would be left out by their labels."""
    for path in sorted(suite_dir().rglob("*.litmus"))[::40]:
        lowered = api.lowered(str(path))
        try:
            problem = prepare(lowered, 3, Meter(Budget(effort=200_000)), waits=True)
        except (BudgetSpent, InputError):
            continue
        runs = (*problem.complete, *problem.waiting, *problem.stopped)
        labels = {record.label for traces in runs for trace in traces for record in trace.records}
        assert {label for label in labels if not isinstance(label, Fault | Undefined)} <= labels_in(lowered), path


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("proxy-fence-of-any-space", "async/proxy/A15-wrong-space"),
        ("release-then-write", "readings/release-2+relaxed-store"),
        ("pipelined-shift", "async/tcgen05/T16-cross-thread"),
        ("half-of-a-write", "bytes/single-copy"),
    ],
)
def test_a_shipped_test_becomes_the_smallest_program(model, name, test):
    names = ("ptx-9.4", model(name))
    comparison = ComparedModels((api.load(names[0]), api.load(names[1])))
    program = bare(api.lowered(str(suite_dir() / f"{test}.litmus")).test)
    smallest = Shrinker(comparison, float("inf")).shrunk(program)
    assert size_of(smallest) == EDITS[name]["size"]
    difference = shown(comparison, smallest, names)
    words = {api.check(difference.text, name).answer.observation.value for name in names}
    assert words == {"sometimes", "never"} or words == {"always", "never"}


def test_a_test_that_is_undecided_is_run_again_with_more_effort(monkeypatch, model):
    few_tests(monkeypatch, "generic/H3", "readings/sc-per-location+edges")
    found = edited.WhatDiffers()
    seeds = edited.on_shipped_tests(sides_of("ptx-9.4", model("no-sc-per-location")), HereAndNow(), found, 600)
    assert [seed["size"] for seed in seeds] == [EDITS["no-sc-per-location"]["size"]]
    assert found.covered == ["2 shipped tests"] and found.left == [] and seeds[0]["effort"] > EFFORT


def test_small_programs_without_a_loop_are_given_more_effort_first(monkeypatch):
    sizes, asked = {"loop": 2, "small": 7, "large": 9}, []

    def judge(task, path):
        asked.append((path, task.effort))
        return [{"path": path, "size": sizes[path], "jumps": path == "loop", "undecided": "effort"}]

    monkeypatch.setattr(edited, "shipped_programs", lambda: list(sizes))
    monkeypatch.setattr(edited.SuiteTask, "judge", judge)
    found = edited.WhatDiffers()
    assert edited.on_shipped_tests(sides_of("ptx-9.4", "ptx-9.3"), HereAndNow(), found, 600) == []
    more, most = MORE_EFFORT
    again = [(path, effort) for effort in MORE_EFFORT for path in ("loop", "small", "large")]
    assert asked[3:] == [("small", more), ("small", most), *again]
    assert found.covered == ["0 of 3 shipped tests"]


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("release-write", {"st.release", "ld.acquire", "st.weak", "ld.weak"}),
        ("reduction-acquires", {"red.relaxed"}),
        ("named-barrier-orders-nothing", {"bar"}),
        ("fenced-arrive", {"fence.acq_rel", "cluster.arrive.relaxed", "cluster.wait"}),
        ("commit-without-copies", {"tcgen05.cp.128x256b", "tcgen05.commit", "wait.acquire", "tcgen05.ld"}),
        ("proxy-fence-of-any-space", {"fence.proxy.async", "copy.in", "st.shared.weak"}),
        ("fence-sc-synchronizes-nothing", {"fence.sc"}),
        ("atomicity-among-atomics", {"atom.relaxed"}),
        ("thin-air-by-data", {"st.data.weak"}),
        ("mma-after-mma", {"tcgen05.mma"}),
        ("tensor-read-of-the-past", {"tcgen05.st", "tcgen05.ld", "tcgen05.wait::st"}),
        ("pipelined-shift", {"tcgen05.shift", "tcgen05.cp.4x256b"}),
        ("release-issue", {"st.async.release"}),
        ("half-an-alias-fence", {"ld.alias.weak", "fence.proxy.alias.release"}),
        ("tensormap-acquire-is-nothing", {"fence.proxy.tensormap.acquire", "copy.map"}),
        ("inval-after-use", {"inval"}),
        ("restricted-fence-orders-all", {"fence.release.restricted"}),
        ("no-observation-through-rmw", {"atom.relaxed"}),
        ("one-atomic-in-a-chain", {"atom.relaxed"}),
        ("coherence-at-one-address", {"ld.alias.weak"}),
        ("refusal-seen-by-a-neighbour", {"try_cancel"}),
        ("barriers-are-no-execution-order", {"tcgen05.fence::before", "tcgen05.fence::after", "bar"}),
    ],
)
def test_the_edit_chooses_the_words(model, name, words):
    chosen = [{*words.words} for words in sides_of("ptx-9.4", model(name)).chosen_words().first]
    assert words <= chosen[0] and len(chosen[0]) <= len(words) + 8
    assert chosen[0] <= chosen[-1] < {*every_word()}


def test_accesses_through_another_address_are_of_one_class_of_places_at_a_time(model):
    """Those of every class beside a copy, its signal and both halves of a fence were too many words to ask for."""
    first = sides_of("ptx-9.4", model("alias-fence-before-a-pair")).chosen_words().first
    aliases = [[word for word in it.words if ".alias." in word and not word.startswith("fence")] for it in first]
    classes = [{word.split(".alias")[0] for word in words} for words in aliases]
    assert classes == 2 * [{"ld.shared", "st.shared"}, {"ld.tile", "st.tile"}]
    assert all("copy.in" in words.words for words in first) and max(len(words.words) for words in first[:2]) == 8


def test_of_two_sets_of_words_the_one_that_brings_fewer_comes_first(model):
    """A copy into shared memory, whose end a signal tells of, brings its object; a reduction has groups. Words that a
    tile hands over are more, so that fewer matter."""
    first = sides_of("ptx-9.4", model("bulk-reduction-acquires")).chosen_words().first
    assert "wait_group" in first[0].words and all("copy.in" not in words.words for words in first)
    assert [("st.tile.release" in it.words, "st.shared.release" in it.words) for it in first] == [
        (False, False), (False, True), (True, False), (True, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "scopes", "spread"),
    [
        ("scope-of-another-cluster", {"cta", "cluster", "gpu"}, {"cta", "cluster", "gpu"}),
        ("scope-ends-with-the-cluster", {"cta", "gpu"}, {"cta", "cluster"}),
        ("release-write", {"cta", "gpu"}, {"cta"}),
    ],
)
def test_the_edit_chooses_scopes_and_placements(model, name, scopes, spread):
    words = sides_of("ptx-9.4", model(name)).chosen_words().first[-1]
    forms = {word for ingredient in words.ingredients for form in ingredient.forms for word in form.words}
    assert forms & {*SCOPES} == scopes and {*words.spread} == spread


def test_further_words_lack_an_instruction_that_the_first_ones_need(model):
    chosen = sides_of("ptx-9.4", model("signal-publishes-nothing")).chosen_words()
    assert {"copy.in", "wait.acquire"} <= {*chosen.first[0].words}
    assert {"copy.in", "fence.proxy.async"} <= {*chosen.others[0].words}
    assert any("st.async" in words.words and "copy.in" not in words.words for words in chosen.others)


def test_further_words_are_tried_where_nothing_was_found(monkeypatch, model):
    few_tests(monkeypatch, "isa/MP")
    name = "races-of-writes"
    monkeypatch.setattr(ChosenWords, "first", [])
    monkeypatch.setattr(ChosenWords, "others", [vocabulary(["ld.weak", "st.weak"])])
    monkeypatch.setattr(edited, "small_programs", lambda *rest: None)
    monkeypatch.setattr(edited, "near_shipped_tests", lambda *rest: [])
    monkeypatch.setattr(edited, "on_shipped_tests", lambda *rest: [])
    assert edited.edited(sides_of("ptx-9.4", model(name)), HereAndNow(), 600).size == EDITS[name]["size"]


def test_where_a_program_is_known_further_words_are_asked_for_one_that_is_smaller_by_one(monkeypatch, model):
    """A bound is said of a size if all smaller ones were tried as well."""
    name, asked, vague = "races-of-writes", list[int](), vocabulary(["ld.weak", "st.weak"])
    monkeypatch.setattr(ChosenWords, "others", [vague])
    monkeypatch.setattr(
        "memmodel.search.edits.edited.run", lambda task, *_, first, **__: asked.append(first) or Progress()
    )
    found = edited.WhatDiffers(results=[{"size": 4}])
    sides = sides_of("ptx-9.4", model(name))
    edited.chosen_programs(sides, HereAndNow(), found, float("inf"), lambda stage: None, others=True)
    assert asked == [3, 2, 1]
    monkeypatch.setattr("memmodel.search.edits.edited.run", lambda task, *_, first, **__: Progress(bound=first))
    edited.chosen_programs(sides, HereAndNow(), found, float("inf"), lambda stage: None, others=True)
    assert found.bounds == {replace(vague, idle=True): 3}
    monkeypatch.setattr(
        "memmodel.search.edits.edited.run", lambda task, *_, first, **__: Progress(bound=first * (first != 2))
    )
    found.bounds.clear()
    edited.chosen_programs(sides, HereAndNow(), found, float("inf"), lambda stage: None, others=True)
    assert found.bounds == {replace(vague, idle=True): 1}


def test_where_a_program_is_known_few_words_come_first_one_smaller_than_it(monkeypatch, model):
    """Many words cost too much; what is left is asked for from the smallest size."""
    asked = list[tuple[int, int]]()
    few, many = vocabulary(["ld.weak", "st.weak"]), vocabulary(["ld.weak", "st.weak", "ld.acquire", "st.release"])
    monkeypatch.setattr(ChosenWords, "first", [few, many])
    monkeypatch.setattr(
        "memmodel.search.edits.edited.run",
        lambda task, *_, first, **__: asked.append((first, len(task.vocabulary.words))) or Progress(),
    )
    found = edited.WhatDiffers(results=[{"size": 3}])
    sides = sides_of("ptx-9.4", model("races-of-writes"))
    edited.chosen_programs(sides, HereAndNow(), found, float("inf"), lambda stage: None)
    assert asked == [(2, 2), (1, 2), (1, 4), (2, 4)]


def test_a_word_hands_over_what_an_instruction_does_that_signals_an_object(model):
    """The response of a try_cancel is seen by one thread, which tells another one, by a flag of its own."""
    words = ("ld.shared.weak", "st.shared.weak", "arrive.release", "wait.acquire", "try_cancel")
    assert {*by_word(words)} == {*words, "ld.acquire", "st.release"}
    assert by_word(words[:-1]) == by_word((*words, "st.weak")) == ()
    chosen = sides_of("ptx-9.4", model("refusal-seen-by-a-neighbour")).chosen_words()
    assert {*chosen.others[0].words} == {*words, "ld.acquire", "st.release"}


def test_a_flag_joins_the_halves_of_a_fence_for_maps(model):
    """Halves for copies have one scope, so that each sees the other one or none does. Instructions that publish and
    acquire a map stand in two threads, which a flag in global memory joins; what the copy did is seen at the end."""
    chosen = sides_of("ptx-9.4", model("acquire-half-need-not-see-the-release")).chosen_words()
    halves = {"tensormap.cp_fenceproxy", "fence.proxy.tensormap.acquire", "copy.map"}
    assert {*chosen.first[0].words} == halves | {"ld.relaxed", "ld.acquire", "st.relaxed", "st.release"}
    assert not any("fence.proxy.async.release" in words.words for words in (*chosen.first, *chosen.others))
    assert joined(("st.weak", *halves)) == joined(("fence.proxy.async.acquire", "fence.proxy.async.release")) == ()
    assert joined(("fence.proxy.tensormap.acquire", "copy.map")) == ()


def test_few_words_of_halves_are_asked_for_larger_programs_before_others(monkeypatch, model):
    asked = list[tuple[int, int]]()
    monkeypatch.setattr(
        "memmodel.search.edits.edited.run",
        lambda task, *_, first, **__: asked.append((len(task.vocabulary.words), first)) or Progress(),
    )
    sides = sides_of("ptx-9.4", model("acquire-half-need-not-see-the-release"))
    edited.chosen_programs(sides, HereAndNow(), edited.WhatDiffers(), float("inf"), lambda stage: None)
    few = min(asked)[0]
    assert asked.index((few, 5)) < min(
        number for number, (words, size) in enumerate(asked) if words > few and size == 4
    )


def test_a_restricted_fence_comes_with_the_places_that_it_covers():
    words = reached(("ld.acquire", "st.relaxed", "fence.release.restricted"))
    assert {"ld.weak", "st.weak", "ld.shared.weak", "st.shared.weak"} <= {*words}
    assert {"init", "arrive.release", "wait.acquire"} <= {*reached(("fence.mbarrier_init",))}
    assert (spelt_out(words).threads, spelt_out(words).locations) == (2, 2)
    assert (spelt_out((*words, "copy.in")).locations, spelt_out(("ld.weak", "st.weak")).locations) == (1, 2)


def test_strong_accesses_of_shared_memory_have_every_scope():
    """Strong copies of `.gpu` scope read what such accesses write."""
    assert {form.words for form in vocabulary(["st.shared.release"]).accesses[0].forms} == {
        ("release", "cta"),
        ("release", "gpu"),
    }


def test_the_edit_chooses_the_words_of_synth_and_verify(model):
    edit, wider = Changed("ptx-9.4", None).vocabularies(model("pipelined-shift"))
    assert "tcgen05.shift" in edit.words and "ld.acquire" not in edit.words
    assert {*edit.words} < {*wider.words} and Changed(None, None).vocabularies("ptx-9.4") == []
    own = load_property("composition").vocabulary
    nothing_typed = Searching(*[None] * len(fields(Searching)))
    together = nothing_typed.beside(own, edit)
    assert {*own.words, *edit.words} == {*together.words} and together.threads == own.threads
    assert nothing_typed.beside(own) == own
    with pytest.raises(InputError, match="no instruction that a search knows"):
        Changed("ptx-9.4", None).vocabularies("ptx-9.4")


def test_synth_says_what_each_step_covered(monkeypatch, capsys, model):
    monkeypatch.setattr("memmodel.search.work.workers", lambda jobs, executor, memory: HereAndNow())
    with pytest.raises(SystemExit) as left:
        main(["synth", "--model", model("races-of-writes"), "--changed-from", "ptx-9.4", "--size", "1"])
    last = capsys.readouterr().out.rstrip().split("\n")[-1]
    first, second = last.split("; up to 1 instruction ")
    assert left.value.code == 0 and first.startswith("nothing is minimally forbidden, up to 1 instruction (ld.weak,")
    assert "ld.acquire" in second and "ld.acquire" not in first


def test_every_row_of_the_instruction_table_is_searched_or_says_why_not():
    heads = [head for head, _ in SEARCHED]
    assert not {*heads} & {*NOT_SEARCHED} and all(NOT_SEARCHED.values())
    rows = [row for row in TABLE if row.part != "" and not row.modules]
    acting = {row.heads[0] for row in rows if row.effect not in (Effect.COMPUTES, Effect.CONTROL, Effect.NOTHING)}
    assert acting == {*heads, *NOT_SEARCHED}
    for head, ingredients in SEARCHED:
        for form in (form for ingredient in ingredients for form in (*ingredient.forms, *ingredient.wide)):
            lines = [line.split()[0].rstrip(";") for line in form.text.split("\n")]
            assert any(f"{line}.".startswith(f"{other}.") for line in lines for other in HEADS[head].heads), form


def test_every_word_is_in_a_vocabulary_in_which_it_can_do_something():
    for word in every_word():
        ingredient = spelt_out(reached((word,))).named(word)
        assert ingredient.forms and word_labels(word), word


def test_programs_of_the_chosen_words_are_found_without_a_shipped_test(model):
    found = edited.WhatDiffers()
    sides = sides_of("ptx-9.4", model("races-of-writes"))
    edited.chosen_programs(sides, HereAndNow(), found, float("inf"), lambda stage: None)
    assert found.size == EDITS["races-of-writes"]["size"]


def test_the_benchmark_ends_with_a_program_that_is_small_enough(monkeypatch, model):
    few_tests(monkeypatch, "isa/MP")
    edit = EDITS["races-of-writes"]
    found, seconds = by_processor(edit, Path(model(edit["name"])), 60)
    assert found.size == edit["size"] and seconds < 60


def test_the_benchmark_gives_a_search_its_time_by_the_same_clock(monkeypatch, model):
    few_tests(monkeypatch, "isa/MP")
    edit = EDITS["release-write"]
    found, seconds = by_processor({**edit, "size": 0}, Path(model(edit["name"])), 3)
    assert found.bounds or seconds > 2.5, "by another clock, its time would be over at once"


def test_every_word_of_a_slot_is_tried():
    test = bare(api.lowered("PTX a\n.global .u32 x = 0;\nthread P0 { fence.acq_rel.gpu; }\nexists (true)\n").test)
    texts = {variant.threads[0].body[0].mnemonic for variant in respelt(test) if read_again(variant)}
    assert {"fence.sc.gpu", "fence.release.gpu", "fence.acquire.gpu", "fence.acq_rel.cta", "fence.acq_rel.sys"} <= texts


def test_no_program_has_words_that_only_published_tables_have():
    test = bare(api.lowered("PTX a\n{ x = 0; }\n P0 ;\n red.relaxed.gpu.add x, 1 ;\nexists (x == 1)\n").test)
    texts = {variant.threads[0].body[0].mnemonic for variant in respelt(test)}
    assert "red.release.gpu.add" in texts and "red.acquire.gpu.add" not in texts


def few_tests(monkeypatch, *paths: str) -> None:
    monkeypatch.setattr(edited, "shipped_programs", lambda: [str(suite_dir() / f"{path}.litmus") for path in paths])
    monkeypatch.setattr("memmodel.search.work.workers", lambda jobs, executor, memory: HereAndNow())


def test_the_plain_command_finds_what_no_preset_has(monkeypatch, capsys, model):
    few_tests(monkeypatch, "generic/H3", "async/tcgen05/T16")
    with pytest.raises(SystemExit) as left:
        main(["diff", "ptx-9.4", model("pipelined-shift"), "--timeout", "600"])
    said = capsys.readouterr().out
    assert left.value.code == 1 and "2 instructions:" in said and "T16.litmus" in said
    assert said.rstrip().split("\n")[-1].startswith("ptx-9.4 and ") and "tried: 2 shipped tests" in said


def test_a_reformulation_is_proved_and_nothing_is_tried(monkeypatch, capsys, model):
    monkeypatch.setattr(edited, "on_shipped_tests", None)
    monkeypatch.setattr("memmodel.search.work.workers", lambda jobs, executor, memory: HereAndNow())
    with pytest.raises(SystemExit) as left:
        main(["diff", "ptx-9.4", model("recursive-observation")])
    assert left.value.code == 0 and "in any program: each axiom" in capsys.readouterr().out


def test_labels_show_that_no_word_tells_models_apart(monkeypatch, tmp_path):
    """A communication relation, spelt out: no word is searched for, and the answer says so."""
    monkeypatch.setattr(edited, "on_shipped_tests", lambda *rest: [])
    monkeypatch.setattr(edited, "near_shipped_tests", lambda *rest: [])
    old = "| rf | co | fr) as SC-per-Location"
    new = old.replace("fr", "rf^-1 ; co")
    expanded = edited_model({"name": "expanded", "file": "ptx-9.3/axioms.cat", "old": old, "new": new}, tmp_path)
    found = edited.edited(sides_of("ptx-9.4", str(expanded)), HereAndNow(), 600)
    assert found.reach() == edited.ALL_PROGRAMS and not found.left


def test_nobody_reads_no_difference_without_what_was_tried(monkeypatch, capsys, model):
    few_tests(monkeypatch, "generic/H3")
    monkeypatch.setattr(edited, "_LARGEST", 2)
    monkeypatch.setattr(edited, "_LARGEST_SOLVED", 2)
    with pytest.raises(SystemExit) as left:
        main(["diff", "ptx-9.4", model("grid-ends-with-copies-under-way"), "--timeout", "600", "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["results"] == [] and answer["tried"].startswith("1 shipped test")
    assert left.value.code == (0 if answer["complete"] else 3)
    assert Path(answer["second"]).name == "grid-ends-with-copies-under-way.cat"


def test_a_tile_may_hand_a_word_over():
    """A strong copy reads a tile as a flag: what it hands over is elsewhere, in global memory."""
    copies = ("fence.acq_rel", "ld.shared.weak", "st.shared.weak", "copy.out.relaxed", "wait_group")
    flagged = {"ld.weak", "st.weak", "fence.acq_rel", "copy.out.relaxed", "wait_group"}
    by_class = [{f"ld.{kind}.acquire", f"st.{kind}.release"} for kind in ("shared", "tile")]
    assert [{*words} for words in by_flags(copies)] == [flagged | flags for flags in by_class]
    assert by_flags(copies[1:]) == by_flags(("ld.weak", *copies)) == []
    reads = [label for label in word_labels("copy.out.relaxed") if isinstance(label, Access) and label.asynchronous]
    assert reads and {label.sem for label in reads} == {Sem.RELAXED}


@pytest.mark.parametrize(
    ("body", "other", "agree"),
    [
        ("po & loc", "po & loc & (M * M)", True),
        ("po & loc", "po & loc & (W * M)", False),
        ("po", "po & ((_ * _) \\ (F * F))", True),
        ("po & rf", "po & rf & (loc & (M * M))", False),
    ],
)
def test_what_is_kept_of_a_relation_is_all_of_it_where_labels_show_it(body, other, agree, tmp_path):
    """The events are loads and stores."""
    models = []
    for name, relation in (("mine", body), ("other", other)):
        path = tmp_path / f"{name}.cat"
        path.write_text(f'"{name}"\nacyclic {relation} as Order\n')
        models.append(api.load(str(path)))
    labels = word_labels("ld.weak") | word_labels("st.release")
    assert ComparedModels((models[0], models[1])).agree_on(labels) is agree


@pytest.mark.parametrize(
    ("scopes", "agree"),
    [(("cta",), True), (("gpu",), True), (("cta", "cluster", "gpu"), False)],
)
def test_of_one_scope_two_operations_are_in_each_other_s_or_not(scopes, agree, tmp_path):
    """A store of `.gpu` reaches one of another CTA whose `.cta` does not reach it."""
    reaches = "[CTA] ; scta | [CLUSTER] ; scluster | [GPU] ; sgpu"
    models = []
    for name, more in (("mine", ""), ("other", " & reaches^-1")):
        path = tmp_path / f"{name}.cat"
        path.write_text(f'"{name}"\nlet reaches = {reaches}\nacyclic co & reaches{more} as Order\n')
        models.append(api.load(str(path)))
    comparison = ComparedModels((models[0], models[1]))
    assert comparison.agree_on(word_labels("st.release", scopes)) is agree
    narrow, wide = (word_labels("st.release", (scope,)) for scope in ("cta", "gpu"))
    assert not comparison.agree_on(narrow | wide)

"""What is written of a verdict: SARIF, JSON, reasons, mutation tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import FENCE, NEIGHBOUR, copy, entry, judged, launch, module
from helpers.places import ROOT

from memmodel.answer import Budget
from memmodel.cat.load import load_model
from memmodel.cli.app import app
from memmodel.cli.kernels import mutations as mutants
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import check_kernel, judge
from memmodel.kernel.check.inputs import chosen_ctas, entry_of
from memmodel.kernel.launch import Launch, read_launch
from memmodel.kernel.mutate.mutants import MutantWork, Noticed, compared
from memmodel.kernel.mutate.mutations import REMOVED, mutations
from memmodel.kernel.mutate.table import mutation_table
from memmodel.kernel.order.missing_order import MissingOrder
from memmodel.kernel.order.verdict import Coverage, KernelVerdict
from memmodel.kernel.output.groups import groups
from memmodel.kernel.output.record import record
from memmodel.kernel.output.sarif import in_folder, sarif
from memmodel.kernel.output.text import lines
from memmodel.ptx.module.reader import read_module

DOCS = ROOT / "docs"


def valid(log: dict[str, Any]) -> None:
    """What the schema of SARIF 2.1.0 requires of the parts that are written."""
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    assert set(log) <= {"$schema", "version", "runs"}
    for run in log["runs"]:
        assert set(run) <= {"tool", "results"}
        driver = run["tool"]["driver"]
        assert driver["name"] and isinstance(driver["version"], str)
        rules = driver["rules"]
        assert len({rule["id"] for rule in rules}) == len(rules)
        for rule in rules:
            assert set(rule) <= {"id", "shortDescription"} and rule["shortDescription"]["text"]
        for result in run["results"]:
            allowed = {"ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations",
                       "partialFingerprints", "occurrenceCount"}  # fmt: skip
            assert set(result) <= allowed
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["level"] in ("none", "note", "warning", "error") and result["message"]["text"]
            assert all(isinstance(one, str) for one in result.get("partialFingerprints", {}).values())
            assert result.get("occurrenceCount", 1) >= 1
            ids = [one["id"] for one in result.get("relatedLocations", [])]
            assert len(set(ids)) == len(ids)
            for place in (*result["locations"], *result.get("relatedLocations", [])):
                assert set(place) <= {"id", "physicalLocation", "message"} and place["message"]["text"]
                physical = place["physicalLocation"]
                assert set(physical) == {"artifactLocation", "region"}
                uri = physical["artifactLocation"]["uri"]
                assert uri and " " not in uri and "\\" not in uri and urlparse(uri).scheme in ("", "file")
                region = physical["region"]
                assert region["startLine"] >= 1 and region["startColumn"] >= 1


LOCATED = NEIGHBOUR.format(sync="").replace(
    "st.shared.u32", ".loc 1 7 3\n.loc 2 9 5, function_name $L__info, inlined_at 1 7 3\nst.shared.u32"
)
FILES = '.file 1 "src/my kernel.cu"\n.file 2 "/usr/include/helper.h"'


def located() -> KernelVerdict:
    read = module(LOCATED, FILES)
    return judge(read, entry(read), launch(), load_model("ptx-9.4"))


def test_sarif_is_valid() -> None:
    unknown = judged("ld.global.u32 %r9, [%d0];\nsetp.eq.s32 %p3, %r9, 0;\n@%p3 bra X;\nbar.sync 0;\nX:")
    verdicts = [located(), judged(copy(proxy="")), judged("st.shared.u32 [%r2], 7;"), unknown, judged(copy())]
    log = json.loads(json.dumps(sarif(verdicts)))
    valid(log)
    results = log["runs"][0]["results"]
    assert {one["level"] for one in results} == {"error", "note", "warning"}


def test_sarif_points_at_the_source() -> None:
    (result,) = sarif([located()])["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src/my%20kernel.cu" and place["region"] == {
        "startLine": 7,
        "startColumn": 3,
    }
    uris = [one["physicalLocation"]["artifactLocation"]["uri"] for one in result["relatedLocations"]]
    assert "k.ptx" in uris and "file:///usr/include/helper.h" in uris


def test_the_record_has_both_threads() -> None:
    made = json.loads(json.dumps(record(located())))
    places = made["findings"][0]["places"]
    assert [one["thread"]["warp"] for one in places] != [None, None]
    assert places[0]["source"] == ["/usr/include/helper.h:9:5", "src/my kernel.cu:7:3"]
    assert made["schedules"] == {"explored": 1, "all": True}


MAILBOX = """
mov.u32 %r20, %ctaid.x;
setp.ne.u32 %p2, %r20, 0;
@%p2 bra READ;
st.global.u32 [%d0+64], %r0;
{before}
red{release}.{scope}.global.add.u32 [%d0], 1;
bra DONE;
READ:
ld{acquire}.{scope}.global.u32 %r21, [%d0];
{after}
ld.global.u32 %r22, [%d0+64];
DONE:
"""


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"release": ".relaxed"}, MissingOrder.RELAXED),
        ({"acquire": ".relaxed"}, MissingOrder.RELAXED),
        ({"scope": "cta"}, MissingOrder.SCOPES),
        ({}, MissingOrder.SYNCHRONIZATION),  # in a schedule in which the reader does not see the counter
    ],
)
def test_reasons(parts: dict[str, str], reason: MissingOrder) -> None:
    given = {"before": "", "after": "", "release": ".release", "acquire": ".acquire", "scope": "gpu", **parts}
    verdict = judged(MAILBOX.format(**given), threads=1, ctas=2, init="zero")
    found = [one.reason for one in verdict.findings if "ld.global.u32" in {s.instruction.opcode for s in one.sides}]
    assert found == [reason.value]


def test_where_lanes_only_meet_nothing_is_too_weak() -> None:
    """shfl.sync has no word for semantics: what is missing is a synchronization."""
    shuffle = "shfl.sync.idx.b32 %r9, %r0, 0, 31, 0xffffffff;\n"
    verdict = judged(NEIGHBOUR.format(sync=shuffle).replace("%r1, 128", "%r1, 4"), threads=32)
    assert [finding.reason for finding in verdict.findings] == [MissingOrder.SYNCHRONIZATION.value]


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        ("", "nothing waits"),
        (
            "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 1;\n",
            "cp.async.bulk.wait_group.read at line 19 does not wait",
        ),
        ("cp.async.bulk.wait_group 0;\n", "cp.async.bulk.wait_group at line 18 does not wait"),
    ],
)
def test_a_copy_that_outlives_its_cta_is_not_waited_for(wait: str, said: str) -> None:
    verdict = judged(f"@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 16;\n{wait}")
    (finding,) = [it for it in verdict.findings if it.rule == "undefined-after-exit"]
    assert (finding.reason, finding.missing) == (MissingOrder.GONE.value, f"{said} for the end of the access")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"proxy": ""}, MissingOrder.PROXY),
        ({"proxy": "fence.proxy.async.global;"}, MissingOrder.PROXY_PLACE),
        ({"proxy": "", "sync": f"bar.sync 0;\n{FENCE}\n"}, None),
    ],
)
def test_reasons_of_proxies(parts: dict[str, str], reason: MissingOrder | None) -> None:
    found = {one.reason for one in judged(copy(**parts)).findings}
    assert found == (set() if reason is None else {reason.value})


AWAITED = """
setp.eq.s32 %p1, %r0, 32;
@%p0 mbarrier.init.shared.b64 [%r4], 1;
bar.sync 0;
setp.lt.u32 %p2, %r0, 32;
@%p2 bra FIRST;
bar.sync 1, 64;
@%p1 ld.shared.u32 %r5, [%r2];
bra END;
FIRST: @!%p0 bra END;
mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 16;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 16, [%r4];
WAIT:
{wait}
END:
"""
"""A copy, and a read by another warp, which comes from a barrier with a third one."""


@pytest.mark.parametrize(
    ("wait", "reason", "said"),
    [
        ("", MissingOrder.COMPLETION, "nothing waits for the end of the first access"),
        (
            "mbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;\n@!%p5 bra WAIT;", MissingOrder.SYNCHRONIZATION,
            "waits for the end of the first access, and nothing leads from it to the other one",
        ),
    ],
)  # fmt: skip
def test_a_copy_whose_end_another_thread_waits_for(wait: str, reason: MissingOrder, said: str) -> None:
    verdict = judged(AWAITED.format(wait=wait), threads=96)
    (race,) = (finding for finding in verdict.findings if finding.rule == "data-race")
    assert race.reason == reason.value and said in race.missing


def test_a_wait_for_groups_that_leaves_the_copy_open_is_named() -> None:
    """Without its commit, the wait covers nothing of the copy."""
    copied = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 16;\n"
    wait, store = "@%p0 cp.async.bulk.wait_group.read 0;\nbar.sync 0;\n", "@%p1 st.shared.u32 [%r2], %r0;\n"
    verdict = judged(f"setp.eq.s32 %p1, %r0, 32;\n{copied}{wait}{store}")
    race = next(finding for finding in verdict.findings if finding.rule == "data-race")
    said = "cp.async.bulk.wait_group.read at line 19 does not wait for the end of the first access"
    assert (race.reason, race.missing) == (MissingOrder.COMPLETION.value, said)


TENSOR = {
    "tcgen05.wait::st": "no tcgen05.wait::st after tcgen05.st.sync.aligned.32x32b.x1.b32 at line 57",
    "tcgen05.fence::before_thread_sync": "no tcgen05.fence::before_thread_sync between "
    "tcgen05.wait::st.sync.aligned at line 64 and mbarrier.arrive.shared.b64 at line 78",
    "mbarrier.try_wait": "after the first access its thread goes on to mbarrier.arrive.shared.b64 at line 78",
    "tcgen05.fence::after_thread_sync": "no tcgen05.fence::after_thread_sync behind mbarrier.try_wait",
}
"""What is removed of a hand-over of tensor memory, and what is said then."""


@pytest.mark.parametrize("opcode", TENSOR)
def test_what_is_missing_between_accesses_to_tensor_memory(opcode: str) -> None:
    """A wait for an object that is missing is no tcgen05 fence."""
    read = read_module(DOCS / "gallery/tmem-fences-fixed.ptx")
    function = entry_of(read, "kernel")
    (removal,) = [
        change
        for change in mutations(function)
        if change.what == REMOVED and change.instruction.opcode.startswith(opcode)
    ]
    verdict = judge(read, removal.of(function), launch(threads=160), load_model("ptx-9.4"))
    (hazard,) = [finding for finding in verdict.findings if finding.rule == "tensor-memory-hazard"]
    assert TENSOR[opcode] in hazard.missing
    assert (hazard.reason == MissingOrder.TENSOR.value) is opcode.startswith("tcgen05")


def test_a_log_names_files_below_a_folder_from_there() -> None:
    uris = {"a": "file:///w/r/k.py", "b": "file:///w/rest/k.py", "c": "see file:///w/r/k.py"}
    assert in_folder(uris, "/w/r") == {**uris, "a": "k.py"}


# ---- options ---------------------------------------------------------------------------------------------------


def large(grid: tuple[int, int, int], cluster: tuple[int, int, int] = (1, 1, 1)) -> Launch:
    return launch(threads=1024).model_copy(update={"grid": grid, "cluster": cluster})


def test_which_ctas_are_run() -> None:
    assert chosen_ctas(large((4, 1, 1)), ()) == ()
    assert chosen_ctas(large((100, 100, 1)), ()) == (0, 1)
    assert chosen_ctas(large((100, 4, 1), (2, 2, 1)), ()) == (0, 1, 2, 3, 100, 101, 102, 103)
    assert chosen_ctas(large((4, 4, 1)), [(3, 1, 0)]) == (7,)
    read = module(NEIGHBOUR.format(sync=""))
    verdict = judge(read, entry(read), launch(ctas=5), load_model("ptx-9.4"), CheckOptions(ctas=(3,)))
    assert {side.cta for one in verdict.findings for side in one.sides} == {3}


def test_an_opcode_is_taken_to_be_pure() -> None:
    body = "undecoded.wait;\n" + NEIGHBOUR.format(sync="bar.sync 0;")
    read = module(body)
    assert judge(read, entry(read), launch(), load_model("ptx-9.4")).word == "undecided"
    options = CheckOptions(assumed=("undecoded",))
    verdict = judge(read, entry(read), launch(), load_model("ptx-9.4"), options)
    assert verdict.word == "clean" and list(verdict.assumptions) == ["undecoded.wait at line 17 touches registers only"]


RING = """
mov.u32 %r20, 0;
LOOP:
and.b32 %r21, %r20, 1;
shl.b32 %r21, %r21, 8;
add.s32 %r22, %r3, %r21;
st.shared.u32 [%r22], %r0;
bar.sync 0;
xor.b32 %r23, %r22, 128;
ld.shared.u32 %r24, [%r23];
add.s32 %r20, %r20, 1;
setp.lt.u32 %p6, %r20, 5;
@%p6 bra LOOP;
"""


def test_stages_and_rounds() -> None:
    assert judged(RING).word == "clean"
    verdict = judged(RING.replace("bar.sync 0;", ""))
    said = "\n".join(lines(verdict))
    assert verdict.findings and "stage 0" in said
    assert {side.stage for one in verdict.findings for side in one.sides} <= {0, 1}
    assert judged(NEIGHBOUR.format(sync="")).findings[0].sides[0].stage == -1


def test_stages_of_a_ring_of_objects() -> None:
    """One arrival too many, on two objects in turn."""
    init = "mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.init.shared::cta.b64 [bar+8], 1;"
    arrive = "and.b32 %r21, %r20, 1;\nmad.lo.u32 %r21, %r21, 8, %r4;\nmbarrier.arrive.shared::cta.b64 _, [%r21], 2;"
    loop = f"mov.u32 %r20, 0;\nL:\n{arrive}\nadd.u32 %r20, %r20, 1;\nsetp.lt.u32 %p6, %r20, 4;\n@%p6 bra L;"
    stages = {side.stage for finding in judged(f"@!%p0 bra E;\n{init}\n{loop}\nE:").findings for side in finding.sides}
    assert 0 in stages and stages <= {-1, 0, 1}


# ---- mutants ---------------------------------------------------------------------------------------------------


def test_mutants() -> None:
    read = module(copy())
    model = load_model("ptx-9.4")
    seen: list[str] = []
    table = mutation_table(read, entry(read), launch(), model, progress=seen.append)
    changes = mutations(entry(read))
    assert len(table.results) == len(changes) == len(seen) and table.base.word == "clean"
    outcomes = {(one.mutation.instruction.opcode, one.mutation.what): one.noticed for one in table.results}
    assert outcomes["fence.proxy.async.shared::cta", "removed"] is Noticed.FINDING
    assert outcomes["mbarrier.expect_tx.relaxed.cta.shared::cta.b64", "removed"] is not Noticed.UNNOTICED
    assert outcomes["mbarrier.init.shared.b64", "1 more arrival"] is Noticed.HANG
    assert outcomes["mbarrier.try_wait.shared::cta.b64", "removed"] is Noticed.FINDING
    assert 0.5 < table.share <= 1


def test_mutants_that_nobody_needs_and_an_empty_budget() -> None:
    twice = NEIGHBOUR.format(sync="bar.sync 0;\nbar.sync 0;")
    read = module(twice)
    table = mutation_table(read, entry(read), launch(), load_model("ptx-9.4"))
    assert [one.noticed for one in table.results] == [Noticed.UNNOTICED] * 2
    first, second = (one.mutation.instruction.line for one in table.results)
    assert f"are also ordered by bar.sync at line {second}" in table.results[0].how
    assert f"are also ordered by bar.sync at line {first}" in table.results[1].how
    late = mutation_table(read, entry(read), launch(), load_model("ptx-9.4"), budget=Budget(seconds=-1))
    assert [one.noticed for one in late.results] == [Noticed.LATE] * 2


def test_a_mutant_has_no_more_time_than_all_of_them() -> None:
    work = object.__new__(MutantWork)
    object.__setattr__(work, "budget", Budget(seconds=50))
    for left, wanted in ((100, 50), (20, 20), (-1, 0)):
        object.__setattr__(work, "until", monotonic() + left)
        assert work.left().seconds == pytest.approx(wanted, abs=5)


def test_what_is_arrived_at_without_order_is_not_made_weaker() -> None:
    read = module("mbarrier.arrive.shared.b64 %d5, [%r4];\nmbarrier.arrive.relaxed.cta.shared.b64 %d5, [%r4];")
    relaxed = [change.instruction.words for change in mutations(entry(read)) if change.what == "with .relaxed"]
    assert relaxed == [("mbarrier", "arrive", "shared", "b64")]


FENCES = {
    "sc.gpu": {"acq_rel.gpu", "sc.cta", "sc.cluster"},
    "acq_rel.gpu": {"acquire.sync_restrict::shared::cluster.cluster", "acq_rel.cta", "acq_rel.cluster"},
    "acq_rel.cta": set(),
    "acquire.gpu": {"acquire.cta", "acquire.cluster"},
}


@pytest.mark.parametrize("words", FENCES)
def test_what_a_fence_becomes(words: str) -> None:
    read = module(f"fence.{words};")
    becomes = {change.becomes.opcode for change in mutations(entry(read))}
    assert becomes == {"nanosleep.u32", *(f"fence.{weaker}" for weaker in FENCES[words])}


@pytest.mark.parametrize("count, end", [(3, "third of line 3"), (4, "third of line 3; 1 more")])
def test_three_new_findings_are_named_and_others_counted(count: int, end: str) -> None:
    keys = [("first", (1,)), ("second", (2,)), ("third", (3,)), ("fourth", (4,))][:count]
    base: Any = SimpleNamespace(known_keys=frozenset())
    mutant: Any = SimpleNamespace(serious=[SimpleNamespace(key=key) for key in keys], spent=False)
    fate = compared(base, mutant)
    assert fate.noticed is Noticed.FINDING and fate.how.endswith(end)


def test_copies_of_one_place_in_the_source_are_changed_together() -> None:
    """An unrolled loop: the barrier of line 8 stands twice. Alone, the second copy is needless; the line is not."""
    once = ".loc 1 8 3\nbar.sync 0;\n.loc 1 9 3"
    again = f".loc 1 11 3\nbar.sync 0;\n{once}"
    rounds = [NEIGHBOUR.format(sync=once), ".loc 1 10 3\nbar.sync 0;\n.loc 1 7 3", NEIGHBOUR.format(sync=again)]
    read = module("\n".join(rounds))
    table = mutation_table(read, entry(read), launch(), load_model("ptx-9.4"))
    fates = {result.mutation.instruction.location.line: result.noticed for result in table.results}  # type: ignore[union-attr]
    assert fates == {8: Noticed.FINDING, 10: Noticed.FINDING, 11: Noticed.UNNOTICED}
    first = mutants.record(table)["mutants"][0]
    assert len(first["lines"]) == 2 and first["source"].endswith(":8") and first["line"] == first["lines"][0]
    both = module(NEIGHBOUR.format(sync="bar.sync 0;\n.loc 1 2 3\nbar.sync 0;\n.loc 1 3 3\nbar.sync 0;"))
    together = mutants.record(mutation_table(both, entry(both), launch(), load_model("ptx-9.4")))["together"]
    assert (len(together["dropped"]), len(together["kept"])) == (2, 1)


def test_a_fence_that_another_reading_needs_is_not_called_needless_without_a_word() -> None:
    folder = DOCS / "examples" / "kernels"
    read, described = read_module(folder / "tma_pipeline.ptx"), read_launch(folder / "tma_pipeline.launch.json")
    function = entry_of(read, described.kernel)
    inits = [one for one in mutations(function) if one.instruction.words[:3] == ("fence", "proxy", "async")]
    only = replace(inits[0], what="removed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memmodel.kernel.mutate.table.mutations", lambda _, **__: [only])
        table = mutation_table(read, function, described, load_model("ptx-9.4"))
        other = mutation_table(read, function, described, load_model("readings/D2-accessor"))
    needed = "needless under the model as decided, needed under D15 fence"
    assert table.base.word == "clean" and not table.base.readings
    assert [(one.noticed, one.how.endswith(f"; {needed}")) for one in table.results] == [(Noticed.UNNOTICED, True)]
    assert "as decided" not in other.results[0].how


IDLE = """
@%p0 mbarrier.init.shared.b64 [%r4], 64;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 mbarrier.arrive.shared.b64 %d5, [%r4];
"""


def test_why_mutants_are_not_noticed() -> None:
    read = module(IDLE)
    table = mutation_table(read, entry(read), launch(), load_model("ptx-9.4"))
    said = {(one.mutation.instruction.words[0], one.mutation.what): one.how for one in table.results}
    assert said["mbarrier", "1 more arrival"] == "nothing waits for a phase of its mbarrier object"
    assert said["fence", "removed"].startswith("no accesses through different proxies")
    assert all(one.how for one in table.results if one.noticed is Noticed.UNNOTICED)
    relaxed = module(NEIGHBOUR.format(sync="fence.acq_rel.gpu;\nbar.sync 0;"))
    table = mutation_table(relaxed, entry(relaxed), launch(), load_model("ptx-9.4"))
    assert {one.noticed for one in table.results if one.mutation.instruction.words[0] == "fence"} == {Noticed.UNNOTICED}


OTHER_GROUPS = """
shl.b32 %r5, %r0, 4;
add.s32 %r6, %r2, %r5;
cvt.u64.u32 %d2, %r5;
add.s64 %d1, %d0, %d2;
cp.async.ca.shared.global [%r6], [%d1], 16;
setp.eq.s32 %p1, %r2, 0;
@!%p1 bra ON;
cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 16;
cp.async.bulk.commit_group;
ON:
cp.async.commit_group;
cp.async.wait_group 0;
ld.shared.u32 %r21, [%r6];
"""


def test_a_commit_is_reached_where_the_copies_of_its_own_kind_are() -> None:
    read = module(OTHER_GROUPS)
    table = mutation_table(read, entry(read), launch(32), load_model("ptx-9.4"))
    found = {one.mutation.instruction.opcode: one.noticed for one in table.results if one.mutation.what == "removed"}
    assert found["cp.async.commit_group"] is Noticed.FINDING
    assert found["cp.async.bulk.commit_group"] is Noticed.UNREACHED


def test_commands(tmp_path: Path) -> None:
    source, given = tmp_path / "k.ptx", tmp_path / "l.json"
    source.write_text(module(NEIGHBOUR.format(sync="bar.sync 0;")).source.text)
    given.write_text(launch().model_dump_json(exclude_none=True))
    base = ["kernel", str(source), "--launch", str(given)]
    run = CliRunner().invoke(app, [*base, "--mutate", "--json", str(tmp_path / "m.json")])
    assert run.exit_code == 0 and "100% of 1 changes noticed" in run.output, run.output
    assert json.loads((tmp_path / "m.json").read_text())["counts"]["finding"] == 1
    assert (
        CliRunner().invoke(app, [*base, "--sarif", str(tmp_path / "o.sarif"), "--stats", "--readings"]).exit_code == 0
    )
    valid(json.loads((tmp_path / "o.sarif").read_text()))
    assert CliRunner().invoke(app, [*base, "--cta", "0,0,0"]).exit_code == 0
    for wrong in ("1", "x", "0,0,0,0"):
        assert CliRunner().invoke(app, [*base, "--cta", wrong]).exit_code == 2


def test_what_does_not_change_the_verdict_comes_last() -> None:
    every = "\n".join(f"st.shared.u32 [s+{512 + 4 * n}], 5;" for n in range(24))  # all threads: more than are shown
    verdict = judged(every + NEIGHBOUR.format(sync=""))
    verdict.entry = "_Z" + "x" * 3000
    said = lines(verdict)
    heads = [one.split(",")[0] for one in said if "race, " in one]
    assert heads[0] == "data-race" and set(heads[1:]) == {"equal-store-race"}
    assert said[0].startswith("findings: _Zxx") and len(said[0]) < 160
    assert sum("does not change the verdict" in one for one in said) == len(heads) - 1


def test_findings_without_places_in_the_source(tmp_path: Path) -> None:
    """Steps of an unrolled loop with the same synchronization on the way are one finding."""
    text = (DOCS / "examples/kernels/gemm_sm100.ptx").read_text()
    (tmp_path / "k.ptx").write_text("\n".join(line for line in text.split("\n") if ".loc" not in line))
    verdict = check_kernel(tmp_path / "k.ptx", DOCS / "examples/kernels/gemm_sm100.launch.json")
    found = groups(verdict.findings)
    assert all(side.instruction.location is None for one in verdict.findings for side in one.sides)
    assert len(found) < len(verdict.findings) == sum(1 + len(one.others) for one in found)
    for group in found:
        assert len({(one.rule, one.reason, tuple(s.instruction.opcode for s in one.sides)) for one in
                    (group.first, *group.others)}) == 1  # fmt: skip
    assert any("alike, in PTX lines" in line for line in lines(verdict))


LOOP = """
ld.param.u64 %d1, [k_param_0];
setp.ge.u32 %p1, %r0, {most};
@%p1 bra DONE;
LOOP:
st.shared.u32 [%r3], %r0;
bar.warp.sync -1;
add.u32 %r0, %r0, 64;
setp.lt.u32 %p1, %r0, {most};
@%p1 bra LOOP;
DONE:"""


def test_what_the_runs_came_to() -> None:
    none, all_ = judged(LOOP.format(most=0)), judged(LOOP.format(most=64))
    assert none.word == all_.word == "clean"
    assert none.coverage == Coverage(1, (23,), 1, (22,), 0, 0)
    assert "covered: 0 of 1 synchronization (not line 23), 0 of 1 loop (not line 22)" in lines(none)
    assert all_.coverage == Coverage(1, (), 1, (), 0, 0)
    assert record(none)["coverage"] == {
        "synchronizations": 1, "unreached": [23], "loops": 1, "skipped": [22], "objects": 0, "single": 0,
    }  # fmt: skip
    copied = judged(copy())
    assert copied.coverage is not None and (copied.coverage.loops, copied.coverage.objects) == (0, 1)
    assert any(line.endswith("0 of 1 mbarrier objects used again") for line in lines(copied))
    assert judged("undecoded;").coverage is None

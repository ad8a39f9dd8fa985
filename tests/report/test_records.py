"""Every JSON output is what its published schema says, and loses nothing of what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import NEIGHBOUR, launch, module
from helpers.patience import PATIENCE
from helpers.places import ROOT
from jsonschema import Draft202012Validator
from jsonschema import ValidationError as SchemaError
from pydantic import ValidationError

from memmodel import api
from memmodel.answer import HANG, Answer, Observation
from memmodel.api import check
from memmodel.cat.syntax import Model
from memmodel.cli.app import app
from memmodel.cli.commands.schema import NAMES, json_schema
from memmodel.engine import Options
from memmodel.errors import InputError
from memmodel.program.lowered import LoweredTest
from memmodel.records.answers import OutcomesRecord
from memmodel.report.text import outcomes_lines
from memmodel.why.records import Reason

SCHEMAS = ROOT / "docs" / "schema"

TWO_CLUSTERS = """PTX two-clusters
.shared .u32 s;
thread P0 @ cta 0, cluster 0 { st.shared.u32 [s], 1; }
thread P1 @ cta 0, cluster 1 { st.shared.u32 [s], 2; ld.shared.u32 %r0, [s]; }
exists (P1:r0 == 2)
"""
TWO_HANGS = """PTX two-hangs
.global .u32 x;
.global .u32 y;
thread P0 @ cta 0 {
W: ld.relaxed.gpu.global.u32 %r0, [x]; setp.ne.u32 %p, %r0, 1; @%p bra W;
}
thread P1 @ cta 1 {
W: ld.relaxed.gpu.global.u32 %r0, [y]; setp.ne.u32 %p, %r0, 1; @%p bra W;
}
exists (true)
"""


def schema(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return made


def valid(name: str, value: object) -> None:
    Draft202012Validator(schema(name)).validate(value)


def written(*argv: str | Path) -> Any:
    """The JSON that a command prints."""
    result = CliRunner().invoke(app, [*map(str, argv), "--json", "-"])
    assert result.exit_code in (0, 1, 2, 3), result.output
    return json.loads(result.stdout)


def some(folder: str, every: int) -> list[Path]:
    return sorted((ROOT / "litmus" / folder).rglob("*.litmus"))[::every]


@pytest.mark.parametrize("name", NAMES)
def test_the_published_schema_is_the_one_of_today(name: str) -> None:
    """`MEMMODEL_REWRITE=1 pytest tests/report/test_records.py` writes it."""
    made = json_schema(name)
    text = json.dumps(made, indent=1) + "\n"
    if os.environ.get("MEMMODEL_REWRITE") == "1":
        (SCHEMAS / f"{name}.json").write_text(text, encoding="utf-8")
    assert (SCHEMAS / f"{name}.json").read_text(encoding="utf-8") == text
    Draft202012Validator.check_schema(made)


def test_every_published_schema_has_a_name() -> None:
    assert {path.stem for path in SCHEMAS.iterdir()} == set(NAMES)


def test_the_command_prints_schemas_and_lists_them() -> None:
    runner = CliRunner()
    assert json.loads(runner.invoke(app, ["schema", "outcomes"]).stdout) == schema("outcomes")
    assert json.loads(runner.invoke(app, ["schema", "suite"]).stdout) == schema("check")
    assert [line.split()[0] for line in runner.invoke(app, ["schema"]).stdout.splitlines()] == list(NAMES)
    wrong = runner.invoke(app, ["schema", "outcome"])
    assert wrong.exit_code == 2 and "did you mean outcomes?" in wrong.output


# ---- outputs ---------------------------------------------------------------------------------------------------


def test_check_writes_what_the_schema_says(tmp_path: Path) -> None:
    bad = tmp_path / "bad.litmus"
    bad.write_text("PTX bad\nnonsense\n")
    hangs = tmp_path / "hangs.litmus"
    hangs.write_text(TWO_HANGS)
    undecided = tmp_path / "undecided.litmus"
    undecided.write_text(TWO_HANGS.replace("exists (true)", "exists (P0:r0 == 7)"))
    found = written(
        "check", *some("async/proxy", 9), *some("async/honest", 25), bad, hangs, tmp_path / "missing", undecided
    )
    valid("check", found)
    assert len(found) > 8
    assert {"test", "error"} <= {key for one in found for key in one}


def test_suite_writes_what_its_schema_says() -> None:
    model = ROOT / "docs/examples/total.cat"
    valid(
        "check", written("suite", ROOT / "litmus" / "generic" / "H1.litmus", "--model", model, "--against", "ptx-9.4")
    )


def test_readings_write_what_their_schema_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(steps: LoweredTest, model: Model, options: Options, *, findings: bool = True) -> Answer:
        if "D2" in model.name:
            return Answer(Observation.SOMETIMES, "z3")
        return (
            Answer(Observation.UNDECIDED, "z3", reason="too long")
            if "D3" in model.name
            else Answer(Observation.NEVER, "z3")
        )

    monkeypatch.setattr(api, "judge", judge)
    found = written("check", "--readings", ROOT / "litmus/async/readings/R2.litmus", tmp_path / "missing.litmus")
    valid("readings", found)
    assert found[0]["warnings"] == []
    assert found[0]["verdict"] == "depends" and "error" in found[1]
    assert {one["reason"] for one in found[0]["readings"] if one["verdict"] == "undecided"} == {"too long"}


EXPLAINED = {
    "reachable": ("shapes/MP+rlx.gpu+acq.gpu@two-ctas", "relaxed or weak where acquire or release is needed"),
    "race": ("async/proxy/A2", "no proxy fence on the path"),
    "hazard": ("async/tcgen05/T5-no-fence", "no tcgen05.fence"),
    "undefined": ("async/undefined/peer-may-have-exited", "an object or CTA that may be gone"),
    "hang": ("bytes/B9-hang", "an arrive count that does not match"),
}


@pytest.mark.parametrize("kind", EXPLAINED)
def test_each_kind_of_answer_is_explained_with_reason_and_places(kind: str) -> None:
    name, reason = EXPLAINED[kind]
    path = ROOT / "litmus" / f"{name}.litmus"
    ask = {"reachable": (), "hang": ()}.get(kind, ("--ask", f"exists {kind}"))
    (found,) = written("explain", path, *ask)
    valid("explain", [found])
    (checked,) = written("check", path, *ask)
    valid("check", [checked])
    if kind == "hang":
        (one,) = found["stuck"]["waiting"]
        assert checked["hangs"][0]["because"] == [one]
        places = [one]
    else:
        story = next(one for one in found["stories"] if kind == "reachable" or kind in one["about"])
        (one, *_) = story["obstacles"]
        keys = {"reachable": "because", "race": "races", "hazard": "hazards"}
        if kind == "reachable":
            assert checked["because"] == story["obstacles"]
        elif kind in keys:
            assert checked[keys[kind]][0]["because"] == story["obstacles"]
        places = [story["first"], *([story["second"]] if story["second"] else ()), *one["events"]]
        assert all(step["first"]["text"] and step["relation"] for step in story["steps"])
    assert one["reason"] == reason
    text = path.read_text(encoding="utf-8").splitlines()
    for place in places:
        assert place["file"] == str(path) and text[place["line"] - 1][place["column"] - 1 :].strip()


def test_a_never_is_explained_by_the_steps_of_its_cycle() -> None:
    path = ROOT / "litmus/async/proxy/A1.litmus"
    (found,) = written("explain", path)
    valid("explain", [found])
    (one,) = found["contradictions"]
    assert one["axiom"] == "Causality" and one["rests_on"] and one["witness"]["events"]
    assert any(part["clause"] == "Memory synchronization" for step in one["steps"] for part in [step, *step["parts"]])
    (checked,) = written("check", path)
    assert checked["cycle"] == one["steps"]
    assert written("suite", path)[0]["cycle"] == []


def test_a_decision_is_explained_by_what_makes_it_not_matter() -> None:
    (found,) = written("explain", "--readings", ROOT / "litmus/async/readings/R3.litmus")
    valid("explain", [found])
    (one, *_) = found["depends"]
    assert one["obstacles"][0]["reason"] == "no tcgen05.fence"


def test_the_reasons_of_the_schema_are_the_closed_list() -> None:
    for name in ("explain", "check"):
        assert schema(name)["$defs"]["Reason"]["enum"] == [one.value for one in Reason]


def test_outcomes_write_what_their_schema_says() -> None:
    path = ROOT / "litmus/isa/MP.litmus"
    found = written("outcomes", path)
    valid("outcomes", found)
    assert found["path"] == str(path) and found["states"]


def test_fix_and_weaken_write_what_their_schemas_say(tmp_path: Path) -> None:
    path = tmp_path / "t.litmus"
    text = "PTX t\n.global .u32 x;\nthread P0 @ cta 0 { st.relaxed.gpu.global.u32 [x], 1; fence.sc.gpu; }\n"
    path.write_text(text + "~exists (x == 0)\n")
    valid("fix", written("fix", path))
    found = written("weaken", path)
    valid("weaken", found)
    assert found["changes"] and found["tried"] > 0


def test_kernel_writes_what_its_schema_says(tmp_path: Path) -> None:
    source, given = tmp_path / "k.ptx", tmp_path / "l.json"
    source.write_text(module(NEIGHBOUR.format(sync="")).source.text)
    given.write_text(launch().model_dump_json(exclude_none=True))
    valid("launch", json.loads(given.read_text()))
    found = written("kernel", source, "--launch", given)
    valid("kernel", found)
    assert found["verdict"] == "findings"
    assert all(place["thread"]["lane"] is not None for one in found["findings"] for place in one["places"])


def test_descriptions_of_launches_are_as_their_schema_says(tmp_path: Path) -> None:
    """Complete ones, forms, what documentation shows, lists; and what several launches say."""
    for file in sorted((ROOT / "docs/examples").rglob("*.launch.json")):
        valid("launch", json.loads(file.read_text()))
    for name in ("tma_pipeline", "gemm_sm100"):
        valid("launch", written("kernel", ROOT / f"docs/examples/kernels/{name}.ptx", "--init-launch"))
    tensor = {"param": 0, "tensorDataType": "BFLOAT16", "globalAddress": "x", "globalDim": [64, 128], "boxDim": [64, 8],
              "swizzle": "CU_TENSOR_MAP_SWIZZLE_128B", "oobFill": "NONE"}  # fmt: skip
    own = {"grid": 4, "params": {"n": 512, "x": None}, "tensormaps": [tensor], "dynamic_shared": None}
    both = {"launches": [own, {**own, "programmatic": True}]}
    for good in ({}, own, [own, own], both):
        valid("launch", good)
    for broken in ([], {"gird": 4}, [{"gird": 4}], {**both, "grid": 1}, {"tensormaps": [{"swizzle": 3}]}):
        with pytest.raises(SchemaError):
            valid("launch", broken)
    source, given = tmp_path / "k.ptx", tmp_path / "l.json"
    source.write_text(module(NEIGHBOUR.format(sync="bar.sync 0;")).source.text)
    given.write_text(json.dumps([launch().model_dump(exclude_none=True)] * 2))
    answers = written("kernel", source, "--launch", given)
    valid("kernel", answers)
    assert len(answers) == 2


def test_a_schema_can_refuse() -> None:
    """Otherwise the tests above could not fail."""
    found = written("outcomes", ROOT / "litmus/isa/MP.litmus")
    for broken in ({**found, "more": 1}, {**found, "complete": "yes"}, {"states": []}):
        with pytest.raises(Exception, match=r"more|yes|required"):
            valid("outcomes", broken)


def test_records_are_closed_and_frozen() -> None:
    record = OutcomesRecord(states=(), complete=True, engine="z3", reason="")
    with pytest.raises(ValidationError):
        record.complete = False  # type: ignore[misc]
    with pytest.raises(ValidationError):
        OutcomesRecord(states=(), complete=True, engine="z3", reason="", more=1)  # type: ignore[call-arg]


# ---- nothing is lost -------------------------------------------------------------------------------------------


def test_instances_of_two_clusters_keep_their_values() -> None:
    report = check(TWO_CLUSTERS)
    record: Any = report.to_json()
    assert record["witness"]["memory"] == {"s@cta0,cluster0": "1", "s@cta0,cluster1": "2"}
    assert {event["location"] for event in record["witness"]["events"]} == {"s@cta0,cluster0", "s@cta0,cluster1"}


@pytest.mark.parametrize(
    ("places", "names"),
    [
        (("cta 0", "cta 1"), ["s@cta0", "s@cta1"]),
        (("cta 0, gpu 0", "cta 0, gpu 1"), ["s@cta0,gpu0", "s@cta0,gpu1"]),
        (("cta 0, cluster 0", "cta 1, cluster 0"), ["s@cta0", "s@cta1"]),
        (("cta 0, cluster 0, gpu 0", "cta 0, cluster 0, gpu 1"), ["s@cta0,gpu0", "s@cta0,gpu1"]),
        (("cta 0", "cta 0"), ["s"]),
    ],
)
def test_an_instance_is_named_by_what_tells_it_apart(places: tuple[str, str], names: list[str]) -> None:
    threads = "\n".join(f"thread P{n} @ {place} {{ st.shared.u32 [s], 1; }}" for n, place in enumerate(places))
    record: Any = check(f"PTX t\n.shared .u32 s;\n{threads}\nexists (true)\n").to_json()
    assert sorted(record["witness"]["memory"]) == names


def test_every_hang_keeps_its_execution() -> None:
    report = check(TWO_HANGS)
    record: Any = report.to_json()
    found = [one for one in report.answer.findings if one.flag == HANG]
    assert [one["waits"] for one in record["hangs"]] == [list(one.witness.waits) for one in found]
    assert record["hang"] == record["hangs"][0]["waits"]
    assert record["hanging"] == record["hangs"][0]["witness"]


def test_a_finding_has_its_own_execution_and_the_report_its_warnings() -> None:
    record: Any = check(str(ROOT / "litmus/async/proxy/A2.litmus")).to_json()
    assert record["races"][0]["witness"]["events"]
    assert record["status"] == "as expected"
    assert isinstance(record["warnings"], list)


def test_notices_about_a_model_are_in_its_records(tmp_path: Path) -> None:
    path = tmp_path / "m.cat"
    path.write_text('"a model"\nacyclic po | rf | co | fr | ctrlisb as total\n')
    record: Any = check(str(ROOT / "litmus/isa/MP.litmus"), str(path)).to_json()
    (notice,) = record["notices"]
    assert "`ctrlisb`" in notice and "2:" in notice


def test_plain_commands_load_no_pydantic() -> None:
    code = (
        "import sys\nfrom memmodel.cli import main\n"
        "try:\n    main(['check', 'litmus/isa/MP.litmus'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'networkx', 'rich', 'jsonschema'} & set(sys.modules)\n"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_outcomes_name_every_instance(engine: str) -> None:
    """Two clusters have a CTA 0 each; without a condition every register and variable is shown."""
    text = TWO_CLUSTERS.replace("exists (P1:r0 == 2)", "forall (true)")
    (state,) = api.outcomes(text, engine=engine).states
    assert dict(state.values) == {"P1:r0": 2, "s@cta0,cluster0": 1, "s@cta0,cluster1": 2}


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_a_condition_names_the_instance_of_a_thread(engine: str) -> None:
    for condition, holds in (("s@P0 == 1", True), ("s@P1[0] == 1", False), ("s@P1 == 2 /\\ P1:r0 == 2", True)):
        found = api.check(TWO_CLUSTERS.replace("exists (P1:r0 == 2)", f"forall ({condition})"), engine=engine)
        assert found.holds is holds
    (state,) = api.outcomes(TWO_CLUSTERS.replace("P1:r0 == 2", "s@P0 == 1"), engine=engine).states
    assert state.values == (("s@P0", 1),)


@pytest.mark.parametrize(
    ("term", "message"),
    [("s@P9", "thread `P9` is not declared"), ("s@cta0", "`s` has 2 instances"), ("x@P0", "`x` is not .shared")],
)
def test_a_condition_names_one_instance(term: str, message: str) -> None:
    text = TWO_CLUSTERS.replace("P1:r0 == 2", f"{term} == 1").replace("\n.shared", "\n.global .u32 x;\n.shared", 1)
    with pytest.raises(InputError, match=message):
        api.check(text)


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_outcomes_say_which_arrays_they_leave_out(engine: str) -> None:
    """Nine elements are too many to be shown unasked; eight are not."""
    text = "PTX t\n.global .u32 a[9];\n.global .u32 b[8];\nthread P0 { st.u32 [a], 1; }\nexists ({})\n"
    found = api.outcomes(text.replace("{}", "true"), engine=engine)
    assert found.left_out == ("a[9]",) and dict(found.states[0].values)["b[7]"] == 0
    assert "not shown: a[9]" in outcomes_lines(found)[-1]
    assert api.outcomes(text.replace("{}", "a[0] == 1"), engine=engine).left_out == ()


def test_readings_keep_their_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "judge", lambda *_, **__: Answer(Observation.NEVER, "z3"))
    text = TWO_CLUSTERS.replace("\n.shared", "\nExpect=ptx-9.5:never\n.shared", 1)
    report = api.readings(text)
    assert len(report.warnings) == 1 and "did you mean ptx-9.4?" in report.warnings[0]
    assert report.to_json()["warnings"] == list(report.warnings)
    assert report.warnings[0] in report.explain()


def test_the_value_of_a_wide_tile_is_a_string(tmp_path) -> None:
    """4,096 bytes are an integer of 9,800 digits, which no reader in Python takes."""
    from helpers import fuzz

    (tmp_path / "wide.litmus").write_text(
        f"""PTX wide
.global .align 16 .b8 in[4096] = {{{", ".join("7" * 4096)}}};
.shared .align 16 .b8 s[4096];
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, gpu 0 {{
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4096;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [in], 4096, [bar];
W:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra W;
    ld.weak.shared.b8 %r0, [s];
}}
exists (P0:r0 == 7)
"""
    )
    code, out, err = fuzz._run(("check", str(tmp_path / "wide.litmus"), "--json", "-"))
    assert code == 0, err
    values = [event["value"] for event in json.loads(out)[0]["witness"]["events"]]
    assert "0x" + "07" * 4095 in [str(value).replace("0x7", "0x07", 1) for value in values] and 7 in values

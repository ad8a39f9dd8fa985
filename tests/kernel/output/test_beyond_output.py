"""What is asked beyond a launch: it comes after the verdict, has exit codes, and smaller launches beside the proofs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import HEAD

from memmodel.answer import Budget
from memmodel.cli.app import app
from memmodel.errors import BudgetSpent
from memmodel.kernel.check.conductor import check_kernel
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.question import LaunchWords

pytestmark = pytest.mark.turns(2)

LOOP = (
    HEAD
    + """
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<8>;
.shared .align 16 .b8 s[1024];
ld.param.u32 %r1, [n];
mov.u32 %r0, %tid.x;
shl.b32 %r2, %r0, 2;
mov.u32 %r3, s;
add.u32 %r4, %r3, %r2;
xor.b32 %r5, %r2, 128;
add.u32 %r5, %r3, %r5;
mov.u32 %r6, 0;
FIRST
setp.eq.u32 %p1, %r1, 0;
@%p1 bra DONE;
LOOP:
st.shared.u32 [%r4], %r0;
bar.sync 0;
ld.shared.u32 %r7, [%r5];
bar.sync 0;
add.u32 %r6, %r6, 1;
setp.lt.u32 %p1, %r6, %r1;
@%p1 bra LOOP;
bra END;
DONE:
EMPTY
END:
ret;
}
"""
)
RACE = "st.shared.u32 [%r4], %r0;\nld.shared.u32 %r7, [%r5];"


def written(folder: Path, first: str = "", empty: str = "", rounds: int = 9) -> list[str]:
    (folder / "k.ptx").write_text(LOOP.replace("FIRST", first).replace("EMPTY", empty))
    launch = {
        "grid": [1, 1, 1],
        "block": [64, 1, 1],
        "params": [
            {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 4096},
            {"name": "n", "type": "u32", "value": rounds},
        ],
    }
    (folder / "l.json").write_text(json.dumps(launch))
    return ["kernel", str(folder / "k.ptx"), "--launch", str(folder / "l.json")]


def test_a_fault_in_a_loop_without_a_round(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*written(tmp_path), "--any-trips"])
    assert done.exit_code == 0 and "any trip count: yes, for every n (up to 4294967295" in done.output
    assert "other launches: clean with n = 0..8" in done.output
    command = written(tmp_path, empty=RACE)
    assert CliRunner().invoke(app, command).exit_code == 0
    done = CliRunner().invoke(app, [*command, "--any-trips", "--json", str(tmp_path / "o.json")])
    assert done.exit_code == 1 and "other launches: findings with n = 0" in done.output
    assert "any trip count: no: data-race of lines 30 and 31 with n = 0; for larger ones yes, for n = 9" in done.output
    data = json.loads((tmp_path / "o.json").read_text())
    assert data["verdict"] == "clean" and data["smaller"]["n = 0"] == "findings" and data["smaller"]["n = 1"] == "clean"


def test_fewer_rounds_than_a_ring_has_stages(tmp_path: Path) -> None:
    """With 64 elements in a round, two rounds are 128: that is found by running the launch."""
    command = written(tmp_path, first="shr.u32 %r1, %r1, 6;", rounds=640)
    text = (
        (tmp_path / "k.ptx").read_text().replace("bra END;\n", f"setp.ne.u32 %p1, %r1, 2;\n@%p1 bra END;\n{RACE}\n", 1)
    )
    (tmp_path / "k.ptx").write_text(text)
    verdict = check_kernel(command[1], command[3], any_trips=True)
    assert verdict.word == "clean" and verdict.smaller["n = 128"] == "findings"
    assert verdict.smaller["n = 64"] == "clean", verdict.smaller
    assert verdict.beyond["any trip count"].startswith("no: data-race of lines ")


def test_a_grid_of_one_cta_and_a_guard(tmp_path: Path) -> None:
    """What is wrong with a single CTA, and where a parameter that decides no trip count is 0."""
    skipped = "@%p2 bra NO;\n" + RACE + "\nNO:"
    command = written(tmp_path, first="mov.u32 %r8, %nctaid.x;\nsetp.ne.u32 %p2, %r8, 1;\n" + skipped)
    verdict = check_kernel(command[1], command[3], words=LaunchWords(grid=(2,)), any_grid=True)
    assert verdict.word == "clean" and verdict.smaller == {"one CTA": "findings"}
    command = written(tmp_path, first="setp.ne.u32 %p2, %r1, 0;\n" + skipped)
    text = (tmp_path / "k.ptx").read_text().replace("%r6, %r1;", "%r6, 9;")
    text = text.replace("setp.eq.u32 %p1, %r1, 0;\n@%p1 bra DONE;", "")
    (tmp_path / "k.ptx").write_text(text)
    verdict = check_kernel(command[1], command[3], any_trips=True)
    assert verdict.word == "clean" and verdict.smaller == {"n = 0": "findings", "n = 1": "clean", "n = 8": "clean"}
    answer = (
        "no: data-race of lines 19 and 20 with n = 0; for larger ones yes: no trip count depends on a parameter, and "
        "the launch does the same for n = 9 and any multiple of 1 more"
    )
    assert verdict.beyond["any trip count"].startswith(answer), verdict.beyond


def test_a_launch_of_one_round_is_enough(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*written(tmp_path, rounds=1), "--any-trips"])
    assert done.exit_code == 0 and "any trip count: yes, for every n (up to" in done.output
    assert "other launches: clean with n = 0, 2..12" in done.output


@pytest.mark.parametrize(
    ("first", "rounds", "answer"),
    [
        ("setp.ne.u32 %p2, %r1, 7;", 9, "no: data-race of lines 19 and 20 with n = 7; for larger ones yes, for n = 9"),
        (
            "and.b32 %r8, %r1, 1;\nsetp.eq.u32 %p2, %r8, 0;",
            8,
            "no: data-race of lines 20 and 21 with n = 9; for larger ones yes, for n = 8",
        ),
        ("setp.ne.u32 %p2, %r1, 5;", 1, "no: data-race of lines 19 and 20 with n = 5; "),
        ("setp.lt.u32 %p2, %r1, 30;", 1, "no: data-race of lines 19 and 20 with n = 49; for larger ones not shown: "),
    ],
    ids=["smaller", "another rest", "between the launch and the proof", "late"],
)
def test_a_number_of_rounds_with_a_fault(tmp_path: Path, first: str, rounds: int, answer: str) -> None:
    skipped = f"{first}\n@%p2 bra NO;\n{RACE}\nNO:"
    command = written(tmp_path, first=skipped, rounds=rounds)
    verdict = check_kernel(command[1], command[3], any_trips=True)
    assert verdict.word == "clean" and verdict.beyond["any trip count"].startswith(answer), verdict.beyond


def test_what_is_not_shown_has_an_exit_code(tmp_path: Path) -> None:
    command = written(tmp_path, first="ld.global.u32 %r8, [%d0];\n".replace("[%d0]", "[table]"), rounds=1)
    text = (tmp_path / "k.ptx").read_text().replace(".visible", ".global .align 4 .u32 table[1] = {3};\n.visible")
    (tmp_path / "k.ptx").write_text(text.replace("%r6, %r1;", "%r6, %r8;"))
    assert CliRunner().invoke(app, command).exit_code == 0
    done = CliRunner().invoke(app, [*command, "--any-trips"])
    assert done.exit_code == 3 and done.output.startswith("clean: k") and "any trip count: not shown" in done.output


def test_a_parameter_that_decides_a_guard(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(
        f"{HEAD}\n.visible .entry k(.param .u32 n)\n{{\n.reg .pred %p<8>; .reg .b32 %r<16>;\n.shared .b32 s[4];\n"
        "ld.param.u32 %r1, [n];\nsetp.eq.u32 %p1, %r1, 7;\n@%p1 st.shared.u32 [s], %r1;\nret;\n}\n"
    )
    launch = {"grid": [1, 1, 1], "block": [32, 1, 1], "params": [{"name": "n", "type": "u32", "value": 1}]}
    (tmp_path / "l.json").write_text(json.dumps(launch))
    verdict = check_kernel(tmp_path / "k.ptx", tmp_path / "l.json", any_trips=True)
    answer = (
        "not shown: there is no loop, but n may decide something else: whether st.shared.u32 is carried out at line 11 "
        "may depend on it"
    )
    assert verdict.beyond == {"any trip count": answer} and verdict.smaller == {"n = 0": "clean"}


def test_the_verdict_stays_when_the_budget_ends_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spent(*_: object) -> None:
        raise BudgetSpent("the time is over")

    monkeypatch.setattr("memmodel.kernel.check.sizes.any_trips", spent)
    written(tmp_path)
    stands: list[tuple[str, dict[str, str]]] = []

    def told(verdict: KernelVerdict) -> None:
        stands.append((verdict.word, dict(verdict.beyond)))

    verdict = check_kernel(
        tmp_path / "k.ptx", tmp_path / "l.json", any_trips=True, on_verdict=told, budget=Budget(seconds=60)
    )
    assert stands == [("clean", {})]
    assert verdict.word == "clean"
    assert verdict.beyond == {"any trip count": "not shown: the time is over"}
    assert verdict.spent, "an answer with a part missing is not kept"


def test_a_yes_does_not_stand_before_smaller_launches_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(*_: object) -> None:
        raise BudgetSpent("the time is over")

    monkeypatch.setattr("memmodel.kernel.check.conductor._verdict_of", spent)
    command = written(tmp_path)
    verdict = check_kernel(command[1], command[3], any_trips=True, budget=Budget(seconds=60))
    assert verdict.beyond["any trip count"].startswith("not shown: smaller launches were not judged; yes, for n = 9")


@pytest.mark.parametrize("option", ["--any-trips", "--fix", "--mutate"])
def test_the_verdict_is_printed_first(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("check.sizes.any_trips", "repair.search.candidates", "mutate.table.mutations"):
        monkeypatch.setattr(f"memmodel.kernel.{name}", stopped)
    command = written(tmp_path, first=RACE if option == "--fix" else "")
    done = CliRunner().invoke(app, [*command, option])
    assert done.exit_code and done.output.startswith("findings: k" if option == "--fix" else "clean: k")


def test_a_smaller_launch_that_does_not_end(tmp_path: Path) -> None:
    """Where a loop counts down from 0, a run is given up after about as many steps as the launch takes."""
    command = written(tmp_path)
    text = (
        (tmp_path / "k.ptx")
        .read_text()
        .replace("@%p1 bra DONE;", "")
        .replace("setp.lt.u32 %p1, %r6", "setp.ne.u32 %p1, %r6")
    )
    (tmp_path / "k.ptx").write_text(text)
    done = CliRunner().invoke(app, [*command, "--any-trips"])
    assert done.output.startswith("clean: k") and "other launches: undecided with n = 0" in done.output
    assert done.exit_code == 3

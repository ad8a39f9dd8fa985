"""Findings that somebody has looked at, one line per kernel, several kernels: what teams rely on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.kernel.samples import HEAD, NEIGHBOUR, kernel_text

from memmodel.cli.app import app

ROOT = Path(__file__).parents[3]
FIRST = ROOT / "docs" / "examples" / "first"
SIZES = ("--grid", "2", "--block", "64")
RACY, SYNCED = (kernel_text(NEIGHBOUR.format(sync=sync)) for sync in ("", "bar.sync 0;"))
STORE = "st.shared.u32 [%r3], %r0;"


def run(*args: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["kernel", *SIZES, *map(str, args)])
    return result.exit_code, result.output


def kernel(folder: Path, text: str, name: str = "k.ptx") -> Path:
    (folder / name).write_text(text)
    return folder / name


# ---- comments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [
    f'{STORE} // memmodel: ignore data-race "shown"',
    f'// memmodel: ignore data-race "shown"\n{STORE}',
    f'{STORE} /* memmodel: ignore data-race "shown" */',
])  # fmt: skip
def test_a_comment_ignores_a_rule_at_its_line(tmp_path: Path, line: str) -> None:
    code, output = run(kernel(tmp_path, RACY.replace(STORE, line)))
    assert code == 0 and "ignored: data-race" in output and output.rstrip().endswith(")") is False
    assert "shown" in output and "no such finding" not in output


@pytest.mark.parametrize("line", [
    f'{STORE} // memmodel: ignore hang "another rule"',
    f'mov.u32 %r9, 0; // memmodel: ignore data-race "the line before is not alone"\n{STORE}',
    f'// memmodel: ignore data-race "two lines before"\n\n{STORE}',
])  # fmt: skip
def test_a_comment_that_ignores_nothing_is_reported(tmp_path: Path, line: str) -> None:
    code, output = run(kernel(tmp_path, RACY.replace(STORE, line)))
    assert code == 1 and "there is no such finding" in output, output
    assert "there is no such finding" in run(kernel(tmp_path, SYNCED.replace(STORE, line)))[1]


@pytest.mark.parametrize("comment", ["ignore data-race", 'ignore data-race " "', 'ignore "why"', "ignore"])
def test_a_comment_has_a_rule_and_a_reason(tmp_path: Path, comment: str) -> None:
    code, output = run(kernel(tmp_path, RACY.replace(STORE, f"{STORE} // memmodel: {comment}")))
    assert code == 2 and "names its rule and a reason" in output


def test_a_comment_in_the_source_beside_the_ptx(tmp_path: Path) -> None:
    """The other findings stay, and what is ignored is in JSON and SARIF."""
    ptx = kernel(tmp_path, (FIRST / "reverse.ptx").read_text())
    source = (FIRST / "reverse.cu").read_text()
    (tmp_path / "reverse.cu").write_text(
        source.replace("= in[block + i];", '= in[0]; // memmodel: ignore data-race "x"')
    )
    files = {"json": tmp_path / "o.json", "sarif": tmp_path / "o.sarif"}
    assert run(ptx, "--json", files["json"], "--sarif", files["sarif"])[0] == 0
    record, log = (json.loads(file.read_text()) for file in files.values())
    assert record["verdict"] == "clean" and {finding["ignored"] for finding in record["findings"]} == {"x"}
    assert [result["suppressions"][0]["justification"] for result in log["runs"][0]["results"]] == ["x"]


# ---- baselines -------------------------------------------------------------------------------------------------------


def reasoned(file: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(file.read_text())
    for item in data["findings"]:
        item["reason"] = item["reason"] or "old"
    file.write_text(json.dumps(data))
    return data


def test_a_baseline_lists_what_may_stay_and_no_more(tmp_path: Path) -> None:
    """Lines may move; a second finding of the kind, or one elsewhere, fails; an entry without reason is refused."""
    listed = tmp_path / "b.json"
    assert run(kernel(tmp_path, RACY), "--write-baseline", listed)[0] == 1
    code, output = run(tmp_path / "k.ptx", "--baseline", listed)
    assert code == 2 and "has no reason" in output
    reasoned(listed)
    code, output = run(kernel(tmp_path, "\n\n// moved\n" + RACY), "--baseline", listed)
    assert code == 0 and ": old" in output
    body = NEIGHBOUR.format(sync="")
    twice = kernel_text(f"{body}bar.sync 0;\n{body}")
    assert run(kernel(tmp_path, twice), "--baseline", listed)[0] == 1
    code, output = run(kernel(tmp_path, SYNCED), "--baseline", listed)
    assert code == 0 and "is not found any more (old)" in output


def test_a_baseline_grows_and_keeps_its_reasons(tmp_path: Path) -> None:
    listed = tmp_path / "b.json"
    run(kernel(tmp_path, RACY), "--write-baseline", listed)
    reasoned(listed)
    other = kernel(tmp_path, RACY.replace("k(", "j(").replace("k_param", "j_param"), "j.ptx")
    assert run(other, "--baseline", listed, "--write-baseline", listed)[0] == 1
    data = json.loads(listed.read_text())
    assert [(item["kernel"], item["reason"]) for item in data["findings"]] == [("k", "old"), ("j", "")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"findings": [{"kernel": "k"}]}', '{"findings": 3}', "[" * 100_000])
def test_a_file_that_is_no_baseline(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    code, output = run(kernel(tmp_path, SYNCED), "--baseline", tmp_path / "b.json")
    assert code == 2 and "no baseline" in output


# ---- one line, and several kernels -----------------------------------------------------------------------------------


def test_what_is_ignored_is_neither_repaired_nor_news(tmp_path: Path) -> None:
    """With --fix and --mutate: a comment, a baseline. Another finding of the kernel is repaired alone."""
    commented = kernel(tmp_path, RACY.replace(STORE, f'{STORE} // memmodel: ignore data-race "shown"'))
    for option, shown in (("--fix", "clean: "), ("--mutate", "clean: ")):
        code, output = run(commented, option)
        assert code == 0 and output.startswith(shown) and "repair" not in output, output
    plain = kernel(tmp_path, RACY, "plain.ptx")
    base = tmp_path / "base.json"
    run(plain, "--write-baseline", base)
    base.write_text(base.read_text().replace('"reason": ""', '"reason": "old"'))
    assert run(plain, "--fix")[0] == run(plain, "--mutate")[0] == 1
    assert run(plain, "--fix", "--baseline", base)[0] == run(plain, "--mutate", "--baseline", base)[0] == 0
    two = RACY.replace(STORE, f'{STORE} // memmodel: ignore data-race "shown"').replace(
        "ret;", "st.shared.u32 [%r3+512], %r0;\nld.shared.u32 %r13, [%r11+512];\nret;"
    )
    code, output = run(kernel(tmp_path, two, "two.ptx"), "--fix")
    assert code == 1 and "repair 1: the finding is gone, and the verdict is: clean" in output, output


def test_an_ignored_race_hides_no_other_one(tmp_path: Path) -> None:
    """Where nothing stands between, several instructions race alike, and one of them is shown, as long as none is
    ignored.
    """
    alike = "st.shared.u32 [%r3+512], %r0;\nld.shared.u32 %r13, [%r11+512];\nret;"
    both = kernel(tmp_path, RACY.replace("ret;", alike))
    assert run(both)[1].count("data-race") == 1
    base = tmp_path / "base.json"
    run(both, "--write-baseline", base)
    assert len(json.loads(base.read_text())["findings"]) > 0
    base.write_text(base.read_text().replace('"reason": ""', '"reason": "old"'))
    assert run(both, "--baseline", base)[0] == 0
    run(kernel(tmp_path, RACY, "one.ptx"), "--write-baseline", base)
    base.write_text(base.read_text().replace('"reason": ""', '"reason": "old"'))
    assert run(both, "--baseline", base)[0] == 1
    commented = both.read_text().replace(STORE, f'{STORE} // memmodel: ignore data-race "shown"')
    code, output = run(kernel(tmp_path, commented))
    assert code == 1 and "ignored: data-race of lines 18 and 22" in output and ":24:1: st.shared.u32" in output


def test_one_line_is_a_promise(tmp_path: Path) -> None:
    """docs/teams.md: a change of this line breaks what others have built on it."""
    ptx = FIRST / "reverse.ptx"
    assert run(ptx, "--short") == (1, f"findings reverse {ptx} data-race@reverse.cu:6+reverse.cu:7\n")
    assert run(kernel(tmp_path, SYNCED), "--short") == (0, f"clean k {tmp_path}/k.ptx\n")
    line = RACY[: RACY.index(STORE)].count("\n") + 1
    assert (
        run(kernel(tmp_path, RACY), "--short")[1]
        == f"findings k {tmp_path}/k.ptx data-race@line:{line}+line:{line + 4}\n"
    )
    undecided = RACY.replace(STORE, "nothing.known;")
    assert run(kernel(tmp_path, undecided), "--short") == (3, f"undecided k {tmp_path}/k.ptx\n")


def test_several_kernels_in_their_order(tmp_path: Path) -> None:
    second = SYNCED.removeprefix(HEAD).replace("k(", "j(").replace("k_param", "j_param")
    both = kernel(tmp_path, RACY + second)
    bad = kernel(tmp_path, "nonsense", "bad.ptx")
    out = tmp_path / "o.json"
    code, output = run(
        both, "--entry", "j", "--entry", "k", "--short", "-j", 2, "--json", out, "--sarif", tmp_path / "s"
    )
    words = [line.split()[:2] for line in output.splitlines()]
    assert code == 1 and words == [["clean", "j"], ["findings", "k"]]
    assert [record["verdict"] for record in json.loads(out.read_text())] == ["clean", "findings"]
    assert len(json.loads((tmp_path / "s").read_text())["runs"]) == 2
    code, output = run(bad, both, "--entry", "j", "--short")
    assert code == 2 and output.splitlines()[0].startswith(f"{bad}:1:1: error")
    assert run(both, "-")[0] == 2


# ---- files for others ------------------------------------------------------------------------------------------------


def test_annotations_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "o.sarif"
    run(FIRST / "reverse.ptx", "--sarif", log)
    script = [sys.executable, str(ROOT / ".ci" / "annotations")]
    said = subprocess.run([*script, str(log)], capture_output=True, text=True, check=True).stdout
    assert said.startswith("::error file=reverse.cu,line=6,title=memmodel data-race::reverse: ")
    assert subprocess.run([*script, str(tmp_path / "none")], capture_output=True, check=True).stdout == b""


def test_files_for_other_programs_name_what_is_there() -> None:
    """The hooks, the action and the page for agents name options that the command has."""
    help_text = CliRunner().invoke(app, ["kernel", "--help"]).output
    known = set(re.findall(r"--[a-z][a-z-]+", help_text))
    for name in (".pre-commit-hooks.yaml", "action.yml", "SKILL.md"):
        used = set(re.findall(r"(?<=[ `])--[a-z][a-z-]+", (ROOT / name).read_text()))
        assert used and used <= known | {"--sarif"}, (name, used - known)

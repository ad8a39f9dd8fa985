"""Every row says since which version of PTX and on which targets there is what it has, as ptxas does
(helpers/versions.py wrote the table).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.examples import share
from helpers.kernel.samples import kernel_text
from helpers.versions import NEWEST, OLDEST, TARGETS, Fact, asked, knows, table

from memmodel.base.resources import suite_dir
from memmodel.cli.app import app
from memmodel.emit import Assembler, oldest_target
from memmodel.errors import InputError
from memmodel.isa.lower import minimum_version, refuse_beyond
from memmodel.isa.module import spelling_of
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.spelling import Spelling
from memmodel.isa.table import TABLE
from memmodel.kernel.check.inputs import younger_words
from memmodel.litmus.parse import parse_litmus
from memmodel.ptx.module.reader import parse_module
from memmodel.ptx.targets import PtxLevel, Target, version_of
from memmodel.source import Source

FACTS = table()

FEWER_TARGETS = {
    "cp.async.bulk": "its page gives .weak, .relaxed, .scope and .type to sm_90a and the families of sm_100 and sm_110",
    "multimem.cp.async.bulk": "as cp.async.bulk",
}
"""Heads whose pages name fewer targets than ptxas accepts, and for what. The table follows the page."""

LATER = {
    "cp.async.bulk.prefetch": "the notes on PTX 9.4 have its eviction priority",
    "cp.async.bulk.prefetch.tensor": "the notes on PTX 9.4 have its eviction priority",
    "addc": "its page gives .u64 and .s64 to PTX 4.3",
    "madc": "its page gives .u64 and .s64 to PTX 4.3",
    "subc": "its page gives .u64 and .s64 to PTX 4.3",
    **dict.fromkeys(
        ("fabric.try_get", "fabric.try_put", "fabric.try_red"), "its page gives .L2::cache_hint to PTX 9.4"
    ),
}
"""Heads whose pages name a later version than ptxas asks for, and for what. The table follows the page."""


def operands(line: str) -> int:
    """How many operands an instruction has: what stands between commas outside of brackets."""
    depth, count = 0, 0
    text = line.partition(" ")[2].rstrip(";").strip()
    for character in text:
        depth += (character in "[{(") - (character in ")}]")
        count += character == "," and depth == 0
    return count + bool(text)


def spelling(line: str) -> Spelling:
    read = spelling_of(line.split()[0].rstrip(";"))
    assert isinstance(read, Spelling), line
    return read


def told(line: str) -> Fact:
    """What the table of instructions says of a line, as ptxas would."""
    needs = spelling(line).requirements(operands(line)).values()
    version = max([OLDEST, *(since.version for since in needs)], key=version_of)
    return Fact(version, frozenset(str(target) for target in TARGETS if all(since.has(target) for since in needs)))


@pytest.mark.parametrize("row", [row for row in TABLE if not row.columns], ids=lambda row: row.heads[0])
def test_a_row_states_versions_and_targets(row: Row) -> None:
    for case, since in {"": row.since, **row.later}.items():
        assert version_of(since.version) <= version_of(NEWEST), case
        assert any(since.has(target) for target in (*TARGETS, Target(62))), case


@pytest.mark.parametrize("row", [row for row in TABLE if not row.columns], ids=lambda row: row.heads[0])
def test_a_row_says_what_ptxas_says(row: Row) -> None:
    lines = [line for line in FACTS if spelling(line).row is row]
    assert {spelling(line).head for line in lines} == set(row.heads), "a line of tests/data/versions.tsv for each head"
    for line in lines:
        mine, theirs = told(line), FACTS[line]
        if spelling(line).head in LATER:
            assert version_of(mine.version) >= version_of(theirs.version), line
        else:
            assert mine.version == theirs.version, line
        if spelling(line).head in FEWER_TARGETS:
            assert mine.targets <= theirs.targets, line
        else:
            assert mine.targets == theirs.targets, line


def test_what_differs_from_ptxas_differs() -> None:
    different = {spelling(line).head for line in FACTS if told(line) != FACTS[line]}
    assert different == FEWER_TARGETS.keys() | LATER.keys()


def test_the_table_is_what_ptxas_says_now() -> None:
    try:
        assembler = Assembler.find()
    except InputError:
        pytest.skip("no ptxas: pip install 'memmodel[ptx]'")
    if not knows(NEWEST, assembler):
        pytest.skip(f"this ptxas does not know PTX {NEWEST}")
    words = share(sorted(FACTS), 8)
    assert asked(words, assembler) == {word: FACTS[word] for word in words}


# ---- what a version or a target does not have ----------------------------------------------------------------------

MULTICAST = """PTX multicast
.shared .align 8 .b64 bar = mbarrier(1);
thread P0 @ cta 0, cluster 0, gpu 0 {
    mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [bar], 1;
}
exists (true)
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ptx-version", "9.4"), None),
        (("--ptx-version", "9.4", "--target", "sm_107a"), None),
        (("--ptx-version", "9.4", "--target", "sm_107f"), None),
        (("--ptx-version", "9.3"), "`.multicast::cluster::32b` needs PTX 9.4; --ptx-version is 9.3"),
        (("--target", "sm_100a"), "`.multicast::cluster::32b` needs sm_107a or sm_107f; --target is sm_100a"),
        (("--ptx-version", "6.5"), "`mbarrier.arrive` needs PTX 7.0; --ptx-version is 6.5"),
        (("--target", "sm_75"), "`mbarrier.arrive` needs sm_80; --target is sm_75"),
    ],
)
@pytest.mark.parametrize("command", ["check", "suite"])
def test_what_is_younger_is_refused_by_name(
    command: str, options: tuple[str, ...], said: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "multicast.litmus"
    file.write_text(MULTICAST)
    words = ("--model", "ptx-9.4", "--no-expect") if command == "suite" else ()
    done = CliRunner().invoke(app, [command, str(file), *options, *words])
    assert done.exit_code == (0 if said is None else 2)
    if said is not None:
        assert f":4:{5 if '`mbar' in said else 53}: error: {said}" in done.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ptx-version", "7.8", "--target", "sm_90a"), "sm_90a needs PTX 8.0; --ptx-version is 7.8"),
        (("--target", "sm_91"), "PTX has no target sm_91"),
        (("--target", "sm_90f"), "PTX has no target sm_90f"),
        (("--target", "hopper"), "'hopper' is not a target architecture"),
        (("--ptx-version", "eight"), "'eight' is not a version of PTX"),
    ],
)
def test_a_dialect_that_ptx_does_not_have_is_bad_input(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    file = tmp_path / "multicast.litmus"
    file.write_text(MULTICAST)
    done = CliRunner().invoke(app, ["check", str(file), *options])
    assert done.exit_code == 2 and said in done.output


def test_a_version_that_is_not_known_yet_is_told_so_once(tmp_path: Path) -> None:
    file = tmp_path / "multicast.litmus"
    file.write_text(MULTICAST)
    for version, times in (("9.4", 0), ("9.5", 1), ("10.0", 1)):
        done = CliRunner().invoke(app, ["check", str(file), str(file), "--ptx-version", version])
        assert done.exit_code == 0 and done.output.count("the newest version that is known") == times


def test_readings_and_modules_of_tests_have_the_option(tmp_path: Path) -> None:
    file = tmp_path / "multicast.litmus"
    file.write_text(MULTICAST)
    for words in (("check", "--readings"), ("ptx",)):
        done = CliRunner().invoke(app, [*words, str(file), "--ptx-version", "8.6"])
        assert done.exit_code == 2 and "`.multicast::cluster::32b` needs PTX 9.4" in done.output


def test_a_shipped_test_has_what_its_oldest_target_has() -> None:
    """No word of a test is refused by the target and the version that are worked out for it."""
    for path in sorted(suite_dir().rglob("*.litmus"))[::9]:
        test = parse_litmus(Source.read(path))
        try:
            target = oldest_target(test)
        except InputError:  # instructions of several architectures
            continue
        refuse_beyond(test, PtxLevel(minimum_version(test, OLDEST), target))


def test_a_kernel_notes_what_its_module_does_not_have() -> None:
    text = kernel_text("fence.acquire.sync_restrict::shared::cluster.cluster; st.weak.shared.u32 [s], 1;")
    said = younger_words(parse_module(Source("k.ptx", text)))
    assert not said
    for version, target, wanted in (("8.5", "sm_90a", "needs PTX 8.6"), ("8.8", "sm_80", "needs sm_90")):
        changed = re.sub(r"\.target \S+", f".target {target}", text.replace(".version 8.8", f".version {version}"))
        said = younger_words(parse_module(Source("k.ptx", changed)))
        assert said and all(wanted in note and f"PTX {version} and {target}" in note for note in said)


@pytest.mark.parametrize(
    "opcode",
    [
        "mbarrier.arrive.noComplete.shared::cluster.b64",
        "mbarrier.arrive_drop.noComplete.shared::cluster.b64",
        "tex.2dms.v4.s32.f32",
        "sured.b.max.1d.b32.trap",
        "sured.b.add.1d.s64.trap",
        "sured.b.and.1d.u32.trap",
        "sured.p.or.1d.b64.trap",
    ],
)
def test_what_neither_a_page_nor_ptxas_has_is_refused(opcode: str) -> None:
    assert not isinstance(spelling_of(opcode), Spelling)

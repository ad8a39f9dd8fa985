"""The page of `memmodel report`: whole, closed to the network, and safe from what the tests are called and say."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.examples import examples
from helpers.places import ROOT
from hypothesis import given
from hypothesis import strategies as st

from memmodel.cli import main, pages
from memmodel.output import escaped
from memmodel.report.page.code import diff_html, source_html, told_html
from memmodel.report.page.page import page
from memmodel.report.page.sheet import (
    Because,
    Repairs,
    Sheet,
    ShownRepair,
    SourceMark,
    failed,
    styled,
)
from memmodel.report.picture.draw import Drawing

LITMUS = ROOT / "litmus"
HOSTILE = "</script></template><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x1b]0;x\x07"
EMPTY = ("area", "br", "hr", "img", "input", "link", "meta", "path", "rect")


class Parsed(HTMLParser):
    """What a browser would make of a page: tags with attributes, text, and whether elements nest."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        {"script": self.scripts, "style": self.styles}.get(inside, self.texts).append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def sheet(name: str = "MP", **more: object) -> Sheet:
    text = "PTX MP\nthread P0 { st.weak [x], 1; } // note\n"
    start = text.index("st.weak")
    plain = Sheet(
        f"tests/{name}.litmus", name, "ptx-9.4", "as expected", "exists (x == 0) holds", "sometimes", "sometimes",
        ("data race",), (Because("no synchronization", "nothing orders them", "a fence"),), text,
        (SourceMark(start, start + 14, "first", "a: W x = 1"),), (f"{styled(name, 'title')} under ptx-9.4",),
        Drawing('<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>', (("rf", "#d0312d", False),)),
        "", Repairs((ShownRepair(2, ("a fence",), "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"),)),
    )  # fmt: skip
    return replace(plain, **more)  # type: ignore[arg-type]


def whole(*sheets: Sheet, title: str = "a report") -> str:
    return "".join(page(sheets, title))


def hostile() -> Sheet:
    """Everything in it that comes from a file is an attack."""
    return sheet(
        HOSTILE, path=HOSTILE, model=HOSTILE, question=HOSTILE, source=HOSTILE, findings=(HOSTILE,), expected=HOSTILE,
        because=(Because(HOSTILE, HOSTILE, HOSTILE),), marks=(SourceMark(2, 20, "stop", HOSTILE),),
        lines=(HOSTILE, styled(HOSTILE, "bad")),
        repairs=Repairs((ShownRepair(1, (HOSTILE,), HOSTILE, ((HOSTILE,),)),), HOSTILE),
    )  # fmt: skip


def test_nothing_from_a_test_becomes_markup() -> None:
    text = whole(hostile(), failed(HOSTILE, HOSTILE, "bad", HOSTILE), title=HOSTILE)
    found, clean = Parsed(text), Parsed(whole(sheet(), sheet()))
    assert found.open == []
    assert len(found.scripts) == 1 and found.scripts == clean.scripts and found.styles == clean.styles
    assert {tag for tag, _ in found.tags} <= {tag for tag, _ in clean.tags}
    assert "img" not in {tag for tag, _ in found.tags}
    assert not any(name.startswith("on") or name in ("style", "src") for _, one in found.tags for name in one)
    assert escaped(HOSTILE) in found.text and "\u202e" not in text and "\x1b" not in text
    assert text.count("</script>") == 1


def test_the_policy_allows_this_script_and_this_style_alone() -> None:
    found = Parsed(whole(sheet()))
    policy = next(one["content"] for tag, one in found.tags if one.get("http-equiv") == "Content-Security-Policy")
    hashes = {
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (*found.scripts, *found.styles)
    }
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == hashes and len(hashes) == 2
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "*" not in policy
    links = [one[name] for _, one in found.tags for name in ("href", "src", "action", "data") if name in one]
    assert links == ["#sheet"]
    assert not re.search(r"url\(|@import|https?:", "".join(found.styles + found.scripts))


def test_a_page_of_real_tests_has_no_style_of_its_own(tmp_path: Path, run) -> None:
    code, said = run("report", LITMUS / "async/proxy/A2.litmus", LITMUS / "async/proxy/A1.litmus", "-o", tmp_path / "r")
    assert code == 0 and said.startswith("2 tests: 2 as expected")
    found = Parsed((tmp_path / "r").read_text())
    assert found.open == [] and not any("style" in one for _, one in found.tags)
    assert "the first access" in found.text and "no proxy fence on the path" in found.text
    assert "forbidden by Causality" in found.text
    inputs = [one for tag, one in found.tags if tag == "input" and "data-relation" in one]
    relations = [(one["data-relation"], "checked" in one) for one in inputs]
    assert ("rf", True) in relations and ("mbarobs", False) in relations
    hidden = {one["data-relation"] for tag, one in found.tags if tag == "g" and one.get("display") == "none"}
    assert hidden == {"mbarobs"}
    rows = [one for tag, one in found.tags if tag == "tr" and "data-number" in one]
    assert [row["data-verdict"] for row in rows] == ["sometimes", "never"] and rows[0]["data-finding"] == "data race"


@pytest.fixture
def run(capsys):
    def call(*argv: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as left:
            main([str(word) for word in argv])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out + err

    return call


def test_repairs_are_shown_as_diffs_on_demand(tmp_path: Path, run) -> None:
    test = LITMUS / "async/proxy/A2.litmus"
    assert run("report", test, "-o", tmp_path / "r")[0] == 0 and "Repair 1" not in (tmp_path / "r").read_text()
    assert run("report", test, "--fix", "--max", 1, "-o", tmp_path / "r")[0] == 0
    text = Parsed((tmp_path / "r").read_text()).text
    assert "Repair 1, cost" in text and "+    fence.proxy.async" in text and "Repair 2" not in text


def test_other_repairs_of_one_idea_stand_under_the_first(tmp_path: Path, run) -> None:
    test = LITMUS / "async/mbarrier/G15-no-acquire.litmus"
    assert run("report", test, "--fix", "--max", 1, "-o", tmp_path / "r")[0] == 0
    text = Parsed((tmp_path / "r").read_text()).text
    assert "or with P1, line 16: mbarrier.try_wait.parity.relaxed" in text and "Repair 2" not in text


def test_what_cannot_be_read_is_a_row_and_the_exit_code(tmp_path: Path, run) -> None:
    (tmp_path / "bad.litmus").write_text('PTX b\n"</script>\nfoo')
    code, said = run("report", tmp_path / "bad.litmus", tmp_path / "none.litmus", "-o", tmp_path / "r", "-j", "2")
    assert code == 2 and "2 bad" in said
    text = Parsed((tmp_path / "r").read_text()).text
    assert "this sentence is never closed" in text and "none.litmus: cannot be read" in text


def test_control_c_keeps_what_is_done(tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = pages._file, []

    def file(job, settings):
        calls.append(job)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(job, settings)

    monkeypatch.setattr(pages, "_file", file)
    tests = [LITMUS / "async/proxy" / name for name in ("A1.litmus", "A2.litmus", "A4.litmus")]
    code, said = run("report", *tests, "-o", tmp_path / "r")
    assert code == 130 and "stopped after 1 of 3" in said
    text = Parsed((tmp_path / "r").read_text()).text
    assert "Stopped after 1 of 3." in text and "A2" not in text
    calls.append(None)
    before = (tmp_path / "r").read_bytes()
    calls.clear()
    calls.append(None)
    assert run("report", *tests, "-o", tmp_path / "r")[0] == 130
    assert (tmp_path / "r").read_bytes() == before, "a run that did nothing leaves what was there"
    assert [one.name for one in tmp_path.iterdir()] == ["r"]


def test_an_output_that_cannot_be_written_is_known_before_the_work(tmp_path: Path, run) -> None:
    code, said = run("report", LITMUS, "-o", tmp_path)
    assert code == 2 and "is a directory" in said


def plain(html: str) -> str:
    return Parsed(html).text


TEXT = st.text(st.one_of(st.sampled_from('\n <>&"%@.{}()/*st.weakx1'), st.characters(codec="utf-8")), max_size=120)


@examples(150)
@given(TEXT, st.lists(st.tuples(st.integers(0, 120), st.integers(1, 40)), max_size=3))
def test_the_source_is_shown_whole(text: str, places: list[tuple[int, int]]) -> None:
    text = text.replace("\r", "")
    marks = [SourceMark(start, start + size, "way", "t") for start, size in places]
    shown = Parsed(source_html(text, marks))
    words = [one for one in shown.texts if one != "on the way"]
    assert "".join(words) == escaped(text.rstrip("\n").replace("\n", "")) and shown.open == []


def test_a_very_long_source_is_cut_but_for_its_marks() -> None:
    text = "\n" * 22_000 + "st.weak [x], 1;\n\n"
    html = source_html(text, [SourceMark(22_000, 22_015, "second", "b: W x = 1")])
    assert 'data-line="22001"' in html and 'data-line="20001"' not in html and "… 2,000 more lines" in html


@examples(80)
@given(TEXT, TEXT)
def test_explanations_and_diffs_are_shown_whole(first: str, second: str) -> None:
    first, second = (one.replace("\x02", "").replace("\r", "") for one in (first, second))
    assert plain(told_html([first + styled(second, "bad")])) == escaped(first + second)
    assert plain(diff_html(first)) == escaped(first.rstrip("\n").replace("\n", ""))


def test_the_places_of_a_source_are_marked_and_coloured() -> None:
    text = 'PTX t\n"a note"\nthread P0 @ cta 0 {\n    @!%p bra L; // why\n    st.release.gpu.u32 [x], 0x1f;\n}\n'
    start = text.index("st.release")
    html = source_html(text, [SourceMark(start, start + 28, "second", "b: W x = 31")])
    for kind, word in (
        ("string", "&quot;a note&quot;"), ("word", "thread"), ("label", "@!%p"), ("comment", "// why"),
        ("operation", "st.release.gpu.u32"), ("number", "0x1f"),
    ):  # fmt: skip
        assert f'<span class="{kind}">{word}</span>' in html, kind
    assert '<mark class="second" title="the second access: b: W x = 31">' in html
    assert '<span class="note second">the second access</span>' in html and 'data-line="5"' in html

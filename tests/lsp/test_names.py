"""Completion and references, asked in this process: `test_lsp.py` asks through the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from memmodel.lsp.completion import completion
from memmodel.lsp.document import Document, Json
from memmodel.lsp.features import answer
from memmodel.lsp.references import highlights, references

TEST = """PTX t
Expect=ptx-9.4:never
.global .u32 data = 0;
.shared .u32 flag = 0;
thread P0 @ cta 0 {
    st.weak.global.u32 [data], 1;
    st.release.cta.shared.u32 [flag], 1;
}
thread P1 @ cta 0 {
again: ld.acquire.cta.shared.u32 %seen, [flag];
    @%p bra again;
    ld.weak.global.u32 %r1, [data];
    ¦
}
exists (P1:seen == 1 /\\ P1:r1 == 0)
"""
TABLE = """PTX t
{ x=0; y=0; }
P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
st.weak x, 1 | ld.acquire.gpu r7, y ;
st.release.gpu y, 1 | ld.weak r8, ¦ ;
exists (P1:r7=1 /\\ P1:r8=0)
"""
MODEL = '"m"\ninclude "sc.cat"\nlet mine = rf | co\nlet f(mine) = mine\nacyclic mine | ¦ as own\n'
KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k() { .reg .b32 %r<4>; LOOP: mov.u32 %r1, %tid.x; bra LOOP; ¦ }
.visible .entry m() { .reg .b32 %r<4>; mov.u32 %r1, 2; }
"""


def asked(text: str, typed: str = "", name: str = "t.litmus") -> dict[object, Json]:
    """The completion of what is typed at the mark, by label."""
    offset = text.index("¦") + len(typed)
    text = text.replace("¦", typed)
    kind = name.rpartition(".")[2]
    items = completion(Document(f"file:///nowhere/{name}", text, kind), offset)
    return {item["label"]: item for item in items}


@pytest.mark.parametrize(
    ("text", "name", "typed", "offered", "others"),
    [
        (TEST, "t.litmus", "cp.async.b", {"cp.async.bulk", "cp.async.bulk.tensor"}, {"ld", "bulk"}),
        (TEST, "t.litmus", "ld.", {"acquire", "relaxed", "weak", "gpu"}, {"release", "data"}),
        (TEST, "t.litmus", "@%p atom.acq_rel.", {"gpu", "add", "global"}, {"relaxed"}),
        (TEST, "t.litmus", "ld.weak.global.u32 %r2, [d", {"data"}, {"flag"}),
        (TEST, "t.litmus", "bra a", {"again"}, set()),
        (TEST, "t.litmus", "st.weak.global.u32 [data], %s", {"%seen", "%smid"}, {"%r1"}),
        (TABLE, "t.litmus", "", {"x", "y", "r7"}, {"r0", "%tid"}),
        (TEST.replace("¦", "").replace("r1 == 0)", "¦"), "t.litmus", "", {"seen", "r1"}, {"P1:seen"}),
        (TEST.replace("¦", "").replace("(P1:seen", "¦"), "t.litmus", "ra", {"race"}, {"hang", "P1:seen"}),
        (TEST.replace("¦", "").replace("9.4:never", "9.4:¦"), "t.litmus", "n", {"never"}, {"race"}),
        (TEST.replace("¦", "").replace("ptx-9.4:never", "¦"), "t.litmus", "ptx-7", {"ptx-7.5"}, {"never"}),
        (TEST.replace("¦", "").replace(".shared", "¦"), "t.litmus", ".s", {".shared"}, {".global"}),
        (MODEL, "m.cat", "m", {"mine"}, {"rf"}),
        (MODEL, "m.cat", "syncb", {"syncbar"}, {"rf"}),
        (MODEL.replace("¦", "rf").replace("sc.cat", "¦"), "m.cat", "s", {"sc.cat"}, {"ptx-9.4.cat"}),
        (KERNEL, "k.ptx", "wgmma.", {"wgmma.fence", "wgmma.mma_async"}, {"ld"}),
        (KERNEL, "k.ptx", "mov.u32 %r", {"%r1"}, {"%tid"}),
    ],
)
def test_completion(text: str, name: str, typed: str, offered: set[str], others: set[str]) -> None:
    labels = asked(text, typed, name)
    assert offered <= labels.keys()
    assert not others & labels.keys()


def test_a_completion_replaces_what_was_typed() -> None:
    line = TEST[: TEST.index("¦")].count("\n")
    (whole,) = [item for label, item in asked(TEST, "mbarrier.in").items() if label == "mbarrier.init"]
    edit = whole["textEdit"]
    assert edit == {
        "range": {"start": {"line": line, "character": 4}, "end": {"line": line, "character": 15}},
        "newText": "mbarrier.init",
    }
    assert asked(TEST, "ld.acq")["acquire"]["detail"]


def used(text: str, word: str, name: str, number: int = 0) -> list[str]:
    """The lines and columns at which the name is used that stands at the n-th place of a word."""
    text = text.replace("¦", "")
    at = -1
    for _ in range(number + 1):
        at = text.index(word, at + 1)
    document = Document(f"file:///nowhere/{name}", text, name.rpartition(".")[2])
    line = document.position(at)
    same = answer("references", {"uri": document.uri, "text": text, "kind": document.kind}, line)
    assert same == references(document, at)
    assert len(highlights(document, at)) == sum(place["uri"] == document.uri for place in references(document, at))
    ranges = [place["range"] for place in references(document, at)]
    return [f"{each['start']['line']}:{each['start']['character']}" for each in ranges]  # type: ignore[index]


def test_references_in_a_test() -> None:
    assert used(TEST, "data]", "t.litmus") == ["2:13", "5:24", "11:29"]
    assert used(TEST, "%seen", "t.litmus") == ["9:33", "14:11"]
    assert used(TEST, "again;", "t.litmus") == ["9:0", "10:12"]
    assert used(TEST, "P1:", "t.litmus") == ["8:7", "14:8", "14:24"]


def test_references_in_a_model(tmp_path: Path) -> None:
    text = MODEL.replace("¦", "rf")
    assert used(text, "mine |", "m.cat")[:1] == ["2:4"]
    (tmp_path / "part.cat").write_text("let part = po\nlet more = part | rf\n")
    whole = 'include "part.cat"\nacyclic part | more as one\n'
    document = Document((tmp_path / "whole.cat").as_uri(), whole, "cat")
    places = references(document, whole.index("part |"))
    assert [str(place["uri"]).rpartition("/")[2] for place in places] == ["whole.cat", "part.cat", "part.cat"]
    without = references(document, whole.index("part |"), declaration=False)
    assert [str(place["uri"]).rpartition("/")[2] for place in without] == ["whole.cat", "part.cat"]


def test_references_in_a_kernel_stay_in_their_function() -> None:
    assert used(KERNEL, "LOOP;", "k.ptx") == ["3:39", "3:70"]
    assert len(used(KERNEL, "%r1", "k.ptx")) == 1

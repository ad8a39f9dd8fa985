"""`memmodel lsp`, asked by a client over standard input and output as an editor does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.lsp_client import ROOT, Client, covered, place
from helpers.patience import PATIENCE, alive, children, eventually

from memmodel import api
from memmodel.answer import Observation
from memmodel.litmus.text.places import passage_of
from memmodel.lsp.diagnostics import of_text
from memmodel.lsp.document import Document, path_of
from memmodel.recovery.every_error import without
from memmodel.source import Source

pytestmark = pytest.mark.turns(2)

A2 = (ROOT / "litmus/async/proxy/A2.litmus").read_text(encoding="utf-8")
MP = (ROOT / "litmus/shapes/MP+rlx.gpu+acq.gpu@two-ctas.litmus").read_text(encoding="utf-8")
HANG = (ROOT / "litmus/bytes/B9-hang.litmus").read_text(encoding="utf-8")
MODEL = (ROOT / "axioms/ptx-9.3/causality.cat").read_text(encoding="utf-8")
BLOCKS = """PTX t
.global .u32 x;
.global .u32 y;
thread P0 @ cta 0 {
    st.weak.u32 [x], 1;
    st.relaxed.gpu.u32 [y], 1;
}
thread P1 @ cta 1 {
W: ld.acquire.gpu.u32 %r0, [y]; setp.eq.u32 %p, %r0, 0; @%p bra W;
    ld.weak.u32 %r1, [x];
}
exists (P1:r1 == 0)
"""


@pytest.fixture(scope="module")
def editor() -> Iterator[Client]:
    with Client() as client:
        yield client


def names(found: list[dict[str, Any]]) -> list[str]:
    return [one["name"] for one in found]


# ---- diagnostics -----------------------------------------------------------------------------------------------------


def test_an_error_has_its_range_and_its_repair(editor: Client) -> None:
    text = BLOCKS.replace("st.relaxed.gpu.u32 [y]", "st.relaxd.gpu.u32 [y]").replace("[x];", "[z];")
    uri = editor.open(text, "errors.litmus")
    first, second = sorted(editor.diagnostics(uri), key=lambda one: str(one["range"]["start"]["line"]))
    assert {covered(text, one["range"]) for one in (first, second)} == {"relaxd", "z"}
    told = next(one for one in (first, second) if "relaxd" in one["message"])
    assert told["severity"] == 1 and "did you mean" in told["message"]
    params = {"textDocument": {"uri": uri}, "range": told["range"], "context": {"diagnostics": [told]}}
    action = editor.ask("textDocument/codeAction", params)[0]
    assert action["edit"]["changes"][uri] == [{"range": told["range"], "newText": "relaxed"}]


def test_findings_have_both_places_and_the_reason(editor: Client) -> None:
    uri = editor.open(A2, "async/proxy/A2.litmus")
    found = editor.diagnostics(uri, checked=True)
    race = next(one for one in found if one["code"] == "data-race")
    assert "because no proxy fence on the path" in race["message"] and "would do: fence.proxy.async" in race["message"]
    places = {covered(A2, one["location"]["range"]).split(".")[0] for one in race["relatedInformation"]}
    assert places == {"st", "cp"}
    question = next(one for one in found if one["code"] == "sometimes")
    assert covered(A2, question["range"]).startswith("exists") and question["severity"] == 3


def test_a_hang_is_shown_where_the_thread_waits(editor: Client) -> None:
    uri = editor.open(HANG, "bytes/B9-hang.litmus")
    told = next(one for one in editor.diagnostics(uri, checked=True) if one["code"] == "hang")
    assert told["range"]["start"]["line"] == 13 and "would go on with the missing arrivals" in told["message"]


def test_an_answer_that_is_not_as_expected_is_an_error(editor: Client) -> None:
    uri = editor.open(MP.replace("sometimes", "never"), "expects.litmus")
    told = next(one for one in editor.diagnostics(uri, checked=True) if one["code"] == "sometimes")
    assert told["severity"] == 1 and "expects never" in told["message"]


def test_warnings_of_the_text_come_at_once(editor: Client) -> None:
    text = BLOCKS.replace("P1:r1 == 0", "P1:r9 == 0")
    uri = editor.open(text, "warns.litmus")
    (told,) = editor.diagnostics(uri)
    assert (told["severity"], covered(text, told["range"])) == (2, "P1:r9")


@pytest.mark.parametrize(("character", "units"), [("é", 1), ("𝔸", 2)])
def test_positions_count_utf_16(editor: Client, character: str, units: int) -> None:
    comment = f"/* {character * 3} */ "
    text = BLOCKS.replace("    ld.weak.u32 %r1, [x]", f"    {comment}ld.weak.u32 %r1, [q]")
    uri = editor.open(text, f"wide{units}.litmus")
    (told,) = editor.diagnostics(uri)
    line, at = place(text, "q]")
    assert told["range"]["start"] == {"line": line, "character": at} and covered(text, told["range"]) == "q"
    line, at = place(text, "ld.weak")
    assert "`ld`" in editor.at("hover", uri, line, at + 1)["contents"]["value"]
    assert editor.at("hover", uri, line, at - 3 * units - 4) is None


def test_windows_line_ends(editor: Client) -> None:
    text = BLOCKS.replace("[y], 1", "[q], 1")
    uri = editor.open(text.replace("\n", "\r\n"), "windows.litmus")
    (told,) = editor.diagnostics(uri)
    assert covered(text, told["range"]) == "q"


def test_what_is_no_text_has_its_place_too(editor: Client) -> None:
    uri = editor.open("PTX t\n.global .u32 x;\0", "nul.litmus")
    (told,) = editor.diagnostics(uri)
    assert told["range"]["start"] == {"line": 1, "character": 15} and "control character" in told["message"]


# ---- names -----------------------------------------------------------------------------------------------------------


def test_hover_on_a_mnemonic_has_row_section_and_rules(editor: Client) -> None:
    uri = editor.open(A2, "async/proxy/A2.litmus")
    line, at = place(A2, "cp.async.bulk.global")
    value = editor.at("hover", uri, line, at + 4)["contents"]["value"]
    assert "Since PTX 8.0, sm_90" in value and "Source: " in value and ".completion = {" in value
    assert "Rules of ptx-9.4 that speak of it" in value and "`strong-read`" in value


def test_hover_in_a_table_and_on_a_wrong_mnemonic(editor: Client) -> None:
    uri = editor.open(MP.replace("ld.acquire.gpu", "ld.acquire", 1), "table.litmus")
    line, at = place(MP, "ld.acquire.gpu")
    value = editor.at("hover", uri, line, at + 2)["contents"]["value"]
    assert "needs a scope" in value and "### `ld`" in value


def test_definitions_in_a_test(editor: Client) -> None:
    uri = editor.open(BLOCKS, "definitions.litmus")
    for word, number, declared in (
        ("W;", 0, ("W:", 0)),
        ("y]", 0, ("y;", 0)),
        ("%r0, 0", 0, ("%r0", 0)),
        ("P1:", 0, ("P1", 0)),
    ):
        line, at = place(BLOCKS, word, number)
        (found,) = editor.at("definition", uri, line, at)
        assert found["range"]["start"] == dict(zip(("line", "character"), place(BLOCKS, *declared), strict=True)), word
    text = A2.replace("%p bra", "%p  bra")
    line, at = place(text, "bar]", 1)
    uri = editor.open(text, "mbarrier.litmus")
    (found,) = editor.at("definition", uri, line, at)
    assert covered(text, found["range"]) == "bar" and found["range"]["start"]["line"] == 6


def test_completion_and_references_through_the_protocol(editor: Client) -> None:
    uri = editor.open(BLOCKS.replace("[x];", "[;"), "completing.litmus")
    line, at = place(BLOCKS, "[x];")
    assert "y" in [item["label"] for item in editor.at("completion", uri, line, at + 1)]
    where = dict(zip(("line", "character"), place(BLOCKS, "[y]"), strict=True))
    asked = {"textDocument": {"uri": uri}, "position": {**where, "character": where["character"] + 1}}
    uses = editor.ask("textDocument/references", {**asked, "context": {"includeDeclaration": False}})
    assert [use["range"]["start"]["line"] for use in uses] == [5, 8]
    assert len(editor.ask("textDocument/documentHighlight", asked)) == 3


def test_the_model_of_an_expectation_is_a_file(editor: Client) -> None:
    uri = editor.open(MP, "shapes/MP+rlx.gpu+acq.gpu@two-ctas.litmus")
    (found,) = editor.at("definition", uri, *place(MP, "ptx-9.4:"))
    assert found["uri"].endswith("/axioms/ptx-9.4.cat")


def test_the_outline_of_a_test_that_is_being_typed(editor: Client) -> None:
    uri = editor.open(BLOCKS.replace("[x];", "[;"), "typing.litmus")
    found = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert names(found) == ["x", "y", "P0", "P1", "exists (P1:r1 == 0)"]
    assert names(found[3]["children"]) == ["W"]


# ---- cat -------------------------------------------------------------------------------------------------------------


def test_a_part_of_a_model_is_read_in_its_model(editor: Client) -> None:
    uri = editor.open(MODEL, (ROOT / "axioms/ptx-9.3/causality.cat").as_uri(), "cat")
    assert editor.diagnostics(uri) == []
    editor.edit(uri, MODEL + "\nlet mine = nonsence | rf\n")
    (told,) = editor.diagnostics(uri)
    assert told["severity"] == 1 and "nonsence" in told["message"]


def test_hover_and_definition_across_includes(editor: Client) -> None:
    uri = editor.open(MODEL, (ROOT / "axioms/ptx-9.3/causality.cat").as_uri(), "cat")
    line, at = place(MODEL, "morally-strong", 1)
    value = editor.at("hover", uri, line, at)["contents"]["value"]
    assert "let morally-strong" in value and "defined at line" in value
    body = MODEL.index("same-proxy")
    line, at = place(MODEL[body - 1 :], "same-proxy")
    (found,) = editor.at(
        "definition", uri, line + MODEL[: body - 1].count("\n"), at if line else place(MODEL, "same-proxy")[1]
    )
    assert found["uri"].endswith("/strength.cat")
    value = editor.at("hover", uri, *place(MODEL, "syncbar"))["contents"]["value"]
    assert value.startswith("Base relation `syncbar`: ")


def test_an_include_leads_to_its_file(editor: Client, tmp_path: Path) -> None:
    text = '"mine"\ninclude "sc.cat"\nlet fri = fr & int\n(* None of them. *)\nempty fri \\ po as mine\n'
    text += "let own = fri | po\n"
    path = tmp_path / "mine.cat"
    uri = editor.open(text, path.as_uri(), "cat")
    assert editor.diagnostics(uri) == []
    (found,) = editor.at("definition", uri, *place(text, "sc.cat"))
    assert found["uri"].endswith("/axioms/sc.cat")
    assert names(editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})) == ["fri", "mine", "own"]
    (found,) = editor.at("definition", uri, *place(text, "fri", 2))
    assert found["range"]["start"] == {"line": 2, "character": 4}
    other = editor.open('include "mine.cat"\nlet two = own\n', (tmp_path / "two.cat").as_uri(), "cat")
    assert editor.diagnostics(other) == []  # `mine.cat` is open, and on no disk
    (found,) = editor.at("definition", other, 1, 11)
    assert found["uri"] == uri and found["range"]["start"]["line"] == 5


# ---- ptx -------------------------------------------------------------------------------------------------------------


def test_a_kernel_has_errors_and_hovers(editor: Client) -> None:
    text = (ROOT / "docs/examples/kernels/dsmem.ptx").read_text(encoding="utf-8")
    uri = editor.open(text, (ROOT / "docs/examples/kernels/dsmem.ptx").as_uri(), "ptx")
    assert editor.diagnostics(uri) == []
    value = editor.at("hover", uri, *place(text, "mapa."))["contents"]["value"]
    assert "### `mapa`" in value
    editor.edit(uri, text.replace(".visible .entry", ".visible .entri", 1))
    (told,) = editor.diagnostics(uri)
    assert told["severity"] == 1 and "entri" in told["message"]


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("barrier.cluster.wait", "barrier.clustre.wait", "did you mean 'barrier.cluster"),
        ("mapa.", "mappa.", "did you mean 'mapa'"),
        ("ld.param", "ld.parm", "unknown qualifier '.parm' of ld"),
        ("add.s64", "addd.s64", "unknown instruction 'addd.s64'"),
    ],
)
def test_an_unknown_instruction_of_a_kernel_is_flagged(editor: Client, right: str, wrong: str, told: str) -> None:
    path = ROOT / "docs/examples/kernels/dsmem.ptx"
    text = path.read_text(encoding="utf-8").replace(right, wrong, 1)
    uri = editor.open(text, path.with_name(f"{wrong}ptx").as_uri(), "ptx")
    (found,) = editor.diagnostics(uri)
    assert found["severity"] == 2 and told in found["message"]
    assert text.split("\n")[found["range"]["start"]["line"]].lstrip().startswith(wrong)


@pytest.mark.parametrize("path", sorted((ROOT / "docs/examples/kernels").glob("*.ptx")), ids=lambda path: path.stem)
def test_a_compiled_kernel_has_no_unknown_instruction(path: Path) -> None:
    assert of_text(Document(path.as_uri(), path.read_text(encoding="utf-8"), "ptx")) == []


# ---- changes ---------------------------------------------------------------------------------------------------------


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    lines = text.split("\n")
    for one in sorted(edits, key=lambda one: -one["range"]["start"]["line"]):
        start, end = one["range"]["start"], one["range"]["end"]
        before, after = lines[start["line"]][: start["character"]], lines[end["line"]][end["character"] :]
        lines[start["line"] : end["line"] + 1] = (before + one["newText"] + after).split("\n")
    return "\n".join(lines)


@pytest.mark.parametrize("resolves", [True, False])
def test_a_repair_is_an_edit_after_which_nothing_is_wrong(editor: Client, resolves: bool) -> None:
    client = editor if resolves else Client(resolves=False, check=False, repair=10).__enter__()
    uri = client.open(BLOCKS, f"repair{resolves}.litmus")
    told = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}, "message": "m",
            "source": "memmodel", "code": "sometimes"}  # fmt: skip
    params = {
        "textDocument": {"uri": uri},
        "range": told["range"],
        "context": {"diagnostics": [told], "only": ["quickfix"]},
    }
    (action,) = client.ask("textDocument/codeAction", params)
    action = client.ask("codeAction/resolve", action) if resolves else action
    (edit,) = action["edit"]["changes"][uri]
    fixed = applied(BLOCKS, [edit])
    assert "st.release.gpu" in fixed or "fence" in fixed
    assert api.check(fixed).answer.observation is Observation.NEVER
    assert "P0, line 6" in client.message()
    if not resolves:
        client.__exit__()


def test_formatting_gives_the_canonical_form_and_keeps_comments(editor: Client) -> None:
    text = BLOCKS.replace("    ld.weak", "  ld.weak")
    uri = editor.open(text, "format.litmus")
    options = {"tabSize": 4, "insertSpaces": True}
    edits = editor.ask("textDocument/formatting", {"textDocument": {"uri": uri}, "options": options})
    from memmodel.library import format

    assert applied(text, edits) == format(text) != text
    text = f"{text}// why\n"
    editor.edit(uri, text)
    edits = editor.ask("textDocument/formatting", {"textDocument": {"uri": uri}, "options": options})
    assert applied(text, edits) == format(text) and format(text).endswith("// why\n")


# ---- what else comes -------------------------------------------------------------------------------------------------

SLOW = "st.relaxed.gpu.u32 [x], 1; ld.relaxed.gpu.u32 %r, [x]; ld.relaxed.gpu.u32 %s, [x];"
HOSTILE = {
    "empty": "",
    "nul": "PTX t\n\0\0",
    "surrogate": "PTX t\n.global .u32 \ud800;",
    "deep": "PTX t\n" + ".global .u32 x;\n thread P0 { ld.u32 %r, [x]; }\nexists " + "(" * 20_000,
    "long line": "PTX t\n" + "x" * 300_000,
    "many": "PTX t\n" + "thread P0 { bar.sync 0; }\n" * 5_000,
    "braces": "PTX t\n" + "{" * 50_000,
    "huge": "PTX t\n" + "// comment\n" * 120_000,
    "no text": "\u2028\u2029\x85",
    "slow": "PTX t\n.global .u32 x;\n"
    + "".join(map("thread P{0} @ cta {0} {{ {1} }}\n".format, range(12), [SLOW] * 12))
    + "exists (P0:r == 7)",
}


@pytest.mark.parametrize("kind", ["litmus", "cat", "ptx"])
def test_no_text_stops_the_server(editor: Client, kind: str) -> None:
    for name, text in HOSTILE.items():
        uri = editor.open(text, f"untitled:{name.replace(' ', '')}.{kind}", kind)
        editor.at("hover", uri, 0, 0)
        editor.at("hover", uri, 99_999, 99_999)
        editor.at("definition", uri, 1, 3)
        editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
        editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    uri = editor.open(BLOCKS, f"after-{kind}.litmus")
    assert editor.diagnostics(uri) == []


def test_rapid_edits_end_the_check_and_the_last_text_counts(editor: Client) -> None:
    uri = editor.open(HOSTILE["slow"], "rapid.litmus")
    assert editor.diagnostics(uri) == []
    time.sleep(0.5)  # the check of this takes longer than anybody waits
    for number in range(60):
        editor.edit(uri, HOSTILE["slow"].replace("P0:r == 7", f"P0:r == {number}"))
    editor.edit(uri, BLOCKS)
    assert any(one["code"] == "sometimes" for one in editor.diagnostics(uri, checked=True))


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "vscode-notebook-cell:/a%20b#X", "file://host/t.litmus", "git:/a/b.litmus?x"]
)
def test_documents_that_are_no_files(editor: Client, uri: str) -> None:
    editor.open(BLOCKS, uri, "litmus")
    assert editor.diagnostics(uri) == []
    assert names(editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}}))[:2] == ["x", "y"]
    editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_other_languages_are_left_alone(editor: Client) -> None:
    uri = editor.open("int main;", "untitled:x.c", "c")
    assert editor.at("hover", uri, 0, 0) is None


def test_processes_end_with_the_server() -> None:
    with Client() as client:
        uri = client.open(HOSTILE["slow"], "ends.litmus")
        client.diagnostics(uri)
        linux = Path("/proc/self/task").exists()
        assert not linux or eventually(lambda: len(children(client.process.pid)) == 2)
        mine = children(client.process.pid)
        client.ask("shutdown", None)
        client.tell("exit", None)
        client.process.wait(timeout=PATIENCE)
    assert eventually(lambda: not any(map(alive, mine)))


def test_without_pygls_there_is_a_plain_message() -> None:
    code = (
        "import sys; sys.modules['pygls'] = None\nimport importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'pygls' else find(name, *rest)\n"
        "from memmodel.cli import main; main(['lsp'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 2 and "pip install 'memmodel[lsp]'" in done.stderr
    assert "Traceback" not in done.stderr


# ---- without a server ------------------------------------------------------------------------------------------------


def test_positions_and_offsets_agree() -> None:
    text = "a𝔸b\r\né\rlast"
    document = Document("untitled:x", text, "litmus")
    assert document.source.text == "a𝔸b\né\nlast"
    assert [document.position(n) for n in (1, 2, 3, 5, 10, 99)] == [
        {"line": line, "character": at} for line, at in ((0, 1), (0, 3), (0, 4), (1, 1), (2, 4), (2, 4))
    ]
    assert [document.offset(*one) for one in ((0, 1), (0, 2), (0, 3), (1, 9), (9, 0), (-1, 5))] == [1, 2, 2, 5, 10, 0]
    assert Document("untitled:x", text, "litmus", "utf-8").position(2) == {"line": 0, "character": 5}
    assert Document("untitled:x", text, "litmus", "utf-32").position(2) == {"line": 0, "character": 2}


def test_paths_of_uris() -> None:
    assert path_of("file:///a%20b/t.cat") == Path("/a b/t.cat")
    assert path_of("file:///c%3A/t.cat") == Path("c:/t.cat")
    assert path_of("untitled:t.cat") is None and path_of("file:///a%00b") is None and path_of("http://[") is None


def test_an_instruction_is_left_out_with_its_guard_and_without_its_label() -> None:
    source = Source("t", BLOCKS)
    at = BLOCKS.index("acquire")
    passage = passage_of(source, source.span(at, at + 7))
    assert passage is not None and f"W:{' ' * 30}setp" in without(source, passage).text

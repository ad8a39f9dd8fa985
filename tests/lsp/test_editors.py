"""The extension for editors: its grammars know every word of the tables, its matchers what `check` prints."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers.places import ROOT

from memmodel.base.kinds import Kind
from memmodel.cat.names import BASE_NAMES
from memmodel.cat.text.lexer import IGNORED_WORDS, STATEMENT_WORDS, WORDS
from memmodel.cli.app import app
from memmodel.isa.table import HEADS
from memmodel.litmus.declarations import SPACES, TYPES
from memmodel.litmus.lexer import RESERVED

EDITORS = ROOT / "editors"
sys.path.insert(0, str(EDITORS))

import make_grammars  # noqa: E402

PACKAGE: dict[str, Any] = json.loads((EDITORS / "vscode" / "package.json").read_text(encoding="utf-8"))


def grammar(name: str) -> dict[str, Any]:
    path = EDITORS / "vscode" / "syntaxes" / f"{name}.tmLanguage.json"
    made: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return made


def scopes(name: str, line: str) -> dict[str, str]:
    """The words of a line with what the grammar calls them: at each place the first rule that fits."""
    found: dict[str, str] = {}
    rules = [one for one in grammar(name)["patterns"] if "match" in one]
    at = 0
    while at < len(line):
        hits = [(hit.start(), number, hit) for number, one in enumerate(rules)
                if (hit := re.compile(one["match"]).search(line, at)) and hit.end() > hit.start()]  # fmt: skip
        if not hits:
            break
        _, number, hit = min(hits, key=lambda one: one[:2])
        names = {0: rules[number].get("name")} | {
            int(k): v["name"] for k, v in rules[number].get("captures", {}).items()
        }
        found |= {hit[group].strip(): scope for group, scope in names.items() if scope and hit[group]}
        at = hit.end()
    return found


@pytest.mark.parametrize("name", make_grammars.GRAMMARS)
def test_the_grammar_is_the_one_of_today(name: str) -> None:
    """`MEMMODEL_REWRITE=1 pytest tests/lsp/test_editors.py` writes it."""
    path = make_grammars.FOLDER / f"{name}.tmLanguage.json"
    if os.environ.get("MEMMODEL_REWRITE") == "1":
        path.write_text(make_grammars.text(name), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == make_grammars.text(name)


def test_the_grammar_knows_every_mnemonic_and_qualifier() -> None:
    missing = []
    for head, row in HEADS.items():
        if row.modules:  # litmus tests are told that they have none
            continue
        qualifiers = "".join(f".{word}" for slot in row.slots for word in slot.words)
        found = scopes("litmus", f"    @%p {head}{qualifiers} %r0, [x];")
        if found.get(head) != "keyword.mnemonic.litmus":
            missing.append(head)
        if qualifiers and found.get(qualifiers) != "storage.modifier.qualifier.litmus":
            missing.append(head + qualifiers)
    assert not missing and len(HEADS) > 140


def test_the_grammar_knows_the_words_of_tests() -> None:
    for word in RESERVED:
        assert scopes("litmus", f"{word} (").get(word) == "keyword.control.litmus", word
    for word in SPACES:
        assert scopes("litmus", f".{word} .u32 x;")[f".{word}"] == "storage.modifier.litmus"
    for word in TYPES:
        assert scopes("litmus", f".global .{word} x;")[f".{word}"] == "storage.type.litmus"
    assert scopes("litmus", "exists race") == {"exists": "keyword.control.litmus", "race": "constant.language.litmus"}
    row = " st.release.cta y, 1    |  WAIT: ld.acquire.cta r0, y ;"
    assert {"st", "ld"} <= {word for word, scope in scopes("litmus", row).items() if scope == "keyword.mnemonic.litmus"}


def test_the_grammar_knows_the_words_and_names_of_models() -> None:
    for word in {*WORDS, *STATEMENT_WORDS, *IGNORED_WORDS}:
        assert scopes("cat", f"{word} (").get(word, "").startswith("keyword."), word
    for one in BASE_NAMES:
        if one.name == "_":
            continue
        wanted = "support.constant.set.cat" if one.kind is Kind.SET else "support.function.relation.cat"
        assert scopes("cat", f"[{one.name}] | r")[one.name] == wanted, one.name
    assert scopes("cat", "let po-loc = po & loc")["po-loc"] == "entity.name.function.cat"
    assert scopes("cat", "po^-1 ; base-from-X")["base-from-X"] == "variable.other.cat"


def matched(name: str, output: str) -> list[dict[str, str]]:
    """What a problem matcher makes of an output."""
    matcher = next(one for one in PACKAGE["contributes"]["problemMatchers"] if one["name"] == name)["pattern"]
    groups = {key: matcher[key] for key in ("file", "line", "column", "message")}
    hits = (re.match(matcher["regexp"], line) for line in output.splitlines())
    return [{key: hit[group] for key, group in groups.items()} for hit in hits if hit]


def test_the_problem_matchers_read_what_check_prints(tmp_path: Path) -> None:
    bad, hang = tmp_path / "bad.litmus", ROOT / "litmus/bytes/B9-hang.litmus"
    text = (ROOT / "litmus/async/proxy/A2.litmus").read_text(encoding="utf-8")
    bad.write_text(text.replace("st.shared", "st.shard"), encoding="utf-8")
    output = CliRunner().invoke(app, ["check", str(bad), str(hang)]).output
    (found,) = matched("memmodel", output)
    assert (found["file"], found["line"]) == (str(bad), "10") and "shard" in found["message"]
    (found,) = matched("memmodel-hang", output)
    assert found == {"file": str(hang), "line": "14", "column": "5", "message": "P2 waits for ever"}


def test_the_settings_are_those_of_the_server() -> None:
    from memmodel.lsp.server import ClientOptions

    client = (EDITORS / "vscode" / "extension.js").read_text(encoding="utf-8")
    sent = re.findall(r'"(\w+)"', re.search(r"SENT = \[(.*?)\]", client)[1])  # type: ignore[index]
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    plain = ClientOptions()
    assert {name: settings[f"memmodel.{name}"]["default"] for name in sent} == {
        name: getattr(plain, name) for name in sent
    }
    page = (ROOT / "docs" / "editor.md").read_text(encoding="utf-8")
    assert [name for name in ClientOptions.__annotations__ if f"`{name}`" not in page] == []
    strange = {"delay": "soon", "seconds": -1, "model": 3, "check": 0, "effort": True, "more": 1}
    assert ClientOptions.of(strange) == plain == ClientOptions.of([1])
    assert ClientOptions.of({"seconds": 3, "check": False}) == ClientOptions(seconds=3.0, check=False)


def test_every_file_of_the_extension_is_there() -> None:
    contributes = PACKAGE["contributes"]
    files = [PACKAGE["main"], *(one["path"] for one in contributes["grammars"])]
    files += [one["configuration"] for one in contributes["languages"]]
    for one in files:
        text = (EDITORS / "vscode" / one).read_text(encoding="utf-8")
        assert json.loads(text) if one.endswith(".json") else "activate" in text

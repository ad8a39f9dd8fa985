"""Finding models and includes, titles, checks and their names, comments as docs, and what analysis says of a model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.expressions import bases_of
from helpers.places import ROOT

from memmodel import check
from memmodel.cat import load_model, parse_model, shipped_models
from memmodel.cat.syntax import Model
from memmodel.errors import InputError
from memmodel.source import Source

DOCS = ROOT / "docs" / "cat-language.md"


def model(text: str) -> Model:
    return parse_model(Source("<text>", text))


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.cat").write_text(text)


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_load(name: str) -> None:
    loaded = load_model(name)
    assert loaded.name == name and loaded.title and loaded.axioms


@pytest.mark.parametrize("name", ["sc", "ptx-6.0", "ptx-7.5"])
def test_every_axiom_says_what_it_forbids(name: str) -> None:
    for axiom in load_model(name).axioms:
        assert axiom.doc.startswith(f"{axiom.name}: ")


@pytest.mark.parametrize("name", shipped_models())
def test_every_definition_has_a_comment(name: str) -> None:
    """`memmodel names` and the language server show it."""
    assert [definition.name for definition in load_model(name).definitions if not definition.doc.strip()] == []


@pytest.mark.parametrize("block", re.findall(r"```cat\n(.*?)```", DOCS.read_text(), re.DOTALL))
def test_models_in_the_documentation_load(block: str) -> None:
    assert model(block).checks


def test_the_shipped_models_are_listed_without_the_prelude() -> None:
    assert {"sc", "ptx-6.0", "ptx-7.5"} <= set(shipped_models())
    assert "prelude" not in shipped_models()


DIALECT = """PTX
(* as published models are written: base names defined anew, a recursive observation order, a bare title *)
let barriers = sync_barrier & scta
let co = co+
let fr = rf^-1; co
let strong = M & (RLX | ACQ | REL) | F
let ms = ((po | po^-1) | ([strong]; sr; [strong])) & (((M * M) & loc) | ((_ * _) \\ (M * M))) \\ id
let rec observation = (ms & rf) | (observation; rmw; observation)
let pattern = ([W & REL]; po-loc?; [W]) | ([F & ACQ_REL]; po; [W])
let cause = po?; (((ms & (pattern; observation)) | sync_fence | barriers); po?)+
empty ((([W]; cause; [W]) & loc) \\ co) as axiom-Coherence
empty (([F & SC]; cause; [F & SC]) \\ sync_fence) as axiom-FenceSC
irreflexive ((rf | fr); cause) as axiom-Causality
"""


def test_the_dialect_of_published_ptx_models_loads() -> None:
    loaded = model(DIALECT)
    assert loaded.title == "PTX"
    assert [check.name for check in loaded.checks] == ["axiom-Coherence", "axiom-FenceSC", "axiom-Causality"]
    recursive = next(one for one in loaded.definitions if one.name == "observation")
    assert recursive.group is not None
    assert "rmw" in bases_of(loaded)["axiom-Causality"]


@pytest.mark.parametrize(
    "text, title",
    [
        ('"A title"\nacyclic po', "A title"),
        ("PTX\nacyclic po", "PTX"),
        ('C "C11"\nlet a = po', "C11"),
        ("let a = po", "<text>"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert model(text).title == title


def test_a_path_is_a_model_too(tmp_path: Path) -> None:
    write(tmp_path, mine="acyclic po | rf as Order")
    loaded = load_model(tmp_path / "mine.cat")
    assert (loaded.name, [check.name for check in loaded.checks]) == ("mine", ["Order"])


@pytest.mark.parametrize(
    "name, hint", [("ptx-75", "did you mean ptx-7.5?"), ("", "shipped models"), ("no/such.cat", "path")]
)
def test_a_model_that_does_not_exist(name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        load_model(name)
    assert hint in caught.value.render()


def test_a_folder_or_a_binary_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "b.cat").write_bytes(b"\x00\xff\x01")
    for path in (tmp_path, tmp_path / "b.cat"):
        with pytest.raises(InputError):
            load_model(path)


def test_includes_are_found_beside_the_file_then_in_search_then_among_shipped(tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    near.mkdir(), far.mkdir()
    write(
        near,
        top='include "a.cat"\ninclude "b.cat"\ninclude "sc.cat"\nacyclic from-a | from-b as Both',
        a="let from-a = po",
    )
    write(far, a="let from-b = rf", b="let from-b = rf")
    path = near / "top.cat"
    loaded = parse_model(Source.read(path), search=[far])
    assert [check.name for check in loaded.checks] == ["Total", "Interleaving", "Atomicity", "Both"]
    assert [Path(source.name).name for source in loaded.sources] == [
        "prelude.cat",
        "top.cat",
        "a.cat",
        "b.cat",
        "sc.cat",
    ]


def test_a_file_included_twice_counts_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        top='include "l.cat"\ninclude "r.cat"',
        l='include "base.cat"',
        r='include "base.cat"',
        base="acyclic po as A",
    )
    assert len(load_model(tmp_path / "top.cat").checks) == 1


def test_a_cyclic_include_is_an_error_at_the_include(tmp_path: Path) -> None:
    write(tmp_path, a='include "b.cat"', b='let x = po\ninclude "a.cat"')
    with pytest.raises(InputError) as caught:
        load_model(tmp_path / "a.cat")
    message = caught.value.render()
    assert "b.cat:2:9: error" in message and '"a.cat" includes itself' in message and "-> a.cat" in message


def test_an_error_in_an_included_file_points_there(tmp_path: Path) -> None:
    write(tmp_path, a='include "b.cat"', b="let x = nonsense", c='let strong = W\ninclude "d.cat"', d="let a = strnog")
    with pytest.raises(InputError, match=r"b\.cat:1:9: error: unknown name"):
        load_model(tmp_path / "a.cat")
    with pytest.raises(InputError, match=r"defined at .*c\.cat:1"):
        load_model(tmp_path / "c.cat")


def test_checks_without_a_name_are_called_by_what_they_test() -> None:
    loaded = model("let hb = po | rf\nacyclic hb\nirreflexive hb\nflag ~empty rf & ext as Seen\n~acyclic po;rf")
    assert [check.name for check in loaded.checks] == ["hb", "irreflexive hb", "Seen", "~acyclic po; rf"]
    assert [check.name for check in loaded.flags] == ["Seen"] and loaded.flags[0].negated
    assert [check.name for check in loaded.without("hb").axioms] == ["irreflexive hb", "~acyclic po; rf"]


def test_show_and_unshow() -> None:
    loaded = model("let hb = po | rf\nshow hb, co as coherence, rf\nshow hb ; hb as twice\nunshow rf\nacyclic hb")
    assert loaded.shown == ("hb", "coherence", "twice")
    defined = {one.name for one in loaded.definitions}
    assert "twice" in defined and "co" not in defined


def test_comments_beside_a_statement_are_its_doc() -> None:
    loaded = model(
        "// not this one\n\n// first line\n// second line\nlet a = po\nlet b = rf // behind\nlet c = co\n"
        "(* A block\n   over two lines. *)\nacyclic a | b | c as Order"
    )
    docs = {definition.name: definition.doc for definition in loaded.definitions}
    assert (docs["a"], docs["b"], docs["c"]) == ("first line second line", "behind", "")
    assert loaded.checks[0].doc == "A block over two lines."


def test_dependencies_follow_names_and_recursion() -> None:
    loaded = model("let rec a = rf | b and b = a ; po\nlet unused = co\nacyclic a as A\nempty [W] ; fr as B")
    bases = bases_of(loaded)
    assert bases["A"] == bases["b"] == frozenset({"rf", "po"})
    assert bases["B"] == frozenset({"W", "rf", "co"})
    assert bases["unused"] == frozenset({"co"})


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize("flag, raised", [("(co ; co) \\ co", False), ("co ; co", True), ("co & id", False)])
def test_base_coherence_is_a_strict_partial_order(engine: str, flag: str, raised: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.cat").write_text(f"flag ~empty {flag} as found\n")
    text = "PTX three\n{ x = 0; }\n P0 | P1 | P2 ;\n st x, 1 | st x, 2 | st x, 3 ;\nexists (true)\n"
    assert ("found" in check(text, tmp_path / "mine.cat", engine=engine).answer.flags) is raised

"""`override let`: another definition in the place of an included one, seen by everything that used the old one."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.expressions import bases_of

from memmodel import check
from memmodel.answer import Observation
from memmodel.cat import load_model
from memmodel.cat.syntax import Model
from memmodel.cat.text.printer import show
from memmodel.errors import InputError

BASE = """let hb = po
// order that lasts
let order = hb+
let through(r) = hb ; r
let step = through(rf)
acyclic order | rf as Order
"""


def load(folder: Path, **files: str) -> Model:
    """The first of these files."""
    for name, text in files.items():
        (folder / f"{name}.cat").write_text(text)
    return load_model(folder / f"{next(iter(files))}.cat")


def bodies(model: Model) -> dict[str, str]:
    """The definitions that are not those of the prelude."""
    own = [one for one in model.definitions if one.span is None or one.span.source.name != "axioms/prelude.cat"]
    return {one.name: show(one.body) for one in own}


def refused(folder: Path, **files: str) -> str:
    with pytest.raises(InputError) as caught:
        load(folder, **files)
    return caught.value.render().replace(f"{folder}/", "")


# ---- late binding --------------------------------------------------------------------------------------------------


def test_what_was_defined_with_the_old_one_uses_the_new_one(tmp_path: Path) -> None:
    model = load(tmp_path, top='include "base.cat"\noverride let hb = po | rf', base=BASE.replace("| rf as", "as"))
    assert bodies(model) == {"hb": "po | rf", "order": "hb+", "step": "hb; rf"}
    assert bases_of(model)["Order"] == frozenset({"po", "rf"})
    assert bases_of(load(tmp_path, base=BASE.replace("| rf as", "as")))["Order"] == frozenset({"po"})


def test_it_holds_wherever_it_stands_and_for_files_that_included_files_include(tmp_path: Path) -> None:
    for text in ('override let hb = rf\ninclude "middle.cat"', 'include "middle.cat"\noverride let hb = rf'):
        model = load(tmp_path, top=text, middle='include "base.cat"\nlet more = hb | po', base=BASE)
        assert bodies(model)["hb"] == "rf"


def test_everything_behind_sees_it_and_nothing_before(tmp_path: Path) -> None:
    """The new right side stands where the old one stood."""
    model = load(
        tmp_path,
        top='include "base.cat"\noverride let b = a ; a\nlet d = b',
        base="let a = po\nlet b = a\nlet a = rf\nlet c = b",
    )
    first, second = (definition for definition in model.definitions if definition.name == "a")
    found = bodies(model)
    assert (show(first.body), show(second.body), found["b"], found["c"], found["d"]) == ("po", "rf", "a; a", "b", "b")
    late = refused(tmp_path, top='include "base.cat"\noverride let a = b', base="let a = po\nlet b = a\nacyclic b")
    assert late.startswith("top.cat:2:18: error: unknown name `b`")


def test_a_function_is_overridden_for_every_call(tmp_path: Path) -> None:
    model = load(tmp_path, top='include "base.cat"\noverride let through(r) = r^-1', base=BASE)
    assert bodies(model)["step"] == "rf^-1"


def test_a_definition_in_a_recursive_group_stays_recursive(tmp_path: Path) -> None:
    model = load(
        tmp_path,
        top='include "base.cat"\noverride let a = rf | (a ; po)',
        base="let rec a = po | a ; a\nacyclic a as A",
    )
    (definition,) = [one for one in model.definitions if one.name == "a"]
    assert definition.group is not None and show(definition.body) == "rf | a; po"


def test_the_comment_of_the_new_one_counts(tmp_path: Path) -> None:
    model = load(tmp_path, top='include "base.cat"\n// as others read it\noverride let order = po', base=BASE)
    without = load(tmp_path, top='include "base.cat"\noverride let order = po', base=BASE)
    docs = [{one.name: one.doc for one in each.definitions}["order"] for each in (model, without)]
    assert docs == ["as others read it", "order that lasts"]


# ---- several files -------------------------------------------------------------------------------------------------


def test_the_outermost_file_has_the_say(tmp_path: Path) -> None:
    files = {"middle": 'include "base.cat"\noverride let hb = co\noverride let order = hb', "base": BASE}
    inner = bodies(load(tmp_path, **files))
    outer = bodies(load(tmp_path, top='include "middle.cat"\noverride let hb = rf', **files))
    assert (inner["hb"], inner["order"]) == ("co", "hb")
    assert (outer["hb"], outer["order"]) == ("rf", "hb")


def test_it_holds_for_the_files_that_its_own_file_includes_and_no_others(tmp_path: Path) -> None:
    model = load(
        tmp_path,
        top='include "variant.cat"\ninclude "other.cat"\nlet hb = co',
        variant='include "base.cat"\noverride let hb = rf',
        base="let hb = po\nacyclic hb as Base",
        other="let hb = ctrl\nacyclic hb as Other",
    )
    assert [show(one.body) for one in model.definitions if one.name == "hb"] == ["rf", "ctrl", "co"]


def test_a_file_may_define_the_name_again_itself(tmp_path: Path) -> None:
    model = load(tmp_path, top='include "base.cat"\noverride let hb = rf\nlet hb = hb | co', base=BASE)
    assert [show(one.body) for one in model.definitions if one.name == "hb"] == ["rf", "hb | co"]


# ---- what is refused -----------------------------------------------------------------------------------------------


def test_an_undefined_name_is_refused_in_full(tmp_path: Path) -> None:
    assert (
        refused(tmp_path, top='include "base.cat"\n\noverride let ordr = po', base=BASE)
        == """\
top.cat:3:14: error: `ordr` is overridden, and no included file defines it
  3 | override let ordr = po
    |              ^^^^
  hint: did you mean `order`?"""
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "override let nothing-like-it = po\nacyclic po",
            "2:14: error: `nothing-like-it` is overridden, and no included",
        ),
        ("override let po = rf", "2:14: error: `po` is overridden, and no included file defines it"),
        ("let own = po\noverride let own = rf", "3:14: error: `own` is overridden, and no included file defines it"),
        ("override let hb = po\noverride let hb = rf", "3:14: error: `hb` is overridden twice"),
        ("override let through = po", "2:14: error: `through` is overridden with other parameters"),
        ("override let through(a, b) = a", "2:14: error: `through` is overridden with other parameters"),
        ("override let hb(x) = x", "2:14: error: `hb` is overridden with other parameters"),
        ("override let hb = W", "base.cat:3:13: error: `+` applies to a relation; `hb` is a set"),
        ("override let hb = nonsense", "2:19: error: unknown name `nonsense`"),
        ("override let rec hb = po", "2:18: error: `override let` takes no `rec`"),
    ],
)
def test_mistakes(text: str, message: str, tmp_path: Path) -> None:
    found = refused(tmp_path, top=f'include "base.cat"\n{text}', base=BASE).removeprefix("top.cat:")
    assert found.startswith(message)
    assert "^" in found


def test_what_an_inner_file_overrides_in_vain_is_refused_there(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        top='include "base.cat"\ninclude "middle.cat"',
        middle='include "other.cat"\noverride let hb = rf',
        other="acyclic rf as Other",
        base=BASE,
    )
    assert found.startswith("middle.cat:2:14: error: `hb` is overridden, and no included file defines it")


def test_the_word_is_a_name_anywhere_else(tmp_path: Path) -> None:
    model = load(tmp_path, top="let override = po\nacyclic override as A")
    assert bodies(model) == {"override": "po"}


# ---- a verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_an_override_changes_the_verdict(engine: str, tmp_path: Path) -> None:
    """Message passing under ptx-9.4, and under a variant in which nothing synchronizes."""
    text = """PTX MP
{ x = 0; y = 0; }
 P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;
 st.weak x, 1        | ld.acquire.gpu r0, y ;
 st.release.gpu y, 1 | ld.weak r1, x        ;
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    (tmp_path / "variant.cat").write_text('include "ptx-9.4.cat"\noverride let synchronizes = 0 & po\n')
    answers = [check(text, model, engine=engine).answer.observation for model in ("ptx-9.4", tmp_path / "variant.cat")]
    assert answers == [Observation.NEVER, Observation.SOMETIMES]


@pytest.mark.parametrize(
    ("top", "warned"),
    [
        ('include "base.cat"\nlet hb = rf', True),
        ('include "base.cat"\nlet rec hb = rf | hb ; hb', True),
        ('include "base.cat"\noverride let hb = rf', False),
        ('include "base.cat"\nlet unused = rf', False),
        ('let hb = rf\ninclude "base.cat"', False),
    ],
)
def test_a_let_that_does_not_reach_what_an_included_file_says_is_warned_of(
    tmp_path: Path, top: str, warned: bool
) -> None:
    base = "let unused = co\nlet hb = po\nacyclic hb | co as Order"
    model = load(tmp_path, top=top, base=base)
    messages = [notice.message for notice in model.notices]
    assert messages == (
        ["`hb` is defined and used in base.cat:2, which this definition does not change"] if warned else []
    )

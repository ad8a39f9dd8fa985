"""Every statement and every kind of term of herd's language: what it means, and where a model has to say it otherwise.

Where a construct is only another way to write something, the two are compared as expressions. Where it depends on the
execution, both engines judge a test.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from memmodel import check
from memmodel.answer import Observation
from memmodel.cat import load_model, parse_model
from memmodel.cat.syntax import Definition, Model
from memmodel.cat.text.printer import show
from memmodel.enumeration.orders import linear_extensions
from memmodel.errors import InputError
from memmodel.source import Source

ENGINES = ("z3", "enumerate")


def model(text: str) -> Model:
    return parse_model(Source("m.cat", text))


def last(text: str) -> Definition:
    return model(text).definitions[-1]


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        model(text)
    return caught.value.render()


def test(threads: list[str], condition: str) -> str:
    """A test whose threads are lists of instructions."""
    rows = [thread.split(" ; ") for thread in threads]
    lines = [" | ".join(row[n] if n < len(row) else "" for row in rows) for n in range(max(map(len, rows)))]
    heads = " | ".join(f"P{n}" for n in range(len(rows)))
    return f"PTX generated\n{{ x = 0; y = 0; }}\n {heads} ;\n" + " ;\n".join(lines) + f" ;\nexists ({condition})\n"


test.__test__ = False  # type: ignore[attr-defined]

ST, LD = "st.relaxed.sys.u32", "ld.relaxed.sys.u32"
MP = test([f"{ST} x, 1 ; {ST} y, 1", f"{LD} r0, y ; {LD} r1, x"], "P1:r0 == 1 /\\ P1:r1 == 0")
SB = test([f"{ST} x, 1 ; {LD} r0, y", f"{ST} y, 1 ; {LD} r1, x"], "P0:r0 == 0 /\\ P1:r1 == 0")
LB = test([f"{LD} r0, x ; {ST} y, 1", f"{LD} r1, y ; {ST} x, 1"], "P0:r0 == 1 /\\ P1:r1 == 1")
COWW = test([f"{ST} x, 1 ; {ST} x, 2"], "x == 1")
TWO = test([f"{ST} x, 1", f"{ST} x, 2"], "x == 1")
IRIW = test(
    [f"{ST} x, 1", f"{ST} y, 1", f"{LD} r0, x ; {LD} r1, y", f"{LD} r2, y ; {LD} r3, x"],
    "P2:r0 == 1 /\\ P2:r1 == 0 /\\ P3:r2 == 1 /\\ P3:r3 == 0",
)
SHAPES = {"MP": MP, "SB": SB, "LB": LB, "CoWW": COWW, "2W": TWO, "IRIW": IRIW}


def happens(text: str, shape: str) -> Observation:
    """What both engines say of a shape."""
    found = {engine: check(Source("t", SHAPES[shape]), model(text), engine=engine).answer for engine in ENGINES}
    assert found["z3"].observation is found["enumerate"].observation
    assert found["z3"].flags == found["enumerate"].flags
    return found["z3"].observation


# ---- terms that are another way to write something -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, plain",
    [
        ("let f = fun r -> r ; po\nlet x = f rf", "rf; po"),
        ("let f = fun (r, s) -> s ; r\nlet x = f(rf, po)", "po; rf"),
        ("let f r = fun s -> r ; s\nlet x = f rf po", "rf; po"),
        ("let g = domain\nlet x = [g(rf)]", "[domain(rf)]"),
        ("let twice f = fun r -> f (f r)\nlet x = twice (fun r -> r ; po) rf", "(rf; po); po"),
        ("let swap(a, b) = (b, a)\nlet x = let (p, q) = swap(po, rf) in p ; q", "rf; po"),
        ("let pair = (po, rf)\nlet f(a, b) = a | b\nlet x = f pair", "po | rf"),
        ("let x = (let f(r) = r ; r in f(po))", "po; po"),
        ("let x = try po with rf", "po"),
        ("let x = try no-such-name with rf", "rf"),
        ("let x = try (W ; po) with rf", "rf"),
        ("let x = try MFENCE with 0", "F & SC"),
        ("let x = try DSB.SY with po", "po"),
        ('let x = if "variant" then po else rf', "rf"),
        ('let x = if not "variant" && (variant "a" || not "b") then po else rf', "po"),
        ("let x = if emptyset subset W then po else rf", "po"),
        ("let x = match 0 with || {} -> po || e ++ es -> rf end", "po"),
        ("let x = match W & emptyset with || {} -> po || e ++ es -> e ; es end", "po"),
        ("let x = match {po, rf} with || {} -> co || r ++ rest -> r end", "po"),
        ("enum T = 'a || 'b\nlet f t = match t with || 'a -> po || _ -> rf end\nlet x = f 'a | f 'b", "po | rf"),
        (
            "let rec all S = match S with || {} -> 0 || r ++ rest -> r | all rest end\nlet x = all {po, rf, po}",
            "po | (rf | 0)",
        ),
        ("let x = begin let f(r) = r^-1 in f rf end", "rf^-1"),
        ("let x = map (fun r -> r ; po) {rf}\nlet x = match x with || {} -> 0 || r ++ rest -> r end", "rf; po"),
        ("let x = rf -1", "rf^-1"),
        ("/* C's comment */ let x = po", "po"),
        ("(* of C: (*(p)) *) let x = po", "po"),
    ],
)
def test_terms_are_worked_out_when_a_model_loads(text: str, plain: str) -> None:
    assert last(text).body == last(f"let x = {plain}").body


def test_a_local_recursive_relation_is_a_definition_of_the_model() -> None:
    loaded = model("let closure(r) = let rec t = r | (t ; t) in t\nlet a = closure(po) and b = closure(rf)")
    names = [(one.name, one.group is not None) for one in loaded.definitions[-4:]]
    assert names == [("t", True), ("a", False), ("t", True), ("b", False)]
    assert "inside a recursive definition" in refused("let rec a = po | (let rec t = a | (t ; t) in t)")


@pytest.mark.parametrize(
    "text, words",
    [
        ("let (a, b) = (po, rf, co)", "patterns of 2 names"),
        ("let f(S) = match S with || {} -> po || e ++ rest -> [e] ; po end\nlet x = f(W)", "elements are not known"),
        ("let x = bisimulation(po, rf)", "`bisimulation` is not supported"),
        ("let x = new()", "`new` is not supported"),
        ("let x = 'tag", "no `enum`"),
        ("let x = match po with || 'a -> po end", "takes a tag or a set"),
        ("enum T = 'a || 'b\nlet x = match 'b with || 'a -> po end", "no clause for `'b`"),
        ("let x = try nothing1 with nothing2", "unknown name `nothing2`"),
        ("forall r in W do acyclic r end", "takes a set that is listed"),
        ("procedure p(r) = acyclic r end\ncall p(po, rf)", "takes 1 arguments, not 2"),
        ("call toid(W)", "not a procedure"),
        ("procedure p(r) = acyclic r", "`procedure` needs `end`"),
        ('if "a" acyclic po', "`if` needs `end`"),
        ("let x = fun r rf", "`fun` needs `->`"),
        ("let rec f x = f x\nlet a = f po", "too large"),
        ("let x = map po {rf}", "not a function"),
        ("enum T = 'a || 'b\nlet x = tag2events({po})", "takes a tag"),
        ("enum T = 'a || 'b\nlet x = tag2events(po)", "takes a tag"),
    ],
)
def test_what_cannot_be_worked_out_is_refused_by_name(text: str, words: str) -> None:
    assert words in refused(text)


# ---- terms and statements that depend on the execution ---------------------------------------------------------------


@pytest.mark.parametrize("shape, expected", [("SB", Observation.SOMETIMES), ("LB", Observation.NEVER)])
@pytest.mark.parametrize(
    "condition",
    [
        "let x = if rf & ext subset 0 then 0 else po",
        "let x = if (rf & ext) = 0 then 0 else po",
        "let x = match rf & ext with || {} -> 0 || e ++ es -> po end",
        "let S = if range(rf & ext) subset 0 then 0 else M\nlet x = [S] ; po",
    ],
)
def test_a_condition_on_the_execution(condition: str, shape: str, expected: Observation) -> None:
    """In LB each thread reads from the other, so program order counts; in SB the reads read initial values."""
    assert happens(f"{condition}\nacyclic x | rf", shape) is expected


def test_procedures_and_iteration_make_checks() -> None:
    loaded = model(
        "procedure order(r, s) =\n  let both = r | s\n  acyclic both\nend\n"
        "call order(po, rf) as First\ncall order(po, co)\nlet both = co\n"
        "forall r in {po ; rf, po ; co} do irreflexive r end\nenum T = 'a || 'b\n"
        "match 'b with || 'a -> empty 0 as A || 'b -> empty 0 as B end\n"
        'if "unset" empty 0 as Set else empty 0 as Unset end\n'
    )
    names = [one.name for one in loaded.checks]
    assert names[:6] == ["First", "both", "irreflexive po; rf", "irreflexive po; co", "B", "Unset"]
    assert not loaded.notices


def test_what_is_undefined_or_assumed_is_a_flag() -> None:
    loaded = model(
        "undefined_unless empty rf as Dr\nundefined_unless ~empty co\nassert acyclic po as Order\nacyclic po"
    )
    told = [(one.name, one.kind, one.negated, one.flag) for one in loaded.checks[:3]]
    assert told == [
        ("undefined-Dr", "empty", True, True),
        ("undefined-co", "empty", False, True),
        ("assert-Order", "acyclic", True, True),
    ]


def test_what_is_taken_from_nothing_may_be_recursive() -> None:
    locks = "let locks = W & 0\nlet rec free = locks \\ domain(held) and held = ([free] ; po) | (held ; po)\n"
    assert happens(locks + "acyclic po | rf | held", "LB") is Observation.NEVER
    assert "may not stand" in refused(locks.replace("W & 0", "W"))


def test_options_of_herd_after_the_title_are_skipped() -> None:
    loaded = model('"C++11" withinit withoutco\nacyclic po')
    assert (loaded.title, len(loaded.checks)) == ("C++11", 1)


def test_a_check_behind_a_recursive_definition() -> None:
    loaded = model("let rec a = po | rf | (a ; a) when irreflexive a as Order\nacyclic rf")
    assert [(one.name, one.kind) for one in loaded.checks] == [("Order", "irreflexive"), ("rf", "acyclic")]
    assert happens("let rec a = po | rf | (a ; a) when irreflexive a as Order", "LB") is Observation.NEVER


def test_statements_that_say_nothing_of_executions() -> None:
    loaded = model(
        "LISA\nenum Accesses = 'once || 'release || 'acquire\nenum scopes = 'cta || 'gpu\n"
        "instructions R[{'once, 'acquire}]\ndefault W[{'once}]\ndebug rf\ncut po\n"
        "acyclic tag2events('acquire) * tag2events('once) | tag2scope('cta) as A"
    )
    assert show(loaded.checks[0].body) == "(R & ACQ) * (M & RLX) | scta"


def test_a_name_that_is_a_keyword_only_somewhere() -> None:
    text = "let then = po\nlet else = then | rf\nlet from = else\nlet do = if po = rf then from else else\nacyclic do"
    assert show(model(text).checks[0].body) == "do"


# ---- with ------------------------------------------------------------------------------------------------------------

LAMPORT = """"SC as one order of everything"
with S from linearisations(~IW, po)
let past = (W * R) & loc & (S | IW * R)
let last = past \\ ((S | IW * (W \\ IW)) ; past)
empty (rf \\ last) | (last \\ rf) as Reads
"""


@pytest.mark.parametrize("shape", ["MP", "SB", "LB", "IRIW"])
def test_sequential_consistency_as_one_total_order(shape: str) -> None:
    assert happens(LAMPORT, shape) is Observation.NEVER
    assert happens(LAMPORT.replace("~IW, po", "~IW, 0"), shape) is Observation.SOMETIMES


def test_a_total_order_is_chosen_for_each_execution() -> None:
    text = "with S from linearisations(M \\ IW, rf & ext)\nacyclic S | co | (rf^-1 ; co) as Order"
    assert happens(text, "LB") is Observation.SOMETIMES
    assert happens(text.replace("rf & ext", "po | rf & ext"), "LB") is Observation.NEVER
    answer = check(Source("t", LB), model(text.replace("rf & ext", "po | rf & ext")), engine="z3").answer
    assert answer.axioms == ("S-extends",)


def test_an_order_depends_on_the_one_before() -> None:
    text = "with S from linearisations(R, po)\nwith T from linearisations(R, S^-1)\nacyclic S | T as Both"
    assert happens(text, "MP") is Observation.VACUOUS
    assert happens(text.replace("S^-1", "S"), "MP") is Observation.SOMETIMES


def test_orders_may_be_changed_one_by_one() -> None:
    loaded = model("with S from map (fun o -> o | po) (linearisations(W, 0))\nacyclic S as A")
    chosen, used = loaded.definitions[-2:]
    assert (chosen.name, chosen.order is not None, show(used.body)) == ("S-order-1", True, "S-order-1 | po")
    with_two = model("with S from cross {linearisations(W, 0), linearisations(R, po)}\nacyclic S as A")
    assert show(with_two.definitions[-1].body) == "S-order-1 | S-order-2 | 0"


FOLD = """
let fold f = let rec each (es, y) = match es with || {} -> y || e ++ es -> each (es, f (e, y)) end in each
let rec cross S = match S with
|| {} -> { 0 }
|| first ++ rest ->
    let ts = cross rest in
    fold (fun (e, r) -> map (fun t -> e | t) ts | r) (first, {})
end
let of-location r = fun S -> linearisations(S, r)
"""

CPS = """
let cross =
  let rec each (k, ys, oss) = match oss with
  || {} -> ys ++ k
  || os ++ oss ->
      let rec inner (k, os) = match os with
      || {} -> k
      || o ++ os -> inner (each (k, o | ys, oss), os)
      end in
      inner (k, os)
  end in
  fun oss -> each ({}, 0, oss)
let of-location r = fun S -> linearisations(S, r)
"""


@pytest.mark.parametrize("library", [FOLD, CPS, "let of-location r = fun S -> linearisations(S, r)"])
def test_the_orders_of_all_locations_are_coherence_however_they_are_built(library: str) -> None:
    text = library + "with co from cross (map (of-location (po-loc & W * W)) (partition W))\nshow co"
    loaded = model(text)
    assert show(loaded.definitions[-1].body) == "co" and loaded.definitions[-1].order is None
    assert [one.name for one in loaded.checks] == ["co-total", "co-extends"]
    assert happens(text, "CoWW") is Observation.NEVER
    assert happens(text, "2W") is Observation.SOMETIMES
    assert happens(text + "\nacyclic po-loc | co^-1", "CoWW") is Observation.VACUOUS


def test_only_all_unions_are_coherence() -> None:
    first_only = "let cross S = match S with || {} -> {0} || os ++ rest -> os end\n"
    assert "elements are not known" in refused(
        first_only + "with co from cross (map (fun S -> linearisations(S, 0)) (partition W))"
    )
    two_sets = "cross(co_locs(0, partition W)) | cross(co_locs(0, partition R))"
    assert "elements are not known" in refused(f"with co from {two_sets}")
    assert "choose among 2" in refused("with r from {po, rf}")
    assert "chooses from a set" in refused("with r from po")


@pytest.mark.parametrize(
    ("over", "writes"),
    [
        ("W & (RLX | IW)", True),
        ("(RLX | IW) & W", True),
        ("(W & RLX) | IW", True),
        ("W \\ R", True),
        ("W | R", False),
        ("R | W", False),
        ("M \\ W", False),
        ("RLX & M", False),
    ],
)
def test_coherence_orders_what_is_known_to_be_writes(over: str, writes: bool) -> None:
    """An order on other events, location by location, is a choice of its own."""
    bodies = []
    for text in (
        f"with mo from generate_orders({over}, 0)",
        f"let some = {over}\nwith mo from generate_orders(some, 0)",
    ):
        bodies.append(show(last(text).body))
    assert [body.startswith("co & ") for body in bodies] == [writes, writes]
    assert [body.endswith("-order & loc") for body in bodies] == [not writes, not writes]


def test_coherence_of_some_writes_and_orders_of_other_events() -> None:
    some = model("with mo from generate_orders(W & (RLX | IW), 0)")
    assert show(some.definitions[-1].body) == "co & (W & (RLX | IW)) * (W & (RLX | IW))"
    reads = model("with order from generate_orders(R, po)\nirreflexive order ; po")
    names = [(one.name, one.order is not None) for one in reads.definitions[-2:]]
    assert names == [("order-order", True), ("order", False)]
    assert show(reads.definitions[-1].body) == "order-order & loc"


def test_with_one_or_nothing_to_choose_from() -> None:
    assert show(last("with r from {po ; rf}").body) == "po; rf"
    assert happens("with r from {}", "MP") is Observation.VACUOUS
    assert happens("let S = {po} & {rf}\nwith r from S", "MP") is Observation.VACUOUS


@pytest.mark.parametrize("members", [(0, 1, 2, 3), (1, 3, 4)])
@pytest.mark.parametrize("before", [(), ((0, 1), (1, 3)), ((0, 1), (1, 0)), ((2, 2),), ((4, 0), (0, 4)), ((3, 4),)])
def test_the_orders_that_are_tried_are_the_linear_extensions(
    before: tuple[tuple[int, int], ...], members: tuple[int, ...]
) -> None:
    """Of some out of five events, whatever is between others; without any, one order that a check then refuses."""
    relation = sum(1 << a * 5 + b for a, b in before)
    found = list(linear_extensions(sum(1 << event for event in members), relation, 5))
    every = {
        sum(1 << one * 5 + other for n, one in enumerate(order) for other in order[n + 1 :])
        for order in permutations(members)
    }
    inside = sum(1 << a * 5 + b for a, b in before if a in members and b in members)
    expected = {order for order in every if not inside & ~order}
    assert set(found) == expected if expected else len(found) == 1 and found[0] in every
    assert len(found) == len(set(found))


# ---- coherence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, total",
    [
        ("acyclic po-loc | rf | co | fr", True),
        ("empty rmw & (fre ; coe)", True),
        ("acyclic po | rf", False),
        ("empty ([W] ; po-loc ; [W]) \\ co", False),
        ("acyclic po-loc | co\nempty ([W] ; po-loc ; [W]) \\ co", False),
        ("flag ~empty co as found", False),
        ("let rs = co \\ (co ; co)\nacyclic po | rs", True),
        ("acyclic po-loc | (FW * IW)", True),
    ],
)
def test_coherence_is_total_unless_a_model_asks_for_it(text: str, total: bool) -> None:
    assert ("co-total" in [one.name for one in model(text).checks]) is total


@pytest.mark.parametrize("name", ["sc", "ptx-6.0", "ptx-7.5", "ptx-9.4"])
def test_shipped_models_ask_for_coherence(name: str) -> None:
    loaded = load_model(name)
    assert "co-total" not in [one.name for one in loaded.checks] and not loaded.notices


def test_dependencies_of_the_engine_stay_where_a_model_computes_its_own() -> None:
    text = "AArch64\ncatdep\nlet data = [R] ; iico_data+ ; [W]\nlet addr = addr \\ same-instance\n"
    loaded = model(text + "let d = data and a = addr")
    assert [show(one.body) for one in loaded.definitions[-3:]] == ["addr \\ si", "data", "addr"]
    assert loaded.definitions[-2].body.ref is None  # type: ignore[union-attr]
    assert any("computed from register events" in notice.message for notice in loaded.notices)


def test_a_model_with_strict_names(tmp_path: Path) -> None:
    path = tmp_path / "mine.cat"
    path.write_text("X86 mine\nlet a = fencerel(LFENCE)\nacyclic po | a")
    assert len(load_model(path).notices) == 1
    with pytest.raises(InputError, match="LFENCE"):
        load_model(path, strict_names=True)

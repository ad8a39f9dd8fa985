"""Models in the style of herd's and Dartagnan's files: their names, their library, and what they say of small tests.

The models are our own renderings, each a few lines. Both engines judge message passing, store buffering, load buffering
and coherence: plain, relaxed, with release and acquire, and with fences.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from helpers.agreement import agree
from helpers.examples import examples
from helpers.strategies import programs as strategies_programs
from helpers.strategies.programs import Program
from hypothesis import given
from hypothesis import strategies as st

from memmodel import check
from memmodel.answer import Observation
from memmodel.base.resources import axioms_dir
from memmodel.cat import load_model, parse_model
from memmodel.cat.text.printer import show
from memmodel.errors import InputError
from memmodel.source import Source

ENGINES = ("z3", "enumerate")

# ---- tests -----------------------------------------------------------------------------------------------------------

STORE = {"plain": "st.weak.u32", "rlx": "st.relaxed.sys.u32", "rel": "st.release.sys.u32"}
LOAD = {"plain": "ld.weak.u32", "rlx": "ld.relaxed.sys.u32", "acq": "ld.acquire.sys.u32"}


def litmus(threads: list[list[str]], condition: str) -> Source:
    lines = [
        " | ".join(thread[n] if n < len(thread) else "" for thread in threads) + " ;"
        for n in range(max(map(len, threads)))
    ]
    heads = " | ".join(f"P{n}" for n in range(len(threads)))
    text = "\n".join(["PTX generated", "{ x = 0; y = 0; }", f"{heads} ;", *lines, f"exists ({condition})"])
    return Source("generated.litmus", text + "\n")


def fence(kind: str) -> list[str]:
    return [f"fence.{kind}.sys"] if kind else []


def mp(first: str, last: str, kind: str = "") -> Source:
    """Message passing: the kinds of the store to and the load of the flag, and of the fences."""
    data = "rlx" if "rlx" in (first, last) else "plain"
    writer = [f"{STORE[data]} x, 1", *fence(kind), f"{STORE[first]} y, 1"]
    return litmus([writer, [f"{LOAD[last]} r0, y", *fence(kind), f"{LOAD[data]} r1, x"]], "P1:r0 == 1 /\\ P1:r1 == 0")


def sb(access: str, kind: str = "") -> Source:
    threads = [[f"{STORE[access]} {a}, 1", *fence(kind), f"{LOAD[access]} r0, {b}"] for a, b in ("xy", "yx")]
    return litmus(threads, "P0:r0 == 0 /\\ P1:r0 == 0")


def lb(access: str, kind: str = "") -> Source:
    threads = [[f"{LOAD[access]} r0, {a}", *fence(kind), f"{STORE[access]} {b}, 1"] for a, b in ("xy", "yx")]
    return litmus(threads, "P0:r0 == 1 /\\ P1:r0 == 1")


TESTS = {
    "MP": mp("plain", "plain"),
    "MP+rlx": mp("rlx", "rlx"),
    "MP+rel+acq": mp("rel", "acq"),
    "MP+acq_rel": mp("rlx", "rlx", "acq_rel"),
    "SB+rlx": sb("rlx"),
    "SB+acq_rel": sb("rlx", "acq_rel"),
    "SB+sc": sb("rlx", "sc"),
    "LB+rlx": lb("rlx"),
    "LB+sc": lb("rlx", "sc"),
    "CoWW": litmus([["st.relaxed.sys.u32 x, 1", "st.relaxed.sys.u32 x, 2"]], "x == 1"),
    "CoRR": litmus(
        [["st.relaxed.sys.u32 x, 1"], ["ld.relaxed.sys.u32 r0, x", "ld.relaxed.sys.u32 r1, x"]],
        "P1:r0 == 1 /\\ P1:r1 == 0",
    ),
    "inc": litmus([["atom.relaxed.sys.add.u32 r0, [x], 1"]] * 2, "x == 1"),
}

# ---- models ----------------------------------------------------------------------------------------------------------

SC = 'SC\n(* herd *)\ninclude "cos.cat"\nempty rmw & (fre ; coe) as atom\nacyclic po | ((fr | rf | co) ; sm) as sc\n'
TSO = r"""X86 TSO
include "x86fences.cat"
include "filters.cat"
include "cos.cat"
let com = rf | fr | co
acyclic po-loc | com
empty rmw & (fre ; coe)
let implied = MA(WR(po)) | AM(WR(po))
acyclic mfence | implied | WW(po) | RM(po) | rfe | fr | co as tso
show implied, sfence
"""
RISCV = """RISCV "in the style of Dartagnan"
include "riscvfences.cat"
let AcqRel = AcqRel | Sc
let ppo = [M] ; po-loc ; [W] | [AMO | X] ; rfi ; [R] | fence | [Acq | AcqRel] ; po ; [M] | [M] ; po ; [Rel | AcqRel]
  | rmw | [M] ; addr ; [M] | [M] ; data ; [W] | [M] ; ctrl ; [W]
acyclic co | rf | fr | po-loc as Coherence
acyclic co | rfe | fr | ppo as Model
empty rmw & (fre ; coe) as Atomic
"""
TOTAL = r""""RISC-V with one order of everything"
include "riscvfences.cat"
let AQ = try Acq with 0 and RL = try Rel with 0
let ppo = [M] ; po-loc ; [W] | fence | [AQ] ; po ; [M] | [M] ; po ; [RL] | rmw | addr | data | ctrl ; [W]
with gmo from linearisations(M \ IW, loc & (W \ FW) * FW | ppo | rfe)
let gmo = gmo | loc & IW * (M \ IW)
let seen = loc & ([W] ; (gmo | po) ; [R])
let latest = seen \ ((loc & ([W] ; gmo)) ; seen)
empty (rf \ latest) | (latest \ rf) as RfCons
let after = (gmo & loc)^-1
empty (after ; rmw ; (after & ext)) & (after ; rf ; rmw ; (after & ext)) & [W] as Atomic
"""
AARCH64 = """"AArch64"
catdep
include "cos.cat"
include "aarch64fences.cat"
let ca = fr | co
let data = ([R] ; iico_data+ ; [W]) \\ same-instance
let obs = rfe | fre | coe
let bob = po ; [dmb.full] ; po | [R] ; po ; [dmb.ld] ; po | [L] ; po ; [A] | [A | Q] ; po | po ; [L]
let rec ob = obs ; si | addr | data | ctrl ; [W] | rmw | bob | ob ; ob
acyclic po-loc | ca | rf as internal
irreflexive ob as external
empty rmw & (fre ; coe) as atomic
"""
RC11 = r"""C "RC11"
include "cos.cat"
let sb = po and mo = co and rb = fr
let eco = (rf | mo | rb)+
let rs = [W] ; (sb & loc)? ; [W & A] ; (rf ; rmw)*
let sw = [REL | ACQ_REL | SC] ; ([F] ; sb)? ; rs ; rf ; [R & A] ; (sb ; [F])? ; [ACQ | ACQ_REL | SC]
let hb = (sb | sw)+
let psc = [F & SC] ; (hb | hb ; eco ; hb) ; [F & SC]
irreflexive hb ; eco? as coherence
empty rmw & (rb ; mo) as atomicity
acyclic psc as SC
acyclic sb | rf as no-thin-air
let race = ((W * M | M * W) & loc & ext) \ (IW * _) \ (_ * IW) \ (hb | hb^-1 | A * A)
undefined_unless empty race as Dr
"""
C11 = r""""C++11"
include "cross.cat"
with mo from generate_orders(W & (A | IW), co0)
let rs = mo & int \ ((mo \ int) ; mo)
let sw = ext & ([REL | ACQ_REL] ; (po & F * _)? ; [A & W] ; rs? ; rf ; [R & A] ; (po & _ * F)? ; [ACQ | ACQ_REL])
let hb = (po | IW * (M \ IW) | sw)+
acyclic hb as Hb
irreflexive (rf^-1)? ; mo ; rf? ; hb as Coh
irreflexive rf ; hb as Rf
let before = hb & loc & W * R
empty (rf ; [R \ A]) \ (before \ (hb & loc ; [W] ; hb)) as NaRf
with S from linearisations(SC, hb)
irreflexive S ; po ; rf^-1 ; mo ; po as S7
"""
VULKAN = r"""VULKAN
let inscope = DV * DV | sqf & ((DV | QF) * (DV | QF)) | swg & ((DV | QF | WG) * (DV | QF | WG))
let mutual = (loc & vloc & inscope & (ATOM * ATOM)) \ id
let avail = SC0 * (SEMSC0 & SEMAV) & po
let visible = (SEMSC0 & SEMVIS) * SC0 & po
let asmo = co & mutual
let sw = inscope & ([REL & F] ; po? | [REL & ATOM]) ; [ATOM & W] ; (rf & mutual) ; [ATOM & R] ; po? ; [ACQ]
let hb = (po | sw)+
let locord = loc & (hb & int | [NONPRIV & R] ; hb ; [NONPRIV]
  | [NONPRIV & W] ; avail? ; hb ; visible? ; [NONPRIV])
let fr = rf^-1 ; asmo | (rf & locord)^-1 ; (W * W & locord) | ([IW] ; rf)^-1 ; (loc ; [W]) \ id
acyclic locord | rf | fr | asmo as consistency
empty rmw & (fr ; asmo) as atomic
"""
POWER = r"""PPC
include "cos.cat"
include "ppcfences.cat"
acyclic po-loc | rf | fr | co as scperlocation
empty rmw & (fre ; coe) as atomic
let fence = sync | lwsync \ (W * R)
let hb = addr | data | ctrl ; [W] | ctrlisync | fence | rfe
acyclic hb as thinair
let propbase = (fence | rfe ; fence) ; hb*
let prop = propbase & (W * W) | (rfe | fre | coe)? ; propbase* ; sync ; hb*
acyclic co | prop as propagation
irreflexive fre ; prop ; hb* as observation
"""

NEVER, SOMETIMES = Observation.NEVER, Observation.SOMETIMES

FORBIDDEN = {
    "SC": (SC, set(TESTS)),
    "TSO": (TSO, set(TESTS) - {"SB+rlx", "SB+acq_rel"}),
    "RISC-V": (RISCV, {"MP+rel+acq", "MP+acq_rel", "SB+sc", "LB+sc", "CoWW", "CoRR", "inc"}),
    "RISC-V, total": (TOTAL, {"MP+rel+acq", "MP+acq_rel", "SB+sc", "LB+sc", "CoWW", "inc"}),
    "AArch64": (AARCH64, {"MP+rel+acq", "MP+acq_rel", "SB+acq_rel", "SB+sc", "LB+sc", "CoWW", "CoRR", "inc"}),
    "RC11": (RC11, {"MP+rel+acq", "MP+acq_rel", "SB+sc", "LB+rlx", "LB+sc", "CoWW", "CoRR", "inc"}),
    "C11": (C11, {"MP", "MP+rel+acq", "MP+acq_rel", "SB+sc", "LB+sc", "CoWW", "CoRR"}),
    "Vulkan": (VULKAN, {"MP+rel+acq", "MP+acq_rel", "LB+sc", "CoWW", "CoRR", "inc"}),
    "Power": (POWER, {"MP+acq_rel", "SB+sc", "LB+sc", "CoWW", "CoRR", "inc"}),
}
"""What each model forbids; it lets the other tests through."""


@pytest.mark.share(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_model_of_another_architecture_judges_ptx_tests(name: str, engine: str) -> None:
    text, forbidden = FORBIDDEN[name]
    model = parse_model(Source("m.cat", text))
    found = {one: check(test, model, engine=engine).answer.observation for one, test in TESTS.items()}
    assert {one for one, observation in found.items() if observation is not SOMETIMES} == forbidden
    assert {found[one] for one in forbidden} == {NEVER}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_race_of_c_is_undefined_behaviour(engine: str) -> None:
    model = parse_model(Source("m.cat", RC11))
    racy = {one: bool(check(test, model, engine=engine).answer.findings) for one, test in TESTS.items()}
    assert {one for one, found in racy.items() if found} == {"MP", "MP+rel+acq"}


# ---- both engines, on generated programs -----------------------------------------------------------------------------

ORDERED = st.builds(
    "with S from linearisations({}, {})\n{} as Chosen\nacyclic {} as Given\nflag ~empty S & {} as found".format,
    st.sampled_from(("W", "R", "F & SC", "M \\ IW", "M & RLX", "_ \\ IW")),
    st.sampled_from(("0", "po", "rf", "co", "po-loc | rf", "po & (W * W) | rf^-1", "fr | co")),
    st.sampled_from(("acyclic S | rf", "irreflexive S ; fr", "empty (S & loc) \\ (po | co)", "acyclic S ; po | fr")),
    st.sampled_from(("po-loc | co | rf | fr", "rf | addr | data | ctrl | po-loc")),
    st.sampled_from(("rf", "co", "ext", "po & loc")),
)
"""Models that choose a total order: what is ordered, what the order contains, and what is asked of it."""


@examples(40)
@given(program=strategies_programs.programs(most=5), text=ORDERED)
def test_engines_agree_on_chosen_orders(program: Program, text: str) -> None:
    agree(program.text, parse_model(Source("generated.cat", text)))


@pytest.mark.share(2)
@pytest.mark.parametrize("name", FORBIDDEN)
@examples(4)
@given(program=strategies_programs.programs(most=6))
def test_engines_agree_under_models_of_other_architectures(name: str, program: Program) -> None:
    agree(program.text, parse_model(Source("m.cat", FORBIDDEN[name][0])))


# ---- names -----------------------------------------------------------------------------------------------------------


def body(heading: str, name: str, text: str = "") -> str:
    """What a name stands for in a model with that heading."""
    found = show(parse_model(Source("m.cat", f"{heading}\n{text}let found = {name} * W")).definitions[-1].body)
    found = found.removesuffix(" * W")
    return found[1:-1] if found.startswith("(") else found


@pytest.mark.parametrize(
    "heading, name, meaning",
    [
        ("C11", "A", "M \\ WEAK"),
        ('C "C++11"', "CON", "0"),
        ("PTX", "CON", "CON"),
        ("AArch64", "A", "R & ACQ"),
        ("AArch64", "L", "W & REL"),
        ('"x86 TSO"', "A", "RMW"),
        ("RISCV", "Acq", "R & ACQ"),
        ("VULKAN", "ATOM", "M \\ WEAK"),
        ("PTX", "ATOM", "ATOM"),
        ("VULKAN", "REL", "REL | ACQ_REL"),
        ("OpenCL", "WG", "CTA"),
        ("MIPS", "SYNC", "F & (ACQ_REL | ACQ | REL)"),
        ("PPC", "SYNC", "F & SC"),
        ("SC", "FW", "W \\ domain(co)"),
    ],
)
def test_a_name_means_what_it_means_in_its_architecture(heading: str, name: str, meaning: str) -> None:
    assert body(heading, name) == meaning


def test_the_heading_may_be_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "aarch64.cat").write_text("let found = A\n")
    assert show(load_model(tmp_path / "aarch64.cat").definitions[-1].body) == "R & ACQ"


def test_a_models_own_definition_counts() -> None:
    assert body("C11", "A", "let A = W\n") == "A"
    assert body("C11", "MFENCE", "let MFENCE = try MFENCE with F\n") == "MFENCE"


def test_names_without_events_are_told_once() -> None:
    text = "AArch64\nlet a = fencerel(DSB.SY) | fencerel(ISB)\nlet b = [DSB.SY] ; po | iico_data\n"
    model = parse_model(Source("m.cat", text + "show dsb, b\nacyclic a | b"))
    assert [notice.message for notice in model.notices] == [
        "a PTX test has none of 3 names, they are empty: `DSB.SY`, `ISB`, `iico_data`",
        "unknown name `dsb`: nothing is drawn",
    ]


@pytest.mark.parametrize("name", ["NeverHeardOf", "Wreg", "SomeFence.full"])
def test_a_set_that_no_one_knows_is_empty(name: str) -> None:
    model = parse_model(Source("m.cat", f"LISA\nacyclic fencerel({name}) | po"))
    assert name in model.notices[0].message
    with pytest.raises(InputError, match=name):
        parse_model(Source("m.cat", f"LISA\nacyclic fencerel({name}) | po"), strict_names=True)


@pytest.mark.parametrize(
    "text, hint",
    [
        ("acyclic po-lock", "did you mean `po-loc`"),
        ("acyclic ACQREL * W", "did you mean `ACQ_REL`"),
        ("acyclic neverheardof", "`memmodel names`"),
        ("PTX mine\nacyclic [NeverHeardOf]", "unknown name"),
        ("let NoReturns = R\nacyclic [NoReturn] ; po | [NoRetturns] ; po", "did you mean `NoReturns`"),
    ],
)
def test_a_mistake_is_still_a_mistake(text: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_model(Source("m.cat", text))
    assert "unknown name" in caught.value.message and hint in caught.value.render()


def test_an_event_that_reads_and_writes_does_not_exist() -> None:
    (notice,) = parse_model(Source("m.cat", "acyclic [R & W] ; po")).notices
    assert "an atomic operation of PTX has a read and a write" in notice.message


# ---- library ---------------------------------------------------------------------------------------------------------

LIBRARY = sorted(path.name for path in (axioms_dir() / "library").glob("*.cat"))
NAMES = sorted(path.stem for path in (axioms_dir() / "names").glob("*.cat"))


@pytest.mark.parametrize("first, second", list(product(LIBRARY, ["", "cos.cat"])))
def test_every_file_of_the_library_loads(first: str, second: str) -> None:
    text = f'include "{first}"\n' + (f'include "{second}"\n' if second else "") + "acyclic po as Order"
    model = parse_model(Source("m.cat", text))
    assert model.checks[-1].name in ("Order", "co-total")
    assert all("is empty" in notice.message or "are empty" in notice.message for notice in model.notices)


HEADINGS = {"any": "", "mips": "MIPS", "opencl": "OpenCL", "power": "PPC"}


@pytest.mark.parametrize("stem", NAMES)
def test_every_name_of_other_architectures_has_a_meaning(stem: str) -> None:
    """Each can be used where it stands for a set, a relation, a function, or nothing."""
    from memmodel.cat.interpret.world import World

    world = World(HEADINGS.get(stem, stem))
    assert stem == "any" or world.architecture == stem
    text = (axioms_dir() / "names" / f"{stem}.cat").read_text()
    names = [line.split()[1].split("(")[0] for line in text.splitlines() if line.startswith("let ")]
    heading = HEADINGS.get(stem, stem)
    for name in names:
        assert world.binding(name) is not None
        parse_model(Source("m.cat", f"{heading}\nlet found = {name}\nacyclic po"))


def test_a_file_beside_the_model_comes_before_the_library(tmp_path: Path) -> None:
    (tmp_path / "cos.cat").write_text("let co = co and mine = po\n")
    (tmp_path / "m.cat").write_text('include "cos.cat"\nacyclic mine as Mine\n')
    assert [one.name for one in load_model(tmp_path / "m.cat").checks] == ["Mine"]

"""Hypothesis strategies for litmus tests: any test that the language can write, whatever its instructions mean.

`litmus_tests()` builds whole tests; the parts (`variables`, `threads`, `conditions`) can be used alone. Instructions
have plausible mnemonics and arbitrary operands: right for readers and printers, not for engines.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from memmodel.litmus.declarations import PROXIES, TYPES
from memmodel.litmus.header import WORDS
from memmodel.litmus.syntax import (
    FINDINGS,
    Always,
    And,
    Asked,
    Compare,
    Condition,
    Expectation,
    Guard,
    Instruction,
    Label,
    LitmusTest,
    LocValue,
    Not,
    Number,
    Or,
    Quantifier,
    RegisterInit,
    RegValue,
    TensorView,
    Thread,
    Variable,
)
from memmodel.ptx.operands import Blank, Imm, Mem, Negated, Operand, Pair, Reg, Sym, TensorOperand, Vector
from memmodel.ptx.vocabulary import Place, Space

VARIABLE_NAMES = ("x", "y", "z", "flag", "bar", "r0", "$s", "cta", "a_1")
REGISTER_NAMES = ("r0", "r1", "rd1", "p", "x", "L0", "tid.x", "_", "not", "$t")
LABEL_NAMES = ("L0", "LC00", "loop", "x", "r1")
MNEMONICS = (
    "st.weak",
    "st.release.gpu.global.u32",
    "ld.acquire.cta",
    "ld.shared::cluster.u64",
    "atom.acq_rel.gpu.add",
    "red.relaxed.sys.add",
    "fence.sc.gpu",
    "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
    "mbarrier.try_wait.parity.shared.b64",
    "mov.u64",
    "setp.eq.s32",
    "add",
    "bar.warp.sync",
    "barrier.cluster.arrive",
)
BRANCHES = ("bra", "goto", "beq", "bne")
BARRIERS = ("bar.cta.sync", "bar.sync", "barrier.cta.sync.aligned", "bar.cta.arrive", "barrier.arrive")
REDUCTIONS = ("bar.cta.red.and.pred", "barrier.red.popc.u32")

values = st.one_of(st.integers(-4, 4), st.sampled_from((2**64 - 1, -(2**63), 0xFFFF_FFFF)))
registers = st.sampled_from(REGISTER_NAMES)
places = st.builds(
    Place, st.integers(0, 1), st.none() | st.integers(0, 1), st.integers(0, 2), st.none() | st.integers(0, 1)
)


@st.composite
def variables(draw: st.DrawFn, ctas: tuple[int, ...] = (0,)) -> tuple[Variable, ...]:
    """Scalars, arrays and aliases of each other without cycles; a .shared one perhaps in one of `ctas` only."""
    made: list[Variable] = []
    for name in draw(st.lists(st.sampled_from(VARIABLE_NAMES), unique=True, max_size=5)):
        kind = draw(st.none() | st.sampled_from(tuple(TYPES.values())))
        align = draw(st.sampled_from((None, None, 8, 1024)))
        if made and draw(st.integers(0, 3)) == 0:
            target = draw(st.sampled_from(made))
            space = target.space if draw(st.booleans()) else Space.GENERIC
            proxy = draw(st.sampled_from(tuple(PROXIES.values())))
            made.append(Variable(name, space, kind, alias_of=target.name, proxy=proxy, align=align))
            continue
        space = draw(st.sampled_from([space for space in Space if space is not Space.LOCAL]))
        array = draw(st.booleans())
        length = draw(st.integers(1, 4) | st.just(1 << 20)) if array else 1
        if space is Space.SHARED and kind in (None, TYPES["b64"]) and draw(st.booleans()):
            count = draw(st.integers(1, 3))
            made.append(Variable(name, space, kind, length=length, align=align, array=array, mbarrier=count))
            continue
        data = [v for v in made if v.space is Space.GLOBAL and v.alias_of is None and not v.maps]
        if space is Space.CONST and data and draw(st.booleans()):
            views = []
            for _ in range(draw(st.integers(1, 3)) if array else 1):
                target = draw(st.sampled_from(data))
                box = draw(st.sampled_from(((), (1,), (1, 1))))
                views.append(TensorView(target.name, box, box if len(box) > 1 else ()))
            made.append(Variable(name, space, kind, length=len(views), align=align, array=array, maps=tuple(views)))
            continue
        cta = draw(st.none() | st.sampled_from(ctas)) if space is Space.SHARED else None
        init = draw(st.lists(values, max_size=min(length, 4)))
        while init and init[-1] == 0:  # as a test that is read has it
            init.pop()
        made.append(Variable(name, space, kind, tuple(init), length, cta, align=align, array=array))
    return tuple(draw(st.permutations(made)))


def root(declared: tuple[Variable, ...], name: str) -> Variable:
    """The variable that `name` is, or is finally an alias of."""
    found = next(v for v in declared if v.name == name)
    return found if found.alias_of is None else root(declared, found.alias_of)


def instances(declared: tuple[Variable, ...], name: str, all_places: tuple[Place, ...]) -> list[int]:
    """The CTA number of every instance of a .shared variable; empty for any other."""
    variable = root(declared, name)
    if variable.space not in (Space.SHARED, Space.TENSOR):
        return []
    return [p.cta for p in {p.cta_id: p for p in all_places}.values() if variable.cta in (None, p.cta)]


@st.composite
def symbols(draw: st.DrawFn, declared: tuple[Variable, ...], all_places: tuple[Place, ...]) -> Sym:
    """A declared name, perhaps with one of its instances."""
    name = draw(st.sampled_from(declared)).name
    numbers = instances(declared, name, all_places)
    return Sym(name, draw(st.none() | st.sampled_from(numbers)) if numbers else None)


def operands(declared: tuple[Variable, ...], all_places: tuple[Place, ...]) -> st.SearchStrategy[Operand]:
    """Any operand over the declared variables."""
    names: st.SearchStrategy[Reg | Sym] = st.builds(Reg, registers)
    if declared:
        names |= symbols(declared, all_places)
    offsets = st.sampled_from((0, 4, -8, 2**40))
    shifted = st.builds(lambda sym, offset: replace(sym, offset=offset), symbols(declared, all_places), offsets)
    single = st.one_of(
        names,
        shifted if declared else names,
        st.builds(Imm, values),
        st.just(Blank()),
        st.builds(Mem, names, offsets),
        st.builds(lambda r: Negated(Reg(r)), registers),
    )
    vectors = st.lists(single, min_size=1, max_size=4).map(lambda items: Vector(tuple(items)))
    rest = st.lists(single | vectors, min_size=1, max_size=2)
    tensors = st.builds(lambda first, items: TensorOperand(first, tuple(items)), names, rest)
    return st.one_of(single, single, vectors, tensors)


@st.composite
def instructions(
    draw: st.DrawFn, declared: tuple[Variable, ...], all_places: tuple[Place, ...], labels: list[str]
) -> Instruction:
    """One instruction; barriers in the three-operand order in which they are kept."""
    operand = operands(declared, all_places)
    guard = draw(st.none() | st.builds(Guard, registers, st.booleans()))
    family = draw(st.integers(0, 5))
    ends = st.builds(Reg, registers) | st.just(Blank())
    some = tuple(draw(st.lists(operand | st.builds(Pair, ends, ends), max_size=3)))
    if family == 0 and labels:
        return Instruction(draw(st.sampled_from(BRANCHES)), (*some, Sym(draw(st.sampled_from(labels)))), guard)
    if family == 1:
        optional = operand | st.just(Blank())
        middle = (draw(operand), draw(optional), draw(optional))
        if draw(st.booleans()):
            return Instruction(draw(st.sampled_from(BARRIERS)), middle, guard)
        return Instruction(draw(st.sampled_from(REDUCTIONS)), (draw(operand), *middle, draw(operand)), guard)
    return Instruction(draw(st.sampled_from(MNEMONICS)), some, guard)


@st.composite
def threads(draw: st.DrawFn, declared: tuple[Variable, ...], all_places: tuple[Place, ...]) -> tuple[Thread, ...]:
    """One thread per place, with labels and branches to them."""
    made = []
    for number, place in enumerate(all_places):
        labels = draw(st.lists(st.sampled_from(LABEL_NAMES), unique=True, max_size=2))
        body = [Label(name) for name in labels]
        body += draw(st.lists(instructions(declared, all_places, labels), max_size=5))
        name = draw(st.sampled_from((f"P{number}", f"worker_{number}")))
        made.append(Thread(name, place, tuple(draw(st.permutations(body)))))
    return tuple(made)


@st.composite
def terms(draw: st.DrawFn, test_threads: tuple[Thread, ...], declared: tuple[Variable, ...]) -> RegValue | LocValue:
    """A register of some thread, or a location that has exactly one instance by the name given."""
    if declared and draw(st.booleans()):
        name = draw(st.sampled_from(declared)).name
        index = draw(st.integers(0, root(declared, name).length - 1))
        numbers = instances(declared, name, tuple(thread.place for thread in test_threads))
        if root(declared, name).space not in (Space.SHARED, Space.TENSOR) or len(numbers) == 1:
            return LocValue(name, index)
        single = [number for number in numbers if numbers.count(number) == 1]
        if single:
            return LocValue(name, index, draw(st.sampled_from(single)))
    return RegValue(draw(st.sampled_from(test_threads)).name, draw(registers))


def conditions(term: st.SearchStrategy[RegValue | LocValue]) -> st.SearchStrategy[Condition]:
    """Any condition over these terms; a conjunction or disjunction has at least two items, as one that is read has."""
    either = term | st.builds(Number, values)
    compare = st.builds(Compare, either, st.sampled_from(("==", "!=", "<", "<=", ">", ">=")), either)
    atoms: st.SearchStrategy[Condition] = compare | st.just(Always())

    def larger(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.builds(Not, inner) | st.builds(And, several) | st.builds(Or, several)

    return st.recursive(atoms, larger, max_leaves=8)


@st.composite
def litmus_tests(draw: st.DrawFn) -> LitmusTest:
    """A whole test that the language can write in both layouts."""
    all_places = tuple(draw(st.lists(places, min_size=1, max_size=4)))
    declared = draw(variables(tuple({place.cta for place in all_places})))
    made = draw(threads(declared, all_places))
    term = terms(made, declared)
    known = [v.name for v in declared]
    owners = st.tuples(st.sampled_from(made), registers)
    wanted = draw(st.dictionaries(owners, values | st.sampled_from(known or [0]), max_size=3))
    inits = {(thread.name, register): value for (thread, register), value in wanted.items()}
    sentences = st.sampled_from(("A sentence.", "See https://example.org (* not a note *)", "§ 8"))
    first = draw(questions(term))
    more = draw(st.lists(questions(term), max_size=2))
    return LitmusTest(
        draw(st.sampled_from(("MP", "MP+rel.gpu+acq.gpu@two-ctas", "_t.1"))),
        tuple(draw(st.lists(sentences, max_size=2))),
        first.expectations,
        declared,
        tuple(RegisterInit(thread, register, value) for (thread, register), value in inits.items()),
        made,
        first.quantifier,
        first.condition,
        first.shown,
        first.finding,
        # A question that shows what the first one shows is written without a clause of its own.
        tuple(one if one.shown != first.shown else replace(one, shown=()) for one in more),
    )


@st.composite
def questions(draw: st.DrawFn, term: st.SearchStrategy[RegValue | LocValue]) -> Asked:
    """A question about final states, or for a finding, with what is expected."""
    models = st.sampled_from(("sc", "ptx-9.4", "my/model.cat", "a:b"))
    expected = draw(st.dictionaries(models, st.sampled_from(WORDS), max_size=2))
    finding = draw(st.none() | st.sampled_from(FINDINGS))
    about_states = finding is None
    return Asked(
        draw(st.sampled_from(tuple(Quantifier) if about_states else (Quantifier.EXISTS, Quantifier.NOT_EXISTS))),
        draw(conditions(term)) if about_states else Always(),
        tuple(draw(st.lists(term, max_size=3))),
        finding,
        tuple(Expectation(model, word) for model, word in expected.items()),
    )

"""Rows of the table: st.async and red.async, in both of their families.

In: a Call. Out: one Issue, all of it in the generic proxy. To another CTA's shared memory the write is weak (a
reduction relaxed at .cluster scope) and a complete-tx signals its completion. To global memory, and through a multimem
address of a compiled module, the issue itself is the release, the write is strong at its scope, and its completion is
not signalled. Settled here: which family has which qualifiers and types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from memmodel.base.labels import Access, Family, Issue, Side
from memmodel.isa.call import ADDRESS, Call
from memmodel.isa.copying import signal
from memmodel.isa.place import address_in, mbarrier, rank_of
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import Slot, in_blocks, needed, optional
from memmodel.isa.synchronization.atomic import NO_FLOATS
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import AsyncRead, AsyncWrite, IssueAsync, Op, Part, SignalPart, UndefinedIf
from memmodel.program.regions import Elements
from memmodel.ptx.operands import Mem, Operand, Sym
from memmodel.ptx.vocabulary import Scope, Sem, Space, Window

REDUCTIONS = ("inc", "dec", "min", "max", "and", "or", "xor", "add")

COMPLETION = "mbarrier::complete_tx::bytes"


def store(call: Call) -> tuple[Op, ...]:
    """st.async: .weak with an mbarrier, or .release to global memory."""
    values = tuple(call.data(element) for element in call.vector(call.operands[1]))
    return _issue(call, [AsyncWrite(_label(call, Side.WRITE), _region(call, len(values)), values)], len(values))


def reduce(call: Call) -> tuple[Op, ...]:
    """red.async: .relaxed with an mbarrier, or .release to global memory."""
    region = _region(call, 1)
    value = Apply(call.word("op") or "", (Get("$0"), call.data(call.operands[1])), call.type)
    read = AsyncRead(_label(call, Side.READ, rmw=True), region, ("$0",))
    write = AsyncWrite(_label(call, Side.WRITE, rmw=True), region, (value,), rmw=True)
    return _issue(call, [read, write], 1)


def store_replicas(call: Call) -> tuple[Op, ...]:
    """multimem.st.async: the value, to all variables that the multimem address points to."""
    from memmodel.isa.movement.multimem import replicas

    region, count = replicas(call, call.operands[0])
    write = AsyncWrite(_label(call, Side.WRITE), region, (call.data(call.operands[1]),) * count)
    return (IssueAsync(Issue(Family.ST_ASYNC, Sem.RELEASE, call.scope), (write,)),)


def reduce_replicas(call: Call) -> tuple[Op, ...]:
    """multimem.red.async: an atomic update of each variable."""
    from memmodel.isa.movement.multimem import replicas

    region, count = replicas(call, call.operands[0])
    each, added = tuple(f"${k}" for k in range(count)), call.data(call.operands[1])
    values = tuple(Apply("add", (Get(register), added), call.type) for register in each)
    read = AsyncRead(_label(call, Side.READ, rmw=True), region, each)
    write = AsyncWrite(_label(call, Side.WRITE, rmw=True), region, values, rmw=True)
    return (IssueAsync(Issue(Family.ST_ASYNC, Sem.RELEASE, call.scope), (read, write)),)


def _region(call: Call, count: int) -> Elements:
    """The bytes written. A reduction goes to another CTA than its own, a store to any of the cluster."""
    window = Window.SHARED_CLUSTER if call.word("op") is None else Window.SHARED_OTHER
    window = Window.GLOBAL if call.word("sem") == "release" else window
    return Elements(call.location(call.operands[0]), window, (call.width or 64) // 8, count)


def _label(call: Call, side: Side, *, rmw: bool = False) -> Access:
    """An access: strong at the scope written, relaxed at .cluster scope (reductions), or weak."""
    if call.word("sem") == "release":
        sem, scope = Sem.RELAXED, call.scope
    elif rmw:
        sem, scope = Sem.RELAXED, Scope.CLUSTER
    else:
        sem, scope = Sem.WEAK, None
    return replace(call.access(side, sem, scope, family=Family.ST_ASYNC, rmw=rmw), asynchronous=True)


def _issue(call: Call, parts: list[Part], count: int) -> tuple[Op, ...]:
    released = call.word("sem") == "release"
    if released:
        address_in(call, call.operands[0], Space.GLOBAL)
        return (IssueAsync(Issue(Family.ST_ASYNC, Sem.RELEASE, call.scope), tuple(parts)),)
    target, bar = call.operands[0], call.operands[2]
    address_in(call, target, Space.SHARED)
    ctas = _cta(call, target), _cta(call, bar)
    if None not in ctas and ctas[0] != ctas[1]:
        call.fail("the mbarrier object is not in the CTA that is written to", bar, f"write it with @cta{ctas[0]}")
    if ctas[0] is not None and call.word("op") is not None and ctas[0] == call.place.cta:
        hint = "name the instance of another CTA, as in [x@cta1]"
        call.fail("red.async goes to the shared memory of another CTA", target, hint)
    size = Const(count * (call.width or 64) // 8)
    barrier = mbarrier(call, bar, Window.SHARED_CLUSTER)
    signalled = SignalPart(signal(Family.ST_ASYNC), barrier, size, of=tuple(range(len(parts))))
    return (*_conditions(call, barrier.address), IssueAsync(Issue(Family.ST_ASYNC), (*parts, signalled)))


def _conditions(call: Call, barrier: Expr) -> Iterator[UndefinedIf]:
    """Steps that check what the PTX ISA asks of the CTAs, as far as it depends on the execution or the placement."""
    if call.word("op") is None and call.cluster_size == 1:
        yield UndefinedIf("st.async in a cluster of one CTA", Const(1))
    target = call.location(call.operands[0])
    if isinstance(target, AddressOf) and isinstance(barrier, AddressOf):
        return
    apart = Apply("ne", (rank_of(call, target), rank_of(call, barrier)), ADDRESS)
    yield UndefinedIf(f"{call.head} to one CTA, and its mbarrier object in another", apart)


def _cta(call: Call, operand: Operand) -> int | None:
    """The CTA of an operand that a litmus test names; None for a register."""
    base = operand.base if isinstance(operand, Mem) else None
    if not isinstance(base, Sym) or call.in_module:
        return None
    own = call.root(call.variable(base)).cta
    return base.cta if base.cta is not None else own if own is not None else call.place.cta


_COMPLETION = optional("completion", COMPLETION)
_SPACE = optional(
    "space",
    "shared::cluster",
    "global",
    refused={
        "shared::cta": ("{head} writes to another CTA", "write .shared::cluster"),
        "shared": ("{head} writes to another CTA", "write .shared::cluster"),
    },
)
_SCOPE = optional("scope", "cluster", "gpu", "sys", refused={"cta": ("{head} has no .cta scope", "write .gpu")})


def _families(weak: str) -> tuple[Rule, ...]:
    """What holds of either family; `weak` is the semantics of the one with an mbarrier."""
    return (
        Rule("{head}.release needs a scope", "write .release.gpu or .release.sys", "sem=release !scope"),
        Rule("{head}.release has .gpu or .sys scope", "write .gpu", "sem=release scope=cluster"),
        Rule("{head}.release is for .global memory", "write .global", "sem=release space=shared::cluster"),
        Rule("{head}.release has no completion mechanism", "drop ." + COMPLETION, "sem=release completion"),
        Rule("{head} to .global memory is .release", "write {head}.release.gpu.global", "!sem space=global"),
        Rule(
            f"{{head}}.{weak} is for .shared::cluster memory",
            "write .release with a scope for .global",
            f"sem={weak} space=global",
        ),
        Rule("{head}.mmio has .sys scope", "write .sys", "mmio scope!=sys"),
        Rule("{head}.mmio is .release.sys", "drop .mmio", f"sem={weak} mmio"),
        Rule("{head}.mmio is .release.sys", "write {head}.mmio.release.sys", "!sem mmio"),
    )


_WHEN = {"[mbar]": "!sem=release"}
_LATER = dict.fromkeys(("mmio", "sem=release", "space=global", "scope=gpu|sys"), Since(100, "8.7"))
_TYPES = ("b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")

_row = partial(Row, since=Since(90, "8.1"), effect=Effect.ASYNCHRONOUS)


def _multimem(
    head: str,
    slots: tuple[Slot, ...],
    lower: Callable[[Call], tuple[Op, ...]],
    lower_module: Callable[[Call], tuple[Op, ...]],
    accesses: str,
    source: str,
) -> Row:
    return _row(
        (head,),
        (needed("sem", "release"), needed("scope", "gpu", "sys"), optional("space", "global"), *slots),
        ("[a]", "b"),
        lower,
        f"an issue that releases; outside of program order {accesses} of all memory that the multimem address points "
        "to, at the same scope",
        source,
        since=Since(100, "9.3"),
        lower_module=lower_module,
    )


ROWS = (
    _row(
        ("st.async",),
        (
            optional("mmio"),
            optional(
                "sem",
                "weak",
                "release",
                refused={"relaxed": ("st.async is weak, or .release to global memory", "write .weak or nothing")},
            ),
            _SCOPE,
            _SPACE,
            _COMPLETION,
            optional("vec", "v2", "v4"),
            in_blocks("type", *_TYPES),
        ),
        ("[a]", "b", "[mbar]"),
        store,
        "an issue; outside of program order a weak write of shared memory (generic proxy) and a complete-tx that "
        "releases at .cluster scope. With .release the issue releases, and the write is relaxed at the same scope",
        "Data Movement and Conversion Instructions: st.async",
        rules=(
            *_families("weak"),
            Rule("{head} without .release takes no scope", "drop .{scope}", "!sem scope"),
            Rule("{head}.weak takes no scope", "drop .{scope}", "sem=weak scope"),
            Rule("{head}.release has no type .b128", "write .b64", "sem=release type=b128"),
            Rule("{head} needs ." + COMPLETION, "add it after the state space", "!completion !sem"),
            Rule("{head} needs ." + COMPLETION, "add it after the state space", "sem=weak !completion"),
            Rule("{head}.release has no .{vec}", "store element by element", "sem=release vec"),
            Rule(
                "{head} writes 128 bits at most",
                "write .v2.b64, or .b128 without .{vec}",
                "type=b64|u64|s64|f64|b128 vec=v4",
            ),
            Rule("{head} writes 128 bits at most", "drop .{vec}", "type=b128 vec=v2"),
            Rule(
                "{head} to shared memory has no type .{type}",
                "write .b32, .b64 or .b128",
                "completion type=b8|b16|u8|u16|s8|s16",
            ),
        ),
        later=_LATER | {"type=b128": Since(90, "9.2")},
        when=_WHEN,
    ),
    _row(
        ("red.async",),
        (
            optional("mmio"),
            needed("sem", "relaxed", "release"),
            _SCOPE,
            _SPACE,
            _COMPLETION,
            needed("op", *REDUCTIONS),
            in_blocks("type", "b32", "u32", "s32", "u64", "s64", refused=NO_FLOATS),
        ),
        ("[a]", "b", "[mbar]"),
        reduce,
        "an issue; outside of program order an atomic read and write of shared memory, relaxed at .cluster scope "
        "(generic proxy), and a complete-tx as st.async, which is the default completion. With .release as "
        "st.async.release",
        "Parallel Synchronization and Communication Instructions: red.async",
        rules=(
            *_families("relaxed"),
            Rule("{head}.relaxed needs .cluster scope", "write .relaxed.cluster", "sem=relaxed !scope"),
            Rule("{head}.relaxed has .cluster scope", "write .relaxed.cluster", "sem=relaxed scope!=cluster"),
            Rule("{head}.release only adds", "write .add", "sem=release op!=add"),
            Rule("{head}.{op} has no type .{type}", "write .b32", "op=and|or|xor type=u32|s32|u64|s64"),
            Rule("{head}.{op} has no type .{type}", "write .u32", "op=inc|dec type=b32|s32|u64|s64"),
            Rule("{head}.{op} has no type .{type}", "write .u32 or .s32", "op=min|max type=b32|u64|s64"),
            Rule("{head}.add has no type .b32", "write .u32", "op=add type=b32"),
            Rule("{head}.relaxed has no type .s64", "write .u64", "sem=relaxed type=s64"),
        ),
        later=_LATER,
        when=_WHEN,
    ),
    _multimem(
        "multimem.st.async",
        (in_blocks("type", *(word for word in _TYPES if word != "b128")),),
        store_replicas,
        store,
        "a relaxed write",
        "Data Movement and Conversion Instructions: multimem.st.async",
    ),
    _multimem(
        "multimem.red.async",
        (needed("op", "add"), in_blocks("type", "u32", "s32", "u64")),
        reduce_replicas,
        reduce,
        "a relaxed atomic read and write",
        "Parallel Synchronization and Communication Instructions: multimem.red.async",
    ),
)

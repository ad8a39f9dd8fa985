"""Rows of the table: loads and stores, and the surface, texture and constant accesses of the column layout.

In: a Call. Out: one Read or Write of all elements. Settled here: the label of an access, and which qualifiers can be
combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memmodel.base.labels import Access, Side
from memmodel.isa import caching
from memmodel.isa.caching import CACHE_HINT
from memmodel.isa.call import Call
from memmodel.isa.place import writable
from memmodel.isa.rows.cases import Rule, either
from memmodel.isa.rows.row import Row
from memmodel.isa.rows.since import FIRST, Since
from memmodel.isa.rows.slots import optional, scope_slot
from memmodel.program.expressions import Const
from memmodel.program.ops import Assign, Op, Read, Write
from memmodel.program.regions import Elements
from memmodel.ptx.operands import Blank, Imm, Operand, Reg
from memmodel.ptx.vocabulary import Proxy, Scope, Sem, Window

SEMANTICS = {"weak": Sem.WEAK, "relaxed": Sem.RELAXED, "acquire": Sem.ACQUIRE, "release": Sem.RELEASE}
SHARED = ("shared", "shared::cta", "shared::cluster")
WIDEST_SHARED = 16
"""Bytes of the widest access to shared memory."""

SPACES_SINCE = {
    "!space": Since(20, "2.0"),
    "space=shared::cta": Since(30, "7.8"),
    **dict.fromkeys(("scope=cluster", "space=shared::cluster"), Since(90, "7.8")),
}

NO_SC = ("PTX has no {head}.sc", "write .relaxed with a scope, and fence.sc with that scope in front of it")


def _label(call: Call, side: Side) -> Access:
    word = call.word("sem") or "weak"
    if word == "volatile":
        return call.access(side, Sem.RELAXED, Scope.SYS)
    proxy = Proxy.READ_ONLY if call.word("nc") or call.word("proxy") else Proxy.GENERIC
    return call.access(side, SEMANTICS[word], call.scope, proxy)


def generic_window(call: Call, size: int, *, stores: bool) -> Window:
    """Where the generic address of a load or store is: of .mmio and of 256 bits in global memory, of strong ones in
    global or shared memory ("ld", "st").
    """
    if call.word("mmio") is not None or size > WIDEST_SHARED:
        return Window.GLOBAL
    if call.word("proxy") is not None:
        return Window.READ_ONLY
    sem = call.word("sem") or "weak"
    if call.in_module and (sem == "volatile" or (stores and sem == "weak")):
        return Window.DATA_OR_LOCAL  # what is only read is left out; of a litmus test `writable` names it
    return Window.GENERIC if sem == "weak" else Window.DATA


def _region(call: Call, operand: Operand, elements: Sequence[Operand], *, stores: bool = False) -> Elements:
    """The bytes of an access. Of a vector of 256 bits those are left out that a sink stands for ("ld", "st")."""
    region = call.elements(operand, len(elements))
    size = (region.size or 0) * len(elements)
    if size > WIDEST_SHARED:
        region = replace(region, left_out=tuple(n for n, element in enumerate(elements) if isinstance(element, Blank)))
    if stores and region.window is Window.ANY_PARAM:  # .param of a store is .param::func ("st")
        return replace(region, window=Window.FUNCTION_PARAM)
    if call.word("space") is not None:
        return region
    window = generic_window(call, size, stores=stores)
    return region if window is region.window else replace(region, window=window)


def _targets(call: Call, elements: Sequence[Operand]) -> tuple[str | None, ...]:
    """The registers that are loaded; a vector may drop elements."""
    for element in elements:
        if call.given_type is not None and not isinstance(element, Blank):
            call.target(element, call.given_type, wider=True)
    return tuple(call.destination(element, sink=len(elements) > 1) for element in elements)


def load(call: Call) -> tuple[Op, ...]:
    """ld: one Read. Without any qualifier, the column layout also moves a number or a register."""
    target, source = call.operands[:2]
    if call.in_columns and not call.reading.words and isinstance(source, Imm | Reg):
        return (Assign(call.register(target), call.value(source)),)
    elements = call.vector(target)
    return (Read(_targets(call, elements), _region(call, source, elements), _label(call, Side.READ), call.given_type),)


def load_uniform(call: Call) -> tuple[Op, ...]:
    """ldu: one Read of data that no thread may write, through the read-only path."""
    elements = call.vector(call.operands[0])
    region = replace(call.elements(call.operands[1], len(elements)), window=Window.GLOBAL)
    label = call.access(Side.READ, proxy=Proxy.READ_ONLY)
    return (Read(_targets(call, elements), region, label, call.given_type),)


def store(call: Call) -> tuple[Op, ...]:
    """st: one Write."""
    elements = call.vector(call.operands[1])
    region = _region(call, call.operands[0], elements, stores=True)
    values = tuple(Const(0) if n in region.left_out else call.data(element) for n, element in enumerate(elements))
    write = Write(values, region, _label(call, Side.WRITE))
    return (*writable(call, call.operands[0]), write)


def _strength_rules(strong: str) -> tuple[Rule, ...]:
    unreachable = f"const|{either(caching.PARAMETERS)}"
    return (
        *caching.RULES,
        Rule("{head}.mmio needs .relaxed.sys", "write {head}.mmio.relaxed.sys", "mmio !sem"),
        Rule("{head}.mmio is not .{sem}", "write {head}.mmio.relaxed.sys", "mmio sem=weak|volatile"),
        Rule("{head}.mmio has .sys scope only", "write .sys", "mmio scope!=sys"),
        Rule("{head}.mmio is for .global memory", "drop .{space}", "mmio space!=global"),
        Rule(
            "{head}.{sem} needs a scope",
            "{head}.{sem}.cta, .cluster, .gpu or .sys; only {head}.weak takes none",
            f"sem=relaxed|{strong} !scope",
        ),
        Rule("{head}.weak takes no scope", "drop .{scope}, or write {head}.relaxed.{scope}", "sem=weak scope"),
        Rule(
            "{head}.volatile takes no scope: it is relaxed at .sys scope",
            "drop .{scope}, or write {head}.relaxed.{scope}",
            "sem=volatile scope",
        ),
        Rule(
            "{head} without semantics is weak, and takes no scope",
            f"write {{head}}.relaxed.{{scope}} or {{head}}.{strong}.{{scope}}, or drop .{{scope}}",
            "!sem scope",
        ),
        Rule(
            "{head}.{sem} is for .global and .shared memory",
            "drop .{sem} (and the scope), or the state space",
            f"sem=relaxed|{strong} space=local|{unreachable}",
        ),
        Rule(
            "{head}.volatile is for .global, .shared and .local memory",
            "drop .volatile",
            f"sem=volatile space={unreachable}",
        ),
        Rule("{head}.{sem} takes no cache operator", "drop .{cop}", "sem!=weak cop"),
    )


_LATER = {
    "sem=volatile": Since(20, "1.1"),
    "sem=volatile space=local": Since(20, "9.1"),
    "sem!=volatile": Since(70, "6.0"),
    "mmio": Since(70, "8.2"),
    "mmio sem=acquire|release": Since(70, "9.3"),
    "cop": Since(20, "2.0"),
    "type=b128": Since(70, "8.3"),
    "type=b128 scope=sys": Since(70, "8.4"),
    "space=param::entry|param::func": Since(20, "8.3"),
    **SPACES_SINCE,
}
_LATER |= {**caching.LATER, **caching.WIDE}
_NO_FUNCTIONS = {"param::func": ("a litmus test has no functions", "a parameter of the kernel is .param::entry")}

_LOAD_SEM = optional(
    "sem",
    "weak",
    "relaxed",
    "acquire",
    "volatile",
    refused={
        "release": (
            "a load cannot release",
            "write ld.acquire here; release goes on the store (st.release) or a fence",
        ),
        "acq_rel": (".acq_rel is for atomics and fences", "write ld.acquire"),
        "sc": NO_SC,
    },
)
_STORE_SEM = optional(
    "sem",
    "weak",
    "relaxed",
    "release",
    "volatile",
    refused={
        "acquire": (
            "a store cannot acquire",
            "write st.release here; acquire goes on the load (ld.acquire) or a fence",
        ),
        "acq_rel": (".acq_rel is for atomics and fences", "write st.release"),
        "sc": NO_SC,
    },
)
_READ_ONLY = {
    word: ("{head} cannot write ." + word + " memory", "declare it .global") for word in ("const", "param::entry")
}


def _proxied(call: Call, proxy: Proxy) -> tuple[Op, ...]:
    writes = call.head == "sust"
    where = call.location(call.operands[0 if writes else 1], proxy)
    region = Elements(where, Window.GENERIC)
    label = call.access(Side.WRITE if writes else Side.READ, proxy=proxy)
    if writes:
        return (Write((call.value(call.operands[1]),), region, label),)
    return (Read((call.register(call.operands[0]),), region, label),)


def _proxied_row(head: str, proxy: Proxy, operands: tuple[str, str], what: str) -> Row:
    refused = {
        word: (
            f"{head} is always weak",
            f"write {head}.weak; order it with fence.proxy.{proxy.value} and other accesses",
        )
        for word in ("relaxed", "acquire", "release", "volatile", "sc")
    }
    return Row(
        heads=(head,),
        slots=(optional("sem", "weak", refused=refused),),
        operands=operands,
        lower=lambda call: _proxied(call, proxy),
        events=f"one weak {what} through the {proxy.value} proxy",
        source="Proxies",
        columns=True,
    )


ROWS = (
    Row(
        heads=("ld",),
        slots=(
            optional("mmio"),
            _LOAD_SEM,
            scope_slot(),
            optional(
                "space",
                "global",
                *SHARED,
                "const",
                "local",
                "param",
                "param::entry",
                refused=_NO_FUNCTIONS,
                modules=("param::func",),
            ),
            optional("cop", "ca", "cg", "cs", "lu", "cv"),
            optional("nc"),
            optional("proxy", "proxy::readonly"),
            caching.L1,
            caching.L2,
            CACHE_HINT,
            caching.PREFETCH,
            caching.VECTOR,
            caching.TYPE,
        ),
        operands=("d", "[a]", "cache_policy"),
        lower=load,
        events="a read of each element, weak unless .relaxed, .acquire or .volatile (relaxed at .sys scope); .nc and "
        ".proxy::readonly go through the read-only path, which no fence bridges",
        source="Data Movement and Conversion Instructions: ld; ld.global.nc",
        rules=(
            Rule("{head}.nc names its state space", "write {head}.global.nc", "nc !space"),
            Rule("{head}.nc is for .global memory", "write .global", "nc space!=global"),
            Rule("{head}.nc is weak and names no semantics", "drop .{sem}", "nc sem"),
            Rule("{head}.nc takes no .{cop}", "write .ca, .cg or .cs", "nc cop=lu|cv"),
            *(
                Rule("{head}.{proxy} takes no .{" + slot + "}", "drop .{" + slot + "}", f"proxy {slot}")
                for slot in ("mmio", "sem", "scope", "cop", "nc", "L1", "L2", "hint", "prefetch", "vec")
            ),
            Rule("{head}.{proxy} is for .global memory", "write .global, or no state space", "proxy space!=global"),
            *caching.PREFETCH_RULES,
            *_strength_rules("acquire"),
        ),
        since=FIRST,
        later={
            **_LATER,
            "prefetch=L2::64B|L2::128B": Since(75, "7.4"),
            "prefetch=L2::256B": Since(80, "7.4"),
            "nc": Since(32, "3.1"),
            "proxy": Since(90, "9.4"),
        },
    ),
    Row(
        heads=("ldu",),
        slots=(optional("space", "global"), caching.VECTOR, caching.TYPE),
        operands=("d", "[a]"),
        lower=load_uniform,
        events="a weak read of each element through the read-only path, as ld.global.nc",
        source="Data Movement and Conversion Instructions: ldu",
        rules=(
            Rule("{head} has no .v8", "write .v4", "vec=v8"),
            Rule("{head} reads 128 bits at most", "drop .{vec}", "type=b128 vec"),
            Rule("{head} reads 128 bits at most", "write .v2", f"type={caching.LONG} vec=v4"),
        ),
        since=Since(20, "2.0"),
        later={"type=b128": Since(70, "8.3")},
    ),
    Row(
        heads=("st",),
        slots=(
            optional("mmio"),
            _STORE_SEM,
            scope_slot(),
            optional(
                "space",
                "global",
                *SHARED,
                "local",
                "param",
                refused={**_READ_ONLY, **_NO_FUNCTIONS},
                modules=("param::func",),
            ),
            optional("cop", "wb", "cg", "cs", "wt"),
            caching.L1,
            caching.L2,
            CACHE_HINT,
            caching.VECTOR,
            caching.TYPE,
        ),
        operands=("[a]", "b", "cache_policy"),
        lower=store,
        events="a write of each element, weak unless .relaxed, .release or .volatile (relaxed at .sys scope)",
        source="Data Movement and Conversion Instructions: st",
        rules=_strength_rules("release"),
        since=FIRST,
        later=_LATER,
    ),
    _proxied_row("sust", Proxy.SURFACE, ("a", "b"), "write"),
    _proxied_row("suld", Proxy.SURFACE, ("d", "a"), "read"),
    _proxied_row("tld", Proxy.TEXTURE, ("d", "a"), "read"),
    _proxied_row("cold", Proxy.CONSTANT, ("d", "a"), "read"),
)

"""Rows of the table: operations of a thread on an mbarrier object.

In: a Call. Out: one OnObject step, or with .multicast one for each CTA of the mask. Settled here: default semantics and
scope (.release or .acquire, .cta), what may be done to an object of another CTA, and which counts are possible. The
time hint of try_wait has no effect; nothing but fabric operations reports. What a report says is a matter of the model,
and of a test that returned false it says nothing (`reports`); a kernel whose test may return false is not judged.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from memmodel.base.labels import Action, Mbarrier
from memmodel.isa.call import Call
from memmodel.isa.place import FULL_MASK, WIDE_MASKS, in_cta, in_range, mask, mbarrier
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, OperandRange, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import in_blocks, needed, optional
from memmodel.isa.synchronization.states import belongs, pending, pending_in_module, phase_of, returning
from memmodel.litmus.constants import all_instructions, instructions
from memmodel.program.expressions import Apply, Const, Expr, Get
from memmodel.program.ops import Assign, OnObject, Op, UndefinedIf, Unmodelled
from memmodel.program.regions import Object
from memmodel.program.warp_ops import CheckLayout, Note, WarpOp
from memmodel.ptx.operands import Blank, Imm, Mem, Operand, Pair, Sym
from memmodel.ptx.vocabulary import MAX_TX, U32, MbarrierLayout, Scope, Sem, Window

PARITY = "a phase parity"
_PARITY = OperandRange("phase", 0, 1, PARITY)
SEMANTICS = {"release": Sem.RELEASE, "acquire": Sem.ACQUIRE, "relaxed": Sem.RELAXED}

_PAGE = "Parallel Synchronization and Communication Instructions: "


def label(call: Call, action: Action, default: str) -> Mbarrier:
    """An operation on an mbarrier object: its semantics and scope, .cta unless written."""
    sem = SEMANTICS[call.word("sem") or default]
    return Mbarrier(action, sem, call.scope or Scope.CTA, unscoped=call.scope is None)


def own(call: Call, operand: Operand) -> Object:
    """An object of the executing CTA; the generic address of another one is outside the window ("mbarrier.init")."""
    return mbarrier(call, operand, Window.SHARED_CTA)


def anywhere(call: Call, operand: Operand) -> Object:
    """An object of the executing CTA, or of another of its cluster unless .shared::cta is written."""
    space = call.word("space")
    return mbarrier(call, operand, Window.SHARED_CTA if space in ("shared", "shared::cta") else Window.SHARED_CLUSTER)


def init(call: Call) -> tuple[Op, ...]:
    """mbarrier.init: phase 0 with that many arrivals."""
    address, count = call.operands
    label = Mbarrier(Action.INIT, layout=_layout(call))
    return (OnObject(label, own(call, address), count=call.integer(count)),)


def _layout(call: Call) -> MbarrierLayout:
    """The layout that is written, or else .layout::v0 ("mbarrier.init")."""
    return MbarrierLayout(call.word("layout") or MbarrierLayout.V0.value)


def inval(call: Call) -> tuple[Op, ...]:
    """mbarrier.inval: the memory is no mbarrier object any more."""
    return (OnObject(Mbarrier(Action.INVAL), own(call, call.operands[0])),)


def on_each(call: Call, step: OnObject) -> tuple[Op, ...]:
    """An operation on one object, or with .multicast on the one at the same offset in each CTA of the mask."""
    cta_mask, address = call.operand("ctaMask"), step.region.address
    if cta_mask is None:
        return (step,)
    checks, ctas = mask(call, cta_mask, address)
    parts = (
        replace(step, region=Object(in_cta(call, address, rank), step.region.window), when=when, beside=number > 0)
        for number, (rank, when) in enumerate(ctas)
    )
    return (*checks, *parts)


def transactions(call: Call) -> tuple[Op, ...]:
    """mbarrier.expect_tx and complete_tx."""
    address, count = call.operands[:2]
    action = Action.EXPECT_TX if call.head.endswith("expect_tx") else Action.COMPLETE_TX
    return on_each(call, OnObject(label(call, action, "relaxed"), anywhere(call, address), bytes=call.integer(count)))


def arrive(call: Call) -> tuple[Op, ...]:
    """mbarrier.arrive and arrive_drop, with or without expect_tx."""
    expecting = call.word("expect_tx") is not None
    target, where = call.operands[:2]
    extra = call.operand("count")
    if isinstance(extra, Blank):
        extra = None
    state = call.destination(target, sink=True)
    region = anywhere(call, where)
    _check_result(call, target, where)
    count: Expr = Const(1)
    expected: Expr | None = None
    if expecting:
        if extra is None:
            call.fail(f"{call.head}.expect_tx needs a transaction count", hint="add the number of bytes")
        expected = call.integer(extra)
    elif extra is not None:
        count = call.integer(extra)
    elif call.word("noComplete") is not None:
        call.fail(f"{call.head}.noComplete needs a count", hint="add the number of arrivals")
    step = OnObject(
        label(call, Action.ARRIVE, "release"),
        region,
        count,
        expected,
        call.head.endswith("drop"),
        no_complete=call.word("noComplete") is not None,
    )
    return on_each(call, step) if state is None else returning(call, step, state)


def _check_result(call: Call, target: Operand, where: Operand) -> None:
    """The phase of an object in another CTA cannot be returned ("mbarrier support with shared memory")."""
    if isinstance(target, Blank):
        return
    if call.word("multicast"):
        call.fail(f"{call.head}.{call.word('multicast')} returns nothing", target, "write _ as destination")
    if call.word("space") == "shared::cluster":
        call.fail(f"{call.head} on .shared::cluster returns nothing", target, "write _ as destination")
    base = where.base if isinstance(where, Mem) else None
    if isinstance(base, Sym) and base.cta is not None and base.cta != call.place.cta:
        call.fail(f"{call.head} returns nothing from another CTA's mbarrier", target, "write _ as destination")


def test(call: Call) -> tuple[Op, ...]:
    """mbarrier.test_wait and try_wait, by state or by parity."""
    phase, steps = _tested(call)
    return steps if call.word("parity") is None else (*in_range(call, phase, _PARITY), *steps)


def test_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """The same in a module, where a parity of -1 is taken for 1: Triton extends the sign of a bit."""
    phase, steps = _tested(call)
    if call.word("parity") is None or (isinstance(phase, Imm) and phase.value in (0, 1)):
        return steps
    parity = call.integer(phase)
    beyond = Apply("gt", (Apply("add", (parity, Const(1)), U32), Const(2)), U32)
    note = Note(f"{PARITY} of -1 counts as 1; PTX has only 0 and 1", Apply("eq", (parity, Const(FULL_MASK)), U32))
    return (UndefinedIf(f"{PARITY} is from 0 to 1", beyond), note, *steps)


def _tested(call: Call) -> tuple[Operand, tuple[Op, ...]]:
    """The operand that says which phase is tested, and the steps."""
    operands = list(call.operands)
    result: list[Op] = []
    fails, predicate = not call.in_module and _may_fail(call), None
    first = operands.pop(0)
    if isinstance(first, Pair):
        if call.word("phase_type") != "phase_type::primary":
            hint = f"write {call.head}.phase_type::primary, or the first register alone"
            call.fail("a report predicate needs .phase_type::primary", first, hint)
        reports = [first.second, operands.pop(0)] if _reports_value(operands) else [first.second]
        registers = [call.destination(report, sink=True) for report in reports]
        if fails and registers[1:] not in ([], [None]):
            call.fail("what fabric operations put into a report value is not modelled", reports[1], "write _")
        predicate = None if call.in_module else registers[0]
        result += [Assign(report, Const(0)) for report in registers if report not in (None, predicate)]
        first = first.first
    most = 3 if call.head.endswith("try_wait") else 2
    if not 2 <= len(operands) <= most:
        what = "phaseParity" if call.word("parity") else "state"
        hint = "{, timeHint}" if most == 3 else ""
        call.fail(f"{call.head} takes waitComplete, [addr], {what}{hint}; {len(call.operands)} operands are given")
    done = call.register(first)
    region = own(call, operands[0])
    phase = operands[1]
    if len(operands) == 3:
        call.integer(operands[2])
    access = label(call, Action.TEST, "acquire")
    if call.word("parity") is None:
        if isinstance(phase, Imm):
            call.fail(
                f"{call.head} takes the state that an arrive returned, and this is the number {phase.value}",
                phase,
                f"write {call.head}.parity for a phase parity",
            )
        state = call.value(phase)
        step = OnObject(access, region, register=done, state=phase_of(call, state), report=predicate)
        return phase, (*belongs(call, state, region.address), step, *result)
    conditional = fails and call.word("phase_type") == "phase_type::conditional"
    parity = call.integer(phase)
    step = OnObject(access, region, register=done, parity=parity, report=predicate, conditional=conditional)
    return phase, (step, *result)


def _may_fail(call: Call) -> bool:
    """True if the test has operations that report."""
    return any(instruction.parts[0] == "fabric" for instruction in all_instructions(call.context.test))


def _reports_value(operands: list[Operand]) -> bool:
    """True if a reportValue stands before the address."""
    return len(operands) > 2 and not isinstance(operands[0], Mem) and isinstance(operands[1], Mem)


def pending_count(call: Call) -> tuple[Op, ...]:
    """mbarrier.pending_count: what the arrive that made the state saw. It is for objects of .layout::v0; which object
    made a state is left to the execution."""
    newer: tuple[Op, ...] = ()
    if MbarrierLayout.V1 in _layouts(call):
        newer = (Unmodelled("mbarrier.pending_count where an mbarrier object has .layout::v1", Const(1)),)
    return (*newer, *pending(call, Get(call.register(call.operands[1]))))


def pending_count_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """mbarrier.pending_count, where a count is not part of a state."""
    return pending_in_module(call, Get(call.register(call.operands[1])))


def check_layout(call: Call) -> tuple[Op, ...]:
    """mbarrier.check_layout: known where all objects of the test have one layout; declared objects have .layout::v0."""
    layouts = _layouts(call)
    several = (Unmodelled("mbarrier objects of a test have different layouts", Const(1)),)
    has = Const(int(_layout(call) in layouts))
    return (_used(call), *(several if len(layouts) > 1 else ()), *call.assign(call.operands[0], has))


def _layouts(call: Call) -> set[MbarrierLayout]:
    """The layouts that the objects of the test may have."""
    test = call.context.test
    inits = (
        MbarrierLayout.V1 if MbarrierLayout.V1.value in instruction.parts else MbarrierLayout.V0
        for thread in test.threads
        for instruction in instructions(thread)
        if instruction.parts[:2] == ("mbarrier", "init")
    )
    return {*inits, *(MbarrierLayout.V0 for variable in test.variables if variable.mbarrier is not None)}


def check_layout_in_module(call: Call) -> tuple[Op | WarpOp, ...]:
    """The same in a module, where the object knows its init."""
    target, where = call.operands
    register = call.target(target, call.boolean)
    return (_used(call), CheckLayout(register, own(call, where), _layout(call)))


def _used(call: Call) -> OnObject:
    """An operation that changes nothing: an object that is not initialised has none."""
    label = Mbarrier(Action.EXPECT_TX, Sem.RELAXED, Scope.CTA, unscoped=True)
    return OnObject(label, own(call, call.operands[1]), bytes=Const(0))


OWN = optional(
    "space",
    "shared",
    "shared::cta",
    refused={
        "shared::cluster": (
            "{head} works on mbarrier objects of the executing CTA only",
            "write .shared::cta; arrive, expect_tx and complete_tx may be remote",
        ),
        "global": ("an mbarrier object is in shared memory", "write .shared::cta"),
    },
)
ANY = optional(
    "space",
    "shared",
    "shared::cta",
    "shared::cluster",
    refused={"global": ("an mbarrier object is in shared memory", "write .shared::cta")},
)
B64 = in_blocks("type", "b64")
_WIDE = ("{head} has masks of 32 bits only", "write .multicast::cluster::32b")
MULTICAST = optional(
    "multicast",
    "multicast::cluster::32b",
    refused={"multicast::cluster": _WIDE, "multicast::cluster::16b": _WIDE},
)
TO_CTAS = Rule(
    ".{multicast} goes to the CTAs of a cluster", "write .shared::cluster", "multicast space=shared|shared::cta"
)
TOO_WIDE = {
    word: ("an mbarrier operation has .cta or .cluster scope", "write .cluster, the widest scope of an mbarrier")
    for word in ("gpu", "sys")
}
SCOPE = optional("scope", "cta", "cluster", refused=TOO_WIDE)
TOGETHER = (
    Rule("{head}.{sem} needs a scope", "write .{sem}.cta or .{sem}.cluster", "sem !scope"),
    Rule(
        "{head} with a scope names its semantics",
        "write .{scope} after .release, .acquire or .relaxed, or drop it",
        "!sem scope",
    ),
)


_ARRIVE_SEM = optional(
    "sem",
    "release",
    "relaxed",
    refused={"acquire": ("an arrive cannot acquire", "the wait acquires: mbarrier.try_wait.acquire")},
)
_WAIT_SEM = optional(
    "sem",
    "acquire",
    "relaxed",
    refused={"release": ("a wait cannot release", "the arrive releases: mbarrier.arrive.release")},
)
_TX_SEM = optional(
    "sem",
    "relaxed",
    refused={
        "release": ("{head} is always relaxed", "mbarrier.arrive.expect_tx releases"),
        "acquire": ("{head} is always relaxed", "write .relaxed or nothing"),
    },
)
_NO_V1 = ("{head} is for objects of .layout::v0", "write .layout::v0 or nothing")
_OWN_SINCE = {"space=shared::cta": Since(80, "7.8")}
_SEMANTICS_SINCE = {
    "sem=release|acquire": Since(80, "8.0"),
    "scope=cta": Since(80, "8.0"),
    "scope=cluster": Since(90, "8.0"),
    "sem=relaxed": Since(90, "8.6"),
}
_MULTICAST_LATER = {case: since for case, since in WIDE_MASKS.items() if case.endswith("32b")}
_PHASE = optional("phase_type", "phase_type::primary", "phase_type::conditional")

_row = partial(Row, since=Since(80, "7.0"))

ROWS = (
    _row(
        ("mbarrier.init",),
        (optional("layout", "layout::v0", "layout::v1"), OWN, B64),
        ("[addr]", "count"),
        init,
        "an operation on the object that starts it at phase 0",
        _PAGE + "mbarrier.init",
        later=_OWN_SINCE | {"layout": Since(90, "9.3")},
        ranges=(
            OperandRange("count", 1, MbarrierLayout.V1.max_arrivals, "the count of mbarrier.init", "layout=layout::v1"),
            OperandRange("count", 1, MbarrierLayout.V0.max_arrivals, "the count of mbarrier.init"),
        ),
        effect=Effect.SYNCHRONIZES,
    ),
    _row(
        ("mbarrier.inval",),
        (OWN, B64),
        ("[addr]",),
        inval,
        "an operation on the object that ends it",
        _PAGE + "mbarrier.inval",
        later=_OWN_SINCE,
        effect=Effect.SYNCHRONIZES,
    ),
    _row(
        ("mbarrier.expect_tx", "mbarrier.complete_tx"),
        (_TX_SEM, SCOPE, ANY, MULTICAST, B64),
        ("[addr]", "txCount", "ctaMask"),
        transactions,
        "a relaxed operation on the object that raises or lowers its transaction count; with .multicast, on that at "
        "the same offset in every CTA of the mask",
        _PAGE + "mbarrier.expect_tx, mbarrier.complete_tx",
        rules=(*TOGETHER, TO_CTAS),
        when={"ctaMask": "multicast"},
        later=_MULTICAST_LATER,
        ranges=(OperandRange("txCount", 0, MAX_TX, "a transaction count"),),
        since=Since(90, "8.0"),
        effect=Effect.SYNCHRONIZES,
        part="head=mbarrier.expect_tx",
    ),
    _row(
        ("mbarrier.arrive", "mbarrier.arrive_drop"),
        (optional("expect_tx"), optional("noComplete"), _ARRIVE_SEM, SCOPE, ANY, MULTICAST, B64),
        ("state", "[addr]", "count?", "ctaMask"),
        arrive,
        "an arrive, which releases at .cta scope by default; .expect_tx raises the transaction count first; with "
        ".multicast, one arrive on the object at the same offset in every CTA of the mask",
        _PAGE + "mbarrier.arrive, mbarrier.arrive_drop",
        rules=(
            *TOGETHER,
            Rule(
                "{head}.noComplete is .release.cta", "drop .noComplete, or write .release.cta", "noComplete sem=relaxed"
            ),
            Rule(
                "{head}.noComplete is .release.cta",
                "drop .noComplete, or write .release.cta",
                "noComplete scope=cluster",
            ),
            Rule("{head}.noComplete and .expect_tx exclude each other", "drop .noComplete", "expect_tx noComplete"),
            *(
                Rule("{head}.noComplete is for an object of the own CTA", "drop .noComplete", f"{of_others} noComplete")
                for of_others in ("multicast", "space=shared::cluster")
            ),
            TO_CTAS,
        ),
        later={
            **_OWN_SINCE,
            "count !noComplete": Since(90, "7.8"),
            "expect_tx": Since(90, "8.0"),
            "space=shared::cluster": Since(90, "8.0"),
            **_SEMANTICS_SINCE,
            **_MULTICAST_LATER,
        },
        when={"ctaMask": "multicast"},
        ranges=(
            OperandRange("count", 0, MAX_TX, "a transaction count", "expect_tx"),
            OperandRange("count", 1, MbarrierLayout.V0.max_arrivals, "the count of an arrive"),
        ),
        written="state, [addr]{, count}{, ctaMask}; with .expect_tx: state, [addr], txCount{, ctaMask}",
        effect=Effect.SYNCHRONIZES,
        part="expect_tx",
    ),
    _row(
        ("mbarrier.test_wait", "mbarrier.try_wait"),
        (optional("parity"), _PHASE, _WAIT_SEM, SCOPE, OWN, B64),
        ("waitComplete", "reportValue?", "[addr]", "phase", "timeHint?"),
        test,
        "a test of the object, which acquires at .cta scope unless it says otherwise if it returns true",
        _PAGE + "mbarrier.test_wait / mbarrier.try_wait",
        rules=(
            *TOGETHER,
            Rule(
                "{head}.{phase_type} needs .parity",
                "write {head}.parity.{phase_type}",
                "!parity phase_type=phase_type::conditional",
            ),
        ),
        later={
            **_OWN_SINCE,
            "parity": Since(80, "7.1"),
            "head=mbarrier.try_wait": Since(90, "7.8"),
            "phase_type": Since(90, "9.3"),
            **_SEMANTICS_SINCE,
        },
        lower_module=test_in_module,
        results=2,
        written="waitComplete{|reportPredicate{, reportValue}}, [addr], state or phaseParity{, timeHint}",
        effect=Effect.SYNCHRONIZES,
    ),
    _row(
        ("mbarrier.pending_count",),
        (optional("layout", "layout::v0", refused={"layout::v1": _NO_V1}), B64),
        ("count", "state"),
        pending_count,
        "none; the arrivals that were pending before the arrive that made the state",
        _PAGE + "mbarrier.pending_count",
        later={"layout": Since(90, "9.3")},
        lower_module=pending_count_in_module,
        effect=Effect.COMPUTES,
    ),
    _row(
        ("mbarrier.check_layout",),
        (needed("layout", "layout::v0", "layout::v1"), OWN, B64),
        ("p", "[addr]"),
        check_layout,
        "a relaxed operation on the object that changes nothing (an expect-tx of no bytes); p says whether its init "
        "gave it that layout, .layout::v0 unless written",
        _PAGE + "mbarrier.check_layout",
        since=Since(90, "9.3"),
        lower_module=check_layout_in_module,
        effect=Effect.SYNCHRONIZES,
    ),
)

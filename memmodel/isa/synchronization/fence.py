"""Rows of the table: memory fences and bi-directional proxy fences.

In: a Call. Out: one event. Settled here: their labels; a proxy fence takes effect in its thread and so has no scope.
"""

from __future__ import annotations

from functools import partial

from memmodel.base.labels import Covers, Fence, ProxyFence
from memmodel.isa.call import Call
from memmodel.isa.rows.cases import Rule
from memmodel.isa.rows.row import Effect, Row
from memmodel.isa.rows.since import Since
from memmodel.isa.rows.slots import SCOPES, needed, optional, scope_slot
from memmodel.program.ops import Emit, Op
from memmodel.ptx.vocabulary import Proxy, Scope, Sem

SEMANTICS = {"sc": Sem.SC, "acq_rel": Sem.ACQ_REL, "acquire": Sem.ACQUIRE, "release": Sem.RELEASE}
LEVELS = {"cta": "cta", "gl": "gpu", "sys": "sys"}
PROXIES = {"alias": None, "surface": Proxy.SURFACE, "texture": Proxy.TEXTURE, "constant": Proxy.CONSTANT}

RESTRICTED = {"sync_restrict::shared::cta": Covers.OWN_SHARED, "sync_restrict::shared::cluster": Covers.SHARED}
RESTRICT = optional("restrict", *RESTRICTED)
RESTRICTIONS = (
    Rule(
        ".sync_restrict::shared::cta goes with .release",
        "write {head}.release.sync_restrict::shared::cta.cluster",
        "sem!=release restrict=sync_restrict::shared::cta",
    ),
    Rule(
        ".sync_restrict::shared::cluster goes with .acquire",
        "write {head}.acquire.sync_restrict::shared::cluster.cluster",
        "sem!=acquire restrict=sync_restrict::shared::cluster",
    ),
    Rule(
        "a fence with .{restrict} names its semantics",
        "write .release with .sync_restrict::shared::cta, .acquire with .sync_restrict::shared::cluster",
        "!sem restrict",
    ),
    Rule("a fence with .{restrict} has .cluster scope", "write .cluster", "restrict scope!=cluster"),
)

_PAGE = "Parallel Synchronization and Communication Instructions: membar / fence"
_PROXY = needed(
    "proxy",
    *PROXIES,
    refused={
        "generic": ("a proxy fence names the other proxy; the generic one is understood", "write .alias"),
    },
    columns=("surface", "texture", "constant"),
)
_WEAKER = "a fence is at least one of .acquire and .release"


def fence(call: Call) -> tuple[Op, ...]:
    """fence: .acq_rel unless another semantics is named; .sync_restrict narrows it to shared memory."""
    restrict = call.word("restrict")
    covers = RESTRICTED[restrict] if restrict else None
    return (Emit(Fence(SEMANTICS[call.word("sem") or "acq_rel"], call.scope or Scope.SYS, covers)),)


def membar(call: Call) -> tuple[Op, ...]:
    """membar: fence.sc at the scope its level stands for."""
    return (Emit(Fence(Sem.SC, SCOPES[LEVELS[call.word("level") or "sys"]])),)


def proxy_fence(call: Call) -> tuple[Op, ...]:
    """fence.proxy: both ways between the generic proxy and another; with semantics, the half of an alias fence."""
    half = call.word("sem")
    return (Emit(ProxyFence(PROXIES[call.word("proxy") or "alias"], SEMANTICS[half] if half else None, call.scope)),)


_row = partial(Row, effect=Effect.SYNCHRONIZES)

ROWS = (
    _row(
        heads=("fence",),
        slots=(
            optional(
                "sem",
                *SEMANTICS,
                refused={"relaxed": (_WEAKER, "write fence.acq_rel"), "weak": (_WEAKER, "write fence.acq_rel")},
            ),
            RESTRICT,
            scope_slot(needed),
        ),
        operands=(),
        lower=fence,
        events="a fence; .acq_rel if no semantics is written; .sc is also .acq_rel; .sync_restrict::shared::cta is "
        "about shared memory of the own CTA, .sync_restrict::shared::cluster about shared memory anywhere",
        rules=RESTRICTIONS,
        source=_PAGE,
        since=Since(70, "6.0"),
        later={
            "scope=cluster": Since(90, "7.8"),
            **dict.fromkeys(("sem=acquire|release", "restrict"), Since(90, "8.6")),
        },
    ),
    _row(
        heads=("membar",),
        slots=(
            needed(
                "level",
                *LEVELS,
                refused={
                    "gpu": ("the levels of membar are .cta, .gl and .sys", "write membar.gl or fence.sc.gpu"),
                    "cluster": ("the levels of membar are .cta, .gl and .sys", "write fence.sc.cluster"),
                },
            ),
        ),
        operands=(),
        lower=membar,
        events="the same as fence.sc at scope .cta, .gpu (for .gl) or .sys",
        source=_PAGE,
        since=Since(20, "1.4"),
        later={"level=sys": Since(20, "2.0")},
    ),
    _row(
        heads=("fence.proxy",),
        slots=(_PROXY, optional("sem", "acquire", "release"), optional("scope", "sys")),
        operands=(),
        lower=proxy_fence,
        events="a proxy fence between the generic proxy and the one named, which takes no scope; .alias.release and "
        ".alias.acquire are its halves between virtual addresses",
        rules=(
            Rule(
                "only fence.proxy.alias has halves without a pair of proxies",
                "write {head}.{proxy}",
                "proxy!=alias sem",
            ),
            Rule("{head}.alias.{sem} names its scope", "write {head}.alias.{sem}.sys", "!scope sem"),
            Rule(
                "{head}.{proxy} takes effect in its thread and has no scope",
                "write {head}.{proxy}, or {head}.alias.release.{scope}",
                "!sem proxy scope",
            ),
        ),
        source=_PAGE,
        since=Since(70, "7.5"),
        later={"sem": Since(90, "9.4")},
    ),
    _row(
        heads=("membar.proxy",),
        slots=(_PROXY,),
        operands=(),
        lower=proxy_fence,
        events="the same as fence.proxy",
        source=_PAGE,
        since=Since(60, "7.5"),
    ),
)

"""An access of one grid and an access of the grid that depends on it, as a litmus test.

In: two labels. Out: the text of a test that asks whether they race. What orders them in the test, orders them in any
kernel: more synchronization takes no order away.
"""

from __future__ import annotations

from memmodel.base.labels import Access, Family, Label, Role, Side
from memmodel.ptx.vocabulary import Proxy, Sem

NO_WAIT = "griddepcontrol.wait before this access"
NOT_BY_WAIT = "an order for this path to memory: griddepcontrol.wait gives none"
"""What is missing where an access is not ordered."""

_DECLARED = """PTX dependent-grids
.global .align 16 .u32 x[4];
.shared .align 16 .u32 tile[4];
.shared .align 8 .b64 bar = mbarrier(1);
"""

_FENCES = "fence.sc.sys; fence.proxy.alias; fence.proxy.async; "
_COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [x], 16, [bar];"


def pair_test(first: Label, second: Label, *, waited: bool, fenced: bool = False) -> str | None:
    """The test of two accesses to the same bytes. `waited`: the second comes after a wait for the first grid;
    `fenced`: and after all fences that a thread can execute. None for a kind of access that is not written here.
    """
    texts = _access(first), _access(second)
    if texts[0] is None or texts[1] is None:
        return None
    wait = ("griddepcontrol.wait; " if waited else "") + (_FENCES if fenced else "")
    return (
        f"{_DECLARED}thread P0 @ cta 0, gpu 0 {{ {texts[0]} }}\n"
        f"thread P1 @ cta 1, grid 1, gpu 0 {{ {wait}{texts[1]} }}\nexists race\n"
    )


def _access(label: Label) -> str | None:
    if not isinstance(label, Access) or label.spelt is not None:
        return None
    read, proxy, family = label.side is Side.READ, label.proxy, label.family
    if family is Family.BULK and proxy is Proxy.ASYNC and label.role is not Role.DESCRIPTOR and label.sem is Sem.WEAK:
        return _COPY if read else "cp.async.bulk.global.shared::cta.bulk_group [x], [tile], 16;"
    if family is Family.CP_ASYNC and read and proxy is Proxy.GENERIC:
        return "cp.async.ca.shared.global [tile], [x], 16;"
    if label.asynchronous:
        return None
    if label.rmw and label.scope is not None and proxy is Proxy.GENERIC:
        return f"atom.relaxed.{label.scope.name.lower()}.global.add.u32 %r0, [x], 1;"
    if family is not Family.PLAIN:
        return None
    if proxy is Proxy.READ_ONLY and read:
        return "ld.global.nc.u32 %r0, [x];"
    if proxy is not Proxy.GENERIC:
        return None
    words = "" if label.scope is None else f".{label.sem.value}.{label.scope.name.lower()}"
    return f"ld{words}.global.u32 %r0, [x];" if read else f"st{words}.global.u32 [x], 1;"

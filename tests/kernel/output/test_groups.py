"""Which findings a report shows as one."""

from __future__ import annotations

from dataclasses import replace

from helpers.kernel.samples import entry, module

from memmodel.kernel.order.verdict import FindingPlace, KernelFinding
from memmodel.kernel.output.groups import groups


def test_which_findings_are_alike() -> None:
    """Those of which no place is known say different things. Without places in the source, the way between the sides
    tells them apart, not their own instructions on it.
    """
    body = entry(module("bar.sync 0;\nbar.sync 1;\nst.shared.u32 [%r2], %r0;\nld.shared.u32 %r9, [%r2];")).body or ()
    first, second, store, load = (FindingPlace(it, it.opcode, 0, 0, 0) for it in body[-5:-1])
    one = KernelFinding("data-race", "race", "", (store, load), reason="order", way=(store, first))
    nowhere = KernelFinding("hang", "hang", "thread 1 waits", ())
    for other, alike in (
        (replace(one, way=(load, first)), True),
        (replace(one, way=(first,)), True),
        (replace(one, way=(store, second)), False),
        (replace(one, missing="a barrier"), False),
        (replace(one, reason="another order"), False),
        (replace(nowhere, message="thread 2 waits"), False),
    ):
        assert len(groups([nowhere if other.rule == "hang" else one, other])) == (1 if alike else 2), other

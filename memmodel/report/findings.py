"""What a finding means to a reader.

In: Finding. Out: what keeps its two events from being ordered.
"""

from __future__ import annotations

from memmodel.answer import Finding, ShownEvent
from memmodel.cat.flags import FindingKind, kind_of
from memmodel.ptx import Scope

_PROXIES = {"ASY": "async", "TMP": "tensormap", "SUR": "surface", "TEX": "texture", "CON": "constant"}


def why_unordered(finding: Finding) -> str:
    """What keeps two conflicting accesses from being ordered, where the events alone tell it; else empty."""
    first, second = finding.first, finding.second
    if first is None or second is None or first.uid == second.uid or kind_of(finding.flag) is FindingKind.OTHER:
        return ""
    if not all(event.tags & {"R", "W"} for event in (first, second)):
        return ""
    if "TMEM" in first.tags and "TMEM" in second.tags:
        return f"{first.label} is over {_ends(first)}, {second.label} {_ends(second)}; neither comes before the other"
    proxies = [_proxy(event) for event in (first, second)]
    running = [event.label for event in (first, second) if "ASYNC" in event.tags]
    if len(running) == 1 and proxies[0] != proxies[1]:
        other = second.label if running[0] == first.label else first.label
        return (
            f"{running[0]} is asynchronous: {other} has to wait for its end, "
            "or to come before it by synchronization and a proxy fence"
        )
    if proxies[0] != proxies[1]:
        return (
            f"{first.label} goes through the {proxies[0]} proxy and {second.label} through the {proxies[1]} proxy: "
            "they need synchronization and a proxy fence on its path"
        )
    if running:
        verb = "is" if len(running) == 1 else "are"
        return f"{' and '.join(running)} {verb} asynchronous, and no wait for the end comes in between"
    weak = [event.label for event in (first, second) if "WEAK" in event.tags]
    if weak:
        return f"{' and '.join(weak)} {'is' if len(weak) == 1 else 'are'} weak, and nothing synchronizes in between"
    return _scopes(first, second) or _scopes(second, first)


def _proxy(event: ShownEvent) -> str:
    return next((name for tag, name in _PROXIES.items() if tag in event.tags), "generic")


def _ends(event: ShownEvent) -> str:
    """Where a tcgen05 operation is complete."""
    for tag, where in (("TLD", "at a tcgen05.wait::ld"), ("TST", "at a tcgen05.wait::st")):
        if tag in event.tags:
            return where
    return "when a wait sees its tcgen05.commit"


def _scopes(event: ShownEvent, other: ShownEvent) -> str:
    scope = next((scope for scope in Scope if scope.name in event.tags), None)
    if scope is None or event.place is None or other.place is None or event.place.shares(scope, other.place):
        return ""
    return f"the .{scope.name.lower()} of {event.label} does not reach {other.thread}"

"""Models of a line or two, with real base names: what a person tries first, and what no shipped model looks like."""

from __future__ import annotations

from hypothesis import strategies as st

SETS = ("R", "W", "F", "IW", "M", "SC", "ACQ", "REL", "WEAK", "F & SC", "W \\ IW", "R & ACQ", "_")
RELATIONS = ("po", "rf", "co", "fr", "loc", "ext", "int", "sync_fence", "id", "sr", "rf^-1", "po & loc", "0")


@st.composite
def tiny_models(draw: st.DrawFn) -> str:
    """One to three checks over small expressions; perhaps a total order that the model chooses."""
    pick = lambda *options: draw(st.sampled_from(options))  # noqa: E731
    names = list(RELATIONS)
    lines = ['"tiny"']
    if draw(st.integers(0, 3)) == 0:
        over, extends = pick("~IW", "M", "W", "F", "R | W"), pick("po", "po & loc", "rf", "0", "po | co")
        lines.append(f"with S from linearisations({over}, {extends})")
        names += ["S", "S & loc"]

    def events() -> str:
        return pick(*SETS, f"domain({pick(*names)})", f"range({pick(*names)})")

    def pairs(depth: int) -> str:
        if depth == 0:
            return pick(*names, f"[{events()}]", f"({events()}) * ({events()})")
        how = pick("|", "&", "\\", ";", ";", "+", "?", "^-1", "[];", "plain", "plain")
        if how == "plain":
            return pairs(0)
        if how in ("+", "?", "^-1"):
            return f"({pairs(depth - 1)}){how}"
        if how == "[];":
            return f"([{events()}] ; ({pairs(depth - 1)}) ; [{events()}])"
        return f"(({pairs(depth - 1)}) {how} ({pairs(depth - 1)}))"

    for number in range(pick(1, 1, 2, 3)):
        test = pick("empty", "empty", "irreflexive", "acyclic")
        flag = pick("", "", "", "flag ")
        negated = pick("", "", "", "~") if not flag else pick("", "~")
        body = events() if test == "empty" and pick(True, False) else pairs(2)
        name = pick("", f" as c{number}") if not flag else f" as {pick('race', 'hazard', 'odd')}{number}"
        lines.append(f"{flag}{negated}{test} {body}{name}")
    return "\n".join(lines) + "\n"

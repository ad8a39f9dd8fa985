"""Hypothesis strategies for programs that mean something, and for models: what engines are compared on.

`programs()` builds whole tests as `Program`, whose accesses and fences stay apart so that a law can change one of them;
`model_texts()` builds small cat models from base names. Both know nothing of either engine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

SCOPES = ("cta", "cluster", "gpu", "sys")
PLACES = (
    "cta 0, cluster 0, gpu 0",
    "cta 0, cluster 0, gpu 0",
    "cta 1, cluster 0, gpu 0",
    "cta 2, cluster 1, gpu 0",
    "cta 3, cluster 2, gpu 1",
)
SEMANTICS = {
    "ld": ("weak", "relaxed", "acquire"),
    "st": ("weak", "relaxed", "release"),
    "atom": ("relaxed", "acquire", "release", "acq_rel"),
    "red": ("relaxed", "release"),
    "fence": ("acquire", "release", "acq_rel", "sc"),
}
DECLARATIONS = (
    ".global .u32 x = 0;",
    ".global .u32 y = 0;",
    "a @ generic aliases x;",
    ".global .u32 t[2] = {0, 0};",
)
"""Every program declares x, y, the alias a of x and the array t, so that chunks combine freely."""


def judged(whole: bool) -> None:
    """Drop an example that was too large to judge."""
    if not whole:
        reject()


@dataclass(frozen=True)
class Line:
    """An instruction that a law may change: an access or a fence.

    `op`: what stands after the state space, with the type. `rest`: its operands. `guard`: `@%p1 ` or nothing.
    """

    head: str
    sem: str
    scope: str | None
    op: str = ""
    rest: str = ""
    guard: str = ""
    space: str = "global"

    def __str__(self) -> str:
        if self.head == "fence":
            return f"{self.guard}fence.{self.sem}.{self.scope};"
        words = [self.head, self.sem, *([self.scope] if self.scope else []), self.space]
        words.append(self.op or "u32")
        return f"{self.guard}{'.'.join(words)} {self.rest};"


@dataclass(frozen=True)
class Program:
    """A whole test: for each thread its place and its lines (a `str` is taken as it stands)."""

    places: tuple[str, ...]
    bodies: tuple[tuple[Line | str, ...], ...]
    question: str
    declarations: tuple[str, ...] = DECLARATIONS

    @property
    def text(self) -> str:
        parts = ["PTX generated", *self.declarations]
        for number, (place, body) in enumerate(zip(self.places, self.bodies, strict=True)):
            parts += [f"thread P{number} @ {place} {{", *(f"    {line}" for line in body), "}"]
        return "\n".join([*parts, self.question, ""])

    def lines(self) -> list[tuple[int, int, Line]]:
        """(thread, position, line) of everything that a law may change."""
        return [
            (t, i, line) for t, body in enumerate(self.bodies) for i, line in enumerate(body) if isinstance(line, Line)
        ]

    def changed(self, thread: int, position: int, *lines: Line | str) -> Program:
        """The same program with these lines in place of one."""
        body = self.bodies[thread]
        body = (*body[:position], *lines, *body[position + 1 :])
        return replace(self, bodies=(*self.bodies[:thread], body, *self.bodies[thread + 1 :]))


class _Thread:
    """Builds the body of one thread; registers are fresh, and `loaded` may be used by later lines."""

    def __init__(self, draw: st.DrawFn, rich: bool) -> None:
        self.draw = draw
        self.rich = rich
        self.body: list[Line | str] = []
        self.loaded: list[str] = []
        self.count = 0
        self.accesses = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, items: tuple[Any, ...]) -> Any:
        return self.draw(st.sampled_from(items))

    def strength(self, head: str) -> tuple[str, str | None]:
        sem = self.pick(SEMANTICS[head])
        return sem, None if sem == "weak" else self.pick(SCOPES)

    def place(self) -> str:
        return str(self.pick(("x", "x", "y", "y", "a") if self.rich else ("x", "y")))

    def access(self, guard: str = "", where: str | None = None) -> None:
        """A load, store, atom or red."""
        head = self.pick(("ld", "ld", "st", "st", "atom", "red"))
        sem, scope = self.strength(head)
        where = where or f"[{self.place()}]"
        self.accesses += 1 if head in ("ld", "st") else 2
        if head == "ld":
            register = self.fresh("r")
            self.body.append(Line(head, sem, scope, "", f"%{register}, {where}", guard))
            self.loaded.append(register)
        elif head == "st":
            values = ("1", "2", *(f"%{name}" for name in self.loaded[-1:]))
            self.body.append(Line(head, sem, scope, "", f"{where}, {self.pick(values)}", guard))
        elif head == "red":
            self.body.append(Line(head, sem, scope, "add.u32", f"{where}, 1", guard))
        else:
            register = self.fresh("r")
            op, operands = self.pick((("add.u32", "1"), ("exch.b32", "2"), ("cas.b32", "0, 1"), ("cas.b32", "1, 2")))
            self.body.append(Line(head, sem, scope, op, f"%{register}, {where}, {operands}", guard))
            self.loaded.append(register)

    def fence(self) -> None:
        self.body.append(Line("fence", self.pick(SEMANTICS["fence"]), self.pick(SCOPES)))

    def test(self, register: str) -> str:
        """A predicate: is a register non-zero?"""
        predicate = self.fresh("p")
        self.body.append(f"setp.ne.u32 %{predicate}, %{register}, 0;")
        return predicate

    def guarded(self) -> None:
        """A predicated access."""
        predicate = self.test(self.loaded[-1]) if self.loaded else "p0"
        self.access(guard=self.pick((f"@%{predicate} ", f"@!%{predicate} ")))

    def branch(self) -> None:
        """An access that a branch may skip."""
        predicate = self.test(self.loaded[-1]) if self.loaded else "p0"
        label = self.fresh("L")
        self.body.append(f"@%{predicate} bra {label};")
        self.access()
        self.body.append(f"{label}:")

    def spin(self) -> None:
        """Wait for a location to be non-zero, or take a lock."""
        label, register, predicate = self.fresh("L"), self.fresh("r"), self.fresh("p")
        self.body.append(f"{label}:")
        if self.pick((True, True, False)):
            self.accesses += 1
            sem, scope = self.strength("ld")
            self.body.append(Line("ld", sem, scope, "", f"%{register}, [{self.place()}]"))
            self.body.append(f"setp.eq.u32 %{predicate}, %{register}, 0;")
        else:
            self.accesses += 2
            sem, scope = self.strength("atom")
            self.body.append(Line("atom", sem, scope, "cas.b32", f"%{register}, [{self.place()}], 0, 1"))
            self.body.append(f"setp.ne.u32 %{predicate}, %{register}, 0;")
        self.body.append(f"@%{predicate} bra {label};")
        self.loaded.append(register)

    def loop(self) -> None:
        """The same access twice."""
        label, counter, predicate = self.fresh("L"), self.fresh("c"), self.fresh("p")
        self.body += [f"mov.u32 %{counter}, 0;", f"{label}:"]
        self.access()
        self.accesses += 1
        self.body += [
            f"add.u32 %{counter}, %{counter}, 1;",
            f"setp.lt.u32 %{predicate}, %{counter}, 2;",
            f"@%{predicate} bra {label};",
        ]

    def indexed(self) -> None:
        """An access to an element of t that a loaded value picks."""
        offset, address = self.fresh("o"), self.fresh("a")
        index = f"%{self.loaded[-1]}" if self.loaded else "1"
        self.body += [
            f"and.b32 %{offset}, {index}, 1;",
            f"shl.b32 %{offset}, %{offset}, 2;",
            f"add.u64 %{address}, t, %{offset};",
        ]
        self.access(where=f"[%{address}]")

    def selected(self) -> None:
        """A value chosen by a predicate, then stored."""
        if self.loaded:
            predicate, register = self.test(self.loaded[-1]), self.fresh("r")
            self.body.append(f"selp.u32 %{register}, 1, 2, %{predicate};")
            self.loaded.append(register)
        self.access()

    def barrier(self) -> None:
        self.body.append(
            self.pick(("bar.sync 0;", "bar.sync 0;", "bar.sync 1, 64;", "barrier.cluster.arrive.relaxed;"))
        )
        if "cluster" in str(self.body[-1]):
            self.body.append("barrier.cluster.wait;")


@st.composite
def programs(draw: st.DrawFn, *, rich: bool = True, most: int = 7) -> Program:
    """Two or three threads with about `most` reads and writes. `rich`: also branches, loops, barriers, arrays."""
    places = tuple(draw(st.lists(st.sampled_from(PLACES), min_size=2, max_size=3)))
    makers = [_Thread(draw, rich) for _ in places]
    plain = ("access", "access", "access", "fence")
    kinds = (*plain, "guarded", "branch", "spin", "loop", "indexed", "selected", "barrier") if rich else plain
    for maker in makers:
        for _ in range(draw(st.integers(1, 4))):
            left = most - sum(one.accesses for one in makers)
            kind = draw(st.sampled_from(kinds if left > 1 else ("fence",)))
            getattr(maker, kind)()
    registers = [f"P{t}:{name}" for t, maker in enumerate(makers) for name in maker.loaded]
    return Program(places, tuple(tuple(maker.body) for maker in makers), draw(questions(registers)))


@st.composite
def questions(draw: st.DrawFn, registers: list[str]) -> str:
    """A condition on up to three registers and perhaps a location."""
    terms = draw(st.lists(st.sampled_from(registers), max_size=3, unique=True)) if registers else []
    terms += draw(st.lists(st.sampled_from(("x", "y")), max_size=1 if terms else 2, unique=True))
    atoms = [f"{term} {draw(st.sampled_from(('==', '==', '!=')))} {draw(st.integers(0, 2))}" for term in terms]
    joined = draw(st.sampled_from((r" /\ ", r" /\ ", r" \/ "))).join(atoms or ["true"])
    return f"exists ({joined})"


# ---- models ----------------------------------------------------------------------------------------------------

SETS = ("_", "M", "R", "W", "F", "IW", "RMW", "WEAK", "RLX", "ACQ", "REL", "SC", "ACQ_REL", "GPU", "B")
RELATIONS = ("po", "rf", "co", "fr", "rmw", "addr", "data", "ctrl", "loc", "vloc", "id", "int", "ext", "sr", "scta")
RELATIONS += ("sgpu", "syncbar", "sync_fence", "po-loc", "rfe", "coe", "fre")

sets = st.recursive(
    st.sampled_from(SETS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("|&\\"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda s: f"(~{s})"),
    ),
    max_leaves=3,
)


def relations(names: tuple[str, ...] = (), *, monotone: bool = False) -> st.SearchStrategy[str]:
    """A relation of base names and `names`; `monotone`: grows with its operands, as a `let rec` needs."""
    ops = (";", ";", "|", "|", "&", *(() if monotone else ("\\",)))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        choices = [
            st.tuples(inner, st.sampled_from(ops), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(inner, st.sampled_from(("^-1", "+", "?", "*"))).map(lambda t: f"({t[0]}{t[1]})"),
            st.tuples(sets, inner).map(lambda t: f"([{t[0]}] ; {t[1]})"),
        ]
        return st.one_of(*choices, *([] if monotone else [inner.map(lambda r: f"(~{r})")]))

    leaf = st.one_of(
        st.sampled_from((*RELATIONS, *names)),
        sets.map(lambda s: f"[{s}]"),
        st.tuples(sets, sets).map(lambda t: f"({t[0]} * {t[1]})"),
    )
    return st.recursive(leaf, larger, max_leaves=5)


@st.composite
def model_texts(draw: st.DrawFn) -> str:
    """A model: two definitions, perhaps recursive, then checks and a flag over them. No values out of thin air."""
    lines = ["let ghb = po | rf | co | fr", f"let one = {draw(relations())}"]
    if draw(st.booleans()):
        lines.append(f"let rec two = {draw(relations(('one',)))} | ({draw(relations(('two',), monotone=True))})")
    else:
        lines.append(f"let two = {draw(relations(('one',)))}")
    names = ("one", "two", "ghb", "ghb")
    # Without this axiom a cycle may produce values out of thin air, of which each engine tries its own few.
    lines.append("acyclic rf | addr | data | ctrl as No-Thin-Air")
    if draw(st.booleans()):
        lines.append("acyclic po-loc | rf | co | fr as Coherent")
    for number in range(draw(st.integers(1, 2))):
        test = draw(st.sampled_from(("acyclic", "irreflexive", "irreflexive", "empty", "~empty", "~irreflexive")))
        lines.append(f"{test} {draw(relations(names))} as A{number}")
    if draw(st.booleans()):
        lines.append(f"flag ~empty {draw(relations(names))} as flagged")
    return "\n".join(lines) + "\n"

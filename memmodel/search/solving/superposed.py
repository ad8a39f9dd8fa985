"""One program that stands for all programs of a layout: each slot holds every instruction, and one of each is executed.

In: Vocabulary, the lengths of threads, a placement. Out: `Superposed`: a lowered test whose instructions are guarded by
registers that nothing decides (`Program.choices`), and what each slot may hold. Settled here: which instructions a slot
may hold, and under which names. Places of shared and tensor memory exist in every CTA. Which of these a program means
is a choice as well (`wellformed`), and so is the number of arrivals that an object takes (`joint`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from memmodel import api
from memmodel.base.labels import Label
from memmodel.errors import BudgetSpent, InternalError
from memmodel.events.elaborate import elaborate
from memmodel.events.graph import EventGraph
from memmodel.isa.matrix.tensor_columns import AGAIN, COLUMNS, UNIT
from memmodel.isa.rows.ingredients import BEGINS, PLACED, Form, Ingredient
from memmodel.litmus.syntax import Guard
from memmodel.program.lowered import LoweredTest
from memmodel.program.ops import Unmodelled
from memmodel.search.solving.layouts import ThreadLayout
from memmodel.search.text import NAMES, declared, places_of, reaching, value_of
from memmodel.search.vocabulary import Vocabulary

LAST = "last"
"""The register with what the last load of a thread returned."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place as an option names it. `cta`: of a place that is in a CTA."""

    kind: str
    number: int
    cta: int | None = None

    @property
    def name(self) -> str:
        return NAMES[self.kind][self.number]


@dataclass(frozen=True, slots=True)
class Option:
    """An instruction that a slot may hold, at its places; `forms`: its spellings, which execute the same steps.

    `access`: its number among the accesses of the vocabulary, None for a fence, which has one form.
    """

    access: int | None
    ingredient: Ingredient | None
    sites: tuple[Site, ...]
    forms: tuple[Form, ...]

    @property
    def loads(self) -> bool:
        ingredient = self.ingredient
        return ingredient is not None and ingredient.answers and bool({"r", "u"} & set(ingredient.does))


@dataclass(frozen=True, slots=True)
class ProgramSlot:
    """The place of an instruction: its thread, its number there and among all slots."""

    thread: int
    at: int
    number: int


class Superposed:
    """All programs of a layout at once."""

    def __init__(self, vocabulary: Vocabulary, layout: ThreadLayout) -> None:
        self.vocabulary = vocabulary
        self.layout = layout
        self.slots = [
            ProgramSlot(thread, at, sum(layout.lengths[:thread]) + at)
            for thread, length in enumerate(layout.lengths)
            for at in range(length)
        ]
        self.options = [list(self._options(slot)) for slot in self.slots]
        held = [option.ingredient for options in self.options for option in options if option.ingredient is not None]
        if sum(ingredient.life == BEGINS for ingredient in held) * UNIT > COLUMNS:
            raise BudgetSpent(f"larger programs could allocate more than the {COLUMNS} columns of tensor memory")

    # ---- what a slot may hold --------------------------------------------------------------------------------------

    def _options(self, slot: ProgramSlot) -> Iterator[Option]:
        words = self.vocabulary
        for number, ingredient in enumerate(words.accesses):
            plain = tuple(form for form in ingredient.forms if not form.data)
            groups = [plain, *((form,) for form in ingredient.forms if form.data and slot.at > 0)]
            for sites in product(*(self._sites(ingredient, at, slot.thread) for at in range(len(ingredient.places)))):
                together = len({sites["xyz".index(hole)].cta for hole in ingredient.far}) <= 1
                if together and not _contradict(sites):
                    yield from (Option(number, ingredient, sites, group) for group in groups if group)
        yield from (Option(None, None, (), (form,)) for form in words.fences)

    def is_last(self, slot: int) -> bool:
        """True if a slot is the last one of its thread."""
        mine = self.slots[slot]
        return mine.at == self.layout.lengths[mine.thread] - 1

    def _sites(self, ingredient: Ingredient, at: int, thread: int) -> list[Site]:
        """The places that may stand in one hole of an instruction."""
        kind, words, mine = ingredient.places[at], self.vocabulary, self.layout.seats[thread]
        if kind not in PLACED:
            return [Site(kind, number) for number in range(words.locations)]
        ctas = {mine[2]}
        if "xyz"[at] in ingredient.far and "cluster" in words.spread:
            ctas |= {cta for gpu, cluster, cta in self.layout.seats if (gpu, cluster) == mine[:2]}
        return [Site(kind, number, cta) for number in range(words.locations) for cta in sorted(ctas)]

    # ---- the lowered test ------------------------------------------------------------------------------------------

    @cached_property
    def lowered(self) -> tuple[LoweredTest, list[list[tuple[int, int]]]]:
        """The test with the first form of every option; for each thread, the slot and option of each instruction."""
        return self._lowered([[option.forms[0] for option in options] for options in self.options])

    def _lowered(self, forms: Sequence[Sequence[Form]]) -> tuple[LoweredTest, list[list[tuple[int, int]]]]:
        """The test with these forms of the options of each slot."""
        bodies: list[list[str]] = [[] for _ in self.layout.lengths]
        owners: list[list[tuple[int, int]]] = [[] for _ in self.layout.lengths]
        for slot, options, chosen in zip(self.slots, self.options, forms, strict=True):
            for number, (option, form) in enumerate(zip(options, chosen, strict=True)):
                lines = self._lines(slot, number, option, form)
                bodies[slot.thread] += lines
                owners[slot.thread] += [(slot.number, number)] * len(lines)
        lowered = api.lowered(self._text(bodies))
        programs = []
        for thread, (program, own) in enumerate(zip(lowered.programs, owners, strict=True)):
            if len(lowered.test.threads[thread].body) != len(own):
                raise InternalError("a line of a form is not one instruction")
            # Of the allocs of a place a program has those that `wellformed` leaves it.
            kept = (step for step in program.steps if not isinstance(step.op, Unmodelled) or step.op.reason != AGAIN)
            steps = tuple(replace(step, guard=Guard(register_of(*own[step.index]))) for step in kept)
            groups = tuple(
                tuple(register_of(slot.number, number) for number in range(len(self.options[slot.number])))
                for slot in self.slots
                if slot.thread == thread
            )
            programs.append(replace(program, steps=steps, choices=groups))
        return replace(lowered, programs=tuple(programs)), owners

    def _lines(self, slot: ProgramSlot, number: int, option: Option, form: Form) -> list[str]:
        if option.ingredient is None:
            return form.text.split("\n")
        own = self.layout.seats[slot.thread][2]
        away = [site.cta if site.cta != own else None for site in option.sites]
        text, names = reaching(form.text, [site.name for site in option.sites], away)
        unique = slot.number * 1000 + number
        text = text.format(
            **dict(zip("xyz", names, strict=False)),
            v=value_of(option.ingredient, slot.number + 1),
            r=f"r{unique}",
            n=unique,
            before=LAST,
        )
        return [*text.split("\n"), *([f"mov.u32 %{LAST}, %r{unique};"] if option.loads and self._depends else [])]

    @cached_property
    def _depends(self) -> bool:
        return any(form.data for ingredient in self.vocabulary.accesses for form in ingredient.forms)

    def _text(self, bodies: Sequence[Sequence[str]]) -> str:
        options = [option for options in self.options for option in options]
        sites = {(s.kind, s.name): s for option in options for s in option.sites}
        order = sorted(sites.values(), key=lambda site: ("gGstb".index(site.kind), site.number))
        seen = [(o.ingredient, [site.name for site in o.sites]) for o in options if o.ingredient is not None]
        lines = ["PTX superposed", ""]
        lines += declared([(site.kind, site.name, 1) for site in order], seen, self.vocabulary)
        for number, (body, at) in enumerate(zip(bodies, places_of(self.layout.seats, self.vocabulary), strict=True)):
            cluster = "" if at.cluster is None else f", cluster {at.cluster}"
            warp = "" if at.warp is None else f", warp {at.warp}"
            where = f"cta {at.cta}{cluster}, gpu {at.gpu}{warp}"
            lines += ["", f"thread P{number} @ {where} {{", *(f"    {line}" for line in body), "}"]
        return "\n".join([*lines, "", "exists (true)"]) + "\n"

    # ---- events ------------------------------------------------------------------------------------------------------

    def graph(self) -> EventGraph:
        """The events of all options, in their first forms."""
        return elaborate(self.lowered[0], 1, ())

    def owners(self, graph: EventGraph) -> list[tuple[int, int] | None]:
        """For each event its slot and option; None for initial writes and the ends of threads."""
        lowered, lines = self.lowered
        owners: list[tuple[int, int] | None] = []
        for event in graph.events:
            visit = None if event.visit is None else graph.visits[event.visit]
            steps = () if visit is None else lowered.programs[visit.thread].steps
            if visit is None or visit.step >= len(steps):
                owners.append(None)
            else:
                owners.append(lines[visit.thread][steps[visit.step].index])
        return owners

    def labels(self, graph: EventGraph) -> list[list[Label]]:
        """For each event the label that it has in each form of its option, or the only one that it has."""
        events: dict[tuple[int, int], list[int]] = {}
        for uid, owner in enumerate(self.owners(graph)):
            if owner is not None:
                events.setdefault(owner, []).append(uid)
        keys = {
            owner: (*self._spelt(*owner), tuple(graph.events[uid].label for uid in uids))
            for owner, uids in events.items()
            if len(self.options[owner[0]][owner[1]].forms) > 1
        }
        if any(key not in _LABELS for key in keys.values()):
            self._learn_labels(graph, {key: events[owner] for owner, key in keys.items()})
        labels = [[event.label] for event in graph.events]
        for owner, key in keys.items():
            for uid, of_forms in zip(events[owner], _LABELS[key], strict=True):
                labels[uid] = list(of_forms)
        return labels

    def _spelt(self, slot: int, number: int) -> tuple[Hashable, ...]:
        """What the labels of an option depend on, whatever its form; beside it, how much the places of this vocabulary
        hold, which the labels of the first form show."""
        option, own = self.options[slot][number], self.layout.seats[self.slots[slot].thread][2]
        return (
            option.forms,
            tuple(site.kind for site in option.sites),
            tuple(s.cta in (None, own) for s in option.sites),
        )

    def _learn_labels(self, graph: EventGraph, wanted: Mapping[Hashable, Sequence[int]]) -> None:
        """Keep the labels of these events in every form."""
        options = [option for held in self.options for option in held]
        by_form = [graph]
        for number in range(1, max(len(option.forms) for option in options)):
            forms = [[option.forms[min(number, len(option.forms) - 1)] for option in held] for held in self.options]
            by_form.append(elaborate(self._lowered(forms)[0], 1, ()))
            if len(by_form[-1].events) != len(graph.events):
                raise InternalError("forms of an instruction execute different steps")
        for key, uids in wanted.items():
            assert isinstance(key, tuple)
            _LABELS[key] = tuple(tuple(by_form[n].events[uid].label for n in range(len(key[0]))) for uid in uids)


_LABELS: dict[Hashable, tuple[tuple[Label, ...], ...]] = {}
"""For an instruction, the labels of its events, for each event one for each form."""


def register_of(slot: int, option: int) -> str:
    """The register that says that a slot holds an option."""
    return f"slot{slot}.{option}"


def _contradict(sites: Sequence[Site]) -> bool:
    """True if one place is said to be in two CTAs."""
    known: dict[tuple[str, int], Site] = {}
    return any(known.setdefault((site.kind, site.number), site) != site for site in sites)

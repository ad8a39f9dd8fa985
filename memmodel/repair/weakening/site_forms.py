"""The forms that the sites of a text may have, and what an execution becomes when sites change their forms.

In: the sites of a text, each with its forms; executions. Out: executions, and which of two forms orders no more. Forms
are compared with the `base`, the text in which every site has its cheapest form: a form differs from that at one site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from memmodel.concrete.execution import Execution
from memmodel.program.lowered import LoweredTest
from memmodel.repair.carry import Delta, alteration_by, at_most, difference
from memmodel.repair.edits import Edit, apply
from memmodel.why.alter import Alteration, alter, combined

Forms = tuple[int, ...]
"""For each site the number of its form: 0 is the cheapest; the last is the text as it stands."""


class SiteForms:
    """The forms of the sites of a text. `legal`: the base is a legal test."""

    def __init__(self, text: str, sites: list[list[Edit]], parse: Callable[[str], LoweredTest | None]) -> None:
        self.text = text
        self.sites = sites
        self.top: Forms = tuple(len(site) for site in sites)
        self._parse = parse
        self._base = parse(self.text_with((0,) * len(sites)))
        self._deltas: dict[tuple[int, int], Delta | None] = {}
        self.legal = self._base is not None

    def edits(self, forms: Forms) -> tuple[Edit, ...]:
        """The changes of the text that give its sites these forms."""
        return tuple(site[form] for site, form in zip(self.sites, forms, strict=True) if form < len(site))

    def text_with(self, forms: Forms) -> str:
        """The text with these forms."""
        return apply(self.text, self.edits(forms))

    def cost(self, site: int, form: int) -> float:
        """What a form costs beyond the cheapest."""
        prices = [*(edit.cost for edit in self.sites[site]), 0.0]
        return prices[form] - prices[0]

    def delta(self, site: int, form: int) -> Delta | None:
        """How a form differs from the cheapest; None if they cannot be compared, or the text is no legal test with
        it."""
        if (site, form) not in self._deltas:
            forms = [0] * len(self.sites)
            forms[site] = form
            changed = self._parse(self.text_with(tuple(forms)))
            comparable = self._base is not None and changed is not None
            self._deltas[site, form] = difference(self._base, changed) if comparable else None  # type: ignore[arg-type]
        return self._deltas[site, form]

    def orders_no_more(self, site: int, form: int, other_form: int) -> bool:
        """True if one form of a site is known to order no more than another form of it."""
        if form == other_form or other_form == self.top[site]:
            return True
        less, more = (Delta((0, 0)) if form == 0 else self.delta(site, form) for form in (form, other_form))
        if less is None or more is None or len(less.inserted) > len(more.inserted):
            return False
        inserted = zip(less.inserted, more.inserted, strict=False)
        was, now = dict(less.labels), dict(more.labels)
        changed = ((was.get(old, old), now.get(old, old)) for old in was.keys() | now.keys())
        return all(at_most(a, b) for a, b in (*inserted, *changed))

    def carried(self, execution: Execution, forms: Forms, others: Forms) -> Execution | None:
        """An execution of the text with some forms, as it is with others; None if that is not known."""
        changes: list[Alteration] = []
        for site in self._in_order(site for site, form in enumerate(others) if form != forms[site]):
            change = self._change(execution, forms, site, others[site])
            if change is None:
                return None
            changes.append(change)
        return alter(execution, combined(changes, len(execution.events)))

    def _change(self, execution: Execution, forms: Forms, site: int, form: int) -> Alteration | None:
        now = Delta((0, 0)) if forms[site] == 0 else self.delta(site, forms[site])
        then = Delta(now.at) if form == 0 and now is not None else self.delta(site, form)
        if now is None or then is None or len(now.inserted) > len(then.inserted) or now.hidden or then.hidden:
            return None
        at = then.at[0], then.at[1] + self._ahead(forms, site, then)
        if now.inserted and len(now.inserted) == len(then.inserted):
            pairs = tuple(zip(now.inserted, then.inserted, strict=True))
            alike = all(type(a) is type(b) for a, b in pairs)
            return alteration_by(execution, Delta(at, pairs)) if alike else None
        if now.inserted or (now.labels and then.inserted):
            return None
        was, then_ = dict(now.labels), dict(then.labels)
        labels = tuple((was.get(old, old), then_.get(old, old)) for old in was.keys() | then_.keys())
        return alteration_by(execution, replace(then, at=at, labels=labels))

    def _ahead(self, forms: Forms, site: int, delta: Delta) -> int:
        """How many lines the forms of other sites put before a place of the base."""
        count = 0
        for other, form in enumerate(forms):
            delta_there = self.delta(other, form) if form and other != site else None
            if delta_there is None or not delta_there.inserted or delta_there.at[0] != delta.at[0]:
                continue
            start, limit = (delta_there.at[1], self._start(other)), (delta.at[1], self._start(site))
            count += start < limit if delta.inserted else start[0] <= limit[0]
        return count

    def _in_order(self, sites: Iterable[int]) -> list[int]:
        return sorted(sites, key=self._start)

    def _start(self, site: int) -> tuple[int, bool]:
        """Where in the text a site puts its additional line. A new line comes before a line that is there."""
        new = next((part.start for edit in self.sites[site] for part in edit.more), None)
        return (self.sites[site][0].start, True) if new is None else (new, False)

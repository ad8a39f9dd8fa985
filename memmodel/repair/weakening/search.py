"""The search for the cheapest forms with which nothing more is allowed, by implicit hitting sets.

In: `SiteForms`, what judges forms. Out: forms, and whether every cheaper choice was refuted. The search begins with the
cheapest form everywhere. A counterexample of a choice leads to a need: it is tried with as much order as it survives,
and every choice of forms that orders no more than this has it too. So some site needs more. The cheapest choice that
meets all needs is tried next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from memmodel.repair.carry import survives
from memmodel.repair.judge import TextCounterexample
from memmodel.repair.weakening.site_forms import Forms, SiteForms
from memmodel.why.story import execution_of

MAX_TRIED = 400
"""After this number of judged programs the search gives up, and makes one site after the other cheaper."""

MAX_CHOICES = 20_000
"""After this number of choices of forms the search for the cheapest one gives up in the same way."""

Need = frozenset[tuple[int, int]]
"""Sites with forms: one of them is needed."""


class Judges(Protocol):
    """Says that a text allows nothing more, or shows an execution that it allows in addition."""

    def quick_counterexample(self, text: str) -> TextCounterexample | None: ...

    def allows_nothing_more(self, text: str) -> bool: ...


@dataclass(slots=True)
class Narrowing:
    """The search over the forms of sites. `tried`: counts a program that is judged."""

    site_forms: SiteForms
    judges: Judges
    tried: Callable[[], int]

    def cheapest(self) -> tuple[Forms, bool]:
        """The cheapest forms, and whether every cheaper choice was refuted."""
        needs: list[Need] = []
        while self.site_forms.legal:
            forms = self._cheapest_that_meets(needs)
            if forms is None or self.tried() > MAX_TRIED:
                break
            counterexample = self.judges.quick_counterexample(self.site_forms.text_with(forms))
            if counterexample is None and (
                forms == self.site_forms.top or self.judges.allows_nothing_more(self.site_forms.text_with(forms))
            ):
                return forms, True
            needs.append(self._need(forms, counterexample))
        return self._one_by_one(), False

    def _need(self, forms: Forms, counterexample: TextCounterexample | None) -> Need:
        """The need that a choice of forms does not meet: the forms that order more than those its counterexample
        survives."""
        kept = forms if counterexample is None else self._kept(forms, counterexample)
        sites = range(len(forms))
        return frozenset(
            (site, form)
            for site in sites
            for form in range(self.site_forms.top[site] + 1)
            if not self.site_forms.orders_no_more(site, form, kept[site])
        )

    def _kept(self, forms: Forms, counterexample: TextCounterexample) -> Forms:
        """The forms with the most order that the counterexample survives."""
        kept = list(forms)
        todo = [[site for site, form in enumerate(forms) if form != self.site_forms.top[site]]]
        left: list[int] = []
        while todo:
            chunk = todo.pop()
            more = [self.site_forms.top[site] if site in chunk else form for site, form in enumerate(kept)]
            if chunk and self._survives(counterexample, forms, tuple(more)):
                kept = more
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
            else:
                left += chunk
        for site in left:
            for form in range(self.site_forms.top[site] - 1, forms[site], -1):
                more = [*kept[:site], form, *kept[site + 1 :]]
                if self.site_forms.orders_no_more(site, forms[site], form) and self._survives(
                    counterexample, forms, tuple(more)
                ):
                    kept = more
                    break
        return tuple(kept)

    def _survives(self, counterexample: TextCounterexample, forms: Forms, others: Forms) -> bool:
        execution = execution_of(counterexample.witness)
        changed = None if execution is None else self.site_forms.carried(execution, forms, others)
        return changed is not None and survives(counterexample, changed)

    def _cheapest_that_meets(self, needs: list[Need]) -> Forms | None:
        """The cheapest forms that meet all needs; None if they are not found within `MAX_CHOICES`."""
        start: Forms = (0,) * len(self.site_forms.top)
        best: tuple[float, Forms] | None = None
        pending: list[tuple[float, Forms]] = [(0.0, start)]
        seen: set[Forms] = set()
        while pending:
            price, forms = pending.pop()
            if forms in seen or (best is not None and price >= best[0]):
                continue
            seen.add(forms)
            if len(seen) > MAX_CHOICES:
                return None
            open_ = [need for need in needs if not any(forms[site] == form for site, form in need)]
            if not open_:
                best = (price, forms)
                continue
            more = [
                (price - self.site_forms.cost(site, forms[site]) + self.site_forms.cost(site, form), site, form)
                for site, form in min(open_, key=len)
            ]
            for cost, site, form in sorted(more, reverse=True):
                if cost > price or (cost == price and form > forms[site]):
                    pending.append((cost, (*forms[:site], form, *forms[site + 1 :])))
        return None if best is None else best[1]

    def _one_by_one(self) -> Forms:
        """One site after the other made as cheap as the rest allows, the dearest first."""
        chosen = list(self.site_forms.top)
        for site in sorted(range(len(chosen)), key=lambda site: -self.site_forms.cost(site, chosen[site])):
            for form in range(self.site_forms.top[site]):
                other = self.site_forms.text_with((*chosen[:site], form, *chosen[site + 1 :]))
                self.tried()
                if self.judges.quick_counterexample(other) is None and self.judges.allows_nothing_more(other):
                    chosen[site] = form
                    break
        return tuple(chosen)

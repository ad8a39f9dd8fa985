"""The search for the cheapest forms with which nothing more is allowed, by implicit hitting sets.

In: `Raised`, what judges forms. Out: forms, and whether every cheaper choice was refuted. The search begins with the
cheapest form everywhere. An execution that is bad there says what is needed: it is tried with as much order as it
survives, and every choice of forms that orders no more than this has it too. The cheapest choice that answers all of
this is tried next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from memmodel.repair.carry import survives
from memmodel.repair.judge import TextCounterexample
from memmodel.repair.weakening.raised import Forms, Raised
from memmodel.why.story import execution_of

MAX_TRIED = 400
"""Programs that are judged before the search takes what it has and narrows one place after the other."""

MAX_CHOICES = 20_000
"""Choices of forms that are looked at for the cheapest one, before the same."""

Need = frozenset[tuple[int, int]]
"""Sites with forms: one of them is needed."""


class Judges(Protocol):
    """What says of a text that nothing more is allowed, or shows an execution that is."""

    def quick_counterexample(self, text: str) -> TextCounterexample | None: ...

    def allows_nothing_more(self, text: str) -> bool: ...


@dataclass(slots=True)
class Narrowing:
    """`tried`: counts a program that is judged."""

    raised: Raised
    judges: Judges
    tried: Callable[[], int]

    def cheapest(self) -> tuple[Forms, bool]:
        """The cheapest forms, and whether every cheaper choice was refuted."""
        needs: list[Need] = []
        while self.raised.legal:
            forms = self._answering(needs)
            if forms is None or self.tried() > MAX_TRIED:
                break
            counterexample = self.judges.quick_counterexample(self.raised.made(forms))
            if counterexample is None and (
                forms == self.raised.top or self.judges.allows_nothing_more(self.raised.made(forms))
            ):
                return forms, True
            needs.append(self._need(forms, counterexample))
        return self._one_by_one(), False

    def _need(self, forms: Forms, counterexample: TextCounterexample | None) -> Need:
        """What a choice of forms lacks: an execution of it is left by all that orders no more than `kept`."""
        kept = forms if counterexample is None else self._kept(forms, counterexample)
        sites = range(len(forms))
        return frozenset(
            (site, form)
            for site in sites
            for form in range(self.raised.top[site] + 1)
            if not self.raised.no_more(site, form, kept[site])
        )

    def _kept(self, forms: Forms, counterexample: TextCounterexample) -> Forms:
        """As much order as an execution survives."""
        kept = list(forms)
        todo = [[site for site, form in enumerate(forms) if form != self.raised.top[site]]]
        left: list[int] = []
        while todo:
            chunk = todo.pop()
            more = [self.raised.top[site] if site in chunk else form for site, form in enumerate(kept)]
            if chunk and self._survives(counterexample, forms, tuple(more)):
                kept = more
            elif len(chunk) > 1:
                middle = len(chunk) // 2
                todo += [chunk[middle:], chunk[:middle]]
            else:
                left += chunk
        for site in left:
            for form in range(self.raised.top[site] - 1, forms[site], -1):
                more = [*kept[:site], form, *kept[site + 1 :]]
                if self.raised.no_more(site, forms[site], form) and self._survives(counterexample, forms, tuple(more)):
                    kept = more
                    break
        return tuple(kept)

    def _survives(self, counterexample: TextCounterexample, forms: Forms, others: Forms) -> bool:
        execution = execution_of(counterexample.witness)
        raised = None if execution is None else self.raised.at(execution, forms, others)
        return raised is not None and survives(counterexample, raised)

    def _answering(self, needs: list[Need]) -> Forms | None:
        """The cheapest forms that answer all needs; None if that is not soon known."""
        start: Forms = (0,) * len(self.raised.top)
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
                (price - self.raised.cost(site, forms[site]) + self.raised.cost(site, form), site, form)
                for site, form in min(open_, key=len)
            ]
            for cost, site, form in sorted(more, reverse=True):
                if cost > price:
                    pending.append((cost, (*forms[:site], form, *forms[site + 1 :])))
        return None if best is None else best[1]

    def _one_by_one(self) -> Forms:
        """One site after the other made as cheap as the rest allows, the dearest first."""
        chosen = list(self.raised.top)
        for site in sorted(range(len(chosen)), key=lambda site: -self.raised.cost(site, chosen[site])):
            for form in range(self.raised.top[site]):
                other = self.raised.made((*chosen[:site], form, *chosen[site + 1 :]))
                self.tried()
                if self.judges.quick_counterexample(other) is None and self.judges.allows_nothing_more(other):
                    chosen[site] = form
                    break
        return tuple(chosen)

"""`memmodel.sync`: the cheapest synchronization of a test, or of accesses and hand-overs that are given as data.

In: a litmus test or a `HandOverPlan`, a model, a table of costs. Out: `Synchronized`. Settled here: of the ways to
signal the hand-overs of a pipeline the cheapest is taken, and it is the cheapest of all if that was proved for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from memmodel import api
from memmodel.answer import Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.syntax import Model
from memmodel.engine import Options
from memmodel.limits import within_budget
from memmodel.repair.costs import DEFAULT, Costs
from memmodel.repair.synchronizing.handovers import HandOverPlan, skeletons
from memmodel.repair.synchronizing.prices import program_cost
from memmodel.repair.synchronizing.strip import Strip
from memmodel.repair.synchronizing.synchronize import Synchronized, synchronize
from memmodel.source import Source


def sync(
    what: api.TestInput | HandOverPlan,
    model: api.ModelInput = DEFAULT_MODEL,
    *,
    strip: str = "nothing",
    costs: Costs = DEFAULT,
    seconds: float = 60.0,
    engine: str = "auto",
    budget: Budget = Budget(),
    bound: int = 3,
) -> Synchronized:
    """The cheapest fences, scopes, semantics and waits with which a program is right under a model.

    `what`: a test that lacks them (a path, a Source, or text), or a `HandOverPlan`. It is right if nothing is found
    and what its question forbids never happens. `strip`: `order` takes the fences out first, and makes
    semantics and scopes the weakest; `waits` takes out waits for phases and barriers, too. `costs`: what the sum is
    made of. `seconds`: for the search. The answer says whether it is proved to be the cheapest. Raises InputError for
    what is no test.
    """
    options = Options(engine, budget, bound)
    with within_budget(budget):
        models = (api.load(model),)
        if isinstance(what, HandOverPlan):
            return sync_pipeline(what, models, options, costs=costs, seconds=seconds)
        source = api.read(what)
        wanted = Strip(strip)
        return synchronize(source.name, source.text, models, options, strip=wanted, costs=costs, seconds=seconds)


def sync_pipeline(
    pipeline: HandOverPlan,
    models: tuple[Model, ...],
    options: Options,
    *,
    costs: Costs = DEFAULT,
    seconds: float = 60.0,
    progress: Callable[[int], None] | None = None,
) -> Synchronized:
    """The cheapest way to signal the hand-overs of a pipeline, with what it needs to be right."""
    until = monotonic() + seconds
    # A name that is a word of PTX, and the like, is pointed at in the text.
    ways = sorted(skeletons(pipeline), key=lambda way: program_cost(api.lowered(Source(pipeline.name, way[1])), costs))
    best: Synchronized | None = None
    first: Synchronized | None = None
    bound, tried, reasons = float("inf"), 0, dict[str, None]()
    for number, (signals, text) in enumerate(ways):
        left = max(until - monotonic(), 0.0) / (len(ways) - number)
        below = None if best is None else best.cost
        found = synchronize(
            pipeline.name, text, models, options, costs=costs, seconds=left, below=below, progress=progress
        )
        found = replace(found, signals=signals)
        first = first or found
        tried += found.tried
        bound = min(bound, found.bound)
        if found.new is not None and (best is None or found.cost < best.cost):
            best = found
        if not found.decided:
            reasons[found.reason] = None
    chosen = best or first
    assert chosen is not None  # no hand-over is one way to signal, too
    if best is not None and bound >= best.cost:
        reasons.clear()
    return replace(
        chosen,
        bound=min(bound, chosen.cost) if best else bound,
        tried=tried,
        reason="; ".join(reasons) or chosen.reason,
    )

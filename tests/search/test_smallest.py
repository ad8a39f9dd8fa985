"""The smallest size on which two models differ: the search, both ways, against every text under both models."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from helpers.examples import share

from memmodel import api
from memmodel.base.resources import axioms_dir
from memmodel.search.edits.comparing import ComparedModels
from memmodel.search.programs import Ready, Specimen
from memmodel.search.sketches import Body, Sketch
from memmodel.search.solving.task import SolvingTask
from memmodel.search.tasks import DifferenceTask
from memmodel.search.vocabulary import Vocabulary, vocabulary
from memmodel.search.work import HereAndNow, run

EDITS = {
    "implicit": ("override let D3-implicit = WGMMA | CLC", "copy.in,wait.acquire,ld.shared.weak", 3),
    "wait::st": ("override let waited = 0", "tcgen05.st,tcgen05.ld,tcgen05.wait::st", 3),
    "observed": ("override let observed = rf", "ld.weak,ld.relaxed,st.weak", 3),
    "group": ("override let completes = performed", "copy.out,wait_group,st.shared.weak", 3),
    "red": ("override let conflict = ((W * W) & loc) \\ (id | IW * _ | _ * IW)", "red.relaxed,ld.relaxed,st.weak", 2),
    "alias": ("override let alias-step = 0", "ld.alias,st.weak,fence.proxy.alias", 3),
    "init": ("override let after-init = [MBINIT] ; (initialised | po)", "init,arrive.release,wait.acquire", 3),
    "inval": ("override let object-forced = mbarobs+", "inval,arrive.relaxed,wait.relaxed", 3),
}
"""A changed rule, words with which it may show, the largest size that every text is tried of."""


def every_text(words: Vocabulary, size: int) -> list[Specimen]:
    """Every program of up to so many instructions, fences included, in one CTA, also such as searches leave out."""
    accesses = words.accesses
    uses = [
        (number, places)
        for number, ingredient in enumerate(accesses)
        for places in product(range(words.locations), repeat=len(ingredient.places))
    ]
    bodies = [body for length in range(size + 1) for body in product(uses, repeat=length)]
    specimens = []
    for threads in product(bodies, repeat=words.threads):
        if 0 < sum(map(len, threads)) <= size:
            specimens += [it for it in _spelt(tuple(filter(None, threads)), words, size) if it.size <= size]
    return specimens


def _spelt(threads: tuple[Body, ...], words: Vocabulary, size: int) -> list[Specimen]:
    ready = Ready(Sketch(threads, tuple((0, 0, 0) for _ in threads)), words, size)
    return [ready.specimen(choice) for choice in product(*map(range, ready.grid.sizes))]


@pytest.mark.parametrize("name", share(EDITS, 8))
def test_no_smaller_program_is_lost(name: str, tmp_path: Path) -> None:
    rule, names, size = EDITS[name]
    words = vocabulary(names.split(","), ("cta",), 2, 1, ("one",))
    path = tmp_path / "edited.cat"
    path.write_text(f'"edited"\ninclude "{axioms_dir() / "ptx-9.4.cat"}"\n{rule}\n')
    comparison = ComparedModels((api.load("ptx-9.4"), api.load(str(path))))
    texts = {it.text("exists (true)"): it.size for it in every_text(words, size)}
    differ = [size for text, size in texts.items() if comparison.differ(api.lowered(text)) is not None]
    for task in (SolvingTask, DifferenceTask):
        results = run(task("ptx-9.4", str(path), words, size, False), HereAndNow(), enough=bool).results
        found = min((int(record["size"]) for record in results), default=None)
        assert found == min(differ, default=None)

"""A short run is mostly start-up: what a plain check loads, and analyses that are cheap and still right."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import pytest
from helpers.patience import PATIENCE

from memmodel.cat.load import load_model, parse_model
from memmodel.cat.monotonicity import effect_of_more
from memmodel.enumeration.code import code_of
from memmodel.enumeration.plan import Plan
from memmodel.source import Source

WATCH = """
import sys
from memmodel.cli import main
from memmodel.why import limited
limited.QUICK = limited.MOST = float(sys.argv[2])
try:
    main(["check", sys.argv[1]])
except SystemExit as left:
    code = left.code
heavy = {"z3", "lark", "rich", "pydantic", "networkx", "ctypes", "difflib", "xml", "tomllib",
         "memmodel.cat.resolve", "memmodel.cat.text", "memmodel.cat.decisions", "memmodel.report.readings",
         "memmodel.library", "memmodel.cli.listing", "memmodel.why.stuck", "memmodel.program.warp_ops",
         "memmodel.ptx.module.syntax"}
print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def test_a_warm_check_loads_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMMODEL_CACHE", str(tmp_path))
    monkeypatch.delenv("MEMMODEL_MODELS")
    runs = []
    for _ in range(2):  # each with no reason cut short on a loaded machine
        command = [sys.executable, "-c", WATCH, "litmus/generic/G21-SB.litmus", str(PATIENCE)]
        runs.append(subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE))
    assert runs[0].stdout == runs[1].stdout, "what is kept prints as what is fresh"
    assert runs[1].stderr == "0 []\n"


MODEL = """
let plain = po | rf
let turned = ~rf & po
let less = po \\ (co ; rf)
let both = rf | (po \\ rf)
let rec even = turned ; odd and odd = po | less ; even
acyclic plain as plain
irreflexive turned as turned
empty less as less
~empty less as not-less
acyclic both as both
acyclic even as even
empty po as none
"""

EFFECTS = {
    "plain": (1,),
    "turned": (-1,),
    "less": (-1,),
    "not-less": (1,),
    "both": (1, -1),
    "even": (-1,),
    "none": (),
}


def test_what_more_of_a_base_relation_does_to_each_check():
    model = parse_model(Source("m.cat", MODEL))
    assert effect_of_more(model, "rf") == {name: frozenset(signs) for name, signs in EFFECTS.items()}
    assert {name for name, signs in effect_of_more(model, "co").items() if signs} == {"less", "not-less", "even"}
    assert not any(effect_of_more(model, "si").values())


@pytest.mark.parametrize("name", ["ptx-9.4", "total"])
def test_a_model_less_an_axiom_shares_the_code_and_has_the_stages_of_its_own(name):
    model = load_model("docs/examples/total.cat" if name == "total" else name)
    flags = [check.name for check in model.flags]
    whole = Plan(model, flags)
    for check, wanted in product(model.axioms, ([], flags)):
        less = model.without(check.name)
        assert code_of(less.definitions) is code_of(model.definitions)
        plan = Plan(less, wanted)
        for mine, its in zip(plan.stages, whole.stages, strict=True):
            left = {test.check.name for test in its.axioms} - {check.name}
            assert {test.check.name for test in mine.axioms} == left
            assert {test.check.name for test in mine.flags} == {one.check.name for one in its.flags if wanted}
        assert plan.size >= max(plan.slots.values())

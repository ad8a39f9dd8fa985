"""The lines of docs/from-cuda.md are accepted as they stand, docs/glossary.md names what ptx-9.4 defines, and every
command is in the documentation."""

from __future__ import annotations

import re

import click
import pytest
from helpers.places import ROOT

from memmodel import api
from memmodel.base.relations import RELATION_ROWS
from memmodel.base.sets import SET_ROWS
from memmodel.cli.app import COMMANDS, app
from memmodel.isa.lower import lower_test
from memmodel.litmus import parse_litmus
from memmodel.source import Source

DOCS = ROOT / "docs"
ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+;)`")
PROGRAM = """PTX line
.global .u32 x = 0;
.global .align 128 .b32 far[16];
.global .align 128 .b32 s_global[16];
.shared .align 128 .b32 d[16];
.shared .align 128 .b32 s_shared[16];
.shared .b64 bar = mbarrier(1);
.shared .u32 p;
.tensor .b32 acc[32];
.const .align 64 .b8 map[128] = tensormap(far, {16});

thread P0 @ cta 0, cluster 0, gpu 0 {
    .reg .pred %%p;
    mapa.shared::cluster.u64 %%a, bar, 0;
    mbarrier.arrive.shared::cta.b64 %%s, [bar];
    mov.u32 %%t, 0;
    %s
}
exists true
"""
MEANT = {"id, n": "1, 32", " n;": " 1;", " n,": " 16,", " p, r": " bar, 0", ", p;": ", 0;"}
"""What stands for a number or an address of the kernel in the table."""


def lines() -> list[str]:
    found = [line for row in ROW.findall((DOCS / "from-cuda.md").read_text()) for line in CODE.findall(row)]
    return list(dict.fromkeys(part.strip() + ";" for line in found for part in line.split(";") if part.strip()))


@pytest.mark.parametrize("line", lines())
def test_each_litmus_line_is_accepted(line: str) -> None:
    for word, value in MEANT.items():
        line = line.replace(word, value)
    source = "s_global" if ".shared::cluster.global" in line or ".shared.global" in line else "s_shared"
    lower_test(parse_litmus(Source("line.litmus", PROGRAM % line.replace("[s]", f"[{source}]"))))


def test_the_glossary_names_what_the_model_defines() -> None:
    model = api.load("ptx-9.4")
    known = {*SET_ROWS, *RELATION_ROWS, *(definition.name for definition in model.definitions)}
    named = [
        name
        for row in ROW.findall((DOCS / "glossary.md").read_text())
        if row.count("|") == 3
        for name in re.findall(r"`([\w-]+)`", row.split("|")[2])
    ]
    assert len(named) > 30
    assert [name for name in named if name not in known] == []


def test_each_command_has_its_page() -> None:
    text = "".join(page.read_text() for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"])
    assert [name for name in COMMANDS if f"memmodel {name}" not in text] == []


def test_each_option_has_its_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (*DOCS.glob("*.md"), ROOT / "README.md"))
    words = set(re.findall(r"--[a-z-]+", pages))
    commands = {name: app.get_command(click.Context(app), name) for name in COMMANDS}
    options = {
        (name, option)
        for name, command in commands.items()
        for parameter in (command.params if command is not None else ())
        for option in parameter.opts
        if option.startswith("--")
    }
    assert sorted((name, option) for name, option in options if option not in words) == []

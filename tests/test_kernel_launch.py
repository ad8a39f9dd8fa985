"""Launch descriptions: what is taken, what is refused, and the template of a signature."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_samples import HEAD, entry, launch, module

from memmodel.errors import InputError
from memmodel.kernel.launch import parse_launch, schema, template
from memmodel.kernel.machine.memory import DeviceMemory
from memmodel.kernel.text.reader import parse_module
from memmodel.source import Source

GOOD: dict[str, Any] = {"grid": [1, 1, 1], "block": [32, 1, 1]}
POINTER = {"name": "p", "type": "ptr", "address": "0x1000", "bytes": 64}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block": [1025, 1, 1]}, "at most 1024 threads"),
        ({"grid": [3, 1, 1], "cluster": [2, 1, 1]}, "no multiple of the cluster"),
        ({"params": [{"name": "x", "type": "ptr"}]}, "has an address"),
        ({"params": [{"name": "x", "type": "u31", "value": 1}]}, "is no type"),
        ({"params": [{"name": "x", "type": "u32"}]}, "has a value"),
        ({"params": [{"name": "x", "type": "u32", "value": 1.5}]}, "whole number"),
        ({"params": [{"name": "x", "type": "bytes", "hex": "0g"}]}, "hex"),
        ({"colour": 1}, "colour"),
        ({"grid": [0, 1, 1]}, "grid"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_launch({**GOOD, **change})
    assert words in caught.value.message


def test_template_of_a_signature_is_a_launch() -> None:
    text = (
        HEAD + ".entry e(.param .u64 a, .param .f32 b, .param .align 8 .b8 c[16], .param .u32 d) .reqntid 96 { ret; }"
    )
    found = template(parse_module(Source("e.ptx", text)).functions["e"])
    assert found["block"] == [96, 1, 1]
    assert [one["type"] for one in found["params"]] == ["ptr", "fp32", "bytes", "u32"]
    assert parse_launch(found).threads == 96


def test_schema_names_the_fields() -> None:
    assert {"grid", "block", "cluster", "params", "tensormaps"} <= set(schema()["properties"])


def test_memory_holds_parameters_and_contents() -> None:
    read = module("")
    memory = DeviceMemory(read, entry(read), launch(init="iota"))
    assert memory.params.load(0, 8) == 0x100000000
    block = memory.find(0x100000010)
    assert block is not None and block.load(0x10, 4) == 4
    assert memory.find(0x100000000 - 1) is None
    block.store(0x10, 1, None)
    assert block.load(0x10, 4) is None and block.load(0x11, 1) == 0


def test_overlapping_buffers_are_refused() -> None:
    read = module("")
    with pytest.raises(InputError, match="overlap"):
        DeviceMemory(
            read, entry(read), parse_launch({**GOOD, "params": [POINTER], "buffers": [{"address": 4096, "bytes": 8}]})
        )

"""The parameters of a launch that are addresses, and the numbers that it gives."""

from __future__ import annotations

from itertools import product
from typing import Any

from helpers.kernel.samples import HEAD, entry

from memmodel.kernel.all_sizes.launch_numbers import number_of, pointers, with_number
from memmodel.kernel.all_sizes.parameters import ParamPart
from memmodel.kernel.launch import parse_launch
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

TEXT = f"""{HEAD}
.visible .entry k(.param .u64 p, .param .u64 n, .param .align 8 .b8 s[24])
{{
ret;
}}
"""
LAUNCH: dict[str, Any] = {
    "grid": [1, 1, 1],
    "block": [32, 1, 1],
    "params": [
        {"name": "p", "type": "ptr", "address": "0x100000000", "bytes": 64},
        {"name": "n", "type": "u64", "value": 7},
        {
            "name": "s",
            "type": "bytes",
            "fields": [
                {"offset": 0, "type": "u64", "value": 3},
                {"offset": 8, "type": "ptr", "address": "0x200000000", "bytes": 64},
                {"offset": 16, "type": "u32", "value": 5},
            ],
        },
    ],
}


def test_addresses_of_buffers_are_told_from_numbers_of_their_size() -> None:
    """A number that a loop counts to is no address, of 64 bits either."""
    k = entry(parse_module(Source("k.ptx", TEXT)))
    launch = parse_launch(LAUNCH)
    assert pointers(k, launch) == {ParamPart("p", 0, 8), ParamPart("s", 8, 8)}
    numbers = [ParamPart("n", 0, 8), ParamPart("s", 0, 8), ParamPart("s", 16, 4)]
    assert [number_of(k, launch, part) for part in numbers] == [7, 3, 5]


def test_the_number_of_a_part_that_is_given_as_bytes() -> None:
    k = entry(parse_module(Source("k.ptx", TEXT)))
    given = {"name": "s", "type": "bytes", "hex": "030000000000000000000000020000000500000007000000"}
    launch = parse_launch({**LAUNCH, "params": [*LAUNCH["params"][:2], given]})
    assert [number_of(k, launch, ParamPart("s", at, size)) for at, size in ((0, 8), (8, 8), (16, 4))] == [3, 2 << 32, 5]


def test_a_launch_with_another_number_there() -> None:
    """Behind bytes that nothing says, and in what is no parameter, there is none."""
    k = entry(parse_module(Source("k.ptx", TEXT)))
    unknown = {"name": "s", "type": "bytes"}
    for params, part in (
        (LAUNCH["params"], ParamPart("n", 0, 8)),
        (LAUNCH["params"], ParamPart("s", 16, 4)),
        ([*LAUNCH["params"][:2], unknown], ParamPart("s", 0, 8)),
        ([*LAUNCH["params"][:2], {**unknown, "hex": 24 * "11"}], ParamPart("s", 16, 4)),
    ):
        changed = with_number(k, parse_launch({**LAUNCH, "params": params}), part, 258)
        assert changed is not None
        assert number_of(k, changed, part) == 258
    for given, part in ((unknown, ParamPart("s", 16, 4)), (LAUNCH["params"][2], ParamPart("other", 0, 8))):
        launch = parse_launch({**LAUNCH, "params": [*LAUNCH["params"][:2], given]})
        assert with_number(k, launch, part, 258) is None
    assert number_of(k, parse_launch(LAUNCH), ParamPart("other", 0, 8)) is None


def test_parts_that_have_a_byte_in_common() -> None:
    parts = [ParamPart("s", at, size) for at in range(6) for size in (1, 2, 4)]
    for first, second in product(parts, parts):
        common = {*range(first.offset, first.offset + first.size)} & {
            *range(second.offset, second.offset + second.size)
        }
        assert first.meets(second) is bool(common) and not first.meets(second._replace(name="n"))

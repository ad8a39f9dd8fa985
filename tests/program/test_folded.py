"""What instructions compute is what ptxas computes from the same numbers (helpers/folded.py wrote the table)."""

from __future__ import annotations

from collections import defaultdict

import pytest
from helpers.computed import computed
from helpers.folded import TABLE, width_of

CASES: defaultdict[str, list[tuple[tuple[int, ...], int]]] = defaultdict(list)
for _line in TABLE.read_text(encoding="utf-8").splitlines():
    _opcode, _numbers, _result = _line.split("\t")
    CASES[_opcode].append((tuple(map(int, _numbers.split())), int(_result)))


@pytest.mark.parametrize("opcode", CASES)
def test_ptxas_computes_the_same(opcode: str) -> None:
    mask = (1 << width_of(opcode, None)) - 1
    for numbers, result in CASES[opcode]:
        value = computed(opcode, *numbers)
        assert value is not None and value & mask == result, (opcode, numbers)


def test_the_table_has_most_instructions_on_integers() -> None:
    assert len(CASES) > 140 and sum(map(len, CASES.values())) > 1000

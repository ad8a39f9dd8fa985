"""Places in texts (`memmodel.source`)."""

from __future__ import annotations

import random
import tracemalloc

from memmodel.source import Source


def test_the_line_of_every_place_in_long_and_short_texts() -> None:
    chance = random.Random(1)
    for size in (0, 1, 2, 4095, 4096, 4097, 8192, 20_000):
        source = Source("t", "".join(chance.choices("ab\n", (9, 9, 1), k=size)))
        places = range(size + 1) if size < 9 else {*chance.sample(range(size), 300), 4095, size - 1, size}
        for at in places:
            assert source.span(at, at).line == source.text.count("\n", 0, at) + 1


def test_a_place_in_a_text_of_nothing_but_lines_takes_no_memory() -> None:
    source = Source("t", "\n" * 5_000_000)
    tracemalloc.start()
    try:
        assert source.span(4_999_999, 5_000_000).line == 5_000_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()

"""Which accesses are aligned by the layout of the run alone, and of which variable that is said."""

from __future__ import annotations

import pytest

from memmodel.kernel.trace.blocks import AlignedVariable, Alignments


@pytest.mark.parametrize(("at", "align", "said"), [
    (4, 8, None),  # before all variables
    (16, 4, None), (16, 8, ("a", 8, "at a multiple of 8")), (20, 8, ("a", 8, "4 bytes behind a multiple of 8")),
    (31, 2, None), (31, 16, ("a", 16, "1 bytes behind a multiple of 16")),
    (32, 16, None),  # behind it: nothing says where that lies
    (48, 16, None), (48, 32, ("b", 32, "at a multiple of 32")), (63, 16, None), (64, 32, None),
])  # fmt: skip
def test_an_access_is_aligned_by_chance_where_its_variable_needs_less(
    at: int, align: int, said: tuple[str, int, str] | None
) -> None:
    """a: 16 bytes of .align 4 from 16; b: 16 bytes of .align 16 from 48."""
    trusted: dict[str, tuple[int, str]] = {}
    both = Alignments([AlignedVariable(48, 64, 16, "b"), AlignedVariable(16, 32, 4, "a")], trusted)
    both.trust(at, align)
    if said is None:
        assert trusted == {}
        return
    name, most, where = said
    own = {"a": 4, "b": 16}[name]
    assert trusted == {name: (most, f"{name}, of .align {own}, lies {where}")}
    both.trust(at, align // 2)  # what needs less says nothing new
    both.trust({"a": 18, "b": 50}[name], align)  # nor does what needs as much
    assert trusted == {name: (most, f"{name}, of .align {own}, lies {where}")}
    assert both.least == 4

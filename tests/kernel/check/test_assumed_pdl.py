"""A launch that waits for the one before it: what that one did is an assumption of the verdict."""

from __future__ import annotations

from helpers.kernel.samples import judged


def test_a_wait_for_the_launch_before_is_assumed() -> None:
    waits = judged("griddepcontrol.wait;\nld.global.b32 %r9, [%d0];")
    assert waits.word == "clean"
    assert [needs for what, needs in waits.assumptions.items() if "the launch before" in what] == [
        "a litmus test of both grids"
    ]
    assert not judged("griddepcontrol.launch_dependents;").assumptions

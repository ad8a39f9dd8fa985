"""Why an answer is undecided, in words that both engines use."""

from __future__ import annotations

from memmodel.litmus.syntax import Instruction

CIRCULAR = (
    "an execution was found in which values support themselves, which no axiom of the model forbids, and what numbers"
    " would fit was not found: --engine enumerate tries the constants of the test"
)


def beyond_the_bound(jump: Instruction, bound: int, enough: int | None) -> str:
    """A loop goes round more often than it was followed. `enough`: the least bound that would do, if one is known."""
    where = f"the loop that ends at {jump.span}" if jump.span else "a loop"
    advice = f"--bound {enough} would do" if enough is not None else "no bound was found that would do"
    return f"{where} may go round more than {bound} times, and no further was it followed: {advice}"


def not_modelled(reason: str, instruction: Instruction) -> str:
    """An execution does something that the model does not know."""
    where = f" at {instruction.span}" if instruction.span else ""
    return f"some execution comes{where} to what is not modelled: {reason}"


def mixed_sizes() -> str:
    """The axioms say nothing of a program with such a race."""
    return (
        "accesses of different sizes race, and of a program in which they do the model says nothing "
        '("Limitations on Mixed-size Data-races")'
    )

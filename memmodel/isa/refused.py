"""Instructions of the PTX ISA, and spellings that ptxas takes, which the table refuses by name.

In: nothing. Out: `REFUSED`, with the reason of each, and `refusal`. A word of an instruction that the table has is
refused in its row (`refusing`).
"""

from __future__ import annotations

from collections.abc import Mapping

from memmodel.isa.rows.slots import Slot

SPELLING = "ptxas takes it, and no page of the PTX ISA says what it does"
"""The reason for an instruction of which only the spelling is known."""

_TENSOR = "no tensor of a test lies behind a logical endpoint"
_SPARSE = "the contents of matrices are not followed where they are compressed"
_MEMBAR = "ptxas has no such instruction; write fence.proxy.async with the state space"

REFUSED: Mapping[str, str] = {
    "fabric.submit.commit_group": SPELLING,
    "fabric.try_get.async.tensor": _TENSOR,
    "fabric.try_put.async.tensor": _TENSOR,
    "fabric.try_red.async.tensor": _TENSOR,
    "fence.alias": SPELLING,
    "membar.proxy.async.global": _MEMBAR,
    "membar.proxy.async.shared::cluster": _MEMBAR,
    "membar.proxy.async.shared::cta": _MEMBAR,
    "spcompress": _SPARSE,
    "spdecompress": _SPARSE,
    "tcgen05.ld.red.spcompress": _SPARSE,
    "tcgen05.ld.spcompress": _SPARSE,
    "trace.mark": SPELLING,
}
"""The beginnings of mnemonics. The longest one that fits says why."""


def refusal(mnemonic: str) -> tuple[str, str] | None:
    """The longest beginning of a mnemonic that is refused by name, and why."""
    parts = mnemonic.split(".")
    heads = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next(((head, REFUSED[head]) for head in heads if head in REFUSED), None)


NO_OVERLAP = "no_membermask_overlap"
"""A word that ptxas accepts at the end of instructions with a mask of lanes."""


def refusing(reason: str, *words: str, hint: str = "drop .{word}") -> Slot:
    """A slot of words that an instruction has in the PTX ISA, or in ptxas, and the table refuses, with the reason."""
    refused = {word: (f"{{head}}.{word} is not modelled: {reason}", hint.replace("{word}", word)) for word in words}
    return Slot("refused", (), "qualifier", refused=refused)

"""Special registers: what a thread knows of the launch and of itself.

In: the name of one. Out: its values in the lanes of a warp. Source: PTX ISA "Special Registers".
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.kernel.machine.memory import RESERVED, WORKSPACE_START
from memmodel.kernel.machine.parts import Warp
from memmodel.kernel.machine.rows import UNKNOWN, Row, uniform

# %warpid is where a thread is at the moment, and may change: no number that follows from %tid. %nwarpid counts such.
UNKNOWN_SPECIAL = ("%clock", "%globaltimer", "%warpid", "%nwarpid", "%smid", "%pm", "%envreg", "%gridid", "%nsmid",
                   "%total_smem_size", "%aggr_smem_size", "%current_graph_exec")  # fmt: skip
RESERVED_WORD = "%reserved_smem_offset_"
WORKSPACE_WORDS = {"%envreg1": 32, "%envreg2": 0}


def special(name: str) -> Callable[[Warp], Row]:
    """The values of a special register; a whole vector (%tid) and its fourth element are not followed."""
    if name in WORKSPACE_WORDS:
        word = uniform(WORKSPACE_START >> WORKSPACE_WORDS[name] & 0xFFFFFFFF)
        return lambda warp: word
    if name.startswith(RESERVED_WORD):
        place = uniform(RESERVED.get(name[len(RESERVED_WORD) :]))
        return lambda warp: place
    if name.startswith(UNKNOWN_SPECIAL):
        return lambda warp: UNKNOWN
    return lambda warp: warp.special.get(name, UNKNOWN)

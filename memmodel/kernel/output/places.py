"""Places in the text that the user wrote, and the names that they have there.

In: an instruction with its place. Out: places, those of libraries last; the word of CUDA C++.
"""

from __future__ import annotations

import re

from memmodel.ptx.module.names import base_name, demangled, without_parameters
from memmodel.ptx.module.syntax import Location, PtxInstruction, with_callers
from memmodel.ptx.operands import Imm

LIBRARY = re.compile(
    r"(^|/)(cccl|nvidia/cu\d+|cuda[^/]*/(targets/[^/]+/)?include|cute|cutlass/include|triton/language)/"
)
"""Files that come with the compiler or with a library of templates."""

PTX_LINES = re.compile(
    r"(?<!PTX )\b(?:lines (\d+\b(?:(?:, | and |, and )\d+\b(?! (?:alike|more)\b))+)|line (\d+)\b)(?! of the PTX)"
)
"""Lines of the PTX in a sentence, as every reason names them. How many more there are may follow."""

INLINE_NAMESPACE = re.compile(r"\b((__|_INTERNAL_)\w+::)+")
"""What compilers put around a name: the version of a library, and the file that keeps it to itself."""

WORDS = {
    "bar.sync": "__syncthreads()",
    "barrier.sync": "__syncthreads()",
    "bar.warp.sync": "__syncwarp()",
    "barrier.cluster.arrive": "cluster.sync()",
    "barrier.cluster.wait": "cluster.sync()",
    "fence.acq_rel.cta": "__threadfence_block()",
    "fence.sc.cta": "__threadfence_block()",
    "membar.cta": "__threadfence_block()",
    "fence.acq_rel.gpu": "__threadfence()",
    "fence.sc.gpu": "__threadfence()",
    "membar.gl": "__threadfence()",
    "fence.sc.sys": "__threadfence_system()",
    "membar.sys": "__threadfence_system()",
    "atom": "an atomic function",
    "red": "an atomic function",
}
"""What a kernel of CUDA C++ calls instructions, by how these begin."""

WHOLE_CTA = "__syncthreads()"
PYTHON = ".py"


def is_library(file: str) -> bool:
    """True for a file that comes with the compiler or a library."""
    return LIBRARY.search(file) is not None


def places(location: Location | None) -> list[Location]:
    """The places in the source, those in libraries last."""
    return sorted(with_callers(location), key=lambda place: is_library(place.file))


def on_disk(instruction: PtxInstruction) -> bool:
    """True if its PTX lies in a file. That of a compiled source does not, and its places are those of the source."""
    return instruction.span.source.in_file


def cuda_word(instruction: PtxInstruction) -> str:
    """What the source calls an instruction: the function of a library that it comes from, or a built-in one; nothing
    if it is not known.
    """
    inlined = list(with_callers(instruction.location))
    own = next((at for at, place in enumerate(inlined) if not is_library(place.file)), 0)
    if own > 0 and inlined[own - 1].function:
        return called(inlined[own - 1].function)
    if inlined and inlined[own].file.endswith(PYTHON):
        return ""
    opcode = instruction.opcode
    fitting = (word for begin, word in WORDS.items() if f"{opcode}.".startswith(f"{begin}."))
    word = next(fitting, "")
    named = word == WHOLE_CTA and instruction.operands != (Imm(0),)  # by its number, or by how many threads come
    return "" if named else word


def called(function: str) -> str:
    """A function as it is called: without parameters, arguments of templates, and versions of the library."""
    scope = without_parameters(function) if demangled(function) != function else function
    name = base_name(function)
    head = scope.split("<")[0].rpartition("::")[0]
    return f"{INLINE_NAMESPACE.sub('', head + '::')}{name}()" if head else f"{name}()"

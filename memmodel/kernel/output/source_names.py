"""Sentences about lines of the PTX and its parameters, in the names of the source that was compiled.

In: a verdict; sentences that name lines of the PTX. Out: the same sentences. Settled here: every reason is written with
lines of the PTX, which the source has where a user wrote it; what no user wrote or sees is named by the
source when it is printed. JSON keeps the lines of the PTX.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.output.places import PTX_LINES, places
from memmodel.ptx.module.syntax import Location


class SourceNames:
    """The names of the source for lines of the PTX and for parameters. Without any, sentences stay as they are."""

    def __init__(self, sources: Mapping[int, Location] = {}, params: Mapping[str, str] = {}) -> None:
        self._sources, self._params = sources, params
        longest_first = sorted(params, key=len, reverse=True)
        self._param = re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})\b") if params else None

    def sentence(self, text: str) -> str:
        """A sentence with places of the source in place of lines."""
        if self._param is not None:
            text = self._param.sub(lambda name: self._params[name[0]], text)
        return PTX_LINES.sub(self._placed, text) if self._sources else text

    def lines(self, numbers: Iterable[int], few: int) -> str:
        """Lines as `line 4`, or as places; of many, only the first few."""
        shown = list(dict.fromkeys(self._place(number) for number in numbers)) if self._sources else []
        if not shown:
            shown = [str(number) for number in numbers]
        word = "" if self._sources else f"line{'s' if len(shown) > 1 else ''} "
        return word + ", ".join(shown[:few]) + (", …" if len(shown) > few else "")

    def _placed(self, lines: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", lines[0])]
        if not any(number in self._sources for number in numbers):
            return lines[0]
        *first, last = dict.fromkeys(self._place(number) for number in numbers)
        return f"{', '.join(first)} and {last}" if first else last

    def _place(self, number: int) -> str:
        location = self._sources.get(number)
        return f"line {number} of the PTX" if location is None else str(places(location)[0])


def source_names(verdict: KernelVerdict, *, everywhere: bool = False) -> SourceNames:
    """The names of the source, where the PTX lies in no file or `everywhere`; otherwise none, which changes nothing."""
    if not (verdict.compiled or everywhere):
        return SourceNames()
    own = (f"{verdict.entry}_param_{number}" for number in range(len(verdict.launch.params)))
    params = {written: param.name for written, param in zip(own, verdict.launch.params, strict=True) if param.name}
    return SourceNames(verdict.sources, params)

"""How `memmodel kernel` prints verdicts: as text, JSON and SARIF.

In: verdicts as they stand. Out: lines, files, an exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memmodel.cli.exits import Exit, say, worst, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memmodel.cli.kernels.kept import KernelAnswer
    from memmodel.cli.kernels.request import KernelRequest
    from memmodel.kernel.order.verdict import KernelVerdict
    from memmodel.kernel.repair.search import KernelRepairs


def say_verdict(verdict: KernelVerdict, *, statistics: bool) -> None:
    """Print a verdict as text."""
    from memmodel.kernel.output.text import lines

    say("\n".join(lines(verdict, statistics=statistics)))


class KernelOutput:
    """Where a verdict goes: first as it stands, then what is asked beyond it, which may be cut short."""

    def __init__(self, asked: KernelRequest) -> None:
        self._asked = asked
        self._text = "-" not in (asked.json_out, asked.sarif_out)
        self._notes = 0

    def verdict(self, verdict: KernelVerdict) -> None:
        """A verdict on the launch stands."""
        self._notes = len(verdict.notes)
        if self._text and not self._asked.short:
            say_verdict(verdict, statistics=self._asked.statistics)
        self._write(verdict, None)

    def after_verdict(self, verdict: KernelVerdict, repairs: KernelRepairs | None = None) -> Exit:
        """Say what comes after the verdict; returns the exit code."""
        from memmodel.kernel.output.source_names import source_names
        from memmodel.kernel.output.text import beyond, repair_lines, short

        more = [f"note: {note}" for note in verdict.notes[self._notes :]] + beyond(verdict, source_names(verdict))
        more += [] if repairs is None else repair_lines(repairs)
        if self._text and self._asked.short:
            say(short(verdict, self._asked.file))
        elif self._text and more:
            say("\n".join(more))
        self._write(verdict, repairs, last=True)
        if repairs is not None and repairs.signal is not None:
            raise repairs.signal
        return exit_code(verdict)

    def kept_answer(self, answer: KernelAnswer) -> Exit:
        """Print an answer that was kept."""
        if self._text:
            say(answer.short if self._asked.short else answer.text)
        if self._asked.json_out:
            write_json(self._asked.json_out, answer.record)
        if self._asked.sarif_out:
            write_json(self._asked.sarif_out, answer.sarif)
        return Exit(answer.code)

    def several(self, verdicts: Iterable[KernelVerdict], count: int) -> Exit:
        """The verdicts on launches in the order of a stream, each as it comes; the worst exit code."""
        from memmodel.kernel.output.record import record
        from memmodel.kernel.output.sarif import sarif
        from memmodel.kernel.output.text import short

        judged = []
        for number, verdict in enumerate(verdicts, 1):
            judged.append(verdict)
            if self._text and self._asked.short:
                say(short(verdict, verdict.launch.module or self._asked.file))
            elif self._text:
                say(f"launch {number} of {count}:")
                say_verdict(verdict, statistics=self._asked.statistics)
        if self._asked.json_out:
            files = (verdict.launch.module or self._asked.file for verdict in judged)
            write_json(
                self._asked.json_out, [record(verdict, file=file) for verdict, file in zip(judged, files, strict=True)]
            )
        if self._asked.sarif_out:
            write_json(self._asked.sarif_out, sarif(judged))
        return worst(map(exit_code, judged))

    def _write(self, verdict: KernelVerdict, repairs: KernelRepairs | None, *, last: bool = False) -> None:
        """Standard output is written once, with all that is known in the end."""
        from memmodel.kernel.output.record import record
        from memmodel.kernel.output.sarif import sarif

        json_out, sarif_out = (
            file if last or file != "-" else None for file in (self._asked.json_out, self._asked.sarif_out)
        )
        if json_out:
            write_json(json_out, record(verdict, repairs, self._asked.file))
        if sarif_out:
            write_json(sarif_out, sarif([verdict]))


def exit_code(verdict: KernelVerdict) -> Exit:
    """The worse of that of the verdict, and of what was asked beyond it."""
    codes = {"clean": Exit.AS_EXPECTED, "findings": Exit.DIFFERS, "depends": Exit.DIFFERS}
    each = [codes.get(word, Exit.UNDECIDED) for word in (verdict.word, *verdict.smaller.values())]
    each += [Exit.DIFFERS for answer in verdict.beyond.values() if answer.startswith("no:")]
    each += [Exit.UNDECIDED for answer in verdict.beyond.values() if "not shown" in answer]
    return next((code for code in (Exit.DIFFERS, Exit.UNDECIDED) if code in each), Exit.AS_EXPECTED)

"""A verdict on a launch as text.

In: KernelVerdict. Out: lines.
"""

from __future__ import annotations

from memmodel.kernel.order.verdict import FindingPlace, KernelVerdict
from memmodel.kernel.output.groups import FindingGroup, groups
from memmodel.kernel.repair.search import KernelRepairs
from memmodel.ptx.module.syntax import Location

SHOWN, FEW = 20, 3
LONGEST_NAME = 80
"""Characters of the name of an entry: those of templates have thousands."""


def lines(verdict: KernelVerdict, *, statistics: bool = False) -> list[str]:
    """The verdict, then each finding with its places, those first that change it, then what is open."""
    found = [headline(verdict)]
    if statistics:
        found += figures(verdict)
    grouped = sorted(groups(verdict.findings), key=lambda one: one.first.harmless)
    for one in grouped[:SHOWN]:
        found += _finding(one)
    if len(grouped) > SHOWN:
        found.append(f"and {len(grouped) - SHOWN} more findings")
    if verdict.choices:
        number = "the only schedule" if verdict.explored == 1 else f"all {verdict.explored} schedules"
        found.append(f"{number} explored:" if verdict.exhaustive else f"{verdict.explored} schedules explored:")
        found += _first(verdict.choices)
    if verdict.open:
        found.append("not settled for every schedule:" if verdict.findings or verdict.choices else "undecided:")
        found += _first(verdict.open)
    for reading in verdict.readings:
        found.append(f"depends on {reading.name}: {reading.answer}")
        found += [f"  with it, no {_short(one)}" for one in groups(reading.gone)[:SHOWN]]
        new = groups(reading.new)
        found += [f"  with it, {_short(one)}" for one in new[:FEW]]
        found += [f"  with it, {len(new) - FEW} more findings that the default has not"] if len(new) > FEW else []
    found += [f"{question}: {answer}" for question, answer in verdict.beyond.items()]
    return [*found, *(f"note: {one}" for one in verdict.notes)]


def repair_lines(found: KernelRepairs) -> list[str]:
    """The repairs as diffs, or what comes nearest to one."""
    count, said = len(found.base.serious), []
    if not count:
        return []
    judged = f"{found.tried} change{'s' if found.tried != 1 else ''} judged"
    if not found.repairs:
        ended = "was stopped" if found.signal is not None else "ran out of time"
        why = "no such change is known" if found.complete else f"the search {ended}"
        said.append(f"no repair: {why}; {judged}")
    for number, one in enumerate(found.shown, 1):
        if one.left:
            said.append(f"nearest to it: {len(one.left)} of {count} findings are left:")
        else:
            all_ = f"all {count} findings are" if count > 1 else "the finding is"
            then = "clean for the schedules explored" if one.after.word == "explored" else one.after.word
            said.append(f"repair {number}: {all_} gone, and the verdict is: {then}")
        said += [f"  line {edit.line}: {edit.what}" for edit in one.edits]
        said += one.diff.rstrip("\n").split("\n")
    return said


def headline(verdict: KernelVerdict) -> str:
    """The word, and what it is about."""
    launch = verdict.launch
    grid = "×".join(str(one) for one in launch.grid)
    block = "×".join(str(one) for one in launch.block)
    which = "all CTAs" if not verdict.ctas else "CTAs " + ", ".join(str(one) for one in verdict.ctas)
    word = f"clean for the {verdict.explored} schedules explored" if verdict.word == "explored" else verdict.word
    name = verdict.entry if len(verdict.entry) <= LONGEST_NAME else verdict.entry[: LONGEST_NAME - 1] + "…"
    return f"{word}: {name}, grid {grid}, block {block}, {which}, under {verdict.model}"


def figures(verdict: KernelVerdict) -> list[str]:
    """What the judgement took."""
    numbers = verdict.statistics
    seconds = ", ".join(f"{name} {spent:.1f} s" for name, spent in numbers.seconds.items())
    return [
        f"  {numbers.threads} threads in {numbers.roles} roles, {numbers.instructions:,} instructions, "
        f"{numbers.accesses:,} accesses, {numbers.events:,} events, {numbers.judged:,} judged",
        f"  {numbers.runs} runs; {seconds}",
    ]


def _first(reasons: list[str]) -> list[str]:
    more = [f"  and {len(reasons) - SHOWN} more reasons"] if len(reasons) > SHOWN else []
    return [*(f"  {reason}" for reason in reasons[:SHOWN]), *more]


def _short(group: FindingGroup) -> str:
    finding = group.first
    at = " and ".join(str(line) for line in dict.fromkeys(side.instruction.line for side in finding.sides))
    more = f" and {len(group.others)} alike" if group.others else ""
    return f"{finding.rule} of lines {at}{more}" if at else finding.rule


def _finding(group: FindingGroup) -> list[str]:
    finding = group.first
    head = f"{finding.rule}: {finding.message}" if finding.message else finding.rule
    more = f" ({group.count} alike)" if group.count > 1 else ""
    found = [head + (f", {finding.where}" if finding.where else "") + more]
    if finding.harmless:
        found.append("  does not change the verdict: whichever comes last, the same bytes are left")
    for side in finding.sides:
        found.append(f"  {side.instruction.span}: {side.instruction.opcode}: {side.what}{who(side)}")
        found += [f"    from {one}" for one in locations(side.instruction.location)]
    if finding.reason:
        found.append(f"  missing: {finding.reason}" + (f"; {finding.missing}" if finding.missing else ""))
    for step in finding.way:
        found.append(f"    on the way: {step.instruction.opcode} at line {step.instruction.line}{who(step)}")
    if group.others:
        lines = [str(line) for line in group.lines]
        shown = ", ".join(lines[:SHOWN]) + (", …" if len(lines) > SHOWN else "")
        located = all(side.instruction.location is not None for side in finding.sides)
        found.append(f"  alike{' at the same places of the source' if located else ''}, in PTX lines {shown}")
    return found


def who(side: FindingPlace) -> str:
    """Which thread, and which of its rounds."""
    if side.cta < 0:
        return ""
    turn = f", round {side.turn}" if side.turn else ""
    stage = f", stage {side.stage}" if side.stage >= 0 else ""
    return f", CTA {side.cta} warp {side.warp} lane {side.lane} (role {side.role}){stage}{turn}"


def locations(location: Location | None) -> list[str]:
    """A place in the source, then where it was inlined."""
    found = []
    while location is not None:
        found.append(str(location))
        location = location.caller
    return found

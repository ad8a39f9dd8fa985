"""A verdict on a launch as text.

In: KernelVerdict. Out: lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from memmodel.kernel.order.verdict import Coverage, FindingPlace, KernelFinding, KernelVerdict, rule_in_lines
from memmodel.kernel.output.groups import FindingGroup, groups
from memmodel.kernel.output.places import cuda_word, on_disk, places
from memmodel.kernel.output.source_names import SourceNames, source_names
from memmodel.kernel.repair.search import KernelRepairs
from memmodel.kernel.trace.problems import UNKNOWN_VALUE
from memmodel.ptx.module.names import without_parameters
from memmodel.ptx.module.syntax import Location, PtxInstruction

SHOWN, FEW, FEW_LINES = 20, 3, 6
CLEAN_FOR = {"explored": "clean for the schedules explored", "partial": "clean for the CTAs looked at"}
"""Words of verdicts that are clean in the part that was judged."""
CONTENTS = (
    '  contents of memory are unknown unless they are given: "init", "hex" or "file" in a launch description; in '
    'Python FakeArray(…, init="zero") or Known(array)'
)
"""What gives a run the values that it needed."""
LONGEST_NAME = 80
"""Characters of the name of an entry: those of templates have thousands."""


def lines(verdict: KernelVerdict, *, statistics: bool = False) -> list[str]:
    """The verdict, then each finding with its places, first the findings that change it, then what is open."""
    text, names = [headline(verdict)], source_names(verdict)
    if statistics:
        text += figures(verdict)
    shown = [finding for finding in verdict.findings if not finding.ignored]
    grouped = sorted(groups(shown), key=lambda group: group.first.harmless)
    for group in grouped[:SHOWN]:
        text += finding_lines(group, names)
    if len(grouped) > SHOWN:
        text.append(f"and {len(grouped) - SHOWN} more findings")
    for group in groups(finding for finding in verdict.findings if finding.ignored):
        text.append(f"ignored: {names.sentence(finding_name(group))}: {group.first.ignored}")
    return [*text, *rest(verdict, names)]


def rest(verdict: KernelVerdict, names: SourceNames) -> list[str]:
    """What is open, what other readings say, what was covered and assumed, and what holds beyond the launch."""
    text = list[str]()
    if verdict.choices:
        number = "the only execution was" if verdict.explored == 1 else f"all {verdict.explored} executions were"
        text.append(f"{number} judged:" if verdict.exhaustive else f"{verdict.explored} schedules explored:")
        text += _first(verdict.choices, names)
    if verdict.unsettled:
        text.append("not settled for every schedule:" if verdict.findings or verdict.choices else "undecided:")
        text += _first(verdict.unsettled, names)
        text += [CONTENTS] if any(UNKNOWN_VALUE in reason for reason in verdict.open) else []
    for reading in verdict.readings:
        text.append(f"depends on {reading.name}: {reading.answer}")
        gone, new = groups(reading.gone), groups(reading.new)
        text += [f"  with it, no {names.sentence(finding_name(group))}" for group in gone[:SHOWN]]
        text += [f"  with it, {names.sentence(finding_name(group))}" for group in new[:FEW]]
        text += [f"  with it, {len(new) - FEW} more findings that the default has not"] if len(new) > FEW else []
    if possible := depends_line(verdict):
        text.append(possible)
    if verdict.coverage is not None and (reached := covered(verdict.coverage, names)):
        text.append(f"covered: {reached}")
    text += [f"assumed: {names.sentence(what)}; to drop it: {needs}" for what, needs in verdict.assumptions.items()]
    if verdict.serious:
        text += [f"guessed: {what}; to give it: {how}" for what, how in verdict.launch.guessed.items()]
    text += [f"note: {names.sentence(note)}" for note in verdict.notes]
    return [*text, *beyond(verdict, names)]


def depends_line(verdict: KernelVerdict) -> str:
    """The readings on which a verdict may depend; empty if none is known."""
    names = verdict.possible.names
    if not names:
        return ""
    decisions = _listed(dict.fromkeys(name.split()[0] for name in names))
    have = "has" if len(names) == 1 else "have"
    what = "not all of these findings" if verdict.serious else "findings in this run"
    why = f"{_listed(names)} {have} {what}" if verdict.possible.compared else "not compared in a large run"
    return f"may depend on {decisions}: {why}; see --readings"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def explain_kernel(verdict: KernelVerdict) -> str:
    """The verdict as `memmodel kernel` prints it."""
    return "\n".join(lines(verdict))


def beyond(verdict: KernelVerdict, names: SourceNames) -> list[str]:
    """What a verdict says beyond its launch."""
    text = [f"{question}: {names.sentence(answer)}" for question, answer in verdict.beyond.items()]
    by_word: dict[str, dict[str, list[str]]] = {}
    for what, word in verdict.smaller.items():
        name, equals, value = what.partition(" = ")
        by_word.setdefault(word, {}).setdefault(name + equals, []).append(value)
    for which, changes in by_word.items():
        text.append(
            f"other launches: {which} with "
            + "; ".join(names.sentence(name) + _in_ranges(values) for name, values in changes.items())
        )
    return text


def _in_ranges(values: Sequence[str]) -> str:
    """Values; numbers that follow one another are a range, in the notation of `--sweep`."""
    if len(values) <= FEW_LINES or not all(value.isdigit() for value in values):
        return ", ".join(values)
    numbers = sorted(map(int, values))
    step = min(after - before for before, after in pairwise(numbers))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + step:
            runs[-1].append(number)
        else:
            runs.append([number])
    by = f":{step}" if step > 1 else ""
    return ", ".join(f"{run[0]}..{run[-1]}{by}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def repair_lines(repairs: KernelRepairs) -> list[str]:
    """The repairs as diffs, or the nearest to one."""
    count, text, names = len(repairs.base.serious), [], source_names(repairs.base)
    if not count:
        return []
    judged = f"{repairs.tried} change{'s' if repairs.tried != 1 else ''} judged"
    if not repairs.repairs:
        ended = "was stopped" if repairs.signal is not None else "ran out of time"
        why = "no such change is known" if repairs.complete else f"the search {ended}"
        text.append(f"no repair: {why}; {judged}")
    for number, repair in enumerate(repairs.shown, 1):
        if repair.left:
            text.append(f"nearest to it: {len(repair.left)} of {count} findings are left:")
        else:
            all_ = f"all {count} findings are" if count > 1 else "the finding is"
            text.append(f"repair {number}: {all_} gone, and the verdict is: {_verdict_in_words(repair.after)}")
        text += [f"  {names.sentence(f'line {edit.line}')}: {edit.what}" for edit in repair.edits]
        text += [f"  {possible}" for possible in [depends_line(repair.after)] if possible]
        text += repair.diff.rstrip("\n").split("\n")
    return text


def _verdict_in_words(verdict: KernelVerdict) -> str:
    """The word, with what it is limited to, or why nothing was decided."""
    if verdict.word != "undecided":
        return CLEAN_FOR.get(verdict.word, verdict.word)
    return f"undecided: {verdict.open[0]}" if verdict.open else "undecided, since the launch was guessed in part"


def headline(verdict: KernelVerdict) -> str:
    """The first line: the word, and what it is about."""
    launch = verdict.launch
    grid = "×".join(str(extent) for extent in launch.grid)
    block = "×".join(str(extent) for extent in launch.block)
    which = "all CTAs" if not verdict.ctas else ctas(verdict)
    which += ", which stand for all" if verdict.ctas and verdict.whole else ""
    words = {
        "explored": f"clean for the {verdict.explored} schedules explored", "partial": f"clean for {ctas(verdict)}",
    }  # fmt: skip
    word = words.get(verdict.word, verdict.word)
    return f"{word}: {short_name(verdict.entry)}, grid {grid}, block {block}, {which}, under {verdict.model}"


def short(verdict: KernelVerdict, file: str) -> str:
    """One line about a kernel. Its words and their order are a promise (docs/kernels.md): the word of the verdict, the
    entry, the file, and for each group of findings that count, sorted, its rule and the lines of its places.
    """
    sites = {
        f"{group.first.rule}@{'+'.join(_brief(side) for side in group.first.sides)}"
        for group in groups(verdict.serious)
    }
    return " ".join([verdict.word, verdict.entry, file, *sorted(sites)])


def _brief(side: FindingPlace) -> str:
    own = next(iter(places(side.instruction.location)), None)
    return f"{own.file}:{own.line}" if own is not None else f"line:{side.instruction.line}"


def short_name(entry: str) -> str:
    """The name of an entry as C++ has it, without its parameters, cut if it is very long."""
    name = without_parameters(entry)
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def covered(coverage: Coverage, names: SourceNames = SourceNames()) -> str:
    """How much the runs came to; empty where there is neither a loop nor a synchronization."""
    parts = [
        f"{count - len(lines)} of {count} {what}{'s' if count > 1 else ''}{_without(lines, names)}"
        for count, lines, what in (
            (coverage.synchronizations, coverage.unreached, "synchronization"),
            (coverage.loops, coverage.skipped, "loop"),
        )
        if count
    ]
    if coverage.objects:
        parts.append(f"{coverage.objects - coverage.single} of {coverage.objects} mbarrier objects used again")
    return ", ".join(parts)


def _without(lines: tuple[int, ...], names: SourceNames) -> str:
    return f" (not {names.lines(lines, FEW_LINES)})" if lines else ""


def ctas(verdict: KernelVerdict) -> str:
    """The CTAs that were looked at."""
    return "CTAs " + ", ".join(map(str, verdict.ctas))


def figures(verdict: KernelVerdict) -> list[str]:
    """What the judgement took."""
    numbers = verdict.statistics
    seconds = ", ".join(f"{name} {spent:.1f} s" for name, spent in numbers.seconds.items())
    return [
        f"  {numbers.threads} threads in {numbers.roles} roles, {numbers.instructions:,} instructions, "
        f"{numbers.accesses:,} accesses, {numbers.events:,} events, {numbers.judged:,} judged",
        f"  {numbers.runs} runs; {seconds}",
    ]


def _first(reasons: list[str], names: SourceNames) -> list[str]:
    sentences = list(dict.fromkeys(map(names.sentence, reasons)))
    more = [f"  and {len(sentences) - SHOWN} more reasons"] if len(sentences) > SHOWN else []
    return [*(f"  {sentence}" for sentence in sentences[:SHOWN]), *more]


def finding_name(group: FindingGroup) -> str:
    """The rule of findings that are alike, with their lines."""
    finding = group.first
    lines = dict.fromkeys(str(side.instruction.line) for side in finding.sides)
    more = f" and {len(group.others)} alike" if group.others else ""
    return rule_in_lines(finding.rule, lines) + (more if lines else "")


def finding_lines(group: FindingGroup, names: SourceNames = SourceNames()) -> list[str]:
    """Findings that are alike: what is wrong, where, and what is missing. `names`: those of the source."""
    finding = group.first
    head = f"{finding.rule}: {names.sentence(finding.message)}" if finding.message else finding.rule
    more = f" ({group.count} alike)" if group.count > 1 else ""
    text = [head + (f", {finding.where}" if finding.where else "") + more]
    if finding.harmless:
        text.append("  does not change the verdict: whichever comes last, the same bytes are left")
    for side in finding.sides:
        text += _side(side)
    if finding.reason:
        text.append(f"  missing: {finding.reason}" + (f"; {_missing(finding)}" if finding.missing else ""))
    for place in finding.way:
        text.append(f"    on the way: {_named(place)}{_at(place)}{who(place)}")
    if group.others:
        lines = [str(line) for line in group.lines]
        shown = ", ".join(lines[:SHOWN]) + (", …" if len(lines) > SHOWN else "")
        located = all(side.instruction.location is not None for side in finding.sides)
        where = " at the same places of the source" if located else ""
        text.append(f"  alike{where}, in PTX line{'s' * (len(lines) > 1)} {shown}")
    return text


def _missing(finding: KernelFinding) -> str:
    """What would order the accesses. Where the PTX lies in no file, with the lines of the source."""
    text = finding.missing
    for instruction in finding.mentioned:
        shown = places(instruction.location)
        if shown and not on_disk(instruction):
            named = instruction.at_line
            text = re.sub(rf"{re.escape(named)}(?!\d)", f"{_name_of(instruction)} at {shown[0]}", text)
    return text


def who(side: FindingPlace) -> str:
    """The thread of a place, and its round."""
    if side.cta < 0:
        return ""
    turn = f", round {side.turn}" if side.turn else ""
    stage = f", stage {side.stage}" if side.stage >= 0 else ""
    role = f" (role {side.role})" if side.role >= 0 else ""
    return f", CTA {side.cta} warp {side.warp} lane {side.lane}{role}{stage}{turn}"


def _side(side: FindingPlace) -> list[str]:
    """The lines of one side of a finding. Where the PTX lies in no file, they begin in the source."""
    shown = places(side.instruction.location)
    if on_disk(side.instruction) or not shown:
        head = f"  {side.instruction.span}: {side.instruction.opcode}: {side.what}{who(side)}"
        return [head, *(f"    from {place}" for place in shown)]
    opcode = side.instruction.opcode
    what = "" if side.what == opcode else f": {side.what}"
    head = f"  {shown[0]}: {_named(side)}{what}{who(side)}"
    return [head, *(f"    from {place}" for place in shown[1:]), f"    in line {side.instruction.line} of the PTX"]


def _named(side: FindingPlace) -> str:
    """What the source calls an instruction, and its opcode."""
    return _name_of(side.instruction)


def _name_of(instruction: PtxInstruction) -> str:
    word = "" if on_disk(instruction) or instruction.location is None else cuda_word(instruction)
    return f"{word}, {instruction.opcode}" if word else instruction.opcode


def _at(step: FindingPlace) -> str:
    shown = places(step.instruction.location)
    return f" at line {step.instruction.line}" if on_disk(step.instruction) or not shown else f" at {shown[0]}"


def locations(location: Location | None) -> list[str]:
    """A place in the source, then where it was inlined; those in libraries last."""
    return [str(place) for place in places(location)]

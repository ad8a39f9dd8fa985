"""A verdict on a kernel of Triton as text, by the lines of its Python source.

In: KernelVerdict. Out: text. The line of a finding is the innermost one that is no part of Triton's own library.
"""

from __future__ import annotations

import linecache

from memmodel.kernel.order.verdict import FindingPlace, KernelVerdict
from memmodel.kernel.output.groups import FindingGroup, groups
from memmodel.kernel.output.places import places
from memmodel.kernel.output.source_names import SourceNames, source_names
from memmodel.kernel.output.text import SHOWN, headline, rest, who
from memmodel.ptx.module.syntax import Location


def explain_triton(verdict: KernelVerdict) -> str:
    """The verdict, each finding with its Python lines, and what else was found out."""
    text, names = [headline(verdict)], source_names(verdict, everywhere=True)
    serious = [group for group in groups(verdict.findings) if not group.first.harmless]
    for group in serious[:SHOWN]:
        text += _finding(group, names)
    if len(serious) > SHOWN:
        text.append(f"and {len(serious) - SHOWN} more findings")
    if verdict.findings and serious:
        text.append(f"PTX: {verdict.findings[0].sides[0].instruction.span.source.name}")
    return "\n".join(text + rest(verdict, names))


def _finding(group: FindingGroup, names: SourceNames) -> list[str]:
    finding = group.first
    more = f" ({group.count} alike)" if group.count > 1 else ""
    head = f"{finding.rule}: {names.sentence(finding.message)}" if finding.message else finding.rule
    text = [f"{head}, {finding.where}{more}".rstrip(", ")]
    shown = ""
    for side in finding.sides:
        place = _own(side.instruction.location)
        where = f"PTX line {side.instruction.line}" if place is None else str(place)
        text.append(f"  {where}: {side.what}{who(side)}: {side.instruction.at_line}")
        code = "" if place is None else linecache.getline(place.file, place.line).strip()
        if code and code != shown:
            text.append(f"    {code}")
            shown = code
    if finding.reason:
        text.append(
            f"  missing: {finding.reason}" + (f"; {names.sentence(finding.missing)}" if finding.missing else "")
        )
    text += [_step(step) for step in finding.way]
    return text


def _step(step: FindingPlace) -> str:
    place = _own(step.instruction.location)
    at = f"line {step.instruction.line}" if place is None else str(place)
    return f"    on the way: {step.instruction.opcode} at {at}{who(step)}"


def _own(location: Location | None) -> Location | None:
    """The innermost place outside of Triton's library; the innermost one where there is none."""
    return next(iter(places(location)), None)

"""Kernels whose threads all execute one text: such a text as a PTX module, and as a litmus test of all its threads.

The form is that of a litmus test with one thread, whose place is the launch:

    PTX name
    .shared .align 16 .u32 s[4];
    thread T @ ctas 2, cluster 1, warps 2, lanes 1 {
        ...
    }
    exists true

At the start `%t` is the number of the thread in its CTA, `%l` its lane, `%w` its warp, `%c` its CTA: in the kernel they
come from `%tid` and `%ctaid`, and lanes that are not asked for exit; in the litmus test they are numbers. So a kernel
has threads of equal roles, and the exact engines see each of them. Registers are declared by their first letter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from helpers.kernel import roundtrip
from memmodel.answer import Budget
from memmodel.cat.load import load_model
from memmodel.errors import InputError
from memmodel.kernel.check.case import CheckOptions
from memmodel.kernel.check.conductor import judge
from memmodel.kernel.check.inputs import entry_of
from memmodel.kernel.launch import parse_launch
from memmodel.kernel.order.verdict import KernelFinding, KernelVerdict
from memmodel.ptx.module.reader import parse_module
from memmodel.source import Source

_PARTS = re.compile(
    r"\A(?P<head>PTX .*?)^thread T @ ctas (?P<ctas>\d), cluster (?P<cluster>\d), warps (?P<warps>\d), "
    r"lanes (?P<lanes>\d) \{\n(?P<body>.*?)^\}\n",
    re.M | re.S,
)
_TYPES = {"p": "pred", "d": "b64"}
"""Types of registers by their first letter; others have 32 bits."""

_LANES = (
    (re.compile(r"elect\.sync _\|(%\w+), \w+;"), r"setp.eq.u32 \1, %l, 0;"),
    (re.compile(r"shfl\.sync\.\w+\.b32 (%\w+), (%\w+), .*;"), r"mov.u32 \1, \2;"),
)
"""What lanes do together and no litmus thread can: the first lane is the elected one, and a shuffle orders no memory
and moves data on which nothing depends.
"""

LANES = re.compile(r"\b(?:elect|shfl)\b")
"""Instructions in which lanes wait for one another. Threads of the test do not."""


@dataclass(frozen=True)
class OneText:
    """A text and the launch of it."""

    head: str
    body: str
    ctas: int
    cluster: int
    warps: int
    lanes: int

    @staticmethod
    def written(text: str) -> bool:
        """True of a text of all threads, and not of a litmus test."""
        return _PARTS.search(text) is not None

    @classmethod
    def of(cls, text: str) -> OneText:
        """Take a text apart. Raises InputError if it has not the form above."""
        parts = _PARTS.match(text)
        if parts is None:
            raise InputError("it is no text of all threads")
        numbers = {name: int(parts[name]) for name in ("ctas", "cluster", "warps", "lanes")}
        return cls(parts["head"], parts["body"], **numbers)

    def module(self) -> str:
        """The kernel."""
        variables = [line for line in self.head.split("\n") if line.startswith(".")]
        outside = [line for line in variables if not line.startswith(".shared")]
        inside = [line for line in variables if line.startswith(".shared")]
        names = sorted({*re.findall(r"%([a-z]\w*)", self.body), "t", "l", "w", "c", "p"})
        return "\n".join([
            ".version 9.0", ".target sm_90a", ".address_size 64", *outside,
            ".visible .entry kernel()", "{",
            *(f".reg .{_TYPES.get(name[0], 'b32')} %{name};" for name in names), *inside,
            "mov.u32 %t, %tid.x;", "and.b32 %l, %t, 31;", "shr.u32 %w, %t, 5;", "mov.u32 %c, %ctaid.x;",
            f"setp.ge.u32 %p, %l, {self.lanes};", "@%p exit;", f"mad.lo.u32 %t, %w, {self.lanes}, %l;",
            self.body, "ret;", "}", "",
        ])  # fmt: skip

    def litmus(self) -> str:
        """The litmus test of all threads."""
        body = self.body
        for pattern, simple in _LANES:
            body = pattern.sub(simple, body)
        blocks = []
        for cta in range(self.ctas):
            for warp in range(self.warps):
                for lane in range(self.lanes):
                    number = warp * self.lanes + lane
                    where = f"cta {cta % self.cluster}, cluster {cta // self.cluster}, gpu 0"
                    place = f"{where}, warp {cta * self.warps + warp}"
                    known = f"mov.u32 %t, {number}; mov.u32 %l, {lane}; mov.u32 %w, {warp}; mov.u32 %c, {cta};"
                    blocks.append(f"thread C{cta}T{number} @ {place} {{\n    {known}\n{body}    exit;\n}}\n")
        return f"{self.head}{''.join(blocks)}exists true\n"


def found(text: OneText) -> tuple[KernelVerdict, set[str]]:
    """The verdict on the kernel, and the kinds of its findings. Raises InputError."""
    module = parse_module(Source("one-text.ptx", text.module()))
    launch = parse_launch({
        "grid": [text.ctas, 1, 1], "block": [32 * text.warps, 1, 1], "cluster": [text.cluster, 1, 1], "params": [],
    })  # fmt: skip
    options, budget = CheckOptions(), Budget(seconds=roundtrip.SECONDS)
    verdict = judge(module, entry_of(module, None), launch, load_model("ptx-9.4"), options, budget)
    rules = {one.rule for one in verdict.findings}
    if "barrier-divergence" in rules and text.lanes > 1:
        raise InputError("some lanes of a warp arrive at a barrier, which in the test are warps")
    if "undefined-instruction" in rules and (text.lanes > 1 or LANES.search(text.body) or "bar.warp" in text.body):
        raise InputError("a warp has diverged there, or the mask is another one, and threads of the test are warps")
    if "undefined-register" in rules:
        raise InputError("it reads a register that nothing has written, which is 0 in a test")
    if "hang" in rules and LANES.search(text.body):
        raise InputError("lanes may wait for one another, and threads of the test do not")
    return verdict, roundtrip.kinds_of(one for one in verdict.findings if not _outlives(one))


def _outlives(finding: KernelFinding) -> bool:
    """True of a copy that may end after its CTA: in a litmus test it may."""
    lines = [side.instruction.span.line_text for side in finding.sides]
    return finding.rule == "undefined-after-exit" and any("cp.async.bulk" in line for line in lines)


def compared(text: str, path: Path) -> tuple[str, str]:
    """As `roundtrip.compared`, of a text of all threads; `path` is where its litmus test is written."""
    try:
        one = OneText.of(text)
        path.write_text(one.litmus(), encoding="utf-8")
        verdict, mine = found(one)
    except InputError as error:
        return "not run", error.message.split(":")[0]
    return roundtrip.against_exact(path, verdict, mine)

"""Several launches in the order of a stream: each begins when the one before it has ended.

In: modules, launch descriptions. Out: a verdict for each. Settled here: the end of a launch comes before the beginning
of the next. So two launches have no races with each other, and each is judged alone, with what is known of the memory
that it finds. A tensor map in memory has to be acquired in each launch, which its own verdict says. A programmatic
launch may overlap with those before it (`dependents`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from memmodel.answer import Budget
from memmodel.base.labels import Side
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.load import load_model
from memmodel.errors import InputError
from memmodel.isa.synchronization.grids import UNWATCHED
from memmodel.kernel.check.case import CheckOptions, KernelCase
from memmodel.kernel.check.conductor import judge_case
from memmodel.kernel.check.ignoring import ignored
from memmodel.kernel.check.inputs import chosen_ctas, reading_models, younger_words
from memmodel.kernel.check.so_far import zeros_assumption
from memmodel.kernel.launch import LeftContents
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.question import LaunchWords, kernel_text
from memmodel.kernel.question.asking import KernelQuestion, KernelText, SeveralLaunches, described_question, question
from memmodel.kernel.question.completing import LaunchesBefore
from memmodel.kernel.sequence.contents import left_by
from memmodel.kernel.sequence.dependents import DependentLaunches, OverlappingLaunch, overlapping
from memmodel.kernel.sequence.modules import StreamModules, following
from memmodel.ptx.module.syntax import PtxModule

KernelFile = str | os.PathLike[str] | PtxModule


def check_launches(
    file: KernelFile | Sequence[KernelFile],
    launches: Sequence[Mapping[str, Any]] | str | os.PathLike[str] | None = None,
    *,
    compiler: Sequence[str] = (),
    **options: Any,
) -> list[KernelVerdict]:
    """Judge launches of a module, or of several, in the order of a stream: descriptions, the path of a list of them, or
    nothing, if the list stands in the text of the first. `options`: those of `judged_launches`. Raises InputError.
    """
    files = [file] if isinstance(file, str | os.PathLike | PtxModule) else file
    text, *others = (kernel_text(each, compiler) for each in files)
    described = list(launches) if isinstance(launches, Sequence) and not isinstance(launches, str) else launches
    try:
        question(text, described, LaunchWords(), None, partial(chosen_ctas, wanted=()))
    except SeveralLaunches as several:
        texts = text, *others
        return list(judged_launches(texts, several.launches, several.name, compiler=compiler, **options))
    raise InputError("one launch, and a list of launches is expected", hint="memmodel.check_kernel judges one")


def judged_launches(
    texts: Sequence[KernelText],
    launches: Sequence[Mapping[str, Any]],
    name: str = "<launch>",
    *,
    compiler: Sequence[str] = (),
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    readings: bool = False,
    schedules: int = 8,
    assume_pure: Sequence[str] = (),
    unwritten: bool = False,
    budget: Budget | None = None,
    baseline: str | None = None,
    on_verdict: Callable[[KernelVerdict], None] | None = None,
) -> Iterator[KernelVerdict]:
    """The verdicts on launches of `texts` that stand in a file `name`. The options are those of `check_kernel`."""
    loaded, left, followed = load_model(model), LeftContents(), True
    dependent = DependentLaunches(os.fspath(model))
    modules = StreamModules(texts, name, compiler)
    running: list[OverlappingLaunch] = []
    written: dict[int, set[str]] = {}
    """By the number of a module its variables that launches have written."""
    for number, data in enumerate(launches):
        text, which = modules.of(data)
        if which or len(texts) > 1:
            data = {**data, "module": text.written.name}
        left = replace(left, module=which, loaded=followed and which not in written)
        before = LaunchesBefore(number, left if number else None)
        asked = _question(text, data, f"{name}: launch {number + 1}" if name.startswith("<") else name, before)
        known = ignored(asked.entry, baseline)
        options = CheckOptions(
            schedules, chosen_ctas(asked.launch, ()), True, tuple(assume_pure), reading_models() if readings else (),
            unwritten=unwritten, by_instruction=known.anything,
        )  # fmt: skip
        case = KernelCase(asked.module, asked.entry, asked.launch, loaded, options)
        verdict = judge_case(case, budget).verdict
        launch = overlapping(number + 1, case, verdict)
        if number:
            if asked.launch.programmatic:
                dependent.judge(running, launch)
            else:
                running.clear()
            _drop_unwatched(verdict)
            _assume_zeros(asked.module, launch, written.get(which, set()))
            if asked.launch.left is not None and asked.launch.left.pieces:
                verdict.assumptions["memory holds what the launches before leave"] = "the launch alone, without a list"
        if modules.several:
            own = "variables of two files are different memory, of equal names as well"
            verdict.assumptions[own] = "what the linker wrote, if the two are linked"
        running.append(launch)
        written.setdefault(which, set()).update(launch.names(Side.WRITE))
        known.apply(verdict)
        verdict.notes += [*known.notes(), *younger_words(asked.module)]
        if on_verdict is not None:
            on_verdict(verdict)
        after = left_by(launch.trace, verdict)
        followed = followed and after is not None
        left = LeftContents() if after is None else following(after, left)
        yield verdict


def _question(text: KernelText, data: Mapping[str, Any], where: str, before: LaunchesBefore) -> KernelQuestion:
    """The question about one launch of the list. The InputError for an unknown entry says how to name a file."""
    try:
        return described_question(text, data, where, LaunchWords(), None, partial(chosen_ctas, wanted=()), before)
    except InputError as error:
        if error.span is None and error.message.endswith(f"has no entry {data.get('kernel')}"):
            hint = f'"module": "FILE" in the launch of a kernel that is not in {text.written.name}'
            raise InputError(error.message, hint=f"{error.hint}; {hint}" if error.hint else hint) from error
        raise


def _drop_unwatched(verdict: KernelVerdict) -> None:
    """Drop the assumption that a wait for the launch before orders what it has to: that launch is judged as well."""
    for what in [what for what in verdict.assumptions if what.endswith(UNWATCHED)]:
        del verdict.assumptions[what]


def _assume_zeros(module: PtxModule, launch: OverlappingLaunch, written: set[str]) -> None:
    """Variables that no launch before has written are as when the module was loaded. `written`: the names of others."""
    for name in launch.names(Side.READ) & module.variables.keys() - written:
        variable = module.variables[name]
        if variable.initial is None and not variable.external and launch.case.launch.left is not None:
            launch.verdict.assumptions.setdefault(*zeros_assumption(name))

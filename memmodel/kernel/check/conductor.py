"""From files to a verdict: the passes over one launch, in their order.

In: paths. Out: `KernelVerdict`. Each pass takes values and returns one. What it finds on the way it puts into a
`VerdictSoFar`, so that a budget that runs out leaves the verdict so far. Raises InputError for what is wrong with the
files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from memmodel.answer import Budget
from memmodel.base.resources import DEFAULT_MODEL
from memmodel.cat.load import load_model
from memmodel.cat.syntax import Model
from memmodel.collecting import rarely_collecting
from memmodel.errors import BudgetSpent
from memmodel.kernel.check.case import CheckOptions, Effort, KernelCase
from memmodel.kernel.check.choices import OpenChoices, open_choices
from memmodel.kernel.check.executions import OtherExecutions
from memmodel.kernel.check.first_run import FirstRun, first_run, with_failing_tests
from memmodel.kernel.check.ignoring import baseline_of, ignored
from memmodel.kernel.check.inputs import chosen_ctas, reading_models, younger_words
from memmodel.kernel.check.judged_runs import judged_run, ready_run
from memmodel.kernel.check.part import assume_the_rest, with_all_ctas
from memmodel.kernel.check.sizes import other_sizes, size_questions
from memmodel.kernel.check.so_far import JudgedKernel, JudgedRun, VerdictSoFar
from memmodel.kernel.check.undecided import judge_beginning, why_stopped
from memmodel.kernel.executions.polls import Polls
from memmodel.kernel.executions.settled_waits import settled_waits
from memmodel.kernel.flow.common_polls import polled_alone
from memmodel.kernel.flow.idle_loads import without_idle_loads
from memmodel.kernel.flow.placement import decided_by_place
from memmodel.kernel.flow.timeouts import not_coming
from memmodel.kernel.launch import Launch
from memmodel.kernel.order.conditions import given_columns, residents
from memmodel.kernel.order.verdict import KernelVerdict
from memmodel.kernel.question import GivenLaunch, KernelText, LaunchWords, kernel_text, question
from memmodel.kernel.trace.problems import AwaitsOthers, Refused
from memmodel.limits import Limits, available, collect_what_has_grown
from memmodel.output import write_text
from memmodel.ptx.module.syntax import PtxFunction, PtxModule


def check_kernel(
    file: str | os.PathLike[str] | PtxModule | KernelText,
    launch: GivenLaunch = None,
    *,
    entry: str | None = None,
    words: LaunchWords = LaunchWords(),
    compiler: Sequence[str] = (),
    model: str | os.PathLike[str] = DEFAULT_MODEL,
    ctas: Sequence[tuple[int, int, int]] = (),
    readings: bool = False,
    schedules: int = 8,
    assume_pure: Sequence[str] = (),
    budget: Budget | None = None,
    litmus: str | os.PathLike[str] | None = None,
    any_grid: bool = False,
    any_trips: bool = False,
    unwritten: bool = False,
    on_verdict: Callable[[KernelVerdict], None] | None = None,
    baseline: str | None = None,
    write_baseline: str | None = None,
) -> KernelVerdict:
    """Judge one launch of a kernel, given as a file, as a module or as text.

    `launch`: a description of the launch, complete or in part; `words` override it. `compiler`: options of nvcc, if
    the file is CUDA C++.

    `ctas`: the indices of the CTAs to run; default: all, or one cluster and a neighbour in large grids. `readings`:
    judge with every decision reversed too. `schedules`: the number of schedules to explore if a result depends on the
    schedule. `assume_pure`: opcodes that are assumed to access registers only. `litmus`: a folder for litmus tests that
    show the findings; a note of the verdict says whether each was written.

    `any_grid`, `any_trips`: say in `beyond` if the verdict holds for any grid and any trip count. `unwritten`: find
    reads of shared memory that nothing writes. `on_verdict`: is given the verdict on the launch, before other sizes are
    judged. `baseline`: a file with findings that do not count; `write_baseline`: where to write one with the findings
    that remain.
    """
    loaded = load_model(model)
    asked = question(kernel_text(file, compiler, entry), launch, words, entry, partial(chosen_ctas, wanted=ctas))
    module, read = asked.module, asked.launch
    known = ignored(asked.entry, baseline)
    options = CheckOptions(
        schedules, chosen_ctas(read, ctas), not ctas, tuple(assume_pure), reading_models() if readings else (),
        any_grid=any_grid, any_trips=any_trips, unwritten=unwritten, depends=True,
        by_instruction=known.anything or write_baseline is not None,
    )  # fmt: skip
    case = KernelCase(module, asked.entry, read, loaded, options)

    def without_known(verdict: KernelVerdict) -> None:
        known.apply(verdict)
        if on_verdict is not None:
            on_verdict(verdict)

    kernel = judge_case(case, budget, without_known)
    known.apply(kernel.verdict)
    kernel.verdict.notes += [*known.notes(), *known.unused_entries(kernel.verdict)]
    if write_baseline is not None:
        write_text(write_baseline, json.dumps(baseline_of(kernel.verdict, known), indent=1) + "\n")
    kernel.verdict.notes += younger_words(module)
    if litmus is not None:
        from memmodel.kernel.export.litmus import write_tests  # loads the engines of litmus tests

        kernel.verdict.notes += write_tests(kernel.verdict.findings, kernel.runs, litmus)
    return kernel.verdict


def judge(
    module: PtxModule,
    entry: PtxFunction,
    launch: Launch,
    model: Model,
    options: CheckOptions | None = None,
    budget: Budget | None = None,
) -> KernelVerdict:
    """Judge a launch."""
    return judge_case(KernelCase(module, entry, launch, model, options or CheckOptions()), budget).verdict


def judge_case(
    case: KernelCase, budget: Budget | None = None, on_verdict: Callable[[KernelVerdict], None] | None = None
) -> JudgedKernel:
    """The verdict on a launch, and what it was made from. A budget that runs out leaves the verdict open.

    `on_verdict`: is given the verdict as soon as it stands, before anything is asked beyond the launch.
    """
    collect_what_has_grown()
    given, case = case.entry, replace(case, entry=without_idle_loads(case.entry))
    idle = [mine.number for mine, its in zip(given.body or (), case.body, strict=True) if mine is not its]
    reports: list[VerdictSoFar] = []
    final: VerdictSoFar | None = None
    try:
        with rarely_collecting() if budget is None else Limits(available(budget)):
            _judge_part_and_whole(case, reports)
            final = _final(reports, "")
            if on_verdict is not None:
                on_verdict(final.kernel().verdict)
            if final.ask_other_sizes is not None and size_questions(case):
                final.ask_other_sizes()
            for question in size_questions(case):
                final.verdict.beyond.setdefault(question, "not shown: the launch itself could not be run to its end")
    except BudgetSpent as spent:
        if final is None:
            reports = reports or [VerdictSoFar(case)]
            reports[-1].run_out(str(spent))
            final = _final(reports, str(spent))
            if on_verdict is not None:
                on_verdict(final.kernel().verdict)
        final.verdict.spent = True
        for question in size_questions(case):
            final.verdict.beyond.setdefault(question, f"not shown: {spent}")
    final.add_reached(idle)
    return replace(final.kernel(), entry=given)


def _final(reports: list[VerdictSoFar], why: str) -> VerdictSoFar:
    """The report on all CTAs if it is clean or has findings, else that on a part of them. `why`: what ended the run of
    all CTAs, if something did."""
    part, *whole = reports
    if whole and (whole[0].verdict.clean or whole[0].verdict.serious):
        return whole[0]
    assume_the_rest(part, why or (whole[0].verdict.open[0] if whole else ""))
    return part


def _explored(case: KernelCase, others: OtherExecutions, choices: OpenChoices, first: JudgedRun) -> OpenChoices:
    """Other executions are judged; the choices with those that were met on the way.

    Where a CTA polls in common, each round that goes on is another execution, and there is no end to them: the launch
    is judged with threads that poll alone, which makes the same but for such rounds.
    """
    report, trace = others.report, choices.trace
    in_part = case.options.readings or trace.elected or trace.cancels  # then not all executions are looked for
    alone = None if in_part else polled_alone(case.entry)
    if alone is None or not all(poll.poll in trace.executed for poll in alone.polls):
        return others.explored(choices, first)
    options = replace(case.options, any_grid=False, any_trips=False, unwritten=False, depends=False)
    other = replace(case, entry=alone.entry, options=options, effort=Effort(), alone=alone)
    inner = VerdictSoFar(other)
    _passes(other, inner)
    lines = ", ".join(str(line) for line in sorted({case.body[poll.poll].line for poll in alone.polls}))
    if inner.verdict.word in ("clean", "partial"):
        report.verdict.explored, report.verdict.exhaustive = max(1, inner.verdict.explored), True
        report.verdict.assumptions |= inner.verdict.assumptions
        report.verdict.notes.append(f"rounds of the loop around line {lines} that find nothing are left out")
        return choices
    choices = others.explored(choices, first, every=False)
    if not report.verdict.serious:
        found = sorted({finding.rule for finding in inner.verdict.serious})
        report.leave_open([f"{rule}, where the thread that asks at line {lines} polls alone" for rule in found])
    return choices


def _verdict_of(case: KernelCase) -> KernelVerdict:
    return judge_case(case).verdict


def _judge_part_and_whole(case: KernelCase, reports: list[VerdictSoFar]) -> None:
    """Judge the CTAs of the case, and then all CTAs if those are a part that shows too little. Each report is in
    `reports` before it is complete."""
    reports.append(VerdictSoFar(case))
    _passes(case, reports[-1])
    everything = with_all_ctas(case, reports[-1])
    if everything is not None:
        reports.append(VerdictSoFar(everything))
        _passes(everything, reports[-1])


def _passes(case: KernelCase, report: VerdictSoFar) -> None:
    """The passes over a launch, in their order."""
    verdict = report.verdict
    first: FirstRun | None = None
    try:
        # Run: one schedule, the polling loops that are waits in every execution, and what else the schedule decides.
        first = first_run(case)
        report.add_first_run(first.trace)
        if case.options.before_model and report.shown_by(first.trace):
            report.add_problems(first.trace)
            report.finish()
            return
        run = first = with_failing_tests(case, first)
        polls = Polls(case.module, case.entry, case.launch)
        waits = settled_waits(case.entry, case.model, polls, run.trace, lambda: case.run(run.schedule))
        choices = open_choices(case, run, waits)

        # Order and conflicts of the representative run, and what the model says of them.
        ready = ready_run(case, choices.judged, waits, choices.chosen)
        report.waits_are_sure &= ready.waits_are_sure
        report.add_figures(ready)
        representative = judged_run(case, ready, choices.chosen)
        report.add(representative, choices.chosen)
        report.representative = representative
        if report.may_stop:
            return
        verdict.notes += representative.run.open_reads(case.model, choices.chosen | waits.loads)

        # Other sizes, grids and trip counts, are asked for when the verdict stands.
        decided = not (choices.reasons or choices.trace.cancels or verdict.open)
        report.ask_other_sizes = partial(other_sizes, case, choices, verdict, _verdict_of, decided=decided)

        # Other executions, where something depends on the schedule or a condition does not hold.
        verdict.choices = list(choices.reasons)
        verdict.assumptions |= residents(choices.trace, case.entry, choices.chosen)
        verdict.assumptions |= given_columns(choices.trace, case.entry)
        if not case.options.until_finding:
            verdict.assumptions |= decided_by_place(case.entry, choices.trace.executed)
        verdict.assumptions |= not_coming(case.entry, choices.trace.tests, waits.loads)
        if choices.reasons or choices.contested or waits.loads:
            report.judged = None
        others = OtherExecutions(case, waits, report)
        others.other_lane_elected(choices)
        others.clusters_cancelled(choices)
        if choices.reasons and not report.may_stop:
            choices = _explored(case, others, choices, representative)
        elif not report.waits_are_sure:
            report.leave_open(["what ends a loop that polls is not known in every schedule"])
        others.late_arrivals(choices)
        if verdict.open and not report.has_new_finding:
            others.some_warps_late(choices)
    except Refused as error:
        report.leave_open([why_stopped(case, error)])
        report.awaits_others = isinstance(error, AwaitsOthers)
        if first is None:
            judge_beginning(case, error, report)
        elif report.representative is None:
            report.add_problems(first.trace)
    report.finish()

"""A litmus test as one PTX module with one kernel, or with one for each of its grids.

In: LitmusTest, Target. Out: Module, whose every line knows where in the litmus file it comes from. Settled here: the
kernel's parameters, the set-up of shared and tensor memory, the dispatch of threads, the slots of the output buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from memmodel.base.oneline import count, shown
from memmodel.emit.address import OURS, EmittedVariables, clean, endpoint, pointer
from memmodel.emit.body import LAST_BARRIER, Line, ThreadBody
from memmodel.emit.grid import GROUP, Grid, Seat, arrange
from memmodel.emit.opaque import zero
from memmodel.emit.registers import collect
from memmodel.emit.results import one_line, results_of, term_text
from memmodel.emit.spread import FULL
from memmodel.emit.target import CLUSTERS, oldest_target
from memmodel.emit.variables import constant_parameters, declare, declare_parameter, initialise
from memmodel.errors import InputError
from memmodel.isa.lower import lower_test, minimum_version, read_instruction
from memmodel.litmus.constants import all_instructions, instructions
from memmodel.litmus.instructions import is_cta_barrier, is_reduction
from memmodel.litmus.printer import print_condition
from memmodel.litmus.syntax import Instruction, Layout, LitmusTest, LocValue, RegValue, Term, terms_of
from memmodel.program.addresses import AddressSpace
from memmodel.program.special import is_special, special_register
from memmodel.ptx.operands import Imm, Reg
from memmodel.ptx.targets import Target
from memmodel.source import Span

PTX_VERSION = "9.3"
"""Of modules, where no instruction of the test came later."""

ENTRY = "litmus"


@dataclass(frozen=True, slots=True, repr=False)
class EmittedModule:
    """PTX text. `places[n]` is the part of the litmus file that line n + 1 comes from, None for set-up.

    `results`: what each 8-byte slot of the output buffer holds.
    """

    name: str
    text: str
    target: Target
    places: tuple[Span | None, ...]
    results: tuple[Term, ...] = ()

    def __repr__(self) -> str:
        lines = f"{count(len(self.places), 'line')} of PTX for {self.target}"
        return shown("EmittedModule", self.name, lines, count(len(self.results), "result"))


def emit(test: LitmusTest, target: Target | None = None) -> EmittedModule:
    """The module for a target (None: the oldest that has every instruction). Raises InputError.

    A test whose instructions lack types (column layout) or that needs a newer target cannot be emitted.
    """
    space = lower_test(test).space
    test = _with_types(test)
    oldest = oldest_target(test)
    if target is not None and target.number < oldest.number:
        raise InputError(f"{test.name} needs {oldest}, not {target}", hint=f"--target {oldest} or newer")
    return _Writer(test, space, target or oldest).module()


def _with_types(test: LitmusTest) -> LitmusTest:
    """The test as block layout. Raises InputError at the first instruction without a type."""
    if test.layout is Layout.BLOCKS:
        return test
    typed = replace(test, layout=Layout.BLOCKS)
    for instruction in all_instructions(test):
        try:
            read_instruction(instruction, typed)
        except InputError as error:
            hint = "write types as PTX does: `memmodel fmt --layout blocks` prints the test with them"
            raise InputError(f"not a PTX instruction: {error.message}", error.span, hint) from error
    return typed


class _Writer:
    """Writes one module from top to bottom."""

    def __init__(self, test: LitmusTest, space: AddressSpace, target: Target) -> None:
        self.test = test
        self.space = space
        self.target = target
        self.grids = _arranged(test)
        self.grid = next(iter(self.grids.values()))
        self.suffix = ""
        self.memory = EmittedVariables.of(test, self.grid.gpus)
        self.results = tuple(results_of(test))
        self.opaque = False
        """True if some thread needs a zero that ptxas cannot fold."""
        self.slots: dict[str, None] = {}
        """Shared memory through which warps of one thread give one another what they have."""
        self.threads = {n: [self._thread(grid, seat) for seat in grid.seats] for n, grid in self.grids.items()}
        self._allocates = self.memory.allocates(test)
        self.lines: list[Line] = []

    def module(self) -> EmittedModule:
        """The whole text."""
        self._heading()
        version = minimum_version(self.test, PTX_VERSION)
        for line in (f".version {version}", f".target {self.target}", ".address_size 64", ""):
            self._add(line)
        self.lines += declare(self.test, self.memory)
        if any(self._needs_count(grid) for grid in self.grids.values()):
            self._add(f".shared .align 4 .b32 {OURS}done;")
        if self._allocates:
            self._add(f".shared .align 4 .b32 {OURS}tmem_at;")
        for slot in self.slots:
            self._add(f".shared .align 16 .b8 {slot}[16];")
        for number, grid in self.grids.items():
            self.grid, self.suffix = grid, str(number) if len(self.grids) > 1 else ""
            self._kernel(self.threads[number])
        text = "\n".join(line for line, _ in self.lines) + "\n"
        return EmittedModule(self.test.name, text, self.target, tuple(place for _, place in self.lines), self.results)

    def _kernel(self, threads: list[list[Line]]) -> None:
        """The launch of one grid."""
        if self.grid.cluster > 1 and self._needs_count(self.grid):
            self._add(f".global .align 4 .b32 {self._left}[{self.grid.ctas // self.grid.cluster}];")
        self._signature()
        self._add("{")
        self._setup()
        self._dispatch()
        for lines in threads:
            self.lines += lines
        self._finish()
        self._add("}")

    @property
    def _left(self) -> str:
        """The variable that counts the CTAs of a cluster that are done."""
        return f"{OURS}left{self.suffix}"

    def _add(self, text: str) -> None:
        self.lines.append((text, None))

    # ---- what a launcher has to know -------------------------------------------------------------------------

    def _heading(self) -> None:
        self._add(f"// {one_line(self.test.name)}")
        for sentence in self.test.description:
            self._add(f"// {one_line(sentence)}")
        for number, grid in self.grids.items():
            cluster = f", clusters of {grid.cluster}" if grid.clustered else ""
            which = "" if len(self.grids) == 1 else f" {ENTRY}{number}, with programmatic stream serialization"
            self._add(f"// Launch{which}: grid {grid.ctas}, block {32 * grid.warps}{cluster}.")
        self._add("// Parameters: the output buffer (8 bytes for each slot)" + self._parameter_text() + ".")
        for slot, term in enumerate(self.results):
            self._add(f"// out[{slot}]: {term_text(term)}")
        for term in (*terms_of(self.test.condition), *self.test.shown):
            if isinstance(term, LocValue) and term not in self.results:
                self._add(f"// {term_text(term)}: in memory when all CTAs are done")
        question = one_line(print_condition(self.test.condition, Layout.BLOCKS))
        self._add(f"// {self.test.quantifier.value} {question}")

    def _parameter_text(self) -> str:
        names = [f"the address of `{name}`" for name in self.memory.variables if name in self.memory.pointers]
        names += [
            f"a logical endpoint `{variable.name}` whose offset 0 is `{variable.alias_of}`"
            for variable in self.memory.endpoints
        ]
        names += [f"`{variable.name}`" for variable in constant_parameters(self.test)]
        if self.opaque:
            names.append("zero (64 bits), which ptxas does not know")
        if self.grid.gpus > 1:
            names.append("the number of the GPU (0 first)")
        return "".join(f"; {name}" for name in names)

    def _signature(self) -> None:
        parameters = [f".param .u64 {OURS}out"]
        parameters += [f".param .u64 {pointer(name)}" for name in self.memory.variables if name in self.memory.pointers]
        parameters += [f".param .u32 {endpoint(variable.name)}" for variable in self.memory.endpoints]
        for variable in constant_parameters(self.test):
            parameters.append(declare_parameter(variable))
        if self.opaque:
            parameters.append(f".param .u64 {OURS}zero")
        if self.grid.gpus > 1:
            parameters.append(f".param .u32 {OURS}gpu")
        self._add("")
        self._add(f".visible .entry {ENTRY}{self.suffix}(")
        for number, parameter in enumerate(parameters):
            self._add(f"    {parameter}{',' if number + 1 < len(parameters) else ''}")
        self._add(")")
        self._add(f".reqntid {32 * self.grid.warps}, 1, 1")
        if self.grid.clustered:
            self._add(f".reqnctapercluster {self.grid.cluster}, 1, 1")

    # ---- before the threads ----------------------------------------------------------------------------------

    @property
    def _shared_results(self) -> list[tuple[int, LocValue]]:
        return [(slot, term) for slot, term in enumerate(self.results) if isinstance(term, LocValue)]

    @property
    def _finishes(self) -> bool:
        """True if work is left when all threads of a CTA are done."""
        return bool(self._shared_results or self._allocates or self.grid.cluster > 1)

    def _setup(self) -> None:
        add = self._code
        add(f".reg .pred %{OURS}p;")
        add(f".reg .b32 %{OURS}tid, %{OURS}lane, %{OURS}warp, %{OURS}cta, %{OURS}here, %{OURS}n, %{OURS}tmem;")
        add(f".reg .b64 %{OURS}out, %{OURS}x;")
        add(f"ld.param.u64 %{OURS}out, [{OURS}out];")
        add(f"cvta.to.global.u64 %{OURS}out, %{OURS}out;")
        add(f"mov.u32 %{OURS}tid, %tid.x;")
        add(f"and.b32 %{OURS}lane, %{OURS}tid, 31;")
        add(f"shr.u32 %{OURS}warp, %{OURS}tid, 5;")
        add(f"mov.u32 %{OURS}cta, %ctaid.x;")
        add(f"mad.lo.u32 %{OURS}here, %{OURS}cta, {self.grid.warps}, %{OURS}warp;")
        if self.grid.gpus > 1:
            add(f"ld.param.u32 %{OURS}n, [{OURS}gpu];")
            add(f"mad.lo.u32 %{OURS}here, %{OURS}n, {self.grid.ctas * self.grid.warps}, %{OURS}here;")
        if self.opaque:
            add(f".reg .b64 {zero(64)};")
            add(f"ld.param.u64 {zero(64)}, [{OURS}zero];")
        lines = initialise(self.test)
        if self._needs_count(self.grid):
            lines.append((f"st.shared.b32 [{OURS}done], 0;", None))
        if lines:
            add(f"setp.ne.u32 %{OURS}p, %{OURS}tid, 0;")
            add(f"@%{OURS}p bra {OURS}ready;")
            self.lines += [("    " + text, place) for text, place in lines]
            if any(v.mbarrier is not None for v in self.test.variables) and self.target.number >= CLUSTERS:
                add("fence.mbarrier_init.release.cluster;")
            self._add(f"{OURS}ready:")
        if self._allocates:
            self._allocate()
        if lines or self._allocates:
            add("bar.sync 0;")
        if self.grid.cluster > 1 and lines:
            add("barrier.cluster.arrive.aligned;")
            add("barrier.cluster.wait.aligned;")
        if self._allocates:
            add(f"ld.shared.b32 %{OURS}tmem, [{OURS}tmem_at];")
        elif self.memory.offsets:
            add(f"mov.b32 %{OURS}tmem, 0;")

    def _allocate(self) -> None:
        group = self._group
        self._code(f"setp.ne.u32 %{OURS}p, %{OURS}warp, 0;")
        self._code(f"@%{OURS}p bra {OURS}allocated;")
        self._code(f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [{OURS}tmem_at], {self.memory.columns()};")
        self._code(f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned;")
        self._add(f"{OURS}allocated:")

    @property
    def _group(self) -> str:
        """One kernel uses one cta_group: the one that its instructions name."""
        named = (part for instruction in all_instructions(self.test) for part in instruction.parts)
        return "cta_group::2" if "cta_group::2" in named else "cta_group::1"

    def _code(self, text: str) -> None:
        self._add("    " + text)

    def _dispatch(self) -> None:
        self._add("")
        for seat in self.grid.seats:
            for warp in range(seat.warps):
                self._code(f"setp.eq.u32 %{OURS}p, %{OURS}here, {self.grid.number(seat) + warp};")
                if seat.lane is not None:
                    self._code(f"setp.eq.and.u32 %{OURS}p, %{OURS}lane, {seat.lane}, %{OURS}p;")
                self._code(f"@%{OURS}p bra {OURS}thread_{clean(seat.thread.name)};")
        if self._finishes and self.grid.idle and not self._needs_count(self.grid):
            self._dismiss()
        self._code(f"bra {OURS}finish;")

    def _dismiss(self) -> None:
        """Warps that no thread of the test has leave at once, so that its barriers do not wait for them. The first one
        of each CTA has work at the end."""
        shared = {self.grid.number(seat) for seat in self.grid.seats if seat.lane is not None}
        self._code(f"setp.eq.u32 %{OURS}p, %{OURS}warp, 0;")
        for number in sorted(shared):
            self._code(f"setp.eq.or.u32 %{OURS}p, %{OURS}here, {number}, %{OURS}p;")
        self._code(f"@!%{OURS}p bra {OURS}leave;")

    # ---- threads and what comes after ------------------------------------------------------------------------

    def _thread(self, grid: Grid, seat: Seat) -> list[Line]:
        """The part of the kernel that one thread of the test runs."""
        thread = seat.thread
        code = [(instruction, read_instruction(instruction, self.test)) for instruction in instructions(thread)]
        results = [
            (slot, term.register)
            for slot, term in enumerate(self.results)
            if isinstance(term, RegValue) and term.thread == thread.name
        ]
        registers = collect(code)
        inits = [initial for initial in self.test.registers if initial.thread == thread.name]
        for name in (*(register for _, register in results), *(initial.register for initial in inits)):
            registers.least.setdefault(name, 16)
            if name not in registers.exact and registers.least[name] < 32:
                registers.pointers.add(name)
        body = ThreadBody(seat, code, registers, self.memory, self._special(grid, seat))
        written = body.write(inits, results)
        self.opaque = self.opaque or body.opaque.used
        self.slots |= dict.fromkeys([body.slot] if body.slot is not None else [])
        place = thread.place
        where = f"cta {place.cta}" + ("" if place.cluster is None else f", cluster {place.cluster}")
        lines: list[Line] = [("", None), (f"{OURS}thread_{clean(thread.name)}: // {where}, gpu {place.gpu}", None)]
        lines.append(("{", None))
        for text, span in written:
            indent = "" if text.endswith(":") else "    "
            note = f" // line {span.line}" if span is not None else ""
            lines.append((f"{indent}{text}{note}", span))
        return [*lines, ("}", None), (f"    bra {OURS}finish;", None)]

    def _special(self, grid: Grid, seat: Seat) -> dict[str, str]:
        """The special registers that a thread reads: themselves, or the number that the test means where it differs."""
        values = {}
        operands = (operand for instruction in instructions(seat.thread) for operand in instruction.operands)
        for name in {operand.name for operand in operands if isinstance(operand, Reg) and is_special(operand.name)}:
            value = special_register(name, seat.thread.place, self.space)
            values[name] = f"%{name}" if value == grid.special(seat, name) else str(value)
        return values

    def _finish(self) -> None:
        self._add("")
        self._add(f"{OURS}finish:")
        if self._finishes:
            self._last_warp()
        self._code("ret;")

    def _last_warp(self) -> None:
        """One warp of each CTA, when all warps of its cluster are done, stores its shared memory and frees its tensor
        memory.
        """
        add, p = self._code, f"%{OURS}p"
        add(f"bar.warp.sync {FULL};")
        self._meet()
        for slot, term in self._shared_results:
            extent, kind = self.space.term(term)
            if extent.instance.owner is None or not self.grid.has_cta(extent.instance.owner):
                continue
            seat = self.grid.seat_of_cta(extent.instance.owner)
            name = clean(extent.instance.name)
            add(f"setp.eq.u32 {p}, %{OURS}cta, {seat.ctaid};")
            at = f"{name}+{extent.first}" if extent.first else name
            sign = "s" if kind.kind == "s" else "u"
            add(f"ld.shared.{sign}{8 * min(extent.size, 8)} %{OURS}x, [{at}];")  # a slot has room for the low half
            add(f"@{p} st.global.u64 [%{OURS}out+{8 * slot}], %{OURS}x;")
        if self._allocates:
            add(f"tcgen05.dealloc.{self._group}.sync.aligned.b32 %{OURS}tmem, {self.memory.columns()};")
        self._add(f"{OURS}leave:")

    def _meet(self) -> None:
        """Wait for the other warps; one of them goes on. A barrier does it that the test leaves alone, or a count."""
        add, p, n = self._code, f"%{OURS}p", f"%{OURS}n"
        clustered = self.grid.cluster > 1
        if not self._needs_count(self.grid):
            whole = ["barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"]
            for line in whole if clustered else [f"bar.sync {self._spare};"]:
                add(line)
            add(f"setp.ne.u32 {p}, %{OURS}warp, 0;")
            add(f"@{p} bra {OURS}leave;")
            return
        add(f"mov.u32 {n}, 0;")
        add(f"setp.eq.u32 {p}, %{OURS}lane, 0;")
        add("membar.cta;")
        add(f"@{p} atom.shared.add.u32 {n}, [{OURS}done], 1;")
        add(f"shfl.sync.idx.b32 {n}, {n}, 0, 31, {FULL};")
        add(f"setp.ne.u32 {p}, {n}, {self.grid.warps - 1};")
        add(f"@{p} bra {OURS}leave;")
        add("membar.cta;")
        if clustered:
            self._meet_cluster()

    @property
    def _instructions(self) -> list[Instruction]:
        return list(all_instructions(self.test))

    @property
    def _spare(self) -> int | None:
        """A named barrier that neither the test uses nor a warpgroup; None where that is not known."""
        taken = set(range(LAST_BARRIER + 1 - self.grid.warps // GROUP, LAST_BARRIER + 1))
        for instruction in self._instructions:
            if is_cta_barrier(instruction.mnemonic):
                operand = instruction.operands[1 if is_reduction(instruction.mnemonic) else 0]
                if not isinstance(operand, Imm):
                    return None
                taken.add(operand.value)
        return next((number for number in range(LAST_BARRIER, 0, -1) if number not in taken), None)

    def _needs_count(self, grid: Grid) -> bool:
        """True if each warp counts itself at the end, because the test uses the barrier that would otherwise do."""
        if grid.cluster > 1:
            return any(instruction.parts[:2] == ("barrier", "cluster") for instruction in self._instructions)
        return bool(self._shared_results or self._allocates) and self._spare is None

    def _meet_cluster(self) -> None:
        """A CTA stays until all CTAs of its cluster are done, which may still access its shared memory.

        The cluster barrier belongs to the test, so this counts in global memory, on from where the last launch ended.
        """
        add, p, n, x = self._code, f"%{OURS}p", f"%{OURS}n", f"%{OURS}x"
        size = self.grid.cluster
        add(f"setp.eq.u32 {p}, %{OURS}lane, 0;")
        add(f"@!{p} bra {OURS}met;")
        add(f"div.u32 {n}, %{OURS}cta, {size};")
        add(f"mov.u64 {x}, {self._left};")
        add(f"mad.wide.u32 {x}, {n}, 4, {x};")
        add(f"atom.acq_rel.gpu.global.add.u32 {n}, [{x}], 1;")
        add(f"div.u32 {n}, {n}, {size};")
        add(f"mad.lo.u32 {n}, {n}, {size}, {size};")
        self._add(f"{OURS}meet:")
        add(f"ld.acquire.gpu.global.u32 %{OURS}tid, [{x}];")
        add(f"setp.lt.u32 {p}, %{OURS}tid, {n};")
        add(f"@{p} bra {OURS}meet;")
        self._add(f"{OURS}met:")
        add(f"bar.warp.sync {FULL};")


def _arranged(test: LitmusTest) -> dict[int, Grid]:
    """Where the threads of each grid run. Raises InputError for several grids on several GPUs."""
    numbers = sorted({thread.place.grid for thread in test.threads})
    if len(numbers) > 1 and len({thread.place.gpu for thread in test.threads}) > 1:
        raise InputError(f"{test.name} has several grids on several GPUs, which are not written as one module")
    grids = {}
    for number in numbers:
        threads = tuple(thread for thread in test.threads if thread.place.grid == number)
        grids[number] = arrange(replace(test, threads=threads))
    return grids

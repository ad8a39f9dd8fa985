"""How many columns of tensor memory the CTA of a litmus thread has left.

In: the Call of a tcgen05.alloc or dealloc. Out: the steps that count its columns, and at which an alloc waits for ever
if they are not there. Settled here: a thread counts what it allocates and frees itself in a register that is hidden,
and only in a CTA whose allocations may ask for more than the 512 columns; one with .exclusive counts as all of them.
"The Tensor Memory must be allocated by a single warp in a CTA", as one warp issues each alloc ("Issue Granularity"):
another may free it, which shipping kernels do. Where several threads allocate or free so many, whether an alloc has to
wait for the others is not modelled. Where the columns lie is not counted: "The number of columns allocated should not
increase between any two allocations", so that what is free always has room. What an increase does is not said: it is
not modelled (`more_than_before`), and neither are different numbers of the two CTAs of a pair, which allocate together.
Source: PTX ISA "Tensor Memory Allocation", "tcgen05.alloc, tcgen05.dealloc".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memmodel.base.labels import Barrier, Domain, Half
from memmodel.isa.call import Call
from memmodel.isa.place import pair
from memmodel.litmus.constants import constants, instructions, repeated
from memmodel.litmus.syntax import Instruction, Thread, Variable
from memmodel.program.expressions import AddressOf, Apply, Const, Expr, Get
from memmodel.program.ops import Assign, AtBarrier, Op, UndefinedIf, Unmodelled
from memmodel.ptx.operands import Imm, Mem, Reg, Sym
from memmodel.ptx.vocabulary import U32, Space

COLUMNS = 512
UNIT = 32
COUNTED, LAST = "#columns", "#last columns"
"""Hidden registers: the columns that a thread has, and how many it allocated last."""
GROWS = "the number of columns allocated should not increase within a CTA, and what happens if it does is not said"
DIFFERS = "the CTAs of a pair allocate together and ask for different numbers of columns, and what they get is not said"
AGAIN = "an alloc is declared to give memory that is allocated already, where another piece of memory would be given"
UNSURE = "several threads of a CTA allocate or free tensor memory, and ask for more than its 512 columns together"


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What the threads of a CTA do to its tensor memory.

    `own`, `others`: the columns that the executing thread and the others allocate at most; more than there are for an
    alloc in a loop. `others_free`: another thread frees some. `known`: the number of every alloc and
    dealloc is known before the test runs.
    """

    own: int = 0
    others: int = 0
    others_free: bool = False
    known: bool = True

    @property
    def may_be_short(self) -> bool:
        """True if the allocations may ask for more columns than there are."""
        return self.own + self.others > COLUMNS


def column_use(call: Call) -> ColumnUse:
    """What the threads of the executing thread's CTA do."""
    use = ColumnUse()
    for thread in call.context.test.threads:
        if thread.place.cta_id != call.place.cta_id:
            continue
        for instruction, again in _management(thread):
            columns = columns_of(call, thread, instruction)
            use = replace(use, known=use.known and columns is not None)
            most = COLUMNS + 1 if again else COLUMNS if exclusive(instruction) else columns or COLUMNS
            if instruction.parts[1] == "dealloc":
                use = replace(use, others_free=use.others_free or thread is not call.context.thread)
            elif thread is call.context.thread:
                use = replace(use, own=use.own + most)
            else:
                use = replace(use, others=use.others + most)
    return use


def columns_of(call: Call, thread: Thread, instruction: Instruction) -> int | None:
    """The number of columns of an alloc or dealloc, if it is known before the test runs."""
    match instruction.operands[1:2]:
        case (Imm(value=value),):
            return value
        case (Reg(name=name),):
            return constants(call.context.test, thread).get(name)
    return None


def exclusive(instruction: Instruction) -> bool:
    """True if there is no other allocation beside the one that this alloc or dealloc is about."""
    return "exclusive" in instruction.parts


def _management(thread: Thread) -> Iterator[tuple[Instruction, bool]]:
    """The allocs and deallocs of a thread, and whether they stand in a loop."""
    in_loops = repeated(thread)
    for at, statement in enumerate(thread.body):
        if isinstance(statement, Instruction) and statement.parts[:2] in (("tcgen05", "alloc"), ("tcgen05", "dealloc")):
            yield statement, at in in_loops


def columns_taken(call: Call, use: ColumnUse, variable: Variable, columns: Expr) -> tuple[Op, ...]:
    """An alloc waits for ever, as at a barrier where one more should arrive, if its columns are not there."""
    noted = () if use.known else (Assign(_note(variable), columns),)
    if not use.may_be_short:
        return noted
    held = Apply("add", (Get(COUNTED), _counted(call, columns)), U32)
    short = Apply("gt", (held, Const(COLUMNS)), U32)
    unsure: tuple[Op, ...] = ()
    if use.others or use.others_free:
        perhaps = Apply("gt", (Apply("add", (held, Const(use.others)), U32), Const(COLUMNS)), U32)
        surely = Const(0) if use.others_free else short
        unsure = (Unmodelled(UNSURE, Apply("gt", (perhaps, surely), U32)),)
    thread = call.context.thread
    number = next(at for at, statement in enumerate(thread.body) if statement is call.instruction)
    key = Const(call.context.test.threads.index(thread)), Const(number)
    count = Apply("add", (Const(1), short), U32)
    halves = (AtBarrier(Barrier(half, Domain.COLUMNS), key, count) for half in (Half.ARRIVE, Half.WAIT))
    return (*unsure, *halves, Assign(COUNTED, held), *noted)


def columns_given_back(call: Call, use: ColumnUse, address: Expr, columns: Expr) -> tuple[Op, ...]:
    """A dealloc leaves its columns to later allocations of its thread. Another number of columns than was allocated is
    undefined; where all numbers are known before the test runs, the model finds that by the labels."""
    steps: list[Op] = [] if use.known else list(_other_numbers(call, address, columns))
    if use.may_be_short:
        fewer = Apply("min", (Get(COUNTED), _counted(call, columns)), U32)
        steps.append(Assign(COUNTED, Apply("sub", (Get(COUNTED), fewer), U32)))
    return tuple(steps)


def _counted(call: Call, columns: Expr) -> Expr:
    """How many columns an alloc or dealloc counts as."""
    return Const(COLUMNS) if exclusive(call.instruction) else columns


def more_than_before(call: Call, columns: Expr) -> tuple[Op, ...]:
    """The steps that note how many columns an alloc asks for, and find one that asks for more than an earlier one."""
    allocs = [
        (thread, columns_of(call, thread, instruction), again)
        for thread in call.context.test.threads
        if thread.place.cta_id == call.place.cta_id
        for instruction, again in _management(thread)
        if instruction.parts[1] == "alloc"
    ]
    numbers = [number for _, number, _ in allocs if number is not None]
    in_order = all(thread is call.context.thread and not again for thread, _, again in allocs)
    allowed = sorted(numbers, reverse=True) if in_order else numbers[:1] * len(numbers)
    if (in_order and len(allocs) == 1) or (numbers == allowed and len(numbers) == len(allocs)):
        return ()
    before = Get(LAST)
    grows = Apply("and", (Apply("ne", (before, Const(0)), U32), Apply("gt", (columns, before), U32)), U32)
    others = [number or UNIT for thread, number, _ in allocs if thread is not call.context.thread]
    if others:  # in which order threads allocate is left to the execution
        grows = Apply("or", (grows, Apply("gt", (columns, Const(min(others))), U32)), U32)
    return (Unmodelled(GROWS, grows), Assign(LAST, columns))


def other_than_the_peer(call: Call) -> tuple[Op, ...]:
    """The step that finds that the CTAs of a pair, which allocate together, do not ask for the same columns."""
    asked: dict[int, list[int | None]] = {rank: [] for rank in pair(call)}
    for thread in call.context.test.threads:
        if thread.place.cluster_id == call.place.cluster_id and thread.place.cta in asked:
            allocs = (instruction for instruction, _ in _management(thread) if instruction.parts[1] == "alloc")
            asked[thread.place.cta] += [columns_of(call, thread, instruction) for instruction in allocs]
    own, *peer = asked.values()
    known = None not in own and peer and None not in peer[0] and len(own) == len(peer[0])
    return (Unmodelled(DIFFERS, Const(1)),) if known and Counter(own) != Counter(peer[0]) else ()


def _other_numbers(call: Call, address: Expr, columns: Expr) -> Iterator[Op]:
    """Steps that find that an allocation has another number of columns, where that is known only in an execution."""
    for thread, instruction, variable in allocations(call):
        mine = Apply("eq", (address, AddressOf(variable.name)), U32)
        if thread is call.context.thread:
            differs = Apply("ne", (columns, Get(_note(variable))), U32)
            yield UndefinedIf(f"{call.head} frees all columns of an allocation", Apply("and", (mine, differs), U32))
        elif (known := columns_of(call, thread, instruction)) is not None:
            differs = Apply("ne", (columns, Const(known)), U32)
            yield UndefinedIf(f"{call.head} frees all columns of an allocation", Apply("and", (mine, differs), U32))
        else:
            yield Unmodelled("how many columns another thread allocated is computed", mine)


def _note(variable: Variable) -> str:
    """The hidden register that holds the columns of an allocation."""
    return f"{COUNTED}.{variable.name}"


def allocations(call: Call) -> list[tuple[Thread, Instruction, Variable]]:
    """The allocs of the executing thread's CTA, each with the .tensor variable that it allocates: the one that its
    destination is declared for, or the one whose turn it is."""
    test = call.context.test
    variables = {variable.name: variable for variable in test.variables}
    named = {variable.allocates for variable in test.variables}
    turns = (v for v in test.variables if v.space is Space.TENSOR and v.alias_of is None and v.name not in named)
    allocs = []
    for thread in (thread for thread in test.threads if thread.place.cta_id == call.place.cta_id):
        for instruction in instructions(thread):
            if instruction.mnemonic.startswith("tcgen05.alloc"):
                name = _named(call, instruction)
                variable = next(turns, None) if name is None else variables[name]
                if variable is not None:
                    allocs.append((thread, instruction, variable))
    return allocs


def allocated_again(call: Call, variable: Variable) -> tuple[Op, ...]:
    """The steps that find that an alloc gives memory which its thread, or perhaps another one, has allocated."""
    mine, others = _named_alike(call, variable)
    if others:
        return (Unmodelled(AGAIN, Const(1)),)
    return (Unmodelled(AGAIN, Get(_held(variable))), Assign(_held(variable), Const(1))) if mine else ()


def freed(call: Call, address: Expr) -> tuple[Op, ...]:
    """The steps that note that memory may be allocated again."""
    variables = {variable.name: variable for _, _, variable in allocations(call)}.values()
    return tuple(
        Assign(_held(it), Apply("and", (Get(_held(it)), Apply("ne", (address, AddressOf(it.name)), U32)), U32))
        for it in variables
        if any(_named_alike(call, it))
    )


def _named_alike(call: Call, variable: Variable) -> tuple[bool, bool]:
    """Two answers about the allocs that are declared to give a variable: this thread may execute several of them;
    another thread has one.
    """
    named = [
        (thread, instruction)
        for thread, instruction, allocated in allocations(call)
        if allocated is variable and _named(call, instruction) is not None
    ]
    mine = [instruction for thread, instruction in named if thread is call.context.thread]
    return len(mine) > 1, len(mine) < len(named)


def _held(variable: Variable) -> str:
    """The hidden register that says that an alloc gave a variable, and it was not freed since."""
    return f"#allocated.{variable.name}"


def _named(call: Call, alloc: Instruction) -> str | None:
    """The .tensor variable that the destination of an alloc is declared for."""
    match alloc.operands[:1]:
        case (Mem(base=Sym(name=name)),):
            return next((v.allocates for v in call.context.test.variables if v.name == name), None)
    return None

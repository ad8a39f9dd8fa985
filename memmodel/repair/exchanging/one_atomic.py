"""A load, what is computed from it, and a store to the same place, as one atomic operation.

In: a lowered test. Out: changes. Settled here: what may become one. Both are of one thread and name one variable, and
nothing but arithmetic and accesses to other variables stands between them. The atomic takes the place of the load, and
the store goes. What is stored is computed from what was loaded by one instruction that atomics have; or it is another
value, which is stored in any case, or if what was loaded has a certain value, which is `.cas`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memmodel.isa.lower import read_instruction
from memmodel.isa.rows.spelling import Spelling
from memmodel.litmus.constants import instructions
from memmodel.litmus.syntax import Instruction
from memmodel.program.lowered import LoweredTest
from memmodel.program.named_places import named_place
from memmodel.ptx.operands import Imm, Mem, Operand, Reg, Sym
from memmodel.ptx.vocabulary import Sem
from memmodel.repair.costs import OTHER, SCOPE_COST, SEM_FACTOR
from memmodel.repair.edits import Edit, place, whole
from memmodel.repair.exchanging.exchanges import ALIKE
from memmodel.repair.insertion.accesses import labels_of
from memmodel.repair.insertion.gaps import visible
from memmodel.repair.insertion.lines import widths
from memmodel.repair.spellings import SCOPES, scope_of, semantics

ARITHMETIC = {"add": "u", "min": "", "max": "", "and": "b", "or": "b", "xor": "b"}
"""Instructions that atomics have too, with the kind of type that the atomic takes; empty: that of the instruction."""

SEMANTICS = ("relaxed", "acquire", "release", "acq_rel")

COMPARED = {"eq": "cas", "lt": "max", "le": "max", "gt": "min", "ge": "min"}
"""The comparison of what was loaded with what is stored only if it holds, and the atomic that does the same."""

OPPOSITE = {"ne": "eq", "ge": "lt", "gt": "le", "le": "gt", "lt": "ge"}
"""The comparison that holds where another one does not."""


@dataclass(frozen=True, slots=True)
class LoadAndStore:
    """A load and a store of one thread that may be one atomic: `word` with its `type`, and its operands as text."""

    thread: int
    load: int
    store: int
    word: str
    type: str
    operands: str


def one_atomic(lowered: LoweredTest) -> Iterator[Edit]:
    """Each load and store that may be one atomic, and all of them that are about one variable."""
    places: dict[str, list[LoadAndStore]] = {}
    for number in range(len(lowered.programs)):
        items = list(instructions(lowered.test.threads[number]))
        for index, item in enumerate(items):
            for update in _updates(lowered, number, items, index):
                places.setdefault(named_place(item).variable, []).append(update)
    for updates in places.values():
        forms = {sem: [_edit(lowered, update, sem) for update in updates] for sem in SEMANTICS}
        yield from dict.fromkeys(edit for edits in forms.values() for edit in edits)
        for edits in forms.values() if len(updates) > 1 else ():
            yield together(edits)


def together(edits: Sequence[Edit]) -> Edit:
    """Changes of several places as one."""
    first, *others = edits
    what = "; ".join(edit.what for edit in edits)
    more = tuple(part for edit in others for part in (replace(edit, more=()), *edit.more))
    price = sum(edit.cost for edit in edits)
    return replace(first, what=what, cost=price, group=(*first.group, *ALIKE), more=(*first.more, *more))


def _edit(lowered: LoweredTest, update: LoadAndStore, sem: str) -> Edit:
    """The change into an atomic with these semantics, or more if the load and the store have more."""
    test, thread = lowered.test, lowered.test.threads[update.thread]
    items = list(instructions(thread))
    load, store = items[update.load], items[update.store]
    spellings = read_instruction(load, test), read_instruction(store, test)
    level = joined(spellings, sem)
    scope, space = common_scope(lowered, spellings), spellings[0].words.get("space")
    words = ("atom", SEMANTICS[level], scope, *((space,) if space else ()), update.word, update.type)
    text = f"{'.'.join(words)} {load.operands[0].span.text}, {load.operands[1].span.text}, {update.operands}"
    what = f"{place(thread, load)}: {load.mnemonic} and {store.mnemonic} of line {store.span.line} -> {'.'.join(words)}"
    price = 2 * OTHER + SCOPE_COST[scope] * SEM_FACTOR[SEMANTICS[level]]
    gone = Edit(*whole(store), "", "", 0.0, (update.thread, update.store, "name"), adds=-1)
    group = (update.thread, update.load, "name")
    return Edit(load.mnemonic_span.start, load.span.end, text, what, price, group, level, more=(gone,))


def joined(spellings: Sequence[Spelling], sem: str = "relaxed") -> int:
    """The number of the semantics that an atomic needs to do what these accesses do, and what `sem` does."""
    known = {sem, *map(semantics, spellings)} - {"weak", "volatile"}
    return next(number for number, more in enumerate(SEMANTICS) if all(Sem(more).orders(Sem(one)) for one in known))


def common_scope(lowered: LoweredTest, spellings: Sequence[Spelling]) -> str:
    """The widest scope of the test and of the accesses."""
    known = [scope_of(spelling) for spelling in spellings if semantics(spelling) not in ("weak", "volatile")]
    return max((*known, *widths([thread.place for thread in lowered.test.threads])), key=SCOPES.index)


def _updates(lowered: LoweredTest, number: int, items: Sequence[Instruction], index: int) -> Iterator[LoadAndStore]:
    """The atomic that a load may become, with the store that goes."""
    load = items[index]
    if not plain(load, "ld") or not isinstance(load.operands[0], Reg) or load.guard is not None:
        return
    end = next_of_place(lowered, number, items, index)
    labels = labels_of(lowered.test.threads[number]).values()
    if end is None or any(index < at <= end for at in labels):
        return
    store, between = items[end], items[index + 1 : end]
    if not plain(store, "st") or named_place(store) != named_place(load) or _width(store) != _width(load):
        return
    found = operation(load.operands[0], kind_of_access(load), store, between)
    if found is not None:
        yield LoadAndStore(number, index, end, *found)


def next_of_place(lowered: LoweredTest, number: int, items: Sequence[Instruction], index: int) -> int | None:
    """The next instruction after a load that does more than compute, or access another variable without an order."""
    name = named_place(items[index]).variable
    for at in range(index + 1, len(items)):
        if visible(lowered, number, at) and not _is_elsewhere(lowered, items, at, name):
            return at
    return None


def _is_elsewhere(lowered: LoweredTest, items: Sequence[Instruction], at: int, name: str) -> bool:
    """True of an access without an order to another variable than this one, which has no second name in the test. In a
    register is no address of it if the thread never takes that."""
    item, aliased = items[at], {variable.alias_of for variable in lowered.test.variables}
    if item.parts[0] not in ("ld", "st") or {"acquire", "release", "volatile", "mmio", "async", "bulk"} & set(
        item.parts
    ):
        return False
    if name in aliased or any(each.name == name and each.alias_of is not None for each in lowered.test.variables):
        return False
    base = next(operand for operand in item.operands if isinstance(operand, Mem)).base
    if isinstance(base, Sym):
        return base.name != name
    taken = (operand for other in items for operand in other.operands if isinstance(operand, Sym))
    return not any(operand.name == name for operand in taken)


def operation(
    register: Reg, kind: str, store: Instruction, between: Sequence[Instruction]
) -> tuple[str, str, str] | None:
    """The word, the type and the operands of an atomic that stores what a store of a register's place does, after
    instructions that only compute; None if no atomic does. `kind`: the type of the load of the register."""
    value, bits = store.operands[1], f"b{kind[1:]}"
    writers = [item for item in between if writes(item, value)]
    comparison = next((item for item in between if item.parts[0] == "setp"), None)
    branches = [item for item in between if item.parts[0] == "bra"]
    others = [item for item in between if item not in (*writers, comparison, *branches)]
    if any(writes(item, operand) for item in others for operand in (value, register)):
        return None
    if comparison is None:
        if branches or store.guard is not None or len(writers) > 1:
            return None
        return _computed(register, writers[0], kind) if writers else ("exch", bits, value.span.text)
    guards = [guard for guard in (store.guard, *(item.guard for item in branches)) if guard is not None]
    if len(guards) != 1 or len(branches) > 1 or (branches and branches[0].guard is None) or writers:
        return None
    relation, (predicate, left, right) = comparison.parts[1], comparison.operands[:3]
    if not (isinstance(predicate, Reg) and predicate.name == guards[0].register and _same(left, register)):
        return None
    if guards[0].negated is not bool(branches):  # the store is made where the comparison does not hold
        relation = OPPOSITE.get(relation, "")
    if relation == "eq":
        return COMPARED[relation], bits, f"{right.span.text}, {value.span.text}"
    if right == value and relation in COMPARED:
        return COMPARED[relation], comparison.parts[-1], value.span.text
    return None


def _computed(register: Reg, item: Instruction, kind: str) -> tuple[str, str, str] | None:
    """An atomic operation for a store of what one instruction computes from the loaded value."""
    word, type_ = item.parts[0], item.parts[-1]
    if word == "mov" and not _same(item.operands[1], register):
        return "exch", f"b{kind[1:]}", item.operands[1].span.text
    others = [operand for operand in item.operands[1:] if not _same(operand, register)]
    if len(item.operands) != 3 or len(others) != 1:
        return None
    (other,) = others
    if word == "sub" and other is item.operands[2] and isinstance(other, Imm):
        return "add", f"u{type_[1:]}", str(-other.value)
    if word not in ARITHMETIC or (ARITHMETIC[word] and type_[0] == "f" and word != "add"):
        return None
    wanted = type_ if type_[0] == "f" or not ARITHMETIC[word] else f"{ARITHMETIC[word]}{type_[1:]}"
    return word, wanted, other.span.text


def _same(operand: Operand, register: Reg) -> bool:
    return isinstance(operand, Reg) and operand.name == register.name


def writes(item: Instruction, operand: Operand) -> bool:
    """True if an instruction that only computes writes this register."""
    first = item.operands[0] if item.operands else None
    return isinstance(operand, Reg) and item.parts[0] != "bra" and isinstance(first, Reg) and first.name == operand.name


def plain(item: Instruction, head: str) -> bool:
    """True of a scalar access of a named variable."""
    places = [operand for operand in item.operands if isinstance(operand, Mem)]
    scalar = item.parts[0] == head and len(item.operands) == 2 and not {"v2", "v4", "v8", "async"} & set(item.parts)
    return scalar and len(places) == 1 and isinstance(places[0].base, Sym)


def kind_of_access(item: Instruction) -> str:
    """The type of an access."""
    return item.parts[-1]


def _width(item: Instruction) -> str:
    return kind_of_access(item)[1:]

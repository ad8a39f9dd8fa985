"""Is every test of an mbarrier object the head of a polling loop that ends by success and changes nothing?

In: Function, the numbers of tests that ran. Out: what is wrong, for each test. From a test that failed, every path
leads back to the same test through instructions without effect, or to a trap; no register that is written on the way
is read behind the loop. What a branch on the result itself does is followed with the value that it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from memmodel.kernel.machine.alu import comparison, function, predicate, width_of
from memmodel.kernel.text.syntax import PtxFunction, PtxInstruction
from memmodel.ptx.operands import (
    Arguments,
    Imm,
    JumpTarget,
    Mem,
    Negated,
    Operand,
    Pair,
    Part,
    Register,
    Special,
    Sym,
    TensorOperand,
    Vector,
)

MAX_STATES = 20_000
MAX_LOOKED_AT = 16
_COMPUTE = "mov add sub mul mad and or xor not shl shr setp set selp cvt cvta min max neg abs bfe bfi popc brev div rem"
_BITS = "clz lop3 shf prmt cnot sad slct bfind bmsk szext fns mul24 mad24 dp4a dp2a isspacep testp"
PURE = frozenset((*_COMPUTE.split(), *_BITS.split(), "bra", "nanosleep"))
ENDS = ("ret", "exit", "trap")
_NO_RESULT = "st red bra bar barrier fence membar ret exit brx call nanosleep stackrestore"
NO_RESULT = frozenset(_NO_RESULT.split())
Known = tuple[tuple[int, int], ...]


def complaints(
    entry: PtxFunction, tests: Iterable[int], awaits: Mapping[int, frozenset[int]] | None = None
) -> list[tuple[PtxInstruction, str]]:
    """The tests that are no such loop, and why. `awaits`: what `looking_ahead` found."""
    body = entry.body or ()
    live: list[set[int]] | None = None
    found = []
    ahead = {number for peeks in (awaits or {}).values() for number in peeks}
    for number in sorted(set(tests) - ahead):
        test = body[number]
        result = written(test)
        if len(result) != 1:
            found.append((test, "its result is not one register"))
            continue
        why, changed = failing(body, number, result[0])
        changed -= computed_again(entry, number, changed, result[0])
        asked = {slot for operand in test.operands[1:] for slot in registers(operand)}
        if why is None and changed & asked:
            why = "the loop changes what it tests"
        if why is None:
            live = live if live is not None else liveness(entry)
            behind = _succeeding(body, number, result[0])
            left = [one for one in behind if changed & live[one] - set(result)]
            if left:
                why = "a register that the loop changes is used behind it"
        if why is not None:
            found.append((test, why))
    return found


def computed_again(entry: PtxFunction, test: int, changed: set[int], result: int) -> set[int]:
    """The registers that a polling loop writes in each round with the value that they have had since the first one.

    Such a register is written once in the whole function, unguarded, right before the test: between the two no jump
    leads in. What it is computed from is of this kind, or not written in the loop. So every round computes the same,
    and no way leads to the test that has not passed the instruction. (Addresses and parities of inline assembly.)
    """
    body = entry.body or ()
    ends, counts = _blocks(entry)
    first = test
    while first > 0 and first not in ends and body[first - 1].words[0] in PURE:
        first -= 1
    steady: set[int] = set()
    for one in body[first:test]:
        sources = {slot for operand in one.operands[1:] for slot in registers(operand)}
        told = any(isinstance(operand, Special) for operand in one.operands)
        slots = written(one)
        if one.guard is None and not told and result not in sources and sources & changed <= steady:
            steady |= {slot for slot in slots if counts[slot] == 1}
    return steady


@lru_cache(maxsize=8)
def _blocks(entry: PtxFunction) -> tuple[set[int], Counter[int]]:
    """Where a new block of instructions begins; how many instructions write each register."""
    body = entry.body or ()
    ends = {at for listed in entry.tables.values() for at in listed}
    ends |= {one.start for one in entry.callees.values()}
    ends |= {one.operands[0].at for one in body if one.operands and isinstance(one.operands[0], JumpTarget)}
    ends |= {at + 1 for at in range(len(body)) if body[at].words[0] in ("brx", "bra", "call", *ENDS)}
    return ends, Counter(slot for one in body for slot in written(one))


def time_outs(entry: PtxFunction, tests: Iterable[int]) -> list[tuple[PtxInstruction, PtxInstruction]]:
    """The tests after whose failure a thread may stop the kernel, each with the trap."""
    body = entry.body or ()
    found = []
    for number in sorted(set(tests)):
        visited: set[int] = set()
        if len(written(body[number])) == 1:
            failing(body, number, written(body[number])[0], visited)
        found += [(body[number], body[trap]) for trap in _traps(body, visited)[:1]]
    return found


def doomed(body: tuple[PtxInstruction, ...], at: int) -> int | None:
    """The trap that every path from an instruction leads to, if it does nothing before but compute and print."""
    waiting, seen, found = [at], set[int](), None
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        one = body[at] if at < len(body) else None
        if one is not None and one.words[0] == "trap":
            found = at
            waiting += [] if one.guard is None else [at + 1]
        elif one is None or not (one.words[0] in PURE or _harmless(one)):
            return None
        else:
            waiting += [after for after, _ in following(body, (at, ()))]
    return found


def _stops(one: PtxInstruction) -> bool:
    return one.words[0] == "trap" and one.guard is None


def _harmless(one: PtxInstruction) -> bool:
    """Does it touch nothing but memory of its thread, or print?"""
    if one.words[0] == "call":
        return any(isinstance(each, Sym) and each.name == "vprintf" for each in one.operands)
    return one.words[0] in ("ld", "st") and bool({"local", "param", "const"} & {w.split("::")[0] for w in one.words})


def _traps(body: tuple[PtxInstruction, ...], visited: set[int]) -> list[int]:
    return [number for number in sorted(visited) if number < len(body) and body[number].words[0] == "trap"]


def comes_back(entry: PtxFunction, at: int) -> bool:
    """May a thread come to an instruction again?"""
    body = entry.body or ()
    waiting, seen = [at + 1], set[int]()
    while waiting:
        one = waiting.pop()
        if one in seen or one >= len(body):
            continue
        seen.add(one)
        if body[one].words[0] in ("brx", "call"):
            return True  # not followed
        if body[one].words[0] not in ("ret", "exit", "trap") or body[one].guard is not None:
            waiting += [after for after, _ in following(body, (one, ()))]
    return at in seen


def looked_at(entry: PtxFunction, load: int) -> tuple[int, ...]:
    """The registers that instructions without effect read behind a load, on the way back to it: at most a few."""
    body = entry.body or ()
    waiting, seen, found = [load + 1], set[int](), dict[int, None]()
    while waiting and len(found) <= MAX_LOOKED_AT:
        at = waiting.pop()
        if at in seen or at == load or at >= len(body) or body[at].words[0] not in PURE:
            continue
        seen.add(at)
        one = body[at]
        found |= dict.fromkeys(slot for operand in one.operands[1:] for slot in registers(operand))
        waiting += [after for after, _ in following(body, (at, ()))]
    return tuple(found) if load in {after for at in seen for after, _ in following(body, (at, ()))} else ()


def reads_again(entry: PtxFunction, load: int, value: int, around: Known = ()) -> bool:
    """Does a load that returned this value lead back to itself, and leave nothing that is looked at later?

    `around`: what is known of other registers. Those that the loop writes have another value in another round.
    """
    return _round(entry, load, value, around) is not None


class PollRound(NamedTuple):
    """The instructions on the ways back to a load, the registers written there, where the loop is left."""

    inside: frozenset[int]
    changed: frozenset[int]
    behind: int
    around: Known


def _round(entry: PtxFunction, load: int, value: int, around: Known) -> PollRound | None:
    """The way back to a load that returned this value, if it leads there and leaves nothing."""
    body = entry.body or ()
    result = written(body[load])
    if len(result) != 1 or body[load].guard is not None or result[0] in registers(body[load].operands[1]):
        return None
    while True:
        visited: set[int] = set()
        why, changed = failing(body, load, result[0], visited, value, around)
        if why is not None or not changed & {slot for slot, _ in around}:
            break
        around = tuple((slot, known) for slot, known in around if slot not in changed)
    if why is not None or changed & set(registers(body[load].operands[1])):
        return None
    after_them = {at: [after for after, _ in following(body, (at, ()))] for at in visited if not _stops(body[at])}
    back = any(load in after for after in after_them.values())
    if not back:
        return None
    ways = {at for after in after_them.values() for at in after if at not in visited and at != load}
    ways = {at for at in ways if doomed(body, at) is None}
    if len(ways) != 1 or any(changed & liveness(entry)[after] for after in ways):
        return None
    return PollRound(frozenset(visited), frozenset(changed), ways.pop(), around)


def read_inside(entry: PtxFunction, slot: int, load: int, value: int, around: Known = ()) -> bool:
    """Is a register read nowhere but in a loop that goes on with this value of its load?"""
    one = _round(entry, load, value, around)
    return one is not None and all(
        each.number in one.inside
        for each in entry.body or ()
        if slot in {s for operand in each.operands[written(each) != [] :] for s in registers(operand)}
        or (each.guard is not None and each.guard.slot == slot)
    )


def ends_alike(entry: PtxFunction, load: int, on: Iterable[int], ends: Iterable[int], around: Known = ()) -> bool:
    """Does a loop that goes on with some values of its load end with each of the others at one instruction, where
    neither the value nor a register that the loop writes is looked at?
    """
    body, result = entry.body or (), set(written((entry.body or ())[load]))
    rounds = {_round(entry, load, value, around) for value in on}
    if len(rounds) != 1:
        return False
    one = rounds.pop()
    if one is None or (one.changed | result) & liveness(entry)[one.behind]:
        return False
    for value in ends:
        state: tuple[int, Known] = (
            load + 1,
            tuple(sorted({**dict(one.around), written(body[load])[0]: value}.items())),
        )
        for _ in range(MAX_STATES):
            if state[0] not in one.inside:
                break
            ways = following(body, state)
            if len(ways) != 1:
                return False
            state = ways[0]
        if state[0] != one.behind:
            return False
    return True


def failing(
    body: tuple[PtxInstruction, ...],
    test: int,
    slot: int,
    visited: set[int] | None = None,
    value: int = 0,
    around: Known = (),
) -> tuple[str | None, set[int]]:
    """Follow the paths on which the test returned false (0), up to the test. `visited`: what is on them is added."""
    waiting: list[tuple[int, Known]] = [(test + 1, tuple(sorted({**dict(around), slot: value}.items())))]
    seen: set[tuple[int, Known]] = set()
    changed: set[int] = set()
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] == test:
            continue
        seen.add(state)
        if len(seen) > MAX_STATES or state[0] >= len(body):
            return "the paths behind a failure do not lead back to it", changed
        one = body[state[0]]
        head = one.words[0]
        if visited is not None:
            visited.add(state[0])
        if head == "trap":
            waiting += [] if one.guard is None else following(body, state)
            continue
        if head not in PURE and (trap := doomed(body, state[0])) is not None:
            visited = set() if visited is None else visited
            visited.add(trap)
            continue
        if head in ("ret", "exit") or head not in PURE:
            return f"after a failure the thread may reach {one.opcode} at line {one.line}", changed
        changed |= set(written(one))
        waiting += following(body, state)
    return None, changed


def _succeeding(body: tuple[PtxInstruction, ...], test: int, slot: int) -> set[int]:
    """The first instructions behind the test at which its result is no longer looked at."""
    waiting: list[tuple[int, Known]] = [(test + 1, ((slot, 1),))]
    seen: set[tuple[int, Known]] = set()
    found: set[int] = set()
    while waiting:
        state = waiting.pop()
        if state in seen or state[0] >= len(body):
            continue
        seen.add(state)
        one = body[state[0]]
        if one.words[0] not in PURE or len(seen) > 64:
            found.add(state[0])
            continue
        ways = following(body, state)
        if one.words[0] == "bra" and len(ways) == 1 and one.guard is not None:
            found.add(ways[0][0])
        elif one.words[0] == "bra" and one.guard is not None:
            found.add(state[0])
        else:
            waiting += ways
    return found


def following(body: tuple[PtxInstruction, ...], state: tuple[int, Known]) -> list[tuple[int, Known]]:
    """Where an instruction leads, with what is known of registers."""
    at, known = state
    one, values = body[at], dict(known)
    guard = None if one.guard is None else values.get(one.guard.slot)
    runs = None if one.guard is None or guard is None else bool(guard) != one.negated
    if one.words[0] == "bra":
        target = one.operands[0] if one.operands else None
        if not isinstance(target, JumpTarget):
            return []
        found = [] if runs is False else [(target.at, known)]
        return found if runs is True or one.guard is None else [*found, (at + 1, known)]
    if runs is not False:
        value = _value(one, values) if one.guard is None or runs else None
        for slot in written(one):
            values.pop(slot, None)
            if value is not None:
                values[slot] = value
    return [(at + 1, tuple(sorted(values.items())))]


def _value(one: PtxInstruction, values: Mapping[int, int]) -> int | None:
    """The result of an instruction, if what is known says it."""
    if not one.operands or not isinstance(one.operands[0], Register):
        return None
    given = [_known(operand, values) for operand in one.operands[1:]]
    if one.words[0] == "selp" and len(given) == 3 and given[2] is not None:
        return _narrowed(given[0] if given[2] else given[1], one)
    if one.words[0] == "mov" and len(given) == 1:
        return _narrowed(given[0], one)
    if one.words[0] == "setp":
        return _compared(one, given)
    if one.words[-1] == "pred":
        return _joined(one.words[0], given)
    fn = function(one.words)
    try:
        return None if fn is None or None in given else fn(*given)
    except TypeError:  # too few operands, or too many: no assembler takes that
        return None


def _compared(one: PtxInstruction, given: list[int | None]) -> int | None:
    """setp, alone or joined with another predicate."""
    fn = comparison(one.words)
    if fn is None or len(given) not in (2, 3):
        return None
    result = None if given[0] is None or given[1] is None else fn(given[0], given[1])
    logic = next((word for word in one.words[2:-1] if word in ("and", "or", "xor")), None)
    if logic is None:
        return result if len(given) == 2 else None
    return _joined(logic, [result, given[2]]) if len(given) == 3 else None


def _joined(logic: str, given: list[int | None]) -> int | None:
    """An operation on predicates, of which one may decide it alone."""
    if logic in ("and", "or") and int(logic == "or") in given:
        return int(logic == "or")
    known = [value for value in given if value is not None]
    fits = logic in ("and", "or", "xor", "not") and len(given) == (1 if logic == "not" else 2)
    return predicate(logic)(*known) if fits and len(known) == len(given) else None


def _narrowed(value: int | None, one: PtxInstruction) -> int | None:
    width = width_of(one.words[-1])
    return value if value is None or width is None else value & (1 << width) - 1


def _known(operand: Operand, values: Mapping[int, int]) -> int | None:
    if isinstance(operand, Imm):
        return operand.value & (1 << 64) - 1
    if isinstance(operand, Negated):
        value = values.get(operand.operand.slot) if isinstance(operand.operand, Register) else None
        return None if value is None else value ^ 1
    return values.get(operand.slot) if isinstance(operand, Register) else None


def written(one: PtxInstruction) -> list[int]:
    """The registers that an instruction writes: its first operand, unless it stores, branches or only reads."""
    if "red" in one.words[1:] and one.words[0] in ("bar", "barrier"):
        return registers(one.operands[0]) if one.operands else []
    if one.words[0] in NO_RESULT or one.words[:2] == ("tcgen05", "dealloc"):
        return []
    return registers(one.operands[0]) if one.operands and not isinstance(one.operands[0], Mem | TensorOperand) else []


def registers(operand: Operand) -> list[int]:
    """The registers in an operand."""
    if isinstance(operand, Register):
        return [operand.slot]
    if isinstance(operand, Negated | Part):
        return registers(operand.operand if isinstance(operand, Negated) else operand.register)
    if isinstance(operand, Pair):
        return [*registers(operand.first), *registers(operand.second)]
    if isinstance(operand, Vector | Arguments):
        return [slot for item in operand.items for slot in registers(item)]
    if isinstance(operand, Mem | TensorOperand):
        rest = operand.rest if isinstance(operand, TensorOperand) else ()
        return [*registers(operand.base), *(slot for item in rest for slot in registers(item))]
    return []


@lru_cache(maxsize=4)
def liveness(entry: PtxFunction) -> list[set[int]]:
    """The registers whose value may still be read, before each instruction."""
    body = entry.body or ()
    live: list[set[int]] = [set() for _ in range(len(body) + 1)]
    kills = [set(written(one)) if one.guard is None else set() for one in body]
    reads = [{slot for each in one.operands[written(one) != [] :] for slot in registers(each)} for one in body]
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            one, out = body[at], set[int]()
            if one.words[0] == "bra" and one.operands and isinstance(one.operands[0], JumpTarget):
                out |= live[one.operands[0].at]
            for table in one.operands if one.words[0] == "brx" else ():
                out |= {slot for place in entry.tables.get(getattr(table, "name", ""), ()) for slot in live[place]}
            if one.guard is not None or one.words[0] not in (*ENDS, "bra", "brx"):
                out |= live[at + 1]
            new = reads[at] | out - kills[at] | ({one.guard.slot} if one.guard is not None else set())
            changed |= new != live[at]
            live[at] = new
    return live

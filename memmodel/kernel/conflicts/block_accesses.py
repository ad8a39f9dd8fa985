"""What a run accesses in one block of memory, as columns.

In: LaunchTrace, Roles. Out: `BlockAccesses` for each block in which something can be found. An access has one or more
pieces, each of bytes that lie together. A large launch has hundreds of thousands of them, so what only a few are asked
for is made when it is asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter

from memmodel.base.labels import Label, Side, side_of
from memmodel.kernel.conflicts.roles import Labels, Roles
from memmodel.kernel.conflicts.uses import Name, Use, outlives, stored_by
from memmodel.kernel.trace.accesses import LaneAccesses, WeakAccess
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent
from memmodel.kernel.trace.launch import LaunchTrace
from memmodel.memory.bytes import CtaId
from memmodel.ptx.vocabulary import Space

UseClass = int
"""The class of an access, and whether it goes to another CTA: two times the number of the class, and one more if so."""

Kind = tuple[int, int | None, int | None, int, bool]
"""What an access is, besides its thread and epoch: number of its label, size of its elements, issue, part, and whether
lanes make it together."""

Part = tuple[int, int, int, WeakAccess | LaneAccesses, int]
"""A weak access: first byte, end, instruction, and where it stands: itself, or its row with the number of the lane."""


class AccessClasses:
    """Numbers for what accesses are, the same for all blocks of a run. `by_instruction`: accesses of different
    instructions are different classes.
    """

    def __init__(self, run: LaunchTrace, roles: Roles, *, by_instruction: bool) -> None:
        self.run, self.by_instruction = run, by_instruction
        self.label = Labels().number
        self.cta_ids = [thread.place.cta_id for thread in run.threads]
        self._who = numbered(roles.who)
        self._keys: dict[Hashable, int] = {}
        self._idents: dict[Hashable, int] = {}

    def key(self, use: Use) -> int:
        """The number of the class of an access."""
        label, strong = self.label(use.label), use.event is not None
        return self.number(use.thread, use.epoch, label, use.scalar, strong, use.at, use.matrix)

    def number(
        self, thread: int, epoch: int, label: int, scalar: int | None, strong: bool, at: int, matrix: int
    ) -> int:
        """The same, of what a class consists of."""
        key = self._who[thread], epoch, label, scalar, strong, at * self.by_instruction, matrix
        return self._keys.setdefault(key, len(self._keys))

    def of(self, block: Block, use: Use) -> UseClass:
        """The class of an access to a block."""
        return 2 * self.key(use) + self.away(block, use.thread)

    def away(self, block: Block, thread: int) -> bool:
        """True if the memory belongs to another CTA than the thread's."""
        owner = block.instance.owner
        return owner is not None and owner != self.cta_ids[thread]

    def ident(self, use: Use) -> int:
        """A number for all pieces of an access, whatever their bytes."""
        label, strong, asynchronous = self.label(use.label), use.event is not None, use.issue is not None
        access = use.thread, use.epoch, label, use.scalar, use.part, strong, asynchronous, use.at * self.by_instruction
        return self._idents.setdefault(access, len(self._idents))

    def name(self, use: Use) -> Name:
        """An access within its thread, as numbers."""
        asynchronous, strong = int(use.issue is not None), int(use.event is not None)
        at = use.at * self.by_instruction
        return use.epoch, self.label(use.label), use.scalar or 0, use.part, asynchronous, strong, at


class BlockAccesses:
    """The accesses to a block. The columns of pieces are `first`, `end` and `access`; the others are of accesses."""

    def __init__(self, block: Block, classes: AccessClasses) -> None:
        self.block, self._classes = block, classes
        self.first: list[int] = []
        self.end: list[int] = []
        self.access: list[int] = []
        self._parts: list[list[Part]] = []
        self.thread: list[int] = []
        self.at: list[int] = []
        self.key: list[int] = []
        self.use_class: list[UseClass] = []
        self.writes: list[bool] = []
        self.alone: list[bool] = []
        self.together: list[bool] = []
        """True for an access that lanes make together."""
        self._strong: dict[int, Use] = {}
        self._names: dict[int, Name] = {}
        self._described: dict[object, int] = {}
        self._descriptions: dict[int, tuple[int, int | None]] = {}

    def __len__(self) -> int:
        """The number of pieces."""
        return len(self.first)

    def add(self, single: Sequence[WeakAccess], lanes: Sequence[LaneAccesses]) -> None:
        """Add weak accesses; those of one thread, epoch and kind are one access, and its bytes that touch one piece."""
        kinds, merged = dict[Kind, int](), defaultdict[tuple[int, int, int], list[Part]](list)
        number = self._classes.label
        for access in single:
            issue = None if access.issue is None else access.issue.order
            what = number(access.label), access.scalar, issue, access.part, bool(access.others)
            kind = kinds.setdefault(what, len(kinds))
            part = access.first, access.first + access.size, access.at, access, 0
            merged[access.thread, access.epoch, kind].append(part)
        for row in lanes:
            what = number(row.label), row.scalar, None, row.part, False
            kind, size, at = kinds.setdefault(what, len(kinds)), row.size, row.at
            for lane, (first, thread, epoch) in enumerate(zip(row.firsts, row.threads, row.epochs, strict=True)):
                merged[thread, epoch, kind].append((first, first + size, at, row, lane))
        whats, flags = list(kinds), dict[int, tuple[bool, bool]]()
        for (thread, epoch, kind), members in merged.items():
            if len(members) > 1:
                members.sort(key=_FIRST_BYTE)
            last = -1
            for piece in _pieces(members) if len(members) > 1 else (members,):
                first, end, at, _, _ = piece[0]
                if at != last:
                    last = at
                    if kind not in flags:
                        use = _use(piece)
                        flags[kind] = use.writes, use.alone
                    label, scalar, issue, part_number, together = whats[kind]
                    matrix = part_number if issue is None else 0
                    key = self._classes.number(thread, epoch, label, scalar, False, at, matrix)
                    self._add_access(thread, at, key, *flags[kind], together)
                self._add_piece(first, end if len(piece) == 1 else _end(piece), piece)

    def add_strong(self, event: TraceEvent) -> None:
        """Add a strong access."""
        whole = event.issue or event
        part = whole.signals.index(event) if event.issue is not None else 0
        assert whole.order is not None
        use = Use(
            event.thread, whole.order, event.label, event.size, event.at, event.first, event.size, None, event,
            part=part,
        )  # fmt: skip
        self._strong[len(self.thread)] = use
        self._add_access(event.thread, event.at, self._classes.key(use), use.writes, use.alone, False)
        self._add_piece(use.first, use.first + use.size, [])

    def _add_access(self, thread: int, at: int, key: int, writes: bool, alone: bool, together: bool) -> None:
        self.thread.append(thread)
        self.at.append(at)
        self.key.append(key)
        self.use_class.append(2 * key + self._classes.away(self.block, thread))
        self.writes.append(writes)
        self.alone.append(alone)
        self.together.append(together)

    def _add_piece(self, first: int, end: int, parts: list[Part]) -> None:
        """A piece of the last access that was added."""
        self.first.append(first)
        self.end.append(end)
        self.access.append(len(self.thread) - 1)
        self._parts.append(parts)

    def thread_of(self, piece: int) -> int:
        return self.thread[self.access[piece]]

    def instruction_of(self, piece: int) -> int:
        return self.at[self.access[piece]]

    def class_of(self, piece: int) -> UseClass:
        return self.use_class[self.access[piece]]

    def use(self, piece: int) -> Use:
        """A piece of an access."""
        parts = self._parts[piece]
        return _use(parts) if parts else self._strong[self.access[piece]]

    def stored(self, piece: int, first: int, size: int) -> int | None:
        """The bytes that a weak store leaves there; see `Use.stored`."""
        parts = self._parts[piece]
        if len(parts) == 1:
            _, _, _, where, lane = parts[0]
            if isinstance(where, WeakAccess):
                if where.value is None:
                    return None
            elif where.values is None or where.values[lane] is None:
                return None
        return stored_by([_access(part) for part in parts], first, size)

    def idents(self) -> list[int]:
        """For each piece the number of its access, whatever the bytes."""
        idents = dict[int, int]()
        for piece, access in enumerate(self.access):
            if access not in idents:
                idents[access] = self._classes.ident(self.use(piece))
        return [idents[access] for access in self.access]

    def name(self, piece: int) -> Name:
        """An access within its thread, as numbers."""
        access = self.access[piece]
        known = self._names.get(access)
        if known is None:
            known = self._names[access] = self._classes.name(self.use(piece))
        return known

    def described(self, piece: int) -> tuple[int, int | None]:
        """A number for what an access is, whoever makes it, and the number of its copy, equal for equal ones."""
        access = self.access[piece]
        known = self._descriptions.get(access)
        if known is None:
            use, what = self.use(piece), (self.use_class[access], self.name(piece))
            number = self._described.setdefault(what, len(self._described))
            known = self._descriptions[access] = number, None if use.issue is None else use.issue.twin
        return known


def accesses_by_block(run: LaunchTrace, roles: Roles, classes: AccessClasses) -> Iterator[tuple[Block, BlockAccesses]]:
    """The accesses to each block in which something can be found.

    Memory of a CTA in which equal threads do the same as in an equal CTA before is left out.
    """
    strong = dict[Block, list[TraceEvent]]()
    for event in (event for thread in run.threads for event in thread.strong()):
        if event.block is not None:
            strong.setdefault(event.block, []).append(event)
    by_block: dict[Block, tuple[list[WeakAccess], list[LaneAccesses]]] = {
        block: ([], []) for block in _judged_blocks(run, classes, strong)
    }
    for access in run.single:
        if access.block in by_block:
            by_block[access.block][0].append(access)
    for row in run.lanes:
        if row.block in by_block:
            by_block[row.block][1].append(row)

    def size_of(block: Block) -> tuple[Space, int, int]:
        """What two blocks share in which the same is done."""
        single, lanes = by_block[block]
        return block.instance.space, len(single), len(lanes)

    sizes = Counter(size_of(block) for block in by_block if block.instance.owner is not None)
    alike = AlikeMemory(run, roles)
    known: set[object] = set()
    for block, (single, lanes) in by_block.items():
        if sizes[size_of(block)] > 1 and block not in strong:
            name = alike.name(block, single, lanes)
            if name is not None and name in known:
                continue
            known.add(name)
        accesses = BlockAccesses(block, classes)
        others = {event.thread for event in strong.get(block, ())}.union(*[row.threads for row in lanes])
        accesses.add(_copies_of_two_lanes(run, roles, single, others), lanes)
        for event in strong.get(block, ()):
            accesses.add_strong(event)
        yield block, accesses


def _judged_blocks(run: LaunchTrace, classes: AccessClasses, strong: Iterable[Block]) -> Iterable[Block]:
    """The blocks whose accesses are judged: those that are written or have strong accesses or objects, and those with
    reads that count alone. Other reads race with nothing.
    """
    judged = dict.fromkeys(access.block for access in run.single if side_of(access.label) is Side.WRITE)
    judged |= dict.fromkeys(strong)
    judged |= dict.fromkeys(access.block for access in run.lanes if side_of(access.label) is Side.WRITE)
    judged |= dict.fromkeys(block for block, _ in run.objects)
    for access in run.single:
        if access.block not in judged and counts_alone(classes, access.block, access.thread, access.label):
            judged[access.block] = None
    for row in run.lanes:
        alone = row.block not in judged and may_count_alone(row.block)
        if alone and any(counts_alone(classes, row.block, thread, row.label) for thread in row.threads):
            judged[row.block] = None
    return judged


def _copies_of_two_lanes(
    run: LaunchTrace, roles: Roles, single: list[WeakAccess], others: Container[int]
) -> list[WeakAccess]:
    """The accesses to a block, but for those of lanes that make the copies that two equal lanes of their warp make, and
    touch the block in no other way: two stand for all, as in `Conflicts`. `others`: threads that touch it otherwise.
    """
    done: dict[int, dict[object, None] | None] = {}
    last: object = None
    for access in single:
        issue = access.issue
        if issue is last and issue is not None:
            continue
        last, thread = issue, access.thread
        if issue is None or issue.twin is None or thread in others:
            done[thread] = None
        elif (copies := done.setdefault(thread, {})) is not None:
            copies[issue.twin, access.epoch] = None
    counts: dict[object, int] = {}
    left_out = set[int]()
    for thread, twins in done.items():
        if twins is not None:
            where = run.threads[thread]
            lanes = where.cta, where.warp, roles.who[thread], *twins
            counts[lanes] = counts.get(lanes, 0) + 1
            if counts[lanes] > 2:
                left_out.add(thread)
    return [access for access in single if access.thread not in left_out] if left_out else single


def may_count_alone(block: Block) -> bool:
    """True if an access to a block may be judged although nothing else touches its bytes."""
    return block.instance.owner is not None or block.instance.space is Space.TENSOR


def counts_alone(classes: AccessClasses, block: Block, thread: int, label: Label) -> bool:
    """True if an access is judged although nothing else touches its bytes: one to tensor memory or to memory of another
    CTA, or one that may outlive its CTA.
    """
    if not may_count_alone(block):
        return False
    return block.instance.space is Space.TENSOR or classes.away(block, thread) or outlives(label)


class Holders:
    """The first threads of CTAs."""

    def __init__(self, run: LaunchTrace) -> None:
        self._first = {thread.place.cta_id: thread.number for thread in reversed(run.threads)}

    def of(self, owner: CtaId) -> int:
        """The first thread of the CTA that owns some memory."""
        return self._first[owner]


class AlikeMemory:
    """Names for what is done in the memory of CTAs."""

    def __init__(self, run: LaunchTrace, roles: Roles) -> None:
        self._run, self._roles, self._holder = run, roles, Holders(run).of

    def name(self, block: Block, single: list[WeakAccess], lanes: list[LaneAccesses]) -> object:
        """A name for what is done in the memory of a CTA, equal for CTAs that do the same; None for other memory."""
        owner, threads = block.instance.owner, self._run.threads
        if owner is None:
            return None
        rank = threads[self._holder(owner)].place.rank
        names: dict[int, object] = {}

        def where(number: int) -> object:
            """A thread by the rank of its CTA, seen from the memory, its number there and its classes."""
            if number not in names:
                place = threads[number].place
                who = self._roles.who[number]
                names[number] = place.rank - rank, number - self._holder(place.cta_id), who[1:]
            return names[number]

        alone = tuple(
            (
                access.first,
                access.size,
                where(access.thread),
                access.epoch,
                access.label,
                access.scalar,
                access.value,
                access.part,
            )
            for access in single
        )
        of_lanes: dict[tuple[int, ...], object] = {}
        together = []
        for row in lanes:
            makers = tuple(row.threads)
            if makers not in of_lanes:
                of_lanes[makers] = tuple(map(where, makers))
            values = None if row.values is None else tuple(row.values)
            together.append((row.size, row.at, tuple(row.firsts), of_lanes[makers], tuple(row.epochs), values))
        return self._roles.who[self._holder(owner)][0], block.instance.space, alone, tuple(together)


_FIRST_BYTE = itemgetter(0)


def numbered(names: Iterable[Hashable]) -> list[int]:
    """A number for each name; equal names have one number."""
    numbers = dict[Hashable, int]()
    return [numbers.setdefault(name, len(numbers)) for name in names]


def _pieces(members: list[Part]) -> Iterator[list[Part]]:
    """Accesses in the order of their bytes, those that touch together; the instruction of each piece is kept."""
    begin, (_, end, at, _, _) = 0, members[0]
    for number, (first, its_end, its_at, _, _) in enumerate(members):
        if first <= end and its_at == at:
            end = max(end, its_end)
            continue
        yield members[begin:number]
        begin, at, end = number, its_at, its_end
    yield members[begin:]


def _end(piece: list[Part]) -> int:
    return max([end for _, end, _, _, _ in piece])


def _access(part: Part) -> WeakAccess:
    _, _, _, where, lane = part
    return where if isinstance(where, WeakAccess) else where.access(lane)


def _use(parts: list[Part]) -> Use:
    accesses = tuple([_access(part) for part in parts])
    first = accesses[0]
    return Use(
        first.thread, first.epoch, first.label, first.scalar, first.at, first.first, _end(parts) - first.first,
        first.issue, None, accesses, first.part, first.others,
    )  # fmt: skip

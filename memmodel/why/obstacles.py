"""What a change stands for, in a sentence: the reason with the events that it is about.

In: a diagnosis, the witness. Out: `Obstacle`s. Settled here: whether a fence that is not there is one that stands
elsewhere: on the wrong side of the synchronization, or in another CTA than the access.
"""

from __future__ import annotations

from itertools import pairwise

from memmodel.answer import ShownEvent, Witness
from memmodel.base.labels import Access, Covers, Family, Fence, Mbarrier, ProxyFence, Signal
from memmodel.base.rows import bits
from memmodel.concrete.execution import Execution
from memmodel.program.spelling import spell_cell
from memmodel.ptx.vocabulary import Sem
from memmodel.why.changes.situation import Change
from memmodel.why.flow import Flow
from memmodel.why.phases import expected_late, over_before, told_on_another
from memmodel.why.present.apart import (
    NAME,
    Apart,
    apart,
    arrives_only,
    common_barrier,
    grids_that_do_not_wait,
    hand_over,
    heard_late,
    in_two_sizes,
    misplaced,
    siblings_seen,
    two_generations,
    warp_barrier,
)
from memmodel.why.present.not_seen import NotSeen
from memmodel.why.present.passed import passed_each_other
from memmodel.why.present.proxy_fences import ProxyFences
from memmodel.why.present.updates import lost_claim, lost_lock, lost_update
from memmodel.why.present.waits import WaitsForCompletion
from memmodel.why.records import At, Obstacle, Reason


def at(event: ShownEvent) -> At:
    """An event of a witness as a place."""
    return At(event.label, event.text, event.thread, event.span)


class Sentences:
    """Says what changes of one execution mean. `ends`: the two accesses, where they are known."""

    def __init__(self, witness: Witness, execution: Execution, flow: Flow, ends: tuple[int, int] | None) -> None:
        self.shown = {event.uid: event for event in witness.events}
        self.execution = execution
        self.flow = flow
        self.ends = ends
        self.po = execution.relation("po")
        self.fences = ProxyFences(execution, flow, ends)
        self.waits = WaitsForCompletion(execution, flow, self._line)
        self.moved: tuple[int, ...] = ()
        self.not_seen = NotSeen(execution, flow, self.shown, ends, self._line, self.ref)

    def ref(self, event: int) -> str:
        return str(at(self.shown[event]))

    def obstacle(self, change: Change, strong: Change | None = None) -> Obstacle:
        """A change as an obstacle. `strong`: what would do as well where threads do not synchronize."""
        reason = change.reason
        if reason is Reason.NO_PROXY_FENCE:
            return self._proxy_fence(change)
        if reason is Reason.NO_ALIAS_FENCE:
            return self._alias_fence(change)
        lost = self._passed(change) or self._lost_update(change)
        if lost is not None:
            return lost
        if reason is Reason.RELAXED and change.alteration.fields:
            return self._semantics(change)
        if reason is Reason.SCOPES:
            return self._scopes(change)
        if reason is Reason.NO_SYNCHRONIZATION and change.other is not None:
            separation = in_two_sizes(self.execution, change.at, change.other) or apart(
                self.execution, self.flow, change.at, change.other
            )
            late = heard_late(self.execution, *(self.flow.in_po(n) for n in (change.at, change.other)))
            if separation is not None and (late is None or separation.overlap or separation.what == NAME):
                return self._apart(separation)
        text, repair = self._text_and_repair(change)
        if reason is Reason.NO_SYNCHRONIZATION:
            beside = self._beside(change)
            text, repair = beside or (text, repair)
            if strong is not None and beside is None:
                ends = " and ".join(
                    self._line(event) for event in dict.fromkeys(e for e, *_ in strong.alteration.fields)
                )
                repair += f"; strong accesses would not race: {strong.words} at {ends}"
        told = self.waits.told_to_nobody(change) if reason is Reason.NOT_WAITED else None
        moved, self.moved = self.moved, ()
        return Obstacle(reason, text, repair, self._places(change.at, change.other, told, *moved))

    def _apart(self, separation: Apart) -> Obstacle:
        """A release and an acquire that do not meet."""
        release, acquire = self.ref(separation.release), self.ref(separation.acquire)
        if separation.what == NAME:
            text = f"{release} and {acquire} are about one location by two names, and do not synchronize"
            heard = self.execution.events[separation.acquire].label
            relaxed = isinstance(heard, Access) and heard.sem is Sem.RELAXED and not self._acquired(separation.acquire)
            repair = (
                f"one name for both, and .acquire at {self._line(separation.acquire)}"
                if relaxed
                else "one name for both"
            )
            return Obstacle(Reason.LOCATION, text, repair, self._places(separation.release, separation.acquire))
        text = f"{release} and {acquire} are not about one {separation.what}"
        if separation.overlap:
            text += ": they overlap in part only"
        repair = f"one {separation.what} for both" + (", accessed in one size" if separation.overlap else "")
        return Obstacle(Reason.LOCATION, text, repair, self._places(separation.release, separation.acquire))

    def _acquired(self, read: int) -> bool:
        """True if a fence that acquires stands behind a read."""
        labels = (self.execution.events[n].label for n in bits(self.po[read]))
        return any(isinstance(label, Fence) and label.sem in (Sem.ACQUIRE, Sem.ACQ_REL, Sem.SC) for label in labels)

    def _places(self, *events: int | None) -> tuple[At, ...]:
        return tuple(at(self.shown[event]) for event in events if event in self.shown)

    def _text_and_repair(self, change: Change) -> tuple[str, str]:
        prior, after = self.ref(change.at), "" if change.other is None else self.ref(change.other)
        words = change.words
        match change.reason:
            case Reason.NO_SYNCHRONIZATION:
                if (parts := self._updated_between(change)) is not None:
                    between, both = f"{prior} comes between {' and '.join(parts)}", " and ".join(parts)
                    return f"{between}, which read and write one place", f"an atomic operation in place of {both}"
                return f"nothing orders {prior} before {after}", self._meeting(change)
            case Reason.NOT_SEEN:
                return self.not_seen.text_and_repair(change, prior, after)
            case Reason.REDUCTION:
                return f"{prior} is a reduction, whose read heads no acquire pattern", "atom in place of red"
            case Reason.RESTRICTED:
                only = "what its .sync_restrict names" if words == "sync_restrict" else words
                return f"{prior} covers {only} only", "the fence without its restriction"
            case Reason.PROXY_FENCE_SPACE:
                return self._space(change, prior)
            case Reason.NOT_WAITED:
                late, repair = self.waits.short(change)
                if self._in_dependent_grid(change):
                    late, repair = ", and its grid does not wait for the one before", self._meeting(change)
                repair = repair or f"a wait for its end{self.waits.elsewhere(change)} before {self._line(change.other)}"
                return f"{prior} may not be over at {after}{late}", repair
            case Reason.TCGEN05_WAIT:
                return f"{prior} may not be over at {after}: no tcgen05.wait covers it", self._tcgen_wait(change.at)
            case Reason.TCGEN05_COMMIT:
                text = (
                    f"no tcgen05.commit tracks {prior}, which may not be over at {after}{self._early_commit(change.at)}"
                )
                return text, "tcgen05.commit after it, and a wait for its mbarrier"
            case Reason.TCGEN05_FENCE:
                side = "after" if change.alteration.inserted[0].after else "before"
                text = f"{words} is missing {side} {prior}{self._misplaced(change)}"
                return text, f"{words} {side} {self._line(change.at)}"
            case Reason.NOT_TRANSITIVE:
                text = f"{prior} tells of the end of its own operation and publishes nothing that its thread did before"
                return text, f"an arrival of the thread itself, for which {self._line(change.other)} waits"
            case Reason.PARITY:
                return (
                    f"{after} returns true before {prior}: the last phase of that parity is over",
                    "the other parity",
                )
            case Reason.EARLIER_PHASE:
                over = None if change.other is None else over_before(self.execution, self.flow, change.at, change.other)
                text = f"{after} waits for a phase that is over before {prior}: {self._line(over)} has waited for it"
                return text, f"a wait for the phase of {self._line(change.at)} after {self._line(change.other)}"
            case Reason.BYTES:
                text = f"the phase that {after} waits for is over without {prior}"
                expected = None if change.other is None else expected_late(self.execution, change.other)
                if expected is None:
                    return self._bytes_elsewhere(change, text) or (text, "expect_tx with the bytes of all copies")
                expects, arrives = (self._line(event) for event in expected)
                return f"{text}: {expects} comes after {arrives}, which ends it", f"{expects} before {arrives}"
            case Reason.COUNT:
                return f"the phase that {after} waits for is over without {prior}", "the count of all arrivals"
            case Reason.NO_FENCE_SC if change.alteration.fields:
                return f"{prior} is no fence.sc", f".sc at {self._line(change.at)}"
            case Reason.NO_FENCE_SC:
                return f"no fence.sc stands before {prior}", f"fence.sc before {self._line(change.at)}"
            case Reason.WEAK:
                return f"{prior} is weak", "a strong access, such as .relaxed"
            case Reason.NO_ALIAS_FENCE:
                return "the two names of the location need fence.proxy.alias in between", f"{words} near {prior}"
            case Reason.WGMMA_FENCE:
                text = f"no wgmma.fence orders what was done before {prior}{self._misplaced(change)}"
                return text, f"wgmma.fence before {self._line(change.at)}"
            case _:
                return f"{prior}: {words} is missing", f"{words} at {self._line(change.at)}"

    def _bytes_elsewhere(self, change: Change, text: str) -> tuple[str, str] | None:
        """Where the bytes that end a phase too early are expected on another object."""
        told = None if change.other is None else told_on_another(self.execution, change.other)
        if told is None:
            return None
        signal, name = self._line(told[0]), spell_cell(self.execution.frame.lowered.space, told[1])
        return f"{text}: {signal} tells of its bytes here, and {name} expects them", f"{name} in the copy of {signal}"

    def _passed(self, change: Change) -> Obstacle | None:
        """Two threads that have not seen each other's flag, where synchronization is missing between what they do."""
        passes = None
        if change.reason in (Reason.NO_SYNCHRONIZATION, Reason.NOT_SEEN) and self.ends is not None:
            passes = passed_each_other(self.execution, self.flow, *self.ends)
        if passes is None:
            return None
        both = " nor ".join(map(self.ref, passes.reads))
        text = f"neither {both} has seen what the other thread wrote"
        repair = " and ".join(f"before {self._line(read)}" for read in passes.open)
        return Obstacle(Reason.NO_FENCE_SC, text, f"fence.sc {repair}", self._places(*passes.reads))

    def _lost_update(self, change: Change) -> Obstacle | None:
        """The update that is lost of the place that a thread has not seen written, or of the lock around an access."""
        label = self.execution.events[change.at].label
        if change.reason is Reason.NOT_SEEN and change.other is not None:
            update = lost_update(self.execution, self.flow, self.execution.events[change.other].point.cell)
        elif change.reason is Reason.NO_SYNCHRONIZATION or (
            change.reason is Reason.RELAXED and isinstance(label, Access) and label.sem is Sem.WEAK
        ):
            update = lost_lock(self.execution, self.flow, change.at)
            if update is None and change.other is not None:
                update = lost_claim(self.execution, self.flow, change.at, change.other)
        else:
            return None
        if update is None:
            return None
        parts = " and ".join(map(self._line, (update.read, update.lost)))
        text = f"{self.ref(update.write)} comes between {parts}, which read and write one place"
        places = self._places(update.write, update.read, update.lost)
        return Obstacle(Reason.NO_SYNCHRONIZATION, text, f"an atomic operation in place of {parts}", places)

    def _updated_between(self, change: Change) -> tuple[str, str] | None:
        """The read and the later write of a thread between which another one writes: its update is lost. They are
        strong, or what is written depends on what was read."""
        events, write, read = self.execution.events, change.at, change.other
        if read is None or not (self.execution.set("W") >> write & 1 and self.execution.set("R") >> read & 1):
            return None
        later = [n for n in bits(self.po[read] & self.execution.relation("co")[write])]
        lost = next((n for n in later if events[n].point.cell == events[read].point.cell), None)
        labels = [] if lost is None else [events[n].label for n in (write, read, lost)]
        strong = bool(labels) and all(isinstance(label, Access) and label.sem is not Sem.WEAK for label in labels)
        if lost is None or not (strong or self.execution.relation("data")[read] >> lost & 1):
            return None
        return self._line(read), self._line(lost)

    def _beside(self, change: Change) -> tuple[str, str] | None:
        """The sentence where synchronization stands in the wrong place."""
        other = change.at if change.other is None else change.other
        first, second = self.flow.in_po(change.at), self.flow.in_po(other)
        parts = siblings_seen(self.execution, first, second)
        if parts:
            return self._in_one_instruction(parts)
        apart_at = two_generations(self.execution, first, second)
        if apart_at is not None:
            both = f"{self.ref(apart_at[0])} and {self.ref(apart_at[1])}"
            text = f"{both} are of two generations of one barrier, which other threads complete"
            return text, "a barrier of their own, or a count of all that come to it"
        found = misplaced(self.execution, self.flow, first, second)
        prior, after = self.ref(change.at), self.ref(second if change.other is None else change.other)
        unordered = f"nothing orders {prior} before {after}"
        if found is None:
            if (lanes := warp_barrier(self.execution, first, second)) is not None:
                return f"{unordered}: {self.ref(lanes)} is for the lanes of one warp", self._meeting(change)
            if (late := heard_late(self.execution, first, second)) is not None:
                told, read = self._line(late[0]), self._line(late[1])
                behind = f"{self.ref(late[1])}, which reads {told}, stands after {self._line(second)}"
                return f"{unordered}: {behind}", f"{read} before {self._line(second)}"
            if (arrives := arrives_only(self.execution, first, second)) is None:
                return None
            repair = f"a wait at the same barrier, as with .sync, at {self._line(arrives)}"
            return f"{unordered}: {self.ref(arrives)} does not wait", repair
        self.moved = found.event, found.beside
        moved, beside = self._line(found.event), self._line(found.beside)
        text = f"{unordered}: {self.ref(found.event)} stands"
        if found.passes_on:
            return f"{text} before {self.ref(found.beside)}, which has seen the first thread", f"{moved} after {beside}"
        side, right = ("before", "after") if found.early else ("after", "before")
        return f"{text} {side} {beside}", f"{moved} {right} {beside}"

    def _in_one_instruction(self, parts: tuple[tuple[int, int], ...]) -> tuple[str, str]:
        """The flag is a part of the instruction that makes the access."""
        pairs = [f"{self.ref(access)} is in one instruction with {self.ref(flag)}" for access, flag in parts]
        text = "; ".join((f"{pairs[0]}, and nothing orders the two", *pairs[1:]))
        writes = self.execution.set("W")
        between = [
            "a release between the writes" if writes >> n & 1 else "an acquire between the reads" for n, _ in parts
        ]
        return (
            text,
            f"one scalar access to both, as of .b64 or .b128, or two instructions, with {' and '.join(between)}",
        )

    def sides(self, change: Change) -> tuple[At, At]:
        """Both sides of the hand-over that two threads lack: an event that could be one, or what would have to be."""
        assert change.other is not None
        release = hand_over(self.execution, self.flow, change.at, change.other, after=True)
        acquire = hand_over(self.execution, self.flow, change.other, change.at, after=False)
        first, observed = At("", "a release"), "it"
        arrival = release.event is not None and isinstance(self.execution.events[release.event].label, Mbarrier)
        if release.event is not None:
            first, observed = at(self.shown[release.event]), self._line(release.event)
        elif release.fence is not None:
            first = At("", f"a strong write after {self._line(release.fence)}")
        second = At("", f"a wait for the phase of {observed}" if arrival else f"an acquire that observes {observed}")
        if acquire.event is not None:
            second = at(self.shown[acquire.event])
        elif acquire.fence is not None:
            second = At("", f"a strong read before {self._line(acquire.fence)} that observes {observed}")
        return first, second

    def _meeting(self, change: Change) -> str:
        """The hand-over that a change would make, in words."""
        if self._in_dependent_grid(change):
            between = grids_that_do_not_wait(self.execution, self.flow, change.at, change.other)
            threads = self.execution.frame.lowered.test.threads
            if between:
                return f"griddepcontrol.wait in {' and '.join(threads[n].name for n in between)}, which ends without it"
            return f"griddepcontrol.wait before {self._line(change.other)}"
        first, second = self.sides(change)
        release = "a release after the first" if first.text == "a release" else first.text
        barrier = common_barrier(self.execution, self.flow, change.at, change.other)
        if barrier and first.missing and first.text == "a release" and second.missing:
            return f"{barrier} between the two, or {release}, {second.text}"
        if second.missing:
            return f"{release}, {second.text}" if first.missing else second.text
        release = release if first.missing else f"{first.label} ({first.where})"
        return f"{release}, observed by {second.label} ({second.where})"

    def _in_dependent_grid(self, change: Change) -> bool:
        """True if the second event is in a grid that depends on that of the first one."""
        events = [self.flow.in_po(event) for event in (change.at, change.other) if event is not None]
        grids = [place.grid_id for event in events if (place := self.execution.events[event].point.place) is not None]
        return len(grids) == 2 and grids[0][0] == grids[1][0] and grids[0][1] < grids[1][1]

    def _line(self, event: int | None) -> str:
        if event is None or event not in self.shown:
            return "it"
        shown = self.shown[event]
        return f"{shown.label} ({at(shown).where})"

    def _space(self, change: Change, event: str) -> tuple[str, str]:
        """A proxy fence that covers other memory than the access."""
        ends = self.ends or ()
        where = next((place for end in ends if (place := self.shown[end].location)), "the memory that is accessed")
        cells = [cell for end in ends if (cell := self.execution.events[end].point.cell) is not None]
        label = self.execution.events[change.at].label
        if isinstance(label, ProxyFence) and label.covers is Covers.RANGE:
            return f"{event} covers the bytes that its operand names, and not {where}", f"the fence for {where}"
        space = cells[0].instance.space.value if cells else ""
        other = f", and {where} is in {space} memory" if space else f", and not {where}"
        return f"{event} covers {change.words} only{other}", f"the fence for {where}, or for every state space"

    def _early_commit(self, event: int) -> str:
        """A commit of the thread that stands before the operation."""
        issue = self.flow.in_po(event)
        for number, other in enumerate(self.execution.events):
            if isinstance(other.label, Signal) and other.label.family is Family.COMMIT:
                commit = self.flow.in_po(number)
                if self.po[commit] >> issue & 1:
                    return f"; {self._line(commit)} stands before it"
        return ""

    def _misplaced(self, change: Change) -> str:
        """A fence of that kind which the thread has somewhere else."""
        wanted = change.alteration.inserted[0].label
        thread = self.execution.events[change.at].point.thread
        for number, event in enumerate(self.execution.events):
            if event.label == wanted and event.point.thread == thread:
                early = self.po[number] >> self.flow.in_po(change.at) & 1
                return f"; {self._line(number)} stands {'too early' if early else 'after it'}"
        return ""

    def _tcgen_wait(self, event: int) -> str:
        label = self.execution.events[event].label
        kind = "ld" if isinstance(label, Access) and label.side.value == "R" else "st"
        return f"tcgen05.wait::{kind} after {self._line(event)}"

    # ---- the ones that ask where something stands ----------------------------------------------------------------

    def _semantics(self, change: Change) -> Obstacle:
        wanted = next((value for _, name, value in change.alteration.fields if name == "sem"), Sem.ACQ_REL)
        assert isinstance(wanted, Sem)
        event, label = self.ref(change.at), self.execution.events[change.at].label
        article = "an" if wanted.value[0] == "a" else "a"
        text = f"{event} is {change.words} where {article} {wanted.value} is needed"
        side = "before" if wanted is Sem.RELEASE else "after"
        repair = f".{wanted.value} at {self._line(change.at)}"
        if not isinstance(label, Fence):
            repair += f", or a fence {side} it"
            wrong, past = self._fence_elsewhere(change.at, wanted), self._fence_beyond(change.at, wanted)
            if wrong is not None:
                other = "after" if side == "before" else "before"
                text = f"{self.ref(wrong)} stands {other} {event}, not {side} it"
                repair = f"the fence {side} {self._line(change.at)}"
                return Obstacle(Reason.FENCE_SIDE, text, repair, self._places(wrong, change.at))
            if past is not None:
                fence, access = past
                first, second = (access, change.at) if wanted is Sem.RELEASE else (change.at, access)
                text = f"{self.ref(fence)} stands {side} {self.ref(access)}, not between that and {event}"
                repair = f"the fence between {self._line(first)} and {self._line(second)}"
                return Obstacle(Reason.FENCE_SIDE, text, repair, self._places(fence, access))
        return Obstacle(Reason.RELAXED, text, repair, self._places(change.at, change.other))

    def _fence_elsewhere(self, event: int, wanted: Sem) -> int | None:
        """A fence of that kind on the other side of an event."""
        for number in range(self.flow.count):
            label = self.execution.events[number].label
            if not (isinstance(label, Fence) and label.sem in (wanted, Sem.ACQ_REL, Sem.SC)):
                continue
            wrong = self.po[event] >> number & 1 if wanted is Sem.RELEASE else self.po[number] >> event & 1
            if wrong:
                return number
        return None

    def _fence_beyond(self, event: int, wanted: Sem) -> tuple[int, int] | None:
        """A fence of that kind on the right side of an event, but beyond the access that it should cover, and that
        access. Both have one scope."""
        scope = getattr(self.execution.events[event].label, "scope", None)
        for access in map(self.flow.in_po, self.ends or ()):
            for number in range(self.flow.count):
                label = self.execution.events[number].label
                if not (isinstance(label, Fence) and label.sem in (wanted, Sem.ACQ_REL, Sem.SC)):
                    continue
                order = (number, access, event) if wanted is Sem.RELEASE else (event, access, number)
                beyond = all(self.po[first] >> second & 1 for first, second in pairwise(order))
                if beyond and label.scope is scope:
                    return number, access
        return None

    def _scopes(self, change: Change) -> Obstacle:
        scope = next(value for _, name, value in change.alteration.fields if name == "scope")
        wide = getattr(scope, "name", "").lower()
        mine = change.words.split()[0]
        event = self.ref(change.at)
        if change.other is None:
            return Obstacle(Reason.SCOPES, f"the {mine} of {event} is too narrow", f".{wide}", self._places(change.at))
        other = self.execution.events[change.other].label
        its = getattr(getattr(other, "scope", None), "name", "").lower()
        both = f" (.{its})" if its else ""
        text = f"the {mine} of {event} does not reach {self.ref(change.other)}{both}"
        return Obstacle(
            Reason.SCOPES, text, f".{wide} at {self._line(change.at)}", self._places(change.at, change.other)
        )

    def _proxy_fence(self, change: Change) -> Obstacle:
        inserted = change.alteration.inserted[0]
        assert isinstance(inserted.label, ProxyFence)
        side = "after" if inserted.after else "before"
        repair = f"{change.words} {side} {self._line(change.at)}"
        proxy = inserted.label.proxy
        others = [
            n
            for n, event in enumerate(self.execution.events)
            if isinstance(event.label, ProxyFence)
            and event.label.proxy is proxy
            and event.label.half is inserted.label.half
            and event.label.across is inserted.label.across
        ]
        for number in others:
            place = self.execution.events[number].point.place
            wanted = self.execution.events[change.at].point.place
            apart = place is not None and wanted is not None and place.cta_id != wanted.cta_id
            if apart and self.fences.on_the_way(number):
                text = f"{self.ref(number)} is executed in another CTA than the access through the proxy"
                return Obstacle(Reason.PROXY_FENCE_CTA, text, repair, self._places(number, change.at))
        beside = self.fences.beside_the_way(others)
        if beside is not None:
            text = f"{self.ref(beside)} is not between the two accesses"
            return Obstacle(Reason.PROXY_FENCE_SIDE, text, repair, self._places(beside, change.at))
        name = proxy.value if proxy is not None else "alias"
        half = "" if inserted.label.half is None else f" ({inserted.label.half.value} half)"
        text = f"the path goes between the generic and the {name} proxy without {change.words}{half}"
        other = next((n for n in self.fences.all() if n not in others and self.fences.on_the_way(n)), None)
        if other is not None:
            text += self._what_it_is(other, inserted.label)
        return Obstacle(Reason.NO_PROXY_FENCE, text, repair + half, self._places(change.at))

    def _what_it_is(self, fence: int, wanted: ProxyFence) -> str:
        """Why a proxy fence on the way is not the wanted one: it is for another proxy, or a half alone."""
        label = self.execution.events[fence].label
        assert isinstance(label, ProxyFence)
        if label.proxy is not wanted.proxy:
            return f"; {self.ref(fence)} is for another proxy" if wanted.half is None else ""
        return "" if label.half is None else f"; {self.ref(fence)} is the {label.half.value} half alone"

    def _alias_fence(self, change: Change) -> Obstacle:
        text, repair = self._text_and_repair(change)
        wanted = change.alteration.inserted[0].label
        beside = self.fences.beside_the_way(n for n in self.fences.all() if self.execution.events[n].label == wanted)
        if beside is None:
            return Obstacle(Reason.NO_ALIAS_FENCE, text, repair, self._places(change.at))
        text = f"{self.ref(beside)} is not between the two accesses, by two names of one location"
        return Obstacle(Reason.PROXY_FENCE_SIDE, text, repair, self._places(beside, change.at))

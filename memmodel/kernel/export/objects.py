"""The mbarrier objects of a story: each phase of an object becomes an object of its own, in its first phase.

In: FindingStory. Out: their declarations, and the lines of what threads do with them.
"""

from __future__ import annotations

from collections.abc import Callable

from memmodel.base.labels import Action, Family, Issue, Mbarrier, Signal
from memmodel.kernel.export.story import COPIED, FindingStory, NotExported, StoryInstruction, action_of
from memmodel.kernel.trace.blocks import Block
from memmodel.kernel.trace.events import TraceEvent

Place = tuple[Block, int, int]
"""The memory of an object, its first byte, and a phase: the first phase of what becomes an object of its own."""


def remote(story: FindingStory, block: Block, thread: int) -> str:
    """The suffix of a name for the memory of another CTA; empty for the thread's own."""
    owner, mine = block.instance.owner, story.of(thread).place
    if owner is None or owner == mine.cta_id:
        return ""
    owner_place = next(thread_.place for thread_ in story.judge.run.threads if thread_.place.cta_id == owner)
    return f"@cta{owner_place.cta}"


class ObjectLayout:
    """The objects of a story, with their names."""

    def __init__(self, story: FindingStory, fresh: Callable[[], str]) -> None:
        self.story = story
        self.phase: dict[int, int] = {}
        for log in story.judge.run.objects.values():
            for step in log:
                phase = step.before if step.update else step.seen_by_tests - 1
                self.phase[id(step.event)] = 0 if story.one_object else phase
        self.phase |= story.phases
        events = [item.event for item in story.instructions() if item.event is not None]
        tests = [item for item in events if action_of(item) is Action.TEST]
        self._tested = {self._round(item): item for item in reversed(tests)}
        """The first test of each phase, by the first thread that tests it."""
        self._awaited = {self._round(event) for event in events if isinstance(event.label, Mbarrier)}
        self.names: dict[Place, str] = {}
        self.begun: set[Place] = set()
        self.counts: dict[Place, int] = {}
        self.bytes: dict[Place, int] = {}
        self.expecting: dict[Place, TraceEvent] = {}
        for item in story.instructions():
            for event in self._about(item):
                self.names.setdefault(self.place(event), "")
                self._count(item, event)
        self._together = self._multicasts()
        for place in self.names:
            same = next((self.names[other] for other in self._tied(place) if self.names[other]), "")
            self.names[place] = same or fresh()

    def _multicasts(self) -> list[set[Place]]:
        """Objects at one offset in several CTAs that one instruction signals; they have one name."""
        groups: list[set[Place]] = []
        for item in self.story.instructions():
            places = {self.place(signal) for signal in self._about(item)}
            if len(places) > 1:
                joined = [other for other in groups if other & places]
                groups = [other for other in groups if other not in joined] + [places.union(*joined)]
        return groups

    def _tied(self, place: Place) -> set[Place]:
        return next((group for group in self._together if place in group), {place})

    def place(self, event: TraceEvent) -> Place:
        """The object of the test that an event is about."""
        block, first, phase = self._round(event)
        return block, first, min(phase, self.story.joined.get((block, first), phase))

    def _round(self, event: TraceEvent) -> Place:
        """The phase of an object that an event is about."""
        assert event.block is not None
        return event.block, event.first, max(0, self.phase[id(event)])

    def _about(self, item: StoryInstruction) -> list[TraceEvent]:
        """The events of an instruction on objects."""
        event = item.event
        if event is None:
            return []
        return [event] if isinstance(event.label, Mbarrier) else self.signals(event, item)

    def signals(self, event: TraceEvent, item: StoryInstruction | None = None) -> list[TraceEvent]:
        """The signals of an asynchronous instruction that the story is about: of a multicast those to objects that
        threads of the story test or arrive on, and the one in the CTA of the bytes; else the first one.
        """
        signals = [signal for signal in event.signals if isinstance(signal.label, Signal)]
        if not isinstance(event.label, Issue) or len(signals) < 2:
            return signals if isinstance(event.label, Issue) else []
        item = item or next((item for item in self.story.instructions() if item.event is event), None)
        touched = None if item is None or item.touched is None else item.touched[0]
        known = [signal for signal in signals if any(signal is other for other in self.story.signals)]
        about = [signal for signal in signals if signal in known or signal.block is touched
                 or self._round(signal) in self._awaited]  # fmt: skip
        return about or signals[:1]

    def ranks(self, event: TraceEvent) -> int:
        """The CTAs of a multicast that reaches several CTAs of the story, as a mask; else 0."""
        owners = {signal.block.instance.owner for signal in self.signals(event) if signal.block is not None}
        threads = self.story.judge.run.threads
        ranks = {signal.place.cta for signal in threads if signal.place.cta_id in owners}
        return sum(1 << rank for rank in ranks) if len(owners) > 1 else 0

    def _count(self, item: StoryInstruction, event: TraceEvent) -> None:
        label, phase = event.label, self._round(event)
        if action_of(event) is Action.ARRIVE:
            self.counts[phase] = self.counts.get(phase, 0) + 1
        elif action_of(event) is Action.COMPLETE_TX:
            self.bytes[phase] = self.bytes.get(phase, 0) + self.size(item)
        elif isinstance(label, Mbarrier) and label.action is Action.INIT:
            self.begun.add(self.place(event))
        if isinstance(label, Mbarrier) and _expects(item):
            self.expecting.setdefault(phase, event)

    def arrivals(self, place: Place) -> int:
        """The count of an object and of those with the same name."""
        return max(self._arrivals(tied) for tied in self._tied(place))

    def _arrivals(self, place: Place) -> int:
        """The arrivals of the story, and those that announce the bytes of copies that no other arrival announces."""
        if self.story.late:
            return max(1, self.counts.get(place, 0) - 1)
        counts: dict[Place, int] = {}
        for item in self.story.instructions():
            for event in self._about(item):
                if self.place(event) == place:
                    phase = self._round(event)
                    lack = self.story.lacks.get(phase)
                    counts.setdefault(phase, self.counts.get(phase, 0) + (0 if lack is None else lack.arrivals))
                    counts[phase] += self.announces(event) and phase not in self._tested
        return max(
            1, *(count + (phase in self._tested and self._unannounced(phase) > 0) for phase, count in counts.items())
        )

    def _unannounced(self, phase: Place) -> int:
        """The bytes of asynchronous instructions that no thread of the story announces."""
        items = ((item, event) for item in self.story.instructions() for event in self._about(item))
        return sum(self.size(item) for item, event in items if self._round(event) == phase and self.announces(event))

    def announces(self, signal: TraceEvent) -> bool:
        """True if the bytes of a signal have to be announced, since no thread of the story does it."""
        phase = self._round(signal)
        known = phase in self.expecting or phase in self.story.lacks
        return action_of(signal) is Action.COMPLETE_TX and not known

    def _announced(self, event: TraceEvent) -> int:
        """The bytes that an expect-tx announces: the first one of a phase announces them all."""
        phase = self._round(event)
        if self.expecting.get(phase) is not event:
            return 0
        lack = self.story.lacks.get(phase)
        return max(0, self.bytes.get(phase, 0) + (0 if lack is None else COPIED * lack.tx))

    def declarations(self) -> list[str]:
        """The declarations of the objects; those that no thread of the story initialises have their counts."""
        return [
            f".shared .align 8 .b64 {name}"
            + ("" if place in self.begun or not self._live(place) else f" = mbarrier({self.arrivals(place)})")
            + ";"
            for name, place in {name: place for place, name in reversed(self.names.items())}.items()
        ][::-1]

    def size(self, item: StoryInstruction) -> int:
        """The bytes that an asynchronous instruction of the story signals. They are twice as many in a phase to which
        more bytes came than were announced, so that they do not complete it.
        """
        event = item.event
        if event is None or not isinstance(event.label, Issue):
            return COPIED
        if event.label.family is Family.ST_ASYNC:
            return 4
        lacks = (self.story.lacks.get(self._round(signal)) for signal in self.signals(event))
        return 2 * COPIED if any(lack is not None and lack.tx < 0 for lack in lacks) else COPIED

    def _live(self, place: Place) -> bool:
        lack = self.story.lacks.get(place)
        return lack is None or lack.live

    def named(self, place: Place, thread: int) -> str:
        """The address of an object, as a thread names it."""
        return f"[{self.names[place]}{remote(self.story, place[0], thread)}]"

    def before(self, item: StoryInstruction, thread: int) -> list[str]:
        """The lines before an asynchronous instruction: they announce its bytes, if no thread waits for these."""
        event = item.event
        assert event is not None
        lines = []
        for signal in self.signals(event):
            if self.announces(signal) and self._round(signal) not in self._tested:
                where = self.named(self.place(signal), thread)
                space = "shared::cluster" if "@" in where else "shared::cta"
                scope = "cluster" if "@" in where else "cta"
                lines.append(f"mbarrier.arrive.expect_tx.relaxed.{scope}.{space}.b64 _, {where}, {self.size(item)};")
        return lines

    def lines(self, item: StoryInstruction, thread: int, label: str) -> list[str]:
        """What a thread does with an object."""
        event, words = item.event, item.instruction.words
        assert event is not None and isinstance(event.label, Mbarrier)
        action, place = event.label.action, self.place(event)
        where = self.named(place, thread)
        space = "shared::cluster" if "@" in where else "shared::cta"
        if action is Action.TEST:
            if self.phase[id(event)] < 0:  # the phase before the first one is over from the start
                return []
            kept = _kept(words, "mbarrier", "try_wait", "test_wait", "parity")
            opcode = ".".join(["mbarrier.try_wait.parity", *kept, "shared::cta.b64"])
            parity = (self._round(event)[2] - place[2]) % 2
            # The waiting thread announces what no other thread does: an arrive of another thread could order more.
            size = self._unannounced(self._round(event)) if self._tested.get(self._round(event)) is event else 0
            first = [f"mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, {where}, {size};"] if size else []
            return [*first, f"{label}:", f"{opcode} %p, {where}, {parity};", f"@!%p bra {label};"]
        if action is Action.INIT:
            return [f"mbarrier.init.shared::cta.b64 {where}, {self.arrivals(place)};"]
        if action is Action.INVAL:
            return [f"mbarrier.inval.shared::cta.b64 {where};"]
        size = self._announced(event)
        if action is Action.EXPECT_TX:
            kept = _kept(words, "mbarrier", "expect_tx")
            return [f"{'.'.join(['mbarrier.expect_tx', *kept, space, 'b64'])} {where}, {size};"] if size else []
        if action is Action.COMPLETE_TX:
            kept = _kept(words, "mbarrier", "complete_tx")
            return [f"{'.'.join(['mbarrier.complete_tx', *kept, space, 'b64'])} {where}, {self.size(item)};"]
        if action is Action.ARRIVE and "noComplete" not in words:
            kept = _kept(words, "mbarrier", "arrive", "arrive_drop", "expect_tx")
            form = ["mbarrier.arrive", *(["expect_tx"] if size else []), *kept, space, "b64"]
            return [f"{'.'.join(form)} _, {where}{f', {size}' if size else ''};"]
        raise NotExported(f"{item.instruction.opcode} is not put into a test")


def _kept(words: tuple[str, ...], *left: str) -> list[str]:
    """The semantics and the scope among the words of an opcode."""
    return [word for word in words if word not in left and word != "b64" and not word.startswith(_PLACES)]


_PLACES = ("shared", "multicast")
"""Words that say where objects are. In a test each operation is on one object."""


def _expects(item: StoryInstruction) -> bool:
    return "expect_tx" in item.instruction.words

"""The state of one group, sign after sign, as the broker would name it.

In: signs of a group (`group_state_signs.py`) in the order in which they happened. Out: the state after each time.

Two machines, by the protocol of the members: a classic group's state follows from its last sign (`_AFTER`), that of a
group whose members have epochs from how many of them are at the newest one. An era lasts while the group has members.

Sources: ClassicGroup, ConsumerGroup, ShareGroup and StreamsGroup of Kafka's group coordinator.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.analyser.kafka.facts.group_state_signs import GIVEN_NS

# Signs that say nothing of the state by themselves, and those with which a member goes.
_QUIET = frozenset({"seen", "alive", "freed", "given", "unsure"})
_GOES = frozenset({"left", "gone", "unsure"})
_TELLS_GENERATION = frozenset({"joined", "synced", "beat"})
# The state of a classic group behind its last sign, where that alone decides.
_AFTER = {
    "asks": "PreparingRebalance", "told": "PreparingRebalance", "left": "PreparingRebalance",
    "gone": "PreparingRebalance", "synced": "Stable",
}  # fmt: skip


class Sign(NamedTuple):
    """One sign; `group_state_signs.py` says what stands in it."""

    order_ns: int
    sign: str
    member_id: str | None = None
    protocol: str | None = None
    generation: int | None = None
    alive: int | None = None
    freed: int | None = None
    members: int | None = None
    told: str | None = None
    assignor: str | None = None
    leader: str | None = None
    kind: str | None = None
    not_ready: bool | None = None
    asked_ns: int | None = None


class State(NamedTuple):
    """What is told of a group from one time on: columns of `kafka_group_states`."""

    state: str | None
    type: str | None
    generation: int | None
    members: int | None
    leader_id: str | None


class GroupState:
    """A group. covered: are all partitions that members were given in the capture? None where nobody tells."""

    def __init__(self, covered: bool | None) -> None:
        self.protocol_type: str | None = None
        self.assignor: str | None = None
        self._covered = covered
        self._before = Sign(0, "")
        # The generation of each member until it goes, and the last one that anybody was told, and told all.
        self._generations: dict[str | None, int] = {}
        self._generation: int | None = None
        self._synced: int | None = None
        # Members that are there, those of KIP-848 among them, and partitions that nobody has.
        self._there = self._consumers = self._free = 0
        self._protocol: str | None = None
        self._leader: str | None = None
        self._told: str | None = None
        # The last sign that says something of the state, and the last of these that is no heartbeat.
        self._last: str | None = None
        self._strong: str | None = None
        self._not_ready: bool | None = None
        self._is_complete = False
        # Of the last sign, of partitions that were given up, and when who left and who is there asked last.
        self._now_ns = 0
        self._freed_ns = self._left_ns = self._beat_ns = -1
        self._era_is_over = True
        self._newest: int | None = None
        self._reached = self._unsure = 0
        self._left_since_newest = False

    def take(self, sign: Sign) -> bool:
        """The next sign. False: a heartbeat that says the same as the one before it, which changes nothing."""
        name, generation, before = sign.sign, sign.generation, self._before
        known = self._generations.get(sign.member_id)
        self._before = sign
        if generation is not None:
            self._generations[sign.member_id] = generation
        if (
            name == before.sign == "beat"
            and generation == known
            and sign.not_ready == before.not_ready
            and (before.asked_ns is None or before.asked_ns > self._left_ns)
        ):
            return False
        moved = generation if generation != known else None
        if name in _GOES:
            moved = known
            self._generations.pop(sign.member_id, None)
        self._now_ns = sign.order_ns
        self._count(sign)
        self._reach(sign, moved)
        self._note(sign)
        return True

    def state(self) -> State:
        """What is told now."""
        state, is_there = self._state(), self._there > 0
        kind = "consumer" if self._consumers > 0 else self._protocol
        generation = self._generation if self._newest is None else self._newest
        return State(
            state,
            kind,
            generation if is_there else None,
            self._there if is_there or state is not None else None,
            self._leader if is_there and kind == "classic" else None,
        )

    def _count(self, sign: Sign) -> None:
        alive = sign.alive or 0
        self._there += alive
        if sign.protocol == "consumer":
            self._consumers += alive
        if sign.freed:
            self._free += sign.freed
            if sign.freed > 0:
                self._freed_ns = sign.order_ns
        if sign.sign == "left" and sign.asked_ns is not None:
            self._left_ns = max(self._left_ns, sign.asked_ns)

    def _reach(self, sign: Sign, moved: int | None) -> None:
        """A member moves to a generation, or gives back the one that it had."""
        is_newest = self._era_is_over or (moved is not None and (self._newest is None or moved > self._newest))
        if self._era_is_over:
            self._newest, self._unsure = moved, 0
        elif is_newest:
            self._newest = moved
        if is_newest:
            self._reached, self._left_since_newest = 0, False
        elif sign.sign == "left":
            self._left_since_newest = True
        goes = (sign.alive or 0) < 0
        if moved is not None and moved == self._newest:
            self._reached += -1 if goes else 1
        self._unsure += sign.sign == "unsure"
        self._era_is_over = goes and self._there == 0

    def _note(self, sign: Sign) -> None:
        """What it says stays known."""
        name = sign.sign
        if name in _TELLS_GENERATION and sign.generation is not None:
            self._generation = sign.generation
            if name == "synced":
                self._synced = sign.generation
        if name not in _QUIET:
            self._last = name
            if name != "beat":
                self._strong = name
        self._told = self._told if sign.told is None else sign.told
        self._protocol = self._protocol if sign.protocol is None else sign.protocol
        self.protocol_type = self.protocol_type if sign.kind is None else sign.kind
        self.assignor = self.assignor if sign.assignor is None else sign.assignor
        self._leader = self._leader if sign.leader is None else sign.leader
        self._not_ready = self._not_ready if sign.not_ready is None else sign.not_ready
        if name == "beat" and sign.asked_ns is not None:
            self._beat_ns = max(self._beat_ns, sign.asked_ns)
        # The leader is told how many members there are, and of KIP-848 each partition is had by one.
        if sign.members is not None:
            self._is_complete = self._there >= sign.members
        elif name == "beat" and self._covered:
            self._is_complete = self._free == 0

    def _state(self) -> str | None:
        described = self._told if self._last == "described" else None
        if self._last == "deleted":
            return "Dead"
        if self._last == "alone":
            return "Empty"
        if self._there == 0:
            is_empty = self._is_complete and not self._unsure and self._strong in ("left", "gone")
            return described or ("Empty" if is_empty else None)
        if self._consumers == 0 and self._protocol == "classic":
            return described or self._classic()
        if self._protocol == "share":
            return "Stable"
        return described if self._newest is None else self._of_epochs()

    def _classic(self) -> str | None:
        if self._last in _AFTER:
            return _AFTER[self._last]
        if self._synced is not None and self._synced == self._generation:
            return "Stable"
        if self._strong == "joined":
            return "CompletingRebalance"
        return "Stable" if self._last == "beat" else None

    def _of_epochs(self) -> str:
        """Of a group whose members have epochs."""
        if self._protocol == "streams" and self._not_ready:
            return "NotReady"
        if self._left_since_newest and (self._left_ns < 0 or self._beat_ns < self._left_ns):
            return "Assigning"
        if self._left_since_newest or self._reached < self._there:
            return "Reconciling"
        is_free = self._free > 0 and self._now_ns < self._freed_ns + GIVEN_NS
        return "Reconciling" if is_free else "Stable"

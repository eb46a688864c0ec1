"""Connection attempts that nobody has answered yet.

A flood of them must not cost a flow each. In: SYN packets of pairs without a flow. Out: the attempts of a pair, when
something else comes on it and one of them becomes a flow; the oldest attempts, when there are too many; counts of those
without a row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from wirewitness.analyser.capture import Endpoints
from wirewitness.analyser.tcp.batches import PacketRow

# So many attempts of one pair are remembered, each with another sequence number: the answer tells which of them it is.
MOST_OF_PAIR = 5
_MOST_NAMES = 10_000
_TOP = 5


@dataclass(slots=True)
class Attempt:
    """The SYN of one attempt, and how often it came. first_copy: packet and time of the first one captured twice.

    heard_ns: the latest time of one that is no copy. ttls: of the first one, the lowest, of the last one.
    """

    pair: int
    from_low: bool
    seq: int
    packet: int
    ts_ns: int
    ts_last_ns: int
    last_packet: int
    window_scale: int
    segment_size: int
    heard_ns: int
    ttls: tuple[int, int, int]
    packets: int = 1
    duplicates: int = 0
    first_copy: tuple[int, int] | None = None

    @classmethod
    def of(cls, pair: int, row: PacketRow) -> Attempt:
        """That of a pair's SYN, seen once."""
        ends = row.ts_ns, row.ts_ns, row.packet
        options = row.window_scale, row.segment_size
        return cls(pair, row.from_low, row.seq, row.packet, *ends, *options, row.ts_ns, (row.ttl,) * 3)

    def is_same(self, row: PacketRow) -> bool:
        """Is this SYN of the pair the same once more?"""
        return (self.from_low, self.seq) == (row.from_low, row.seq)

    def again(self, packet: int, ts_ns: int, copy: bool, ttl: int) -> None:
        """The same SYN once more."""
        self.packets += 1
        self.duplicates += copy
        if copy and self.first_copy is None:
            self.first_copy = packet, ts_ns
        if not copy:
            self.heard_ns = max(self.heard_ns, ts_ns)
            first, lowest, _ = self.ttls
            self.ttls = first, min(lowest, ttl), ttl
        self.ts_ns, self.ts_last_ns = min(self.ts_ns, ts_ns), max(self.ts_last_ns, ts_ns)
        self.last_packet = packet


class HalfOpen:
    """Attempts by pair, the oldest first, and counts of those that were given up without a row. most: attempts."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._attempts: dict[int, list[Attempt]] = {}
        self._count = 0
        self._sources: Counter[str] = Counter()
        self._targets: Counter[str] = Counter()
        self.uncounted_rows = 0

    def __contains__(self, pair: int) -> bool:
        return pair in self._attempts

    @property
    def pairs(self) -> list[int]:
        """Pairs of the attempts that are remembered."""
        return list(self._attempts)

    def seen(self, pair: int, row: PacketRow) -> list[Attempt]:
        """A SYN of a pair without a flow. What is given up for it: another attempt of the pair, the oldest of all."""
        gone: list[Attempt] = []
        mine = self._attempts.setdefault(pair, [])
        known = next((one for one in mine if one.is_same(row)), None)
        if known is not None:
            known.again(row.packet, row.ts_ns, row.copy, row.ttl)
            return gone
        mine.append(Attempt.of(pair, row))
        self._count += 1
        if len(mine) > MOST_OF_PAIR:
            # The first one stays: it is the pair's flow as soon as anything else comes.
            gone.append(mine.pop(1))
            self._count -= 1
        if self._count > self._most:
            gone += self.pop(next(iter(self._attempts)))
        return gone

    def pop(self, pair: int) -> list[Attempt]:
        """Take the attempts of a pair away, the oldest first. Raises KeyError."""
        found = self._attempts.pop(pair)
        self._count -= len(found)
        return found

    def take_all(self) -> list[Attempt]:
        """All that are left."""
        return [one for pair in list(self._attempts) for one in self.pop(pair)]

    def count(self, attempt: Attempt, ends: Endpoints) -> None:
        """An attempt that gets no row of its own."""
        low = (ends.low_address, f"{ends.low_address}:{ends.low_port}")
        high = (ends.high_address, f"{ends.high_address}:{ends.high_port}")
        source, target = (low, high) if attempt.from_low else (high, low)
        self.uncounted_rows += 1
        for counter, name in ((self._sources, source[0]), (self._targets, target[1])):
            if name in counter or len(counter) < _MOST_NAMES:
                counter[name] += 1

    def summary(self) -> str:
        """The counts in one sentence."""
        return (
            f"{self.uncounted_rows} connection attempts without an answer have no row in flows; "
            f"most to {_top(self._targets)}; most from {_top(self._sources)}"
        )


def _top(counter: Counter[str]) -> str:
    ranked = sorted(counter.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{name} ({count})" for name, count in ranked[:_TOP])

"""SYNs on the endpoints of a known flow that would begin another connection: whether they do is told by what follows.

In: such SYNs, and the packets behind them. Out: the SYN that a packet confirms; those that nobody did. Anybody can
forge a SYN, and whoever has the connection open acknowledges what it has of the old one and goes on (RFC 5961, 4). So
the flow goes on, too, until a SYN is confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wirewitness.analyser.tcp.batches import PacketRow
from wirewitness.analyser.tcp.half_open import MOST_OF_PAIR, Attempt
from wirewitness.analyser.tcp.streams import Half
from wirewitness.analyser.tcp.tcp import ACK, MASK, RST, SYN

# A segment this far behind its SYN may be the first one that was captured of the new connection.
_REACH_BYTES = 1 << 20
# The old connection goes on when so many packets of it came, although the side that sent the SYN is silent: one that
# nobody answers is not sent again so often.
_PATIENCE_PACKETS = 64
_CLAIM_BYTES = 400


@dataclass(slots=True)
class Claims:
    """undecided: SYNs, oldest first, that any packet of theirs may confirm. outlived: SYNs behind which the old
    connection went on; only a SYN-ACK confirms them. ignored: packets of SYNs that are not kept any more, how many of
    them are copies, and the first one. passed: packets of the old connection since the last SYN."""

    undecided: list[Attempt] = field(default_factory=list)
    outlived: list[Attempt] = field(default_factory=list)
    passed: int = 0
    ignored: int = 0
    ignored_copies: int = 0
    first_ignored: Attempt | None = None

    @property
    def held_bytes(self) -> int:
        """Memory that they take, roughly."""
        return _CLAIM_BYTES * (len(self.undecided) + len(self.outlived))

    def of(self, row: PacketRow) -> Attempt | None:
        """The one that was this SYN, too."""
        return next((one for one in (*self.undecided, *self.outlived) if one.is_same(row)), None)

    def add(self, pair: int, row: PacketRow) -> Attempt | None:
        """A SYN. The result: one that nobody answered and that is not kept any more for its sake."""
        known = self.of(row)
        if known is not None:
            known.again(row.packet, row.ts_ns, row.copy, row.ttl)
            return None
        self.undecided.append(Attempt.of(pair, row))
        self.passed = 0
        if len(self.undecided) + len(self.outlived) < MOST_OF_PAIR:
            return None
        if self.outlived:
            self._ignore(self.outlived.pop(0))
            return None
        return self.undecided.pop(0)

    def confirmed(self, halves: Sequence[Half], row: PacketRow) -> Attempt | None:
        """The SYN that this packet, of a flow with these streams, confirms; the latest of several."""
        for one in reversed(self.undecided):
            if _confirms(row, one, halves):
                return one
        if row.flags & SYN:
            return next((one for one in reversed(self.outlived) if _confirms(row, one, halves)), None)
        return None

    def drop(self, attempt: Attempt) -> None:
        """It is a connection of its own now."""
        for kept in (self.undecided, self.outlived):
            if attempt in kept:
                kept.remove(attempt)

    def went_on(self, row: PacketRow) -> None:
        """A packet that is none of theirs. A reset does not say that its sender goes on."""
        if row.copy or row.flags & (SYN | RST):
            return
        self.passed += 1
        late = self.passed >= _PATIENCE_PACKETS
        self.outlived += [one for one in self.undecided if late or one.from_low == row.from_low]
        self.undecided = [one for one in self.undecided if not (late or one.from_low == row.from_low)]

    def ignore_outlived(self) -> None:
        """Nothing follows: nobody confirmed those behind which the old connection went on."""
        for one in self.outlived:
            self._ignore(one)
        self.outlived.clear()

    def _ignore(self, attempt: Attempt) -> None:
        self.ignored += attempt.packets
        self.ignored_copies += attempt.duplicates
        if self.first_ignored is None or attempt.packet < self.first_ignored.packet:
            self.first_ignored = attempt


def _confirms(row: PacketRow, attempt: Attempt, halves: Sequence[Half]) -> bool:
    """Is this packet of the connection that the SYN begins, and not of the one with these streams?"""
    own = row.from_low == attempt.from_low
    if not own and not row.flags & ACK:
        return False
    number = row.seq if own else row.ack
    ahead = (number - attempt.seq - 1) & MASK
    if row.flags & SYN:
        isn = halves[row.from_low].isn
        return not own and ahead == 0 and (isn is None or isn & MASK != row.seq)
    half = halves[attempt.from_low]
    at = half.unwrap(number)
    far = max(half.next_seq - at, at - half.sent_until, 0)
    return ahead < far and ahead < (1 if row.flags & RST else _REACH_BYTES)

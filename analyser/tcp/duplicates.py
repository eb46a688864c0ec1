"""Packets that were captured twice, told from retransmissions.

The "any" interface sees a packet on every interface that it passes, a mirror port on its way in and out. The copies
have one IP identification; what TCP sends again has a new one. Where the identification tells nothing (IPv6, or 0),
only data, SYN or FIN that comes again within a few milliseconds is a copy: no retransmission is that quick (RFC 6298:
200 ms and more in practice). Two bare acknowledgements that look the same may both be meant, and so may two RST: each
segment that a closed port gets is answered by one (RFC 9293, 3.10.7.1), made of nothing but that segment.

In: batches. Out: a flag for each packet. Whole columns; nothing depends on how packets were batched.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture import PacketBatch

# What one side of a connection sent again: whether it had arrived before, and whether it ever arrived.
#
# In: ranges of unwrapped sequence numbers (first, last + 1). Out: `SentAgain`. That a segment had arrived its
# receiver says itself (D-SACK, RFC 2883).

Range = tuple[int, int]

# So many ranges wait for a report in each direction. A report comes a round trip after its segment.
MOST_UNCONFIRMED = 64


@dataclass(slots=True)
class SentAgain:
    """Segments of one side that were sent again.

    spurious: those that had arrived before. unconfirmed: those that nobody reported so, the latest MOST_UNCONFIRMED.
    place: the sequence number from which bytes were sent again last, so many times in a row, from first_ns to last_ns.
    """

    spurious: int = 0
    unconfirmed: list[Range] = field(default_factory=list)
    place: int = -1
    times: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def sent(self, start: int, size: int, ts_ns: int) -> None:
        """These bytes once more."""
        self.unconfirmed.append((start, start + size))
        del self.unconfirmed[:-MOST_UNCONFIRMED]
        if start != self.place:
            self.place, self.times, self.first_ns = start, 0, ts_ns
        self.times += 1
        self.last_ns = ts_ns

    def arrived_twice(self, report: Range) -> None:
        """Count what the report is about, each byte once: of what was sent again twice, the first may be lost."""
        about: list[Range] = []
        for sent in self.unconfirmed:
            if _overlap(sent, report) and not any(_overlap(sent, other) for other in about):
                about.append(sent)
        for sent in about:
            self.unconfirmed.remove(sent)
        self.spurious += len(about)


def _overlap(first: Range, second: Range) -> bool:
    return first[0] < second[1] and second[0] < first[1]


# A copy is looked for among so many packets before it, and this far back in time.
WINDOW_PACKETS = 4096
SAME_ID_NS = 3_000_000_000
NO_ID_NS = 5_000_000
_SYN_FIN = 3
# Odd numbers without a pattern, to mix header fields; two packets are compared in full before they are called copies.
_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)

Words = npt.NDArray[np.uint64]


class Copies:
    """Finds copies; remembers the header fields of the last packets."""

    def __init__(self) -> None:
        self._keys = np.zeros((4, 0), np.uint64)
        self._ts_ns = np.zeros(0, np.int64)
        self._packets = np.zeros(0, np.int64)

    @property
    def pairs(self) -> npt.NDArray[np.int64]:
        """Pairs of the packets that are remembered."""
        pairs: npt.NDArray[np.int64] = (self._keys[0] >> np.uint64(1)).astype(np.int64)
        return pairs

    def mark(self, batch: PacketBatch, packets_before: int) -> npt.NDArray[np.bool_]:
        """True where the packet is a copy of an earlier one. packets_before: so many are in the files before."""
        held = self._keys.shape[1]
        keys = np.concatenate((self._keys, _keys(batch)), axis=1)
        ts_ns = np.concatenate((self._ts_ns, batch.ts_ns))
        packets = np.concatenate((self._packets, batch.packet + packets_before))
        self._keys = keys[:, -WINDOW_PACKETS:].copy()
        self._ts_ns, self._packets = ts_ns[-WINDOW_PACKETS:].copy(), packets[-WINDOW_PACKETS:].copy()
        mixed = keys[0] * np.uint64(_FACTORS[0])
        for words, factor in zip(keys[1:], _FACTORS[1:], strict=True):
            mixed ^= (mixed >> np.uint64(29)) + words * np.uint64(factor)
        in_order = np.sort(mixed)
        copies: npt.NDArray[np.bool_] = np.zeros(len(batch), np.bool_)
        if not (in_order[1:] == in_order[:-1]).any():
            return copies
        order = np.argsort(mixed, kind="stable")
        earlier, later = order[:-1], order[1:]
        same = mixed[earlier] == mixed[later]
        earlier, later = earlier[same], later[same]
        same = (keys[:, earlier] == keys[:, later]).all(axis=0) & (packets[later] - packets[earlier] <= WINDOW_PACKETS)
        apart_ns = np.abs(ts_ns[later] - ts_ns[earlier])
        told = (keys[3, later] >> np.uint64(48)).astype(np.int64) > 0
        meant = (keys[3, later] & np.uint64(0xFFFFFFFF) > 0) | (keys[2, later] & np.uint64(_SYN_FIN) > 0)
        same &= np.where(told, apart_ns <= SAME_ID_NS, meant & (apart_ns < NO_ID_NS))
        found = later[same] - held
        copies[found[found >= 0]] = True
        return copies


def _keys(batch: PacketBatch) -> npt.NDArray[np.uint64]:
    """Four words that hold all header fields of a segment: equal words, equal headers (but for options)."""
    keys = np.empty((4, len(batch)), np.uint64)
    keys[0] = batch.pair.astype(np.uint64) << np.uint64(1) | batch.from_low
    keys[1] = batch.seq.astype(np.uint64) << np.uint64(32) | batch.ack.astype(np.uint64)
    keys[2] = batch.window.astype(np.uint64) << np.uint64(8) | batch.flags
    keys[2] |= batch.payload_bytes.astype(np.uint64) << np.uint64(32)
    ip_id = np.maximum(batch.ip_id, 0).astype(np.uint64)
    keys[3] = ip_id << np.uint64(48) | batch.wire_payload_bytes.astype(np.uint64)
    return keys

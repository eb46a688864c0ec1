"""Connections that were taken whole, as columns.

In: what `analyser/tcp/complete_connections.py` found. Out: the same as `Flow`s, one by one, where something comes late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wirewitness.analyser.capture.syn_options import NOT_SEEN, NOT_SENT
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.analyser.tcp.streams import HISTORY_SEGMENTS, Half
from wirewitness.analyser.tcp.tcp import MASK

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NO_PROTOCOL = -1


class Segments(NamedTuple):
    """Segments with payload, in columns, those of a stream one behind the other. start: in the batch's data."""

    start: Ints
    size: Ints
    packet: Ints
    ts_ns: Ints


class WholeStreams(NamedTuple):
    """The bytes of connections: stream 2n is what the client of the n-th one sent, 2n + 1 what its server did.

    data: of the batch. first, until: of each stream's segments.
    """

    data: memoryview
    segments: Segments
    first: Ints
    until: Ints


class Recent(NamedTuple):
    """The last segments of each stream, as `Half.recent` has them. ends: of each piece in `data`; first, until: of
    each stream's pieces."""

    data: bytes
    ends: Ints
    first: Ints
    until: Ints

    def of(self, stream: int) -> list[bytes]:
        """The pieces of one stream."""
        first, until = int(self.first[stream]), int(self.until[stream])
        bounds = [int(self.ends[first - 1]) if first else 0, *self.ends[first:until].tolist()]
        return [self.data[start:end] for start, end in pairwise(bounds)]


NO_RECENT = Recent(b"", np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class OfSides:
    """What is known of the sides of connections: side 2n is the client of the n-th one, 2n + 1 its server.

    confirmed: bytes of this side's stream that the other one confirmed, its FIN as one; -1 where none is seen to be.
    window_scale, segment_size: as in a batch. The others: see `Half`.
    """

    isn: Ints
    size: Ints
    confirmed: Ints
    last_ns: Ints
    ttl: Ints
    ttl_lowest: Ints
    ttl_last: Ints
    packets: Ints
    ip_id: Ints
    window_scale: Ints
    segment_size: Ints

    def chosen(self, sides: Ints) -> OfSides:
        """These sides only."""
        return OfSides(*(getattr(self, name)[sides] for name in _SIDE_NAMES))


class Resets(NamedTuple):
    """The resets that ended connections, one of each: who sent it, its hop limit, packet, time and IP id."""

    by_low: Flags
    ttl: Ints
    packet: Ints
    ts_ns: Ints
    ip_id: Ints

    def chosen(self, numbers: Ints) -> Resets:
        """Those of these connections only."""
        by_low, ttl, packet, ts_ns, ip_id = self
        return Resets(by_low[numbers], ttl[numbers], packet[numbers], ts_ns[numbers], ip_id[numbers])


@dataclass(frozen=True, slots=True)
class WholeFlows:
    """What is known of connections; see `Flow`. sides: two for each.

    protocol: a number in `protocols`, NO_PROTOCOL without any. history_bytes: of both sides. resets: None where no
    connection was reset; those that were are never made a `Flow` of.
    """

    pair: Ints
    client_is_low: Flags
    first_packet: Ints
    last_packet: Ints
    ts_first_ns: Ints
    ts_last_ns: Ints
    packets: Ints
    data_segments: Ints
    syn_ns: Ints
    syn_ack_ns: Ints
    closed_by_low: Flags
    first_close_ns: Ints
    closed_ts_ns: Ints
    protocol: Ints
    history_bytes: Ints
    sides: OfSides
    protocols: Sequence[str] = ()
    recent: Recent = field(default=NO_RECENT)
    resets: Resets | None = None

    def __len__(self) -> int:
        return len(self.pair)

    @property
    def end_seqs(self) -> Ints:
        """Where the streams of the high and of the low endpoint end, in raw sequence numbers."""
        ends = ((self.sides.isn + 1 + self.sides.size) & MASK).reshape(-1, 2)
        return np.where(self.client_is_low[:, None], ends[:, ::-1], ends)

    def chosen(self, numbers: Ints) -> WholeFlows:
        """These connections only, without what they sent last."""
        columns = {name: getattr(self, name)[numbers] for name in _FLOW_NAMES}
        resets = None if self.resets is None else self.resets.chosen(numbers)
        return replace(self, **columns, sides=self.sides.chosen(sides_of(numbers)), recent=NO_RECENT, resets=resets)

    def flow(self, number: int, index: int, most_remarks: int) -> Flow:
        """A connection as the flow with this index. most_remarks: of each of its streams."""
        value: dict[str, Any] = {name: getattr(self, name)[number].item() for name in _FLOW_NAMES}
        protocol, history_bytes = value.pop("protocol"), value.pop("history_bytes")
        client, server = (self._half(2 * number + side, history_bytes, most_remarks) for side in (0, 1))
        known = protocol != NO_PROTOCOL
        return Flow(
            index=index,
            halves=(server, client) if value["client_is_low"] else (client, server),
            protocol=self.protocols[protocol] if known else None,
            identified_by="content" if known else None,
            **value,
        )

    def _half(self, side: int, history_bytes: int, most_remarks: int) -> Half:
        of = {name: getattr(self.sides, name)[side].item() for name in _SIDE_NAMES}
        isn, base, scale = of["isn"], of["isn"] + 1, of["window_scale"]
        recent = self.recent.of(side)
        return Half(
            isn=isn,
            started=True,
            first_seq=isn,
            base=base,
            next_seq=base + of["size"],
            acked=base + max(of["confirmed"], 0),
            confirmed=None if of["confirmed"] < 0 else base + of["confirmed"],
            last_ns=of["last_ns"],
            ttl=of["ttl"],
            ttl_lowest=of["ttl_lowest"],
            ttl_last=of["ttl_last"],
            packets=of["packets"],
            ip_id=of["ip_id"],
            recent=recent,
            recent_bytes=sum(map(len, recent)),
            history_bytes=history_bytes,
            fin_seq=base + of["size"],
            window_scale=None if scale == NOT_SEEN else max(scale, NOT_SENT),
            segment_size=None if scale == NOT_SEEN else of["segment_size"] or None,
            notes_left=most_remarks,
        )


_SIDE_NAMES = [one.name for one in fields(OfSides)]
_FLOW_NAMES = [one.name for one in fields(WholeFlows) if one.name not in ("sides", "protocols", "recent", "resets")]


def sides_of(numbers: Ints) -> Ints:
    """The sides of these connections, or their streams."""
    return (2 * numbers[:, None] + np.arange(2)).ravel()


def recent_of(streams: WholeStreams, numbers: Ints, history_bytes: Ints) -> Recent:
    """What connections sent last. history_bytes: how much is remembered of each of their streams."""
    chosen = sides_of(numbers)
    counts = (streams.until - streams.first)[chosen]
    until = np.cumsum(counts)
    of_stream = np.repeat(np.arange(len(chosen)), counts)
    place = np.arange(len(of_stream))
    rows = (streams.first[chosen] - until + counts)[of_stream] + place
    most = np.repeat(history_bytes, 2)[of_stream]
    size = np.minimum(streams.segments.size[rows], most)
    total = np.cumsum(size)
    of_all = np.where(counts > 0, total[np.maximum(until - 1, 0)] if len(total) else 0, 0)
    behind = of_all[of_stream] - total
    kept = (behind < most) & (until[of_stream] - place <= HISTORY_SEGMENTS)
    ends = (streams.segments.start + streams.segments.size)[rows][kept]
    size = size[kept]
    data = streams.data
    pieces = [data[start:end] for start, end in zip((ends - size).tolist(), ends.tolist(), strict=True)]
    left = np.bincount(of_stream[kept], minlength=len(chosen))
    behind_last = np.cumsum(left)
    return Recent(b"".join(pieces), np.cumsum(size), behind_last - left, behind_last)

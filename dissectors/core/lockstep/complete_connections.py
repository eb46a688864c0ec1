"""What protocols share that read whole connections. In: `Streams` and their `Frames`. Out: how connections begin, and
the frames of those that a decoder decodes by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.lockstep.frames import Flags, Frames, Ints
from wirewitness.dissectors.core.lockstep.streams import Gives, Streams
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame


class First(NamedTuple):
    """The first request of each connection. comes_first: all of it is in the client's first segment, before which the
    server said nothing, and which is looked at as a whole. head_end: where that segment ends. frame: its number, -1
    without any."""

    comes_first: Flags
    head_end: Ints
    frame: Ints

    @classmethod
    def of(cls, streams: Streams, frames: Frames, limits: Limits) -> First:
        """Of all connections."""
        count = len(streams)
        clients, servers = np.arange(count) * 2, np.arange(count) * 2 + 1
        speaks, answers = (streams.begin[side] < streams.end[side] for side in (clients, servers))
        head_end = streams.begin[clients]
        head_end[speaks] = streams.first_segment_end(clients[speaks])
        frame = np.full(count, -1)
        firsts = np.flatnonzero((frames.direction == CLIENT_TO_SERVER) & (frames.offset == 0))
        frame[frames.connection[firsts]] = firsts
        comes_first = frame >= 0
        comes_first[comes_first] = frames.end[frame[comes_first]] <= head_end[comes_first]
        both = np.flatnonzero(speaks & answers)
        packets = streams.packet[streams.first[2 * both]], streams.packet[streams.first[2 * both + 1]]
        comes_first[both] &= packets[0] < packets[1]
        comes_first &= head_end - streams.begin[clients] <= limits.max_probe_bytes
        return cls(comes_first, head_end, frame)


def probed(
    streams: Streams,
    asked: First,
    doubtful: Flags,
    knows: Callable[[bytes], bool],
    alike: Callable[[bytes], bytes] = bytes,
) -> Flags:
    """Which of these connections are of a protocol for certain, by their first segment.

    knows: whether that segment tells it. alike: what the answer depends on. Many begin with the very same, so each is
    asked about once.
    """
    answers: dict[bytes, bool] = {}
    known = np.zeros(len(doubtful), bool)
    numbers = np.flatnonzero(doubtful)
    begins, ends = streams.begin[2 * numbers].tolist(), asked.head_end[numbers].tolist()
    for number, begin, end in zip(numbers.tolist(), begins, ends, strict=True):
        head = streams.data[begin:end]
        key = alike(head)
        if key not in answers:
            answers[key] = knows(head)
        known[number] = answers[key]
    return known


def by_themselves(
    frames: Frames, own: Flags, give: Callable[[int, Callable[[], list[Frame]], Any], None]
) -> Iterator[Gives]:
    """These connections, each with what gives its rows: its number, what makes its frames, and the sink."""
    for number in np.flatnonzero(own).tolist():
        mine = partial(frames_between, frames, int(frames.begins[number]), int(frames.ends[number]))
        yield Gives(number, partial(give, number, mine))


def frames_between(frames: Frames, first: int, until: int) -> list[Frame]:
    """The frames with these numbers, each readable at its last packet."""
    mine = slice(first, until)
    columns = (
        frames.packet_last[mine],
        frames.direction[mine],
        frames.start[mine],
        frames.end[mine],
        frames.offset[mine],
        frames.packet_first[mine],
        frames.packet_last[mine],
        frames.ts_ns[mine],
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Frame(order, direction, frames.data, start, end, offset, first_packet, last_packet, ts_ns, True)
        for order, direction, start, end, offset, first_packet, last_packet, ts_ns in rows
    ]

"""A very large frame is given up only when messages inside it end where short segments do, several times in a row."""

from __future__ import annotations

import struct

import pytest

from tests.dissectors.test_framer import heartbeat
from wirewitness.analyser.decoding.cutting import StreamCutter
from wirewitness.analyser.decoding.framed import IN_A_ROW
from wirewitness.analyser.tcp.chunks import Run, Segments
from wirewitness.dissectors.core.framer import LARGE_FRAME_BYTES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.framing import framer

MSS = 1460


def cut(segments: list[bytes]) -> tuple[list[Frame], list[str]]:
    """Frames of the client's stream, and codes of the remarks."""
    limits, out, frames = Limits(), Sink(["expert_infos"]), list[Frame]()
    cutter = StreamCutter(CLIENT_TO_SERVER, framer(CLIENT_TO_SERVER, True, limits))
    decoder = KafkaDecoder(limits, DecodeOptions())
    for number, segment in enumerate(segments):
        run = Run([segment], len(segment), Segments([0], [number], [number], [number]))
        if cutter.searches:
            frames += cutter.search(run, decoder, out)
            continue
        frames += cutter.run(run, out)
        if (stuck := cutter.take_back()) is not None:
            frames += cutter.search(stuck, decoder, out)
    return frames, [str(row[6]) for row in out.rows("expert_infos") or ()]


def large(content: bytes) -> bytes:
    """A frame that says it has a MiB more than what is large, with the content at its beginning."""
    size = LARGE_FRAME_BYTES + (1 << 20)
    return struct.pack(">ihhih", size, 0, 3, 7, 1) + b"c" + content + bytes(size - 11 - len(content))


@pytest.mark.parametrize("shift", [0, 1, 700])
def test_recorded_messages_inside_a_large_frame_are_its_content(shift: int) -> None:
    """However many there are, and also when a segment begins with one of them."""
    recorded = b"".join(heartbeat(number) for number in range(200_000))
    frame = large(bytes(MSS - 15 + shift) + recorded)
    segments = [frame[at : at + MSS] for at in range(0, len(frame), MSS)]
    frames, told = cut([*segments, heartbeat(1)])
    assert [one.size for one in frames] == [len(frame), len(heartbeat(1))]
    assert told == []


@pytest.mark.parametrize(("behind", "found"), [(IN_A_ROW - 1, 0), (IN_A_ROW, IN_A_ROW), (40, 40)])
def test_messages_in_segments_of_their_own_give_a_large_frame_up(behind: int, found: int) -> None:
    frames, told = cut([large(b"")[:200], *(heartbeat(number) for number in range(behind))])
    assert len([one for one in frames if one.complete]) == found
    assert told == (["frame_given_up"] if found else [])


def test_small_messages_that_come_many_together_prove_nothing() -> None:
    segments = [b"".join(map(heartbeat, range(6 + number % 5))) for number in range(60)]
    assert cut([large(b"")[:MSS], *segments]) == ([], [])


def test_what_stands_between_the_messages_ends_the_row() -> None:
    segments = [heartbeat(number) if number % IN_A_ROW else b"\xff" * 90 for number in range(40)]
    assert cut([large(b"")[:200], *segments]) == ([], [])

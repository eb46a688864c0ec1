"""Cutting frames: the same at any split, back in step after a loss, never fooled into allocating."""

from __future__ import annotations

import itertools
import pickle
import struct

from hypothesis import given
from hypothesis import strategies as st

from wirewitness.dissectors.core.framer import LengthFramer
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.protocol import STUCK, Plausible, Sink
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.framing import framer, probe


def heartbeat(correlation: int) -> bytes:
    """Heartbeat v0 of client "c", group "g", member "m"."""
    content = struct.pack(">hhih", 12, 0, correlation, 1) + b"c" + bytes.fromhex("0001 67 00000007 0001 6d")
    return struct.pack(">i", len(content)) + content


def answer(correlation: int) -> bytes:
    """Response to it."""
    return struct.pack(">iih", 6, correlation, 0)


def nowhere(position: int) -> bool | None:
    """No frame starts anywhere: for framers that are synchronised."""
    return False


def boundary(direction: int, data: bytes) -> Plausible:
    """The judgement of a decoder that has sent heartbeats 8 and 9 and waits for their answers."""
    decoder = KafkaDecoder(Limits())
    for number in (8, 9):
        sent = heartbeat(number)
        decoder.feed([Frame(1, CLIENT_TO_SERVER, sent, 0, len(sent), 0, 1, 1, 0, True)], Sink([]))
    return lambda position: decoder.boundary(direction, data, position, position == 0)


def cut_all(made: LengthFramer, pieces: list[bytes]) -> list[bytes]:
    """Frames of a stream fed in pieces, as a stream cutter feeds them."""
    rest, frames = b"", []
    for piece in pieces:
        data = rest + piece
        cut = made.feed(data, [0], nowhere)
        frames += [data[a:b] for a, b in zip(cut.starts, cut.ends, strict=True)]
        rest = data[cut.position :]
    return frames


@given(st.lists(st.integers(0, 400), max_size=12))
def test_frames_do_not_depend_on_how_the_stream_is_split(splits: list[int]) -> None:
    frames = [heartbeat(number) for number in range(12)]
    stream = b"".join(frames)
    places = sorted({0, len(stream), *(place % len(stream) for place in splits)})
    pieces = [stream[a:b] for a, b in itertools.pairwise(places)]
    assert cut_all(framer(CLIENT_TO_SERVER, True, Limits()), pieces) == frames


def test_requests_are_found_again_after_a_loss() -> None:
    made = framer(CLIENT_TO_SERVER, True, Limits())
    made.lost()
    data = heartbeat(1)[9:] + heartbeat(2) + heartbeat(3)
    cut = made.feed(data, [0], boundary(CLIENT_TO_SERVER, data))
    assert [data[a:b] for a, b in zip(cut.starts, cut.ends, strict=True)] == [heartbeat(2), heartbeat(3)]
    assert cut.skipped[0][:2] == (0, len(heartbeat(1)) - 9)


def test_responses_are_found_again_by_the_requests_they_answer() -> None:
    made = framer(SERVER_TO_CLIENT, True, Limits())
    made.lost()
    data = b"\xff" * 7 + answer(0) + answer(8) + answer(9)
    cut = made.feed(data, [0], boundary(SERVER_TO_CLIENT, data))
    assert [data[a:b] for a, b in zip(cut.starts, cut.ends, strict=True)] == [answer(8), answer(9)]


def test_a_gigabyte_length_is_damage() -> None:
    made = framer(CLIENT_TO_SERVER, True, Limits())
    data = struct.pack(">i", 1 << 30) + bytes(40) + heartbeat(5)
    cut = made.feed(data, [0], boundary(CLIENT_TO_SERVER, data))
    assert [data[a:b] for a, b in zip(cut.starts, cut.ends, strict=True)] == [heartbeat(5)]
    assert cut.skipped


def test_without_a_judge_it_gets_stuck_in_front_of_damage() -> None:
    made = framer(CLIENT_TO_SERVER, True, Limits())
    data = heartbeat(4) + struct.pack(">i", 1 << 30) + heartbeat(5)
    cut = made.feed(data, [0], None)
    assert (cut.ends, cut.position, cut.need, made.synchronised) == (
        [len(heartbeat(4))],
        len(heartbeat(4)),
        STUCK,
        True,
    )


def test_what_waits_is_looked_through_when_it_has_doubled() -> None:
    data = bytes(5000)
    made = LengthFramer(lambda *_: 0, lambda *_: (), False)
    asked: list[tuple[int, int]] = []

    def never(end: int) -> Plausible:
        return lambda position: asked.append((position, end))

    for end in range(100, 5000, 100):
        cut = made.feed(data[:end], list(range(0, end, 10)), never(end))
        assert (cut.position, cut.need) == (0, 0)
    # The first ones whenever something comes, the others when they come and whenever there is twice as much.
    assert [end for position, end in asked if position == 0] == list(range(100, 5000, 100))
    assert [end for position, end in asked if position == 1000] == [1100, 1600, 3200]


@given(st.binary(max_size=300), st.booleans(), st.sampled_from([CLIENT_TO_SERVER, SERVER_TO_CLIENT]))
def test_any_bytes_are_cut_without_raising(data: bytes, synchronised: bool, direction: int) -> None:
    cut = framer(direction, synchronised, Limits()).feed(data, [0], boundary(direction, data))
    assert 0 <= cut.position <= len(data)
    places = [place for pair in zip(cut.starts, cut.ends, strict=True) for place in pair]
    assert places == sorted(places)


@given(st.binary(max_size=200), st.binary(max_size=200), st.booleans())
def test_probing_any_bytes_does_not_raise(client: bytes, server: bytes, whole: bool) -> None:
    assert 0 <= probe(client, server, whole) <= 100


def test_probe_knows_kafka_by_its_bytes() -> None:
    assert probe(heartbeat(1), b"", True) == 100
    assert probe(heartbeat(1)[5:] + heartbeat(2), b"", False) == 100
    assert probe(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", b"", True) == 0
    assert probe(bytes.fromhex("16030100c8010000c40303") + bytes(200), b"", True) == 0


def test_a_framer_travels_between_processes() -> None:
    made = pickle.loads(pickle.dumps(framer(CLIENT_TO_SERVER, True, Limits())))
    assert cut_all(made, [heartbeat(1)]) == [heartbeat(1)]

"""Taking the payload out of frames, byte for byte: places, splits, damage. Frames are packed by hand here."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import Opcode

from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
from tests.support.shares import examples
from wirewitness.dissectors.carriers.frames import OPCODES, looks_like
from wirewitness.dissectors.carriers.upgrade import opening
from wirewitness.dissectors.carriers.websocket import WEBSOCKET
from wirewitness.dissectors.core.carrier import Carried, Interrupted, Item, Told
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT

OPENED = opening(REQUEST + END, RESPONSE + END)
MASK = bytes.fromhex("37fa213d")


def frame(payload: bytes, *, opcode: int = 2, fin: bool = True, mask: bytes | None = None) -> bytes:
    """One frame, RFC 6455 section 5.2."""
    size, masked = len(payload), 0x80 if mask else 0
    head = bytes([opcode | (0x80 if fin else 0)])
    if size < 126:
        head += bytes([masked | size])
    elif size < 1 << 16:
        head += bytes([masked | 126]) + struct.pack(">H", size)
    else:
        head += bytes([masked | 127]) + struct.pack(">Q", size)
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


def unwrapped(pieces: list[bytes], direction: int = SERVER_TO_CLIENT, *, middle: bool = False) -> list[Item]:
    made = WEBSOCKET.unwrapper(direction, None if middle else OPENED, Limits())
    found: list[Item] = []
    offset = 0
    for piece in pieces:
        found += made.feed(piece, offset)
        offset += len(piece)
        assert 0 <= made.held_bytes <= offset
    return found


def inner(items: list[Item]) -> bytes:
    return b"".join(item.data for item in items if isinstance(item, Carried))


# RFC 6455, section 5.7.
@pytest.mark.parametrize(
    ("data", "direction", "expected"),
    [
        ("81 05 48 65 6c 6c 6f", SERVER_TO_CLIENT, b"Hello"),
        ("81 85 37 fa 21 3d 7f 9f 4d 51 58", CLIENT_TO_SERVER, b"Hello"),
        ("01 03 48 65 6c 80 02 6c 6f", SERVER_TO_CLIENT, b"Hello"),
        ("89 05 48 65 6c 6c 6f", SERVER_TO_CLIENT, b""),
        ("8a 85 37 fa 21 3d 7f 9f 4d 51 58", CLIENT_TO_SERVER, b""),
    ],
    ids=["text", "masked text", "fragmented text", "ping", "masked pong"],
)
def test_the_examples_of_the_standard(data: str, direction: int, expected: bytes) -> None:
    assert inner(unwrapped([bytes.fromhex(data)], direction)) == expected


def test_each_piece_tells_its_place() -> None:
    pieces = [frame(b"a" * 10, mask=MASK)[:9], frame(b"a" * 10, mask=MASK)[9:] + frame(b"b" * 300, mask=MASK)]
    assert [item[:3] for item in unwrapped(pieces, CLIENT_TO_SERVER)] == [
        (b"a" * 3, 6, 9),
        (b"a" * 7, 9, 16),
        (b"b" * 300, 24, 324),
    ]


@examples(60)
@given(
    st.lists(st.tuples(st.binary(max_size=200), st.booleans(), st.sampled_from([2, 9])), min_size=1, max_size=6),
    st.lists(st.integers(1, 1500), max_size=6),
)
def test_any_split_gives_the_same_bytes_at_the_same_places(
    frames: list[tuple[bytes, bool, int]], places: list[int]
) -> None:
    data = b"".join(
        frame(payload[:125] if opcode == 9 else payload, opcode=opcode, mask=MASK if masked else MASK[::-1])
        for payload, masked, opcode in frames
    )
    edges = sorted({0, len(data), *(place % len(data) for place in places)})
    pieces = [data[start:end] for start, end in pairwise(edges)]

    def places_of(items: list[Item]) -> dict[int, int]:
        return {
            item.start + number: byte
            for item in items
            if isinstance(item, Carried)
            for number, byte in enumerate(item.data)
        }

    expected = places_of(unwrapped([data], CLIENT_TO_SERVER))
    assert places_of(unwrapped(pieces, CLIENT_TO_SERVER)) == expected
    assert len(expected) == sum(len(payload) for payload, _, opcode in frames if opcode == 2)


@examples(100)
@given(st.lists(st.binary(max_size=80), max_size=8), st.booleans(), st.booleans())
def test_any_bytes(pieces: list[bytes], from_client: bool, middle: bool) -> None:
    for item in unwrapped(pieces, 0 if from_client else 1, middle=middle):
        assert isinstance(item, Carried | Interrupted | Told)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(50, [(b"", 50), (b"z" * 40, 0)], id="inside a frame"),
        pytest.param(51, [(b"", 51), (b"z" * 39, 0)], id="the mask goes on"),
        pytest.param(4, [(b"", 4), (b"z" * 86, 0)], id="four bytes"),
        pytest.param(1, [(b"", 1), (b"z" * 89, 0)], id="one byte"),
        pytest.param(90, [(b"", 90)], id="the rest of a frame"),
    ],
)
def test_a_gap_inside_a_frame_is_known(size: int, expected: list[tuple[bytes, int]]) -> None:
    whole = frame(b"z" * 100, mask=MASK)
    made = WEBSOCKET.unwrapper(CLIENT_TO_SERVER, OPENED, Limits())
    assert inner(made.feed(whole[:16], 0)) == b"z" * 10
    found = [*made.gap(size, 16), *made.feed(whole[16 + size :], 16 + size)]
    seen = [(item.data, 0) if isinstance(item, Carried) else (b"", item.size) for item in found if len(item) < 6]
    assert seen == expected
    assert inner(made.feed(frame(b"next", mask=MASK), len(whole))) == b"next"


def test_a_gap_over_a_boundary_ends_at_the_next_segment_with_frames() -> None:
    made = WEBSOCKET.unwrapper(SERVER_TO_CLIENT, OPENED, Limits())
    made.feed(frame(b"a" * 20), 0)
    assert made.gap(30, 22) == [Interrupted(0)]
    assert made.feed(b"rest of a payload", 52) == []
    found = made.feed(frame(b"b") + frame(b"c"), 69)
    assert [type(item) for item in found] == [Told, Carried, Carried]
    assert (found[0][2], found[0][4:]) == ("skipped_bytes", (52, 69))


def test_frames_that_cannot_be_inflated_are_one_interruption() -> None:
    """Two bytes each, of which every one was looked into as a loss of its own."""
    with_deflate = RESPONSE + b"Sec-WebSocket-Extensions: permessage-deflate\r\n" + END
    made = WEBSOCKET.unwrapper(SERVER_TO_CLIENT, opening(REQUEST + END, with_deflate), Limits())
    broken = bytes([0x42, 1, 0xFF]) + frame(b"", opcode=0, fin=False) * 1000
    assert [item for item in made.feed(broken, 0) if isinstance(item, Interrupted)] == [Interrupted(0)]
    again = made.feed(frame(b"", opcode=0, fin=False) + frame(b"", opcode=0) + frame(b"plain"), len(broken))
    assert [type(item) for item in again] == [Carried]
    behind = made.feed(frame(b"", opcode=0x42), len(broken) + 11)
    assert [item for item in behind if isinstance(item, Interrupted)] == [Interrupted(0)]


def test_a_frame_that_is_not_all_there_is_waited_for() -> None:
    whole = frame(b"x" * 500)
    pieces = [b"\xff\xff", whole[:200], whole[200:400], whole[400:] + frame(b"y")]
    assert inner(unwrapped(pieces, middle=True)) == b"x" * 500 + b"y"


def test_the_search_is_bounded() -> None:
    made = WEBSOCKET.unwrapper(SERVER_TO_CLIENT, None, Limits())
    endless = b"\x82\x7f" + struct.pack(">Q", 100 << 20)
    for number in range(200):
        made.feed(endless + bytes(1400), number * 1410)
        assert made.held_bytes < 100_000


def test_remarks_are_bounded() -> None:
    made = WEBSOCKET.unwrapper(SERVER_TO_CLIENT, OPENED, Limits(max_expert_infos=5))
    segments = [b"\x83\x00", frame(b"a")] * 40
    found = [item for number, segment in enumerate(segments) for item in made.feed(segment, number)]
    told = [item.code for item in found if isinstance(item, Told)]
    assert told == ["malformed_frame"] * 4 + ["remarks"]
    assert inner(found) == b"a" * 40


@pytest.mark.parametrize(
    ("data", "direction"),
    [(b"\x82\x05", 1), (b"\x82\x85", 0), (b"\x01\x7e", 1), (b"\xc2\x05", None), (b"\x83\x05", None), (b"\x82", None)],
)
def test_what_looks_like_a_frame(data: bytes, direction: int | None) -> None:
    assert looks_like(data) == direction


def test_opcodes_are_those_of_wsproto() -> None:
    assert frozenset(Opcode) == OPCODES

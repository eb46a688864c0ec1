"""Objects as streams: whatever is sought and read, the bytes are the object's; requests and memory stay few."""

from __future__ import annotations

import io
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirewitness.analyser.base.storage import stream
from wirewitness.analyser.base.storage.stream import AHEAD, FIRST_BYTES, MOST_BYTES, object_stream

CONTENT = bytes(range(256)) * (1 << 13)  # 2 MiB: several blocks

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 600_000)),
        st.tuples(st.just("seek"), st.integers(0, len(CONTENT) + 10)),
        st.tuples(st.just("skip"), st.integers(-1000, 300_000)),
    ),
    max_size=20,
)


class Asked:
    """The object, and what was asked of it."""

    def __init__(self, content: bytes) -> None:
        self.content, self.ranges = content, list[tuple[int, int]]()

    def read(self, start: int, end: int) -> memoryview:
        self.ranges.append((start, end))
        return memoryview(self.content)[start:end]


@settings(max_examples=50)
@given(STEPS)
def test_any_way_of_reading_gives_the_bytes_of_the_object(steps: list[tuple[str, int]]) -> None:
    ours, plain = io.BufferedReader(object_stream(len(CONTENT), Asked(CONTENT).read)), io.BytesIO(CONTENT)
    with ours:
        for what, count in steps:
            if what == "read":
                assert ours.read(count) == plain.read(count)
            elif what == "seek":
                assert ours.seek(count) == plain.seek(count)
            else:
                place = max(0, plain.tell() + count)
                assert ours.seek(place) == plain.seek(place)
            assert ours.tell() == plain.tell()


def test_a_look_at_the_beginning_is_one_small_request() -> None:
    asked = Asked(CONTENT)
    with object_stream(len(CONTENT), asked.read) as opened:
        assert len(opened.read(1 << 16)) == 1 << 16
    assert asked.ranges == [(0, FIRST_BYTES)]


def test_reading_to_the_end_asks_for_each_byte_once_in_growing_blocks() -> None:
    content = bytes(64 << 20)
    asked = Asked(content)
    with io.BufferedReader(object_stream(len(content), asked.read), 1 << 16) as opened:
        total = 0
        while part := opened.read(1 << 20):
            total += len(part)
    assert total == len(content)
    ranges = sorted(asked.ranges)
    assert [start for start, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert max(end - start for start, end in ranges) == MOST_BYTES
    assert len(ranges) < 20


def test_no_more_blocks_are_held_than_said() -> None:
    """Blocks are asked for at most so far ahead of what is handed on, while nobody reads."""
    asked = Asked(bytes(256 << 20))
    arrived = threading.Semaphore(0)

    def read(start: int, end: int) -> memoryview:
        block = asked.read(start, end)
        arrived.release()
        return block

    with object_stream(len(asked.content), read) as opened:
        opened.read(FIRST_BYTES)
        opened.read(1)
        for _ in range(2 + AHEAD):
            assert arrived.acquire(timeout=20)
        assert not arrived.acquire(timeout=0.2)


def test_what_reading_raises_reaches_the_reader_in_its_place() -> None:
    def read(start: int, end: int) -> memoryview:
        if end > 1 << 20:
            raise OSError(5, "the store answers 500 Internal Server Error")
        return memoryview(CONTENT)[start:end]

    with io.BufferedReader(object_stream(len(CONTENT), read)) as opened:
        assert opened.read(1 << 18) == CONTENT[: 1 << 18]
        with pytest.raises(OSError, match="500"):
            opened.read()


def test_an_empty_object_has_no_bytes_and_costs_no_request() -> None:
    asked = Asked(b"")
    with object_stream(0, asked.read) as opened:
        assert opened.read(10) == b""
    assert not asked.ranges


def test_blocks_grow_from_the_first_again_after_a_jump() -> None:
    asked = Asked(CONTENT)
    with object_stream(len(CONTENT), asked.read) as opened:
        opened.seek(1_500_000)
        opened.read(10)
    assert asked.ranges == [(1_500_000, 1_500_000 + FIRST_BYTES)]
    assert stream.AHEAD * stream.MOST_BYTES <= 32 << 20

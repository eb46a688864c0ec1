"""Frames of many connections that are decoded together give the rows of those that are decoded one by one."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import NamedTuple

import pytest

from dissectors.core.later import MAX_FRAMES, Later
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame, Row
from dissectors.core.protocol import Sink
from dissectors.kafka import conversation as kafka_conversation
from dissectors.kafka.columns import groups
from dissectors.kafka.conversation import KafkaConversation
from dissectors.kafka.headers import API_VERSIONS
from dissectors.kafka.rows.fields import KAFKA_ROWS
from dissectors.kafka.schema.api_keys import API_KEYS
from tests.support import kafka_encode
from tests.support.shares import RUNS_THE_REST

TABLES = (*CORE_ROWS, *KAFKA_ROWS)
TRIES = 300 if RUNS_THE_REST else 15
# What clients say over and over, in old and new versions; some that are never read together among them.
APIS = [
    (8, 2),
    (8, 7),
    (8, 9),
    (12, 0),
    (12, 4),
    (1, 4),
    (1, 11),
    (1, 13),
    (0, 7),
    (3, 9),
    (2, 4),
    (9, 7),
    (10, 3),
    (11, 5),
]
ODD = [(18, 3), (17, 1), (97, 0), (8, 400)]


class Said(NamedTuple):
    """One frame: who said it, and its bytes behind the size."""

    direction: int
    content: bytes


def _flexible(key: int, version: int) -> bool:
    first = API_KEYS[key].flexible if key in API_KEYS else None
    return first is not None and version >= first


def _body(key: int, version: int, direction: str, random: Random) -> bytes:
    if (key, version, direction) not in kafka_encode.MESSAGES:
        return b"?" * random.randrange(9)
    return kafka_encode.message(key, version, direction, random)[0]  # type: ignore[arg-type]


def talk(random: Random) -> list[Said]:
    """A connection: pipelined requests and their answers; some broken, missing, repeated or out of order."""
    ids = count(random.choice((0, 7, 2**31 - 40)))
    apis = random.sample(APIS, 3) + ([random.choice(ODD)] if random.random() < 0.2 else [])
    said: list[Said] = []
    waiting: list[bytes] = []
    spoilt = random.choice((0.0, 0.0, 0.02, 0.1))
    for _ in range(random.randrange(20, 120)):
        key, version = random.choice(apis)
        number = next(ids) & 0x7FFFFFFF
        client = random.choice((b"\0\1a", b"\0\4b\xff\xfec", b"\xff\xff", b"\0\0"))
        head = struct.pack(">hhi", key, version, number) + client + b"\0" * _flexible(key, version)
        said.append(Said(CLIENT_TO_SERVER, _spoilt(head + _body(key, version, "request", random), spoilt, random)))
        answer = struct.pack(">i", number) + b"\0" * (_flexible(key, version) and key != API_VERSIONS)
        waiting.append(_spoilt(answer + _body(key, version, "response", random), spoilt, random))
        while waiting and random.random() < 0.6:
            said.append(Said(SERVER_TO_CLIENT, waiting.pop(0 if random.random() >= spoilt / 4 else -1)))
    return said


def _spoilt(content: bytes, share: float, random: Random) -> bytes:
    if random.random() >= share:
        return content
    at = random.randrange(len(content))
    return random.choice((content[:at], content[:at] + b"\xff" + content[at + 1 :], content + b"\1", content[:6]))


def frames_of(said: list[Said], begins: bool, cut: bool) -> list[Frame]:
    """The frames as they are fed, each in a packet of its own; the last one may be cut."""
    offsets = [0 if begins else 1000] * 2
    found = []
    for number, (direction, content) in enumerate(said, 1):
        data = struct.pack(">i", len(content)) + content
        complete = not (cut and number == len(said))
        end = 2 + len(data) if complete else 2 + len(data) // 2
        place = (offsets[direction], number, number, number * 10**9)
        found.append(Frame(number, direction, b"##" + data + b"##", 2, end, *place, complete))
        offsets[direction] += len(data)
    return found


def rows_of(
    talks: list[list[Frame]], sizes: list[int], tables: tuple[str, ...], later: bool
) -> list[dict[str, list[Row]]]:
    """The rows of each connection; so many frames of each are fed at a time."""
    shared = Later() if later else None
    sinks = [Sink(tables) for _ in talks]
    conversations = [KafkaConversation(Limits()) for _ in talks]
    parts = [_parts(frames, sizes) for frames in talks]
    for together in zip(*parts, strict=True):
        for conversation, sink, part in zip(conversations, sinks, together, strict=True):
            sink.later = shared
            conversation.feed(part, sink)
        if shared is not None:
            for kind, left in shared.take().items():
                kind.read_together(left, sinks[0])
        for conversation, sink in zip(conversations, sinks, strict=True):
            conversation.settle(sink)
    for conversation, sink in zip(conversations, sinks, strict=True):
        conversation.finish(sink)
    return [dict(sink.tables()) for sink in sinks]


def _parts(frames: list[Frame], sizes: list[int]) -> Iterator[list[Frame]]:
    start = 0
    for size in sizes:
        yield frames[start : start + size]
        start += size
    yield frames[start:]


@pytest.fixture
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((kafka_conversation, "MANY_FRAMES"), (kafka_conversation, "LEAST_FRAMES"), (groups, "LEAST")):
        monkeypatch.setattr(module, name, 1)


@pytest.mark.usefixtures("_few_are_enough")
def test_rows_are_those_of_one_by_one() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        talks = [
            frames_of(talk(random), begins=random.random() < 0.3, cut=random.random() < 0.1)
            for _ in range(random.randrange(1, 6))
        ]
        sizes = [random.randrange(1, 150) for _ in range(random.randrange(3))]
        tables = random.choice((TABLES, TABLES, ("exchanges",), tuple(set(TABLES) - {"kafka_records"})))
        together, alone = (rows_of(talks, sizes, tables, later) for later in (True, False))
        assert together == alone, seed


def test_exchanges_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The property above is worth what is not read one by one."""
    read: list[int] = []

    class Counted(KafkaConversation):
        def one_by_one(self, frames, out) -> None:  # type: ignore[no-untyped-def]
            read.append(len(frames))
            super().one_by_one(frames, out)

    monkeypatch.setattr("tests.dissectors.kafka.columns.test_together.KafkaConversation", Counted)
    said = []
    for number in range(400):
        head = struct.pack(">hhi", 12, 0, number) + b"\0\1a"
        said.append(Said(CLIENT_TO_SERVER, head + _body(12, 0, "request", Random(number))))
        said.append(Said(SERVER_TO_CLIENT, struct.pack(">i", number) + _body(12, 0, "response", Random(number))))
    frames = frames_of(said, begins=True, cut=False)
    assert len(rows_of([frames], [], TABLES, later=True)[0]["exchanges"]) == 400
    assert sum(read) == 1 + 1  # the connection's first request, which is read alone, and its answer


def test_one_connection_holds_no_more_than_all_may() -> None:
    """Tiny frames of one feed after the other: what is left stays below the limit."""
    content = struct.pack(">hhi", 12, 0, 1) + b"\xff\xff"
    frames = frames_of([Said(CLIENT_TO_SERVER, content)] * 1000, begins=False, cut=False)
    conversation, sink = KafkaConversation(Limits()), Sink(("exchanges",))
    sink.later = Later()
    most = 0
    for _ in range(40):
        conversation.feed(frames, sink)
        most = max(most, len(conversation._left))
    assert 0 < most <= MAX_FRAMES


def test_nothing_of_the_sink_stays_behind() -> None:
    """A conversation goes to another process between two batches, what its rows go to does not."""
    frames = frames_of(talk(Random(1)), begins=True, cut=False)
    for fed in (frames[:1], frames[:5], frames):
        conversation, sink = KafkaConversation(Limits()), Sink(TABLES)
        sink.later = Later()
        conversation.feed(fed, sink)
        conversation.settle(sink)
        sink.drain = lambda _: None  # cannot be pickled
        assert pickle.loads(pickle.dumps(conversation))

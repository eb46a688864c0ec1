"""Frames of many connections that are decoded together give the rows of those that are decoded one by one."""

from __future__ import annotations

import pickle
import struct
from functools import cache
from itertools import count
from random import Random
from typing import Any

import pytest

from tests.dissectors.kafka.lockstep.talks import Said, frames_of
from tests.support import kafka_encode
from tests.support.left_frames import feed_in_batches, resting, settle_together
from tests.support.record_batches import Sent, batch, message_set
from tests.support.shares import RUNS_THE_REST
from wirewitness.dissectors.core import deferred as later_module
from wirewitness.dissectors.core.deferred import MAX_FRAMES, Later
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame, Row
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka import decoder as kafka_decoder
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.headers import API_VERSIONS
from wirewitness.dissectors.kafka.lockstep import batch_decode as together_module
from wirewitness.dissectors.kafka.lockstep import groups
from wirewitness.dissectors.kafka.lockstep.groups import RECORDS_AT
from wirewitness.dissectors.kafka.rows.fields import KAFKA_ROWS
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS
from wirewitness.dissectors.kafka.schema.definitions import Field

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
    (1, 16),
    (0, 3),
    (0, 7),
    (0, 9),
    (0, 13),
    (3, 9),
    (2, 4),
    (9, 7),
    (10, 3),
    (11, 5),
]
# Few sessions, mostly continued, so that answers are about partitions that earlier Fetches named.
SESSIONS = {"session_id": (0, 5, 5, 5, 6), "session_epoch": (-1, 0, 1, 2, 3, 4)}
ODD = [(18, 3), (17, 1), (97, 0), (8, 400)]


def _flexible(key: int, version: int) -> bool:
    first = API_KEYS[key].flexible if key in API_KEYS else None
    return first is not None and version >= first


class _Believable(kafka_encode.Encoder):
    """Real batches, few topics and partitions, so that answers are about what was asked, and hardly any tags."""

    known_tags = unknown_tags = 0.002
    counts = (0, 1, 1, 1, 2)

    def plain(self, one: Field) -> tuple[bytes, Any]:
        if one.type == "records":
            raw = b"".join(self.random.choices(_batches(), k=self.random.choice((0, 1, 1, 1, 2, 3))))
            if self.random.random() < 0.005:
                raw = _spoilt(raw or b"!", 1, self.random)
            return self.size("i", len(raw)) + raw, raw
        if one.name in ("index", "partition", "partition_index", "acks", "."):
            number = self.random.choice((0, 1, 2) if one.name != "acks" else (1, *[-1] * 40, 0))
            return struct.pack(">" + kafka_encode.STRUCTS[one.type], number), number
        if one.name == "base_offset":
            number = self.random.choice((7, 1000, 1000, -1, 2**63 - 2))
            return struct.pack(">q", number), number
        if one.name in SESSIONS:
            number = self.random.choice(SESSIONS[one.name])
            return struct.pack(">i", number), number
        if one.name in ("name", "topic"):
            text = self.random.choice(("a", "b"))
            return self.size("h", 1) + text.encode(), text
        return (bytes(16), bytes(16)) if one.name == "topic_id" else super().plain(one)


@cache
def _batches() -> list[bytes]:
    """Some of each kind, most of them as clients send them now."""
    sent = [Sent(1_700_000_000_000 + number, b"k", b"v" * 100 * number) for number in range(3)]
    plain = batch(sent)
    known = [plain, batch(sent[2:], "gzip"), batch(sent, "zstd", transactional=True, producer=(7, 1, 3))]
    return [*known * 100, message_set(sent, 1), plain[:40], plain[:-1]]


def _body(key: int, version: int, direction: str, random: Random) -> bytes:
    if (key, version, direction) not in kafka_encode.MESSAGES:
        return b"?" * random.randrange(9)
    api = schema.api(key)
    if key not in RECORDS_AT or api is None:
        return kafka_encode.message(key, version, direction, random)[0]  # type: ignore[arg-type]
    return _Believable(version, api.is_flexible(version), random).struct(api.fields(direction))[0]  # type: ignore[arg-type]


def talk(random: Random, ids_before_repeating: int = 1 << 31) -> list[Said]:
    """A connection: pipelined requests and their answers; some broken, missing, repeated or out of order."""
    ids = count(random.choice((0, 7, 2**31 - 40)))
    apis = random.sample(APIS, 3) + ([random.choice(ODD)] if random.random() < 0.2 else [])
    said: list[Said] = []
    waiting: list[bytes] = []
    spoilt = random.choice((0.0, 0.0, 0.02, 0.1))
    for _ in range(random.randrange(20, 120)):
        key, version = random.choice(apis)
        number = next(ids) % ids_before_repeating
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


def rows_of(
    talks: list[list[Frame]], sizes: list[int], tables: tuple[str, ...], later: bool, limits: Limits | None = None
) -> list[dict[str, list[Row]]]:
    """The rows of each connection; so many frames of each are fed at a time."""
    decoders = [KafkaDecoder(limits or Limits()) for _ in talks]
    return feed_in_batches(decoders, talks, sizes, tables, later=later)[0]


@pytest.fixture
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((kafka_decoder, "MANY_FRAMES"), (kafka_decoder, "LEAST_FRAMES"), (groups, "LEAST")):
        monkeypatch.setattr(module, name, 1)


@pytest.mark.usefixtures("_few_are_enough")
def test_rows_are_those_of_one_by_one() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        step_ns = random.choice((10**9, 10**8, 10**7))
        talks = [
            frames_of(talk(random), random.random() < 0.3, random.random() < 0.1, step_ns)
            for _ in range(random.randrange(1, 6))
        ]
        if random.random() < 0.3:  # so that answers come before their requests
            talks = [with_losses(frames, random) for frames in talks]
        sizes = [random.randrange(1, 150) for _ in range(random.randrange(3))]
        tables = random.choice((TABLES, TABLES, ("exchanges",), tuple(set(TABLES) - {"kafka_records"})))
        limits = Limits(max_fetch_session_partitions=random.choice((1, 3, 50_000)))
        with resting(seed):
            together, alone = (rows_of(talks, sizes, tables, later, limits) for later in (True, False))
        assert together == alone, seed


def with_losses(frames: list[Frame], random: Random) -> list[Frame]:
    """Some frames are missing, some are cut at any byte, and some come late, a request behind its response."""
    found = []
    for frame in frames:
        chance = random.random()
        if chance < 0.05:
            continue
        cut = frame._replace(end=frame.start + random.randrange(1, frame.size), complete=False)
        found.append(cut if chance < 0.08 else frame)
    for _ in range(random.choice((0, 0, 2))):
        place = random.randrange(len(found))
        found.insert(place + random.randrange(1, 80), found.pop(place))
    for _ in range(random.choice((0, 1, 2))):  # what one side says waits behind a gap
        place = random.randrange(len(found))
        window = found[place : place + random.randrange(2, 30)]
        side = random.randrange(2)
        found[place : place + len(window)] = sorted(window, key=lambda frame: frame.direction == side)
    return found


def asked_on_the_way(
    talks: list[list[Frame]], later: bool, random: Random, batch_frames: int = 60, limits: Limits | None = None
) -> list[Any]:
    """Rows, and what decoders say of places that are boundaries, and of others, while they have left frames."""
    sinks, decoders = [Sink(TABLES) for _ in talks], [KafkaDecoder(limits or Limits()) for _ in talks]
    shared = Later() if later else None
    verdicts: list[bool | None] = []
    for start in range(0, max(map(len, talks)), batch_frames):
        for decoder, sink, frames in zip(decoders, sinks, talks, strict=True):
            sink.later = shared
            left = frames[start : start + batch_frames]
            while left:
                size = random.randrange(1, 40)
                decoder.feed(left[:size], sink)
                left = left[size:]
                for frame in random.choices(frames, k=2):
                    data, hinted = frame.data + bytes(8), random.random() < 0.7
                    place = frame.start + random.choice((0, 0, 0, 1))
                    verdicts.append(decoder.boundary(frame.direction, data, place, hinted))
                verdicts += [
                    decoder.boundary(frame.direction, frame.data[: frame.end], frame.start, True) for frame in left[:2]
                ]
        settle_together(decoders, sinks, shared)
    for decoder, sink in zip(decoders, sinks, strict=True):
        decoder.finish(sink)
    return [verdicts, *(dict(sink.tables()) for sink in sinks)]


@pytest.mark.usefixtures("_few_are_enough")
def test_rows_and_boundaries_of_streams_that_lost_bytes() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        step_ns = random.choice((10**9, 10**8, 10**7))
        limits = Limits(
            max_early=random.choice((1024, 10, 40)),
            max_early_bytes=random.choice((1 << 21, 1 << 21, 2000)),
            max_fetch_session_partitions=random.choice((1, 3, 50_000)),
        )
        talks = [
            with_losses(
                frames_of(talk(random, random.choice((1 << 31, 30, 50))), random.random() < 0.2, False, step_ns), random
            )
            for _ in range(random.randrange(1, 6))
        ]
        with resting(seed):
            together, alone = (asked_on_the_way(talks, later, Random(seed), 60, limits) for later in (True, False))
        assert together == alone, seed


def test_streams_that_lost_bytes_are_read_together(read_alone: list[int]) -> None:
    frames = [frame for number, frame in enumerate(heartbeats(begins=False)) if number % 50 != 7]
    assert len(asked_on_the_way([frames], True, Random(0), 400)[1]["exchanges"]) == 400
    assert sum(read_alone) < 200


def test_answers_that_are_read_before_their_requests_are_the_decoders(read_alone: list[int]) -> None:
    """What the client says waits behind a gap, so that many answers come first; the others are read together."""
    frames = heartbeats(begins=False, step_ns=10**7)
    for place in range(0, len(frames), 100):
        frames[place : place + 60] = sorted(frames[place : place + 60], key=lambda frame: -frame.direction)
    together, alone = (rows_of([frames], [400], TABLES, later) for later in (True, False))
    assert together == alone
    assert {row[10] for row in alone[0]["exchanges"]} == {"error"}  # answered, all of them
    assert 800 < sum(read_alone) < 1400


def test_an_answer_that_comes_far_too_early_is_none(read_alone: list[int]) -> None:
    frames = heartbeats(begins=False, step_ns=2 * 10**9)
    for place in range(0, len(frames), 100):
        frames[place : place + 60] = sorted(frames[place : place + 60], key=lambda frame: -frame.direction)
    together, alone = (rows_of([frames], [400], TABLES, later) for later in (True, False))
    assert together == alone
    assert {row[10] for row in alone[0]["exchanges"]} != {"ok"}
    assert 800 < sum(read_alone) < 1600


@pytest.mark.parametrize("limits", [Limits(max_early=20), Limits(max_early_bytes=200)])
def test_answers_that_may_be_let_go_of_are_read_one_by_one(limits: Limits) -> None:
    frames = heartbeats(begins=False, step_ns=10**7)
    frames.sort(key=lambda frame: (frame.order // 60, -frame.direction))
    together, alone = (rows_of([frames], [400], TABLES, later, limits) for later in (True, False))
    assert together == alone
    assert [row[6] for row in alone[0]["expert_infos"]] == ["early_responses"]


@pytest.mark.usefixtures("_few_are_enough")
def test_an_answer_that_nobody_wanted_ends_no_wait() -> None:
    """A Heartbeat loses its answer, and a Produce that wants none gets one: the next answer ends the first one's wait.

    The order of the rows tells when it ended.
    """
    said = []
    for number in range(0, 80, 4):
        for key, version, one in ((12, 0, number), (0, 3, number + 1), (12, 0, number + 2), (12, 0, number + 3)):
            body = _body(key, version, "request", Random(one))
            if key == 0:
                body = b"\xff\xff" + struct.pack(">hii", 0, 1000, 0)  # acks=0
            said.append(Said(CLIENT_TO_SERVER, struct.pack(">hhi", key, version, one) + b"\0\1a" + body))
            if one != number:
                answer = (
                    struct.pack(">i", 0) + struct.pack(">i", 0) if key == 0 else _body(12, 0, "response", Random(one))
                )
                said.append(Said(SERVER_TO_CLIENT, struct.pack(">i", one) + answer))
    frames = frames_of(said, begins=False, cut=False)
    together, alone = (asked_on_the_way([frames], later, Random(0), 400) for later in (True, False))
    assert together == alone
    waits = [row for row in alone[1]["exchanges"] if row[2] is None and row[7] == "Heartbeat"]
    assert len(waits) == 20


@pytest.mark.usefixtures("_few_are_enough")
@pytest.mark.parametrize(("key", "version"), [(0, 3), (0, 9), (0, 13), (1, 11), (1, 13), (1, 16)])
def test_batches_are_those_of_one_by_one(key: int, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of these exchanges are regular, so that it is the columns that make the rows."""
    read = list[int]()
    exchange_rows = together_module.exchange_rows

    def counted(group: groups.Group, codes: list[int]) -> list[Row]:
        read.append(len(group))
        return exchange_rows(group, codes)

    monkeypatch.setattr(together_module, "exchange_rows", counted)
    random = Random(key * 100 + version)
    said = list[Said]()
    for number in range(1500):
        head = struct.pack(">hhi", key, version, number) + b"\0\1a" + b"\0" * _flexible(key, version)
        answer = struct.pack(">i", number) + b"\0" * _flexible(key, version)
        said.append(Said(CLIENT_TO_SERVER, head + _body(key, version, "request", random)))
        said.append(Said(SERVER_TO_CLIENT, answer + _body(key, version, "response", random)))
    frames = frames_of(said, begins=False, cut=False)
    tables = tuple(set(TABLES) - {"kafka_records"})
    together, alone = (rows_of([frames], [1000], tables, later) for later in (True, False))
    assert together == alone
    table = "kafka_produce_batches" if key == 0 else "kafka_fetch_partitions"
    assert len(alone[0][table]) > 1000
    assert sum(read) > 300


def heartbeats(begins: bool, step_ns: int = 10**9) -> list[Frame]:
    """400 of them, each answered before the next."""
    said = []
    for number in range(400):
        head = struct.pack(">hhi", 12, 0, number) + b"\0\1a"
        said.append(Said(CLIENT_TO_SERVER, head + _body(12, 0, "request", Random(number))))
        said.append(Said(SERVER_TO_CLIENT, struct.pack(">i", number) + _body(12, 0, "response", Random(number))))
    return frames_of(said, begins, False, step_ns)


@pytest.fixture
def read_alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many frames are read one by one, of each call."""
    read: list[int] = []

    class Counted(KafkaDecoder):
        def one_by_one(self, frames, out) -> None:  # type: ignore[no-untyped-def]
            read.append(len(frames))
            super().one_by_one(frames, out)

    monkeypatch.setattr("tests.dissectors.kafka.lockstep.test_batch_decode.KafkaDecoder", Counted)
    return read


def test_exchanges_are_read_together(read_alone: list[int]) -> None:
    """The property above is worth what is not read one by one."""
    assert len(rows_of([heartbeats(begins=True)], [], TABLES, later=True)[0]["exchanges"]) == 400
    assert sum(read_alone) == 1 + 1  # the connection's first request, which is read alone, and its answer


def test_a_response_that_is_read_together_is_heard() -> None:
    """Of a connection without any response the oldest requests wait no longer when there are many."""
    said = list[Said]()
    for number in range(400):
        said.append(Said(CLIENT_TO_SERVER, struct.pack(">hhi", 12, 0, number) + b"\0\1a" + b"\0\0" * 4))
        if number < 100:
            said.append(Said(SERVER_TO_CLIENT, struct.pack(">ih", number, 0)))
    frames = frames_of(said, begins=False, cut=False)
    together, alone = (rows_of([frames], [200], TABLES, later) for later in (True, False))
    assert together == alone
    assert [row[6] for row in alone[0]["expert_infos"]] == []


def test_one_connection_holds_no_more_than_all_may() -> None:
    """Tiny frames of one feed after the other: what is left stays below the limit."""
    content = struct.pack(">hhi", 12, 0, 1) + b"\xff\xff"
    frames = frames_of([Said(CLIENT_TO_SERVER, content)] * 1000, begins=False, cut=False)
    decoder, sink = KafkaDecoder(Limits()), Sink(("exchanges",))
    sink.later = Later()
    most = 0
    for _ in range(40):
        decoder.feed(frames, sink)
        most = max(most, len(decoder._left.frames))
    assert 0 < most <= MAX_FRAMES


def test_what_others_have_left_makes_nobody_settle_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a loss frames come few at a time: read with none of others, they would be read in vain."""
    monkeypatch.setattr(later_module, "MAX_FRAMES", 100)
    frames = heartbeats(begins=False)
    sink, shared = Sink(("exchanges",)), Later()
    sink.later = shared
    some, few = KafkaDecoder(Limits()), KafkaDecoder(Limits())
    some.feed(frames[:99], sink)
    for start in range(0, 90, 10):
        few.feed(frames[start : start + 10], sink)
    assert shared.is_full
    assert len(few._left.frames) == 90
    few.feed(frames[90:110], sink)
    assert not few._left.frames


def test_where_a_request_starts_is_told_without_looking_at_what_was_left() -> None:
    """Only where a response starts depends on the requests that wait."""
    frames = heartbeats(begins=False)
    decoder, sink = KafkaDecoder(Limits()), Sink(("exchanges",))
    decoder.feed(frames[:20], sink)
    asked, answer = frames[60], frames[59]
    assert decoder.boundary(asked.direction, asked.data, asked.start, True)
    sink.later = Later()
    decoder.feed(frames[20:59], sink)
    assert decoder.boundary(asked.direction, asked.data, asked.start, True)
    assert decoder._ahead is None
    assert decoder.boundary(answer.direction, answer.data, answer.start, True)
    assert decoder._ahead is not None
    assert len(decoder._left.frames) == 39


def test_before_the_first_loss_answers_in_turn_tell_what_waits() -> None:
    """Where one is answered out of its turn, it depends on the bodies what became of the others."""
    for shuffled in (False, True):
        frames = heartbeats(begins=False)
        decoder, sink = KafkaDecoder(Limits()), Sink(("exchanges",))
        sink.later = Later()
        left = frames[:41]
        if shuffled:
            left[1], left[2], left[3] = left[2], left[3], left[1]
        decoder.feed(left, sink)
        answer = frames[41]
        assert decoder.boundary(answer.direction, answer.data, answer.start, True)
        assert decoder._outstanding.lost
        assert decoder._left.count == (0 if shuffled else 41)
        decoder.feed(frames[41:], sink)
        decoder.settle(sink)
        assert len(sink.rows("exchanges") or ()) == 400


def test_what_was_left_is_decoded_before_the_first_bytes_of_a_client() -> None:
    """They come behind an answer where a gap held them back; one that is far too early is none."""
    frames = heartbeats(begins=True)
    frames[1] = frames[1]._replace(ts_ns=frames[0].ts_ns - 5 * 10**9)
    told = []
    for later in (None, Later()):
        decoder, sink = KafkaDecoder(Limits()), Sink(("exchanges",))
        sink.later = later
        for fed in (frames[1:2], frames[:1], frames[2:]):
            decoder.feed(fed, sink)
        decoder.settle(sink)
        decoder.finish(sink)
        told.append(sink.rows("exchanges"))
    assert told[0] == told[1]


def test_nothing_of_the_sink_stays_behind() -> None:
    """A decoder goes to another process between two batches, what its rows go to does not."""
    frames = frames_of(talk(Random(1)), begins=True, cut=False)
    for fed in (frames[:1], frames[:5], frames):
        decoder, sink = KafkaDecoder(Limits()), Sink(TABLES)
        sink.later = Later()
        decoder.feed(fed, sink)
        decoder.settle(sink)
        sink.drain = lambda _: None  # cannot be pickled
        assert pickle.loads(pickle.dumps(decoder))

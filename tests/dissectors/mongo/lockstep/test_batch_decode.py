"""Frames of many connections that are read together give the rows of those that are read one by one, and leave the
same behind."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from bson.int64 import Int64

from tests.dissectors.mongo.lockstep.talks import Said, Talk, frames_of
from tests.support.left_frames import feed_in_batches, resting
from tests.support.mongo_messages import compressed, op_get_more, op_msg, op_reply
from tests.support.shares import RUNS_THE_REST
from wirewitness.dissectors.core.deferred import MAX_FRAMES, Later
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT, Frame, Row
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.mongo import decoder as mongo_decoder
from wirewitness.dissectors.mongo.decoder import MongoDecoder
from wirewitness.dissectors.mongo.lockstep import batch_decode
from wirewitness.dissectors.mongo.lockstep import batch_decode as together_module
from wirewitness.dissectors.mongo.rows import MONGO_ROWS

TABLES = (*CORE_ROWS, *MONGO_ROWS)
TRIES = 400 if RUNS_THE_REST else 40
# What is a matter of how, not of what.
_HOW = frozenset({"_left", "_rests", "_limits", "_options", "_allowance"})


def state(value: Any) -> Any:
    """Everything that an object holds, as plain values."""
    if hasattr(value, "__slots__") and not isinstance(value, tuple):
        return [(name, state(getattr(value, name))) for name in type(value).__slots__ if name not in _HOW]
    if hasattr(value, "__dict__"):
        return state(vars(value))
    if isinstance(value, dict):
        return [(key, state(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [state(one) for one in value]
    return repr(value)


def rows_of(
    talks: list[list[Frame]],
    sizes: list[int],
    tables: tuple[str, ...] = TABLES,
    limits: Limits | None = None,
    *,
    later: bool,
) -> tuple[list[dict[str, list[Row]]], list[Any]]:
    """The rows of each connection, and what was known behind each part; so many frames of each are fed at a time."""
    decoders = [MongoDecoder(limits or Limits()) for _ in talks]
    return feed_in_batches(decoders, talks, sizes, tables, later=later, known=state)


@pytest.fixture
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (mongo_decoder, "MANY_FRAMES", 1),
        (mongo_decoder, "LEAST_FRAMES", 1),
        (batch_decode, "LEAST", 1),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("_few_are_enough")
def test_rows_and_what_is_known_are_those_of_one_by_one() -> None:
    for seed in range(TRIES):
        random = Random(seed)
        talks = [frames_of(Talk(random), random) for _ in range(random.randrange(1, 6))]
        sizes = [random.randrange(1, 120) for _ in range(random.randrange(5))]
        tables = random.choice((TABLES, TABLES, ("exchanges",), ("messages", "exchanges"), ("mongo_commands",)))
        limits = random.choice((Limits(), Limits(), Limits(max_outstanding=4, max_unheard=2, max_early=3)))
        how = {"tables": tables, "limits": limits}
        with resting(seed):
            together, alone = (rows_of(talks, sizes, **how, later=later) for later in (True, False))
        for found, expected in zip(together[0], alone[0], strict=True):
            for table in tables:
                assert [repr(row) for row in found[table]] == [repr(row) for row in expected[table]], (seed, table)
        assert together[1] == alone[1], seed


def ordinary(exchanges: int, first: int = 1) -> list[Said]:
    """A connection of which everything can be read together: reads, writes, cursors and errors."""
    said: list[Said] = []
    for number in range(first, first + exchanges):
        kind = number % 5
        body: dict[str, Any] = {"find": "orders", "filter": {"name": "x" * (number % 7), "n": number}, "$db": "shop"}
        reply: dict[str, Any] = {
            "cursor": {"firstBatch": [{"n": number}], "id": Int64(5), "ns": "shop.orders"},
            "ok": 1.0,
        }
        sections: list[tuple[str, list[Any]]] = []
        if kind == 1:
            body, reply = {"insert": "orders", "$db": "shop"}, {"n": 1, "ok": 1.0}
            sections = [("documents", [{"_id": number}])]
        elif kind == 2:
            body, reply = {"update": "orders", "$db": "shop"}, {"n": 1, "nModified": 1, "ok": 1.0}
            sections = [("updates", [{"q": {"_id": number}, "u": {"$set": {"a": number}}}])]
        elif kind == 3:
            body = {"getMore": Int64(5), "collection": "orders", "$db": "shop"}
            reply = {"cursor": {"nextBatch": [{}] * 3, "id": Int64(0), "ns": "shop.orders"}, "ok": 1.0}
        elif kind == 4:
            body, reply = {"drop": "x", "$db": "shop"}, {"ok": 0.0, "errmsg": "ns not found", "code": 26}
        said.append(Said(CLIENT_TO_SERVER, op_msg(body, number, sequences=sections)))
        said.append(Said(SERVER_TO_CLIENT, op_msg(reply, 1 << 20 | number, number)))
    return said


def frames(said: list[Said]) -> list[Frame]:
    """As they are fed."""
    talk = Talk(Random(0))
    talk.said, talk.begins = said, True
    return frames_of(talk, Random(1), cut=0)


class Counted(MongoDecoder):
    """Counts the frames that were read one by one."""

    alone = 0

    def one_by_one(self, frames, out) -> None:  # type: ignore[no-untyped-def]
        type(self).alone += len(frames)
        super().one_by_one(frames, out)


@pytest.fixture
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "alone", 0)
    monkeypatch.setattr("tests.dissectors.mongo.lockstep.test_batch_decode.MongoDecoder", Counted)


@pytest.mark.usefixtures("_counted")
def test_nothing_of_the_ordinary_course_is_read_one_by_one() -> None:
    """The property above is worth what is not read one by one."""
    (rows,), _ = rows_of([frames(ordinary(400))], [], later=True)
    assert len(rows["mongo_commands"]) == 400
    assert len(rows["messages"]) == 800
    assert Counted.alone == 0


@pytest.mark.usefixtures("_counted")
@pytest.mark.parametrize(
    ("change", "alone"),
    [
        (lambda said: [*said[:401], said[400], *said[401:]], 3),  # a request twice, and its reply
        (lambda said: [*said[:402], said[401], *said[402:]], 3),  # a reply twice, and its request
        (lambda said: [*said[:400], said[401], said[400], *said[402:]], 2),  # a reply before its request
        (lambda said: [*said[:400], *said[401:]], 1),  # no request
        (lambda said: [*said[:401], *said[402:]], 1),  # no reply
        (lambda said: [*said[:400], Said(SERVER_TO_CLIENT, b"\x0f\0\0\0" + bytes(11)), *said[400:]], 1),
    ],
    ids=["request twice", "reply twice", "reply first", "no request", "no reply", "no header"],
)
def test_an_exchange_in_doubt_is_all_that_is_read_by_itself(
    change: Callable[[list[Said]], list[Said]], alone: int
) -> None:
    of_all = frames(change(ordinary(400)))
    together = rows_of([of_all], [], later=True)
    assert Counted.alone == alone
    assert together == rows_of([of_all], [], later=False)


@pytest.mark.usefixtures("_counted")
def test_what_waits_from_a_batch_before() -> None:
    """A request that waits, and a reply that came before its request: their ids come again in the next batch."""
    said = ordinary(800)
    of_all = frames([*said[:401], said[801], *said[402:800], *said[800:802], *said[400:402], *said[802:]])
    together = rows_of([of_all], [800], later=True)
    assert Counted.alone < 10
    assert together == rows_of([of_all], [800], later=False)


def test_a_boundary_is_judged_without_what_was_left() -> None:
    talk, sink = MongoDecoder(Limits()), Sink(TABLES)
    sink.later = Later()
    talk.feed(frames([Said(CLIENT_TO_SERVER, op_get_more("d.a", 5, 0, 7))]), sink)
    whole = op_msg({"ok": 1.0}, 9, 8)
    assert talk.boundary(SERVER_TO_CLIENT, whole, 0, True) is True
    assert talk.boundary(CLIENT_TO_SERVER, op_msg({"ping": 1, "$db": "a"}, 9), 0, False) is True
    assert talk.boundary(SERVER_TO_CLIENT, op_reply([], 8, cursor_id=0), 1, False) is False
    assert sink.later.frames == 1
    assert sink.rows("messages") == []
    assert talk.boundary(SERVER_TO_CLIENT, op_reply([], 7, cursor_id=0), 0, True) is True
    assert sink.rows("messages")


def greeting(number: int, app: str) -> list[Said]:
    """A hello and its reply."""
    hello = {"hello": 1, "client": {"application": {"name": app}}, "$db": "admin"}
    answer = {"isWritablePrimary": True, "setName": "rs0", "ok": 1.0}
    return [Said(CLIENT_TO_SERVER, op_msg(hello, number)), Said(SERVER_TO_CLIENT, op_msg(answer, 1, number))]


@pytest.mark.usefixtures("_counted")
def test_a_hello_between_two_commands_is_all_that_is_read_by_itself() -> None:
    said = [*ordinary(200), *greeting(5000, "shop"), *ordinary(200, 1000)]
    (rows,), _ = rows_of([frames(said)], [], later=True)
    place = MONGO_ROWS["mongo_commands"].names.index
    known = [(row[place("app_name")], row[place("set_name")]) for row in rows["mongo_commands"]]
    assert known == [(None, None)] * 200 + [("shop", "rs0")] * 201
    assert Counted.alone == 2


@pytest.mark.usefixtures("_counted")
def test_many_hellos_are_read_together() -> None:
    said: list[Said] = []
    for number in range(1, 102):
        said += (*greeting(number, f"app{number % 3}"), *ordinary(1, 100 + 5 * number))
    (rows,), (known,) = rows_of([frames(said)], [], later=True)
    place = MONGO_ROWS["mongo_commands"].names.index
    assert [row[place("app_name")] for row in rows["mongo_commands"]] == [
        f"app{number % 3}" for number in range(1, 102) for _ in range(2)
    ]
    assert Counted.alone == 0
    assert "'app2'" in str(known)


@pytest.mark.usefixtures("_counted")
def test_few_messages_are_read_one_by_one() -> None:
    """As in live traffic: numpy costs more than it saves there."""
    few = mongo_decoder.LEAST_FRAMES // 2 - 1
    (rows,), _ = rows_of([frames(ordinary(4 * few))], [2 * few, 2 * few, 2 * few], later=True)
    assert len(rows["mongo_commands"]) == 4 * few
    assert Counted.alone == 8 * few


def test_a_connection_that_is_never_plain_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    together = together_module.together

    def counted(lefts, limits, out):  # type: ignore[no-untyped-def]
        tried.append(len(lefts))
        return together(lefts, limits, out)

    monkeypatch.setattr(together_module, "together", counted)
    said = [Said(one.direction, compressed(one.data, "zlib")) for one in ordinary(10_000)]
    rows_of([frames(said)], [1000] * 18, later=True)
    assert len(tried) == 2


def test_one_connection_holds_no_more_than_all_may() -> None:
    """Small frames of one feed after the other: what is left stays below the limit."""
    decoder, sink = MongoDecoder(Limits()), Sink(("exchanges",))
    sink.later = Later()
    most = 0
    for number in range(30):
        decoder.feed(frames(ordinary(500, 1 + 500 * number)), sink)
        most = max(most, len(decoder._left.frames))
    assert 0 < most <= MAX_FRAMES


def test_documents_that_are_shown_are_read_one_by_one() -> None:
    decoder, sink = MongoDecoder(Limits(), DecodeOptions(payload=True)), Sink(TABLES)
    sink.later = Later()
    decoder.feed(frames(ordinary(300)), sink)
    assert not decoder._left.frames
    assert len(sink.rows("mongo_commands") or ()) == 300


def test_nothing_of_the_sink_stays_behind() -> None:
    """A decoder goes to another process between two batches, what its rows go to does not."""
    found = frames(ordinary(300))
    for fed in (found[:1], found[:50], found):
        decoder, sink = MongoDecoder(Limits()), Sink(TABLES)
        sink.later = Later()
        decoder.feed(fed, sink)
        decoder.settle(sink)
        sink.drain = lambda _: None  # cannot be pickled
        assert pickle.loads(pickle.dumps(decoder))

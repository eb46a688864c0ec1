"""Conversations of MongoDB for the properties that every protocol has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bson.int64 import Int64
from hypothesis import strategies as st

from tests.dissectors.properties import Case, Turn
from tests.support.mongo_messages import (
    CHECKSUM,
    EXHAUST_ALLOWED,
    MORE_TO_COME,
    compressed,
    op_get_more,
    op_insert,
    op_msg,
    op_query,
    op_reply,
)
from wirewitness.dissectors.core.inspect import Asked
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.mongo.dissector import MONGO

_words = st.text(min_size=0, max_size=20)
_values = st.one_of(st.integers(-(2**31), 2**31), _words, st.booleans(), st.none(), st.floats(), st.binary(max_size=9))
_names = _words.filter(lambda word: "\0" not in word)
_documents = st.dictionaries(_names, st.one_of(_values, st.lists(_values, max_size=3)), max_size=4)
Document = dict[str, Any]
# A message by its id; of a reply by its id and that of its request.
Request, Reply = Callable[[int], bytes], Callable[[int, int], bytes]


def _find(filter_: Document) -> Request:
    return lambda number: op_msg({"find": "orders", "filter": filter_, "$db": "shop"}, number)


def _batch(documents: list[Document]) -> Reply:
    body = {"cursor": {"firstBatch": documents, "id": Int64(0), "ns": "shop.orders"}, "ok": 1.0}
    return lambda number, answers: op_msg(body, number, answers)


def _inserted(documents: list[Document]) -> Request:
    return lambda number: op_msg({"insert": "a", "$db": "d"}, number, sequences=[("documents", documents)])


_requests: st.SearchStrategy[Request] = st.one_of(
    _documents.map(_find),
    _documents.map(lambda d: lambda number: op_msg({"ping": 1, "$db": "a", "x": d}, number, flags=CHECKSUM)),
    st.lists(_documents, max_size=3).map(_inserted),
    st.tuples(_documents.map(_find), st.sampled_from(["noop", "snappy", "zlib", "zstd"])).map(
        lambda parts: lambda number: compressed(parts[0](number), parts[1])
    ),
    _documents.map(lambda d: lambda number: op_query("shop.orders", d, number)),
    st.just(lambda number: op_msg({"hello": 1, "$db": "admin"}, number, flags=EXHAUST_ALLOWED)),
    _documents.map(lambda d: lambda number: op_insert("shop.orders", [d], number)),
    st.just(lambda number: op_get_more("shop.orders", 5, 0, number)),
)
_replies: st.SearchStrategy[Reply | None] = st.one_of(
    st.lists(_documents, max_size=3).map(_batch),
    st.just(lambda number, answers: op_msg({"ok": 0.0, "code": 13}, number, answers)),
    st.lists(_documents, max_size=2).map(
        lambda documents: lambda number, answers: op_reply(documents, answers, number)
    ),
    st.just(lambda number, answers: op_msg({"ok": 1.0}, number, answers, flags=MORE_TO_COME)),
    st.none(),
)


def _turns(steps: list[tuple[list[Request], Reply | None]]) -> list[Turn]:
    """One or two requests in a packet, then the answer to the last one, if any."""
    turns: list[Turn] = []
    number = 0
    for requests, reply in steps:
        sent = b""
        for request in requests:
            number += 1
            sent += request(number)
        turns.append(Turn(CLIENT_TO_SERVER, sent))
        if reply is not None:
            turns.append(Turn(SERVER_TO_CLIENT, reply(10_000 + number, number)))
    return turns


def _long() -> Iterator[Turn]:
    for number in range(1, 301):
        yield Turn(CLIENT_TO_SERVER, _find({"n": number, "text": "x" * (number % 50)})(number))
        yield Turn(SERVER_TO_CLIENT, _batch([{"n": i} for i in range(number % 9)])(1000 + number, number))


MONGO_CASE = Case(
    MONGO,
    st.lists(st.tuples(st.lists(_requests, min_size=1, max_size=2), _replies), min_size=1, max_size=5).map(_turns),
    list(_long()),
    (Asked("request", "find", "OP_MSG"), Asked("response", "saslStart", "OP_MSG"), Asked(None, None, None)),
)

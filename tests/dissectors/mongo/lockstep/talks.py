"""Made-up MongoDB connections, as they should be and broken, and their frames."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import bson
from bson.int64 import Int64

from tests.support.mongo_messages import (
    CHECKSUM,
    EXHAUST_ALLOWED,
    MORE_TO_COME,
    compressed,
    message,
    op_get_more,
    op_insert,
    op_msg,
    op_query,
    op_reply,
)
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame

Document = dict[str, Any]
_Maker = Callable[["Values", Random], Any]
Sections = list[tuple[str, list[Any]]]

_WORDS = ("", "a", "ab", "$a", "orders", "köln", "x" * 40)
_REPLIES_FROM = 1 << 30


class Said(NamedTuple):
    """One message: who sent it, and its bytes."""

    direction: int
    data: bytes


class Values:
    """Random values and documents that people store and ask for."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def number(self) -> Any:
        return self._random.choice((0, 1, -1, 7, Int64(1 << 40), 2.0, 0.5, float("nan"), 1e300, True, False))

    def leaf(self) -> Any:
        return self._random.choice(_LEAVES)(self, self._random)

    def any(self, depth: int = 2) -> Any:
        kind = self._random.randrange(6)
        if depth and kind == 0:
            return self.document(depth - 1)
        if depth and kind == 1:
            return [self.any(depth - 1) for _ in range(self._random.randrange(4))]
        return self.leaf()

    def document(self, depth: int = 2) -> Document:
        keys = ("_id", "a", "b", "c.d", "name", "$x")
        return {self._random.choice(keys): self.any(depth) for _ in range(self._random.randrange(4))}

    def filter(self) -> Document:
        found: Document = self._random.choice(_FILTERS)(self, self._random)
        return found

    def update(self) -> Any:
        random, leaf = self._random, self.leaf
        return random.choice(
            (
                {"$set": {random.choice("ab"): leaf()}, "$inc": {"n": self.number()}},
                {"$push": {"a": {"$each": [leaf()], "$sort": {"b": random.choice((1, -1))}}}},
                {"a": leaf(), "b": leaf()},
                {},
                [{"$set": {"a": random.choice(("$b", "b"))}}],
            )
        )

    def pipeline(self) -> list[Document]:
        random = self._random
        stages = (
            {"$match": self.filter()},
            {"$match": {"a": self.leaf()}},
            {"$group": {"_id": random.choice(("$a", "$b")), "n": {"$sum": self.number()}}},
            {"$sort": {"a": random.choice((1, -1))}},
            {"$project": {"a": self.number(), "b": "$" + random.choice(_WORDS)}},
            {"$limit": random.randrange(3)},
            {"$changeStream": {"fullDocument": random.choice(_WORDS)}},
            {"$out": random.choice(_WORDS)},
        )
        return [random.choice(stages) for _ in range(random.randrange(1, 4))]

    def documents(self) -> list[Document]:
        return [self.document() for _ in range(self._random.choice((0, 1, 1, 2, 9)))]

    def statements(self, name: str) -> list[Document]:
        random = self._random
        found = []
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            one: Document = {"q": self.filter()}
            if name == "update":
                one |= {"u": self.update(), "multi": random.random() < 0.5, "upsert": random.random() < 0.5}
            else:
                one["limit"] = random.choice((0, 1, Int64(1)))
            if random.random() < 0.2:
                one["collation"] = {"locale": random.choice(_WORDS)}
            found.append(one)
        return found


_LEAVES: tuple[_Maker, ...] = (
    lambda values, random: values.number(),
    lambda values, random: random.choice(_WORDS),
    lambda values, random: None,
    lambda values, random: bson.ObjectId(random.randbytes(12)),
    lambda values, random: random.randbytes(random.randrange(4)),
    lambda values, random: bson.Regex("^a", random.choice(("", "i"))),
    lambda values, random: bson.Timestamp(1, random.randrange(3)),
    lambda values, random: bson.Decimal128("1"),
    lambda values, random: bson.Code("x", random.choice((None, {"a": 1}))),
    lambda values, random: bson.MinKey(),
    lambda values, random: bson.Binary(random.randbytes(16), 4),
)
_FILTERS: tuple[_Maker, ...] = (
    lambda values, random: {},
    lambda values, random: {"_id": values.leaf()},
    lambda values, random: {"_id": values.leaf(), "a": values.leaf()},
    lambda values, random: {"a": {"$gt": values.number(), "$lt": values.number()}},
    lambda values, random: {"a": {"$in": [values.leaf() for _ in range(random.randrange(4))]}},
    lambda values, random: {"$or": [{"a": values.leaf()}, {"b": {"$eq": values.leaf()}}]},
    lambda values, random: {"$expr": {"$gt": ["$" + random.choice("ab"), values.number()]}},
    lambda values, random: {"a": {"$elemMatch": {"b": values.leaf()}}, "b": values.leaf()},
    lambda values, random: values.document(),
)


class Talk:
    """A connection that goes on for a while. odd: the share of exchanges that are not as usual."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._values = Values(random)
        self.odd = random.choice((0.0, 0.0, 0.03, 0.2))
        self._hellos = random.choice((0.0, 0.02, 0.1))
        self.begins = random.random() < 0.7
        self.said: list[Said] = []
        self._number = random.choice((0, 1 << 31)) - 5
        self._sessions = [{"id": bson.Binary(random.randbytes(16), 4)} for _ in range(2)]
        self._due: list[bytes] = []
        if self.begins:
            self._exchange(self._hello())
        for _ in range(random.randrange(5, 120)):
            self._exchange(self._hello() if random.random() < self._hellos else self._asked())
        for reply in self._due:
            self.said.append(Said(SERVER_TO_CLIENT, reply))

    def _exchange(self, asked: tuple[Document, Sections]) -> None:
        random = self._random
        self._number += 1
        number = (self._number + (1 << 31)) % (1 << 32) - (1 << 31)
        body, sections = asked
        request = op_msg(body, number, sequences=sections)
        reply = op_msg(self._reply(next(iter(body), "")), _REPLIES_FROM + len(self.said), number)
        if random.random() < self.odd:
            self._oddly(body, sections, number, request, reply)
            return
        self.said.append(Said(CLIENT_TO_SERVER, request))
        if random.random() < 0.9:
            self.said.append(Said(SERVER_TO_CLIENT, reply))
        else:
            self._due.insert(random.randrange(len(self._due) + 1), reply)
        if self._due and random.random() < 0.4:
            self.said.append(Said(SERVER_TO_CLIENT, self._due.pop()))

    def _hello(self) -> tuple[Document, Sections]:
        random = self._random
        body: Document = {random.choice(("hello", "isMaster", "ismaster")): 1, "$db": "admin"}
        if random.random() < 0.6:
            body["client"] = {
                "application": {"name": random.choice(_WORDS)},
                "driver": {"name": "PyMongo", "version": "4|"},
                "os": {"type": "Linux"},
            }
        if random.random() < 0.3:
            body["compression"] = ["zstd"]
        if random.random() < 0.2:
            body |= {"topologyVersion": {"counter": 1}, "maxAwaitTimeMS": 1000}
        return body, []

    def _asked(self) -> tuple[Document, Sections]:
        random, values = self._random, self._values
        name = random.choice(tuple(_COMMANDS))
        sections: Sections = []
        body = {name: random.choice(("orders", "users", "orders", 1)), **_COMMANDS[name](values, random)}
        if name in _STATEMENTS:
            key = _STATEMENTS[name]
            sent = values.documents() if name == "insert" else values.statements(name)
            if random.random() < 0.7:
                sections = [(key, sent)]
            else:
                body[key] = sent
        body |= dict(self._options())
        if random.random() < 0.97:
            body["$db"] = random.choice(("shop", "shop", "local", 7))
        return body, sections

    def _options(self) -> list[tuple[str, Any]]:
        random, values = self._random, self._values
        options = (
            ("lsid", random.choice(self._sessions)),
            ("lsid", {"id": bson.Binary(random.randbytes(16), 4), "uid": b"x"}),
            ("txnNumber", Int64(random.randrange(9))),
            ("autocommit", values.number()),
            ("$readPreference", {"mode": random.choice(_WORDS)}),
            ("readConcern", {"level": "majority"}),
            ("writeConcern", random.choice(({"w": 1}, {"w": 0}, {"w": "majority"}, values.document()))),
            ("maxTimeMS", values.number()),
            ("maxAwaitTimeMS", 500),
            ("limit", values.number()),
            ("comment", values.any()),
            ("noCursorTimeout", values.number()),
            ("tailable", True),
        )
        return random.sample(options, random.choice((0, 1, 1, 2, 4)))

    def _reply(self, name: str) -> Document:
        random, values = self._random, self._values
        fine: Document = {"ok": random.choice((1.0, 1.0, 1.0, 1, True, Int64(1)))}
        if name in ("hello", "isMaster", "ismaster"):
            return {
                "isWritablePrimary": random.random() < 0.5,
                **random.choice(({}, {"setName": random.choice(_WORDS), "secondary": True}, {"msg": "isdbgrid"})),
                "maxWireVersion": random.choice((17, 21)),
                **random.choice(({}, {"compression": ["zstd", "zlib"]})),
                "localTime": Int64(5),
                **fine,
            }
        failed = {"ok": 0.0, "errmsg": random.choice((*_WORDS, _DUPLICATE)), "code": random.choice((11000, 50, 0, "x"))}
        return random.choice(
            (
                lambda: (
                    fine
                    | {"cursor": {"firstBatch": values.documents(), "id": Int64(random.choice((0, 5))), "ns": "a.b"}}
                ),
                lambda: fine | {"cursor": {"nextBatch": [{}] * random.randrange(40), "id": Int64(0), "ns": "a.b"}},
                lambda: {
                    "cursor": {"id": 0.5, "firstBatch": random.choice(([values.any()], 5)), "extra": values.any()},
                    **fine,
                },
                lambda: {"cursor": random.choice(([], {}, 5, [1])), **fine},
                lambda: {"n": random.choice((0, 1, 2.0)), "nModified": 1, **fine},
                lambda: {"n": 1, "upserted": random.choice(([{"index": 0, "_id": 1}], [], 5)), **fine},
                lambda: {
                    "lastErrorObject": random.choice(({"n": 1}, {}, 5)),
                    "value": random.choice((None, {"a": 1}, {"_id": random.randrange(9)}, {"a": 1, "_id": "b"})),
                    **fine,
                },
                lambda: {"values": random.choice(([1, 2, 3], ["a"] * 12, 5)), **fine},
                lambda: failed,
                lambda: failed | {"codeName": random.choice(("Bad", 7)), "errorLabels": ["TransientTransactionError"]},
                lambda: {"n": 0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": _DUPLICATE}], **fine},
                lambda: {"writeErrors": [{"code": random.choice((1, 2, "x"))}], "nErrors": 3, "errmsg": "x", **fine},
                lambda: {"writeConcernError": {"code": 64, "codeName": "WriteConcernFailed"}, **fine},
                lambda: fine,
                lambda: {"notOk": 1},
            )
        )()

    def _oddly(self, body: Document, sections: Sections, number: int, request: bytes, reply: bytes) -> None:
        random = self._random
        at = random.randrange(len(request))
        answered = random.randrange(len(reply))
        asked = Said(CLIENT_TO_SERVER, request)
        answer = Said(SERVER_TO_CLIENT, reply)
        flags = random.choice((CHECKSUM, MORE_TO_COME, EXHAUST_ALLOWED, 1 << 5))
        other = op_msg({"ok": 1.0, "n": 5}, 5, number, flags=flags)
        self.said += random.choice(
            (
                lambda: [asked],
                lambda: [answer],
                lambda: [answer, asked],
                lambda: [asked, asked, answer],
                lambda: [asked, answer, answer],
                lambda: [Said(CLIENT_TO_SERVER, _changed(request, at, random.randrange(256))), answer],
                lambda: [asked, Said(SERVER_TO_CLIENT, _changed(reply, answered, random.randrange(256)))],
                lambda: [Said(CLIENT_TO_SERVER, _shortened(request, at)), answer],
                lambda: [asked, Said(SERVER_TO_CLIENT, _shortened(reply, answered))],
                lambda: [Said(CLIENT_TO_SERVER, op_msg(body, number, flags=flags, sequences=sections)), answer],
                lambda: [asked, Said(SERVER_TO_CLIENT, other)],
                lambda: [asked, Said(SERVER_TO_CLIENT, other), Said(SERVER_TO_CLIENT, op_msg({"ok": 1.0}, 6, 5))],
                lambda: [Said(CLIENT_TO_SERVER, compressed(request, "zlib")), answer],
                lambda: [asked, Said(SERVER_TO_CLIENT, compressed(reply, "zlib"))],
                lambda: [
                    Said(CLIENT_TO_SERVER, op_msg(body, number, sequences=sections, sequences_first=True)),
                    answer,
                ],
                lambda: [Said(CLIENT_TO_SERVER, op_query("admin.$cmd", {"isMaster": 1}, number)), answer],
                lambda: [
                    Said(CLIENT_TO_SERVER, op_query("shop.orders", body, number)),
                    Said(1, op_reply([body], number, 5)),
                ],
                lambda: [Said(CLIENT_TO_SERVER, op_get_more("shop.orders", 5, 0, number)), answer],
                lambda: [Said(CLIENT_TO_SERVER, op_insert("shop.orders", [body], number))],
                lambda: [Said(CLIENT_TO_SERVER, op_msg({"saslStart": 1, "mechanism": "PLAIN"}, number)), answer],
                lambda: [Said(CLIENT_TO_SERVER, op_msg({}, number)), answer],
                lambda: [Said(CLIENT_TO_SERVER, _changed(op_msg({"hello": "x"}, number), 32, 99)), answer],
                lambda: [Said(CLIENT_TO_SERVER, message(2013, b"", number)), answer],
                lambda: [Said(random.randrange(2), b"\x08\0\0\0abcd")],
                lambda: [Said(CLIENT_TO_SERVER, op_msg(_twice(body), number)), answer],
                lambda: [asked, Said(SERVER_TO_CLIENT, op_msg(_twice({"ok": 0.0, "code": 5}), 5, number))],
            )
        )()


_DUPLICATE = 'E11000 duplicate key error collection: a.b index: c_1 dup key: { c: "secret" }'
_STATEMENTS = {"insert": "documents", "update": "updates", "delete": "deletes"}
_COMMANDS: dict[str, Callable[[Values, Random], Document]] = {
    "find": lambda values, random: {
        "filter": values.filter(),
        **random.choice(({}, {"sort": {"a": random.choice((1, -1))}}, {"projection": {"a": 1}, "batchSize": 5})),
    },
    "getMore": lambda values, random: {"getMore": Int64(random.randrange(9)), "collection": random.choice(_WORDS)},
    "aggregate": lambda values, random: {"pipeline": values.pipeline(), "cursor": {"batchSize": values.number()}},
    "insert": lambda values, random: {"ordered": True},
    "update": lambda values, random: {},
    "delete": lambda values, random: {"ordered": values.number()},
    "count": lambda values, random: {"query": values.filter()},
    "distinct": lambda values, random: {"key": random.choice(_WORDS), "query": values.filter()},
    "findAndModify": lambda values, random: {"query": values.filter(), "update": values.update(), "new": True},
    "killCursors": lambda values, random: {"cursors": [Int64(random.randrange(9))]},
    "explain": lambda values, random: {"explain": {"find": "orders", "filter": values.filter()}},
    "bulkWrite": lambda values, random: {"ops": [{"insert": 0, "document": {"_id": 1}}]},
    "renameCollection": lambda values, random: {"to": "shop.b"},
    "frob\nnicate": lambda values, random: {"": values.any()},
    "limit": lambda values, random: values.document(),
    "commitTransaction": lambda values, random: {},
}


def _changed(data: bytes, at: int, octet: int) -> bytes:
    """One byte is another one; the length stays what it is."""
    return data[:4] + (data[:at] + bytes([octet]) + data[at + 1 :])[4:]


def _shortened(data: bytes, at: int) -> bytes:
    """Some bytes are missing, and the header knows."""
    left = data[:16] + data[min(at + 16, len(data)) :]
    return len(left).to_bytes(4, "little") + left[4:]


def _twice(body: Document) -> bytes:
    """A document with every key twice."""
    inside = bson.encode(body)[4:-1]
    return (len(inside) * 2 + 5).to_bytes(4, "little") + inside + inside + b"\0"


def frames_of(talk: Talk, random: Random, cut: float = 0.1) -> list[Frame]:
    """The frames as they are fed: some of a side share their bytes and their packet; the last one may be cut."""
    offsets = [0 if talk.begins else 1000] * 2
    found: list[Frame] = []
    said, number, ts_ns = talk.said, 0, 10**18
    while said:
        together = next((n for n, one in enumerate(said) if one.direction != said[0].direction), len(said))
        together = min(together, random.randrange(1, 6))
        now, said = said[:together], said[together:]
        data = b"##" + b"".join(one.data for one in now) + b"##"
        number += random.randrange(1, 4)
        ts_ns += random.choice((0, 1000, 123_457, 10**9))
        at = 2
        for direction, content in now:
            end = at + len(content)
            place = (offsets[direction], number - random.randrange(2), number, ts_ns)
            found.append(Frame(number, direction, data, at, end, *place, True))
            offsets[direction] += len(content)
            at = end
    if random.random() < cut:
        last = found[-1]
        found[-1] = last._replace(end=last.start + 1 + (last.size - 1) // 2, complete=last.size < 2)
    return found

"""MongoDB decoders made up of BSON, some elements of which are broken.

In: dice. Out: documents, messages of every opcode, pieces of a decoder. Documents are packed by hand, so that any
length, type and depth can be wrong.
"""

from __future__ import annotations

import struct
from random import Random

from tests.fuzz.mutate import EDGES, broken
from tests.fuzz.pieces import FRAMED, FROM_CLIENT, Piece
from tests.support import mongo_messages as mongo
from wirewitness.dissectors.core.inspect import Asked

COMMANDS = [
    "find",
    "insert",
    "update",
    "delete",
    "getMore",
    "aggregate",
    "hello",
    "isMaster",
    "saslStart",
    "saslContinue",
    "killCursors",
    "commitTransaction",
    "abortTransaction",
    "findAndModify",
    "count",
    "distinct",
    "endSessions",
    "bulkWrite",
    "createIndexes",
    "ping",
    "explain",
    "listDatabases",
    "mapReduce",
]
KEYS = [
    "ok",
    "cursor",
    "id",
    "ns",
    "firstBatch",
    "nextBatch",
    "$db",
    "lsid",
    "txnNumber",
    "filter",
    "documents",
    "writeErrors",
    "code",
    "codeName",
    "errmsg",
    "n",
    "errorLabels",
    "autocommit",
    "startTransaction",
    "readConcern",
    "compression",
    "client",
    "$or",
    "$in",
    "a.b",
    "0",
    "é",
    "password",
    "q",
    "u",
    "updates",
    "ops",
    "nsInfo",
    "pipeline",
    "maxTimeMS",
    "",
]
TEXTS = [
    "",
    "shop",
    "orders",
    "mongodb://u:p@h/d",
    'E11000 duplicate key error { a: "x" }',
    "x" * 300,
    "é\u202e",
    "snappy",
]
MAX_DEPTH = 5
_VARIABLE = [
    0x01,
    0x02,
    0x03,
    0x04,
    0x05,
    0x08,
    0x09,
    0x0B,
    0x0C,
    0x0D,
    0x0E,
    0x0F,
    0x10,
    0x11,
    0x12,
    0x13,
    0x06,
    0x07,
    0x0A,
    0xFF,
    0x7F,
]
ASKED = [
    Asked(role, name, opcode)
    for name in [*COMMANDS, None]
    for role in ("request", "response", None)
    for opcode in ("OP_MSG", "OP_QUERY", "OP_COMPRESSED")
]


def document(dice: Random, depth: int = 0, first: tuple[str, bytes] | None = None) -> bytes:
    """A document; first: name and typed value of its first element."""
    elements = b"" if first is None else first[1][:1] + first[0].encode() + b"\0" + first[1][1:]
    for _ in range(dice.choice([0, 1, 2, 3, 6])):
        kind, value = _value(dice, depth)
        name = dice.choice(KEYS).encode()
        elements += bytes([kind]) + (broken(name, dice) if dice.random() < 0.02 else name) + b"\0" + value
    size = len(elements) + 5
    if dice.random() < 0.02:
        size = dice.choice([*EDGES, size + 1, size - 1])
    return struct.pack("<I", size % (1 << 32)) + elements + (b"\0" if dice.random() > 0.01 else b"\1")


def _value(dice: Random, depth: int) -> tuple[int, bytes]:
    """Type and value of an element; the type is wrong now and then."""
    kind = dice.choice(_VARIABLE if depth < MAX_DEPTH else _VARIABLE[4:])
    match kind:
        case 0x01:
            value = struct.pack("<d", dice.choice([0.0, 1.0, -1.5, float("nan"), float("inf"), 1e300]))
        case 0x02 | 0x0D | 0x0E:
            value = _text(dice)
        case 0x03 | 0x04:
            value = document(dice, depth + 1)
        case 0x05:
            data = dice.randbytes(dice.choice([0, 4, 16]))
            value = _size(len(data), dice) + bytes([dice.choice([0, 2, 3, 4, 6, 9, 0x80])]) + data
        case 0x07:
            value = dice.randbytes(12)
        case 0x08:
            value = bytes([dice.choice([0, 1, 1, 2])])
        case 0x0B:
            value = b"^a\0i\0"
        case 0x0C:
            value = _text(dice) + dice.randbytes(12)
        case 0x0F:
            inner = _text(dice) + document(dice, depth + 1)
            value = _size(len(inner) + 4, dice) + inner
        case 0x10:
            value = struct.pack("<I", dice.choice([*EDGES, 0, 1]) % (1 << 32))
        case 0x09 | 0x11 | 0x12:
            value = struct.pack("<Q", dice.choice([*EDGES, 0, 1, 5]) % (1 << 64))
        case 0x13:
            value = dice.randbytes(16)
        case _:
            value = b""
    return (dice.randrange(256) if dice.random() < 0.01 else kind), value


def _text(dice: Random) -> bytes:
    raw = dice.choice(TEXTS).encode()
    raw = broken(raw, dice) if dice.random() < 0.03 else raw
    return _size(len(raw) + 1, dice) + raw + b"\0"


def _size(size: int, dice: Random) -> bytes:
    return struct.pack("<I", (dice.choice(EDGES) if dice.random() < 0.02 else size) % (1 << 32))


def _number(value: float) -> bytes:
    return b"\x01" + struct.pack("<d", value)


def _string(value: str) -> bytes:
    raw = value.encode() + b"\0"
    return b"\x02" + struct.pack("<i", len(raw)) + raw


def request(dice: Random, number: int) -> bytes:
    """A request of any opcode, compressed or not."""
    name = dice.choice(COMMANDS)
    command = document(
        dice, first=(name, dice.choice([_string("orders"), _number(1.0), b"\x10\1\0\0\0", b"\x03" + document(dice, 1)]))
    )
    some = [document(dice, 2) for _ in range(dice.choice([0, 1, 3]))]
    match dice.randrange(10):
        case 0:
            made = mongo.op_query(
                dice.choice(["shop.$cmd", "shop.orders", "", "admin.$cmd.sys.inprog"]), command, number
            )
        case 1:
            made = mongo.op_insert("shop.orders", some, number)
        case 2:
            made = dice.choice(
                [
                    mongo.op_get_more("shop.orders", dice.choice([0, 5]), 0, number),
                    mongo.op_kill_cursors([5, 7], number),
                    mongo.op_update("shop.orders", command, document(dice), number),
                    mongo.op_delete("shop.orders", command, number),
                ]
            )
        case _:
            sequences = (
                [(dice.choice(["documents", "updates", "ops", ""]), some)] if some and dice.random() < 0.5 else []
            )
            flags = dice.choice([0, 0, 0, 1, 2, 1 << 16, 0xFFFF, 3])
            made = mongo.op_msg(command, number, flags=flags, sequences=sequences, sequences_first=dice.random() < 0.3)
    return _compressed(made, dice)


def reply(dice: Random, number: int, to: int) -> bytes:
    """An answer."""
    body = document(
        dice, first=dice.choice([("ok", _number(1.0)), ("ok", _number(0.0)), ("cursor", b"\x03" + document(dice, 1))])
    )
    if dice.random() < 0.2:
        return _compressed(mongo.op_reply([body], to, number, flags=dice.choice([0, 1, 2, 8])), dice)
    return _compressed(mongo.op_msg(body, number, to, flags=dice.choice([0, 0, 1, 2])), dice)


def _compressed(made: bytes, dice: Random) -> bytes:
    if dice.random() < 0.7:
        return made
    stated = dice.choice([None, None, None, 0, 1 << 20, 2**31 - 1, -1])
    whole = mongo.compressed(made, dice.choice(list(mongo.COMPRESSOR_IDS)), stated=stated)
    return whole[:25] + broken(whole[25:], dice) if dice.random() < 0.2 else whole


def talk(dice: Random) -> list[Piece]:
    """Requests and answers; the length in front of each is written anew when it is framed."""
    pieces = []
    for _ in range(dice.choice([1, 1, 2, 4])):
        number = dice.choice([1, 2, 3, 0, 2**31 - 1])
        asked = Piece(FROM_CLIENT | FRAMED, request(dice, number)[4:])
        answer = Piece(FRAMED, reply(dice, dice.choice([100, 101, 0]), number)[4:])
        pieces += dice.choice([[asked, answer], [asked, answer], [asked, answer, answer], [asked], [answer, asked]])
    return pieces


def message(dice: Random) -> tuple[int, bytes]:
    """One message, and a place in ASKED."""
    made = request(dice, 1) if dice.random() < 0.5 else reply(dice, 1, 2)
    return dice.randrange(len(ASKED)), made

"""Kafka decoders made up field by field from the schemas, some fields of which are broken.

In: dice. Out: pieces of a decoder, messages, bodies. Names come from a small pool, so that requests, answers and
groups meet; records are real batches, compressed or not, whole or damaged.
"""

from __future__ import annotations

import struct
from functools import cache
from random import Random
from typing import Any

from tests.fuzz.mutate import EDGES, broken
from tests.fuzz.pieces import FRAMED, FROM_CLIENT, Piece
from tests.support.kafka_encode import MESSAGES, STRUCTS, Encoder, uvarint
from tests.support.record_batches import CODEC_NUMBERS, Sent, batch, message_set
from wirewitness.dissectors.core.inspect import Asked
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.definitions import Direction, Field

NAMES = [
    "t",
    "g",
    "m",
    "c",
    "orders",
    "",
    "__consumer_offsets",
    "consumer",
    "range",
    "n" * 300,
    "stream",
    "é漢\u202e",
    "10.0.0.2",
]
# APIs whose decoders have state: the ones that clients use most.
_BUSY = [
    0,
    1,
    2,
    3,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    17,
    18,
    19,
    22,
    24,
    26,
    28,
    32,
    36,
    44,
    60,
    65,
    68,
    69,
    76,
    78,
    79,
    88,
]
_SHARE_BROKEN = 0.02


class _Broken(Encoder):
    """Fields of a message; each with a small chance is one that should not be."""

    share = _SHARE_BROKEN

    def _is_broken(self) -> bool:
        return self.random.random() < self.share

    def size(self, format_: str, value: int) -> bytes:
        """A length or count, seldom a wrong one."""
        if self._is_broken():
            value = self.random.choice([*EDGES, value + 1, value - 1])
        if self.flexible:
            return uvarint((value + 1) % (1 << 64))
        return (value % (1 << 8 * struct.calcsize(format_))).to_bytes(struct.calcsize(format_), "big")

    def plain(self, one: Field) -> tuple[bytes, Any]:
        """A value of a field; the second part is not used."""
        dice = self.random
        if one.type == "struct" or (one.type in STRUCTS and dice.random() < 0.1):
            return super().plain(one)
        if one.type in STRUCTS:
            width = struct.calcsize(">" + STRUCTS[one.type])
            value = dice.choice(EDGES) if self._is_broken() else dice.choice([0, 0, 1, 1, 2, 3, 7, -1])
            return (value % (1 << 8 * width)).to_bytes(width, "big"), None
        if one.type == "string":
            raw = dice.choice(NAMES).encode()
            raw = broken(raw, dice) if self._is_broken() else raw
            return self.size("h", len(raw)) + raw, None
        raw = records(dice) if one.type == "records" else dice.choice(blobs())
        raw = broken(raw, dice) if dice.random() < 0.2 else raw
        return self.size("i", len(raw)) + raw, None


def body(key: int, version: int, direction: Direction, dice: Random) -> bytes:
    """The body of a message."""
    api = schema.api(key)
    assert api is not None
    return _Broken(version, api.is_flexible(version), dice).struct(api.fields(direction))[0]


def records(dice: Random) -> bytes:
    """Record batches and message sets of any codec."""
    found = b""
    for _ in range(dice.choice([0, 1, 1, 2])):
        sent = [
            Sent(
                dice.choice([0, 1, -1, 1_700_000_000_000]),
                dice.choice([None, b"", b"k"]),
                dice.choice([None, b"v" * dice.choice([0, 1, 300])]),
            )
            for _ in range(dice.choice([1, 1, 3, 40]))
        ]
        codec = dice.choice(list(CODEC_NUMBERS))
        made = (
            batch(sent, codec)
            if dice.random() < 0.7 or codec == "zstd"
            else message_set(sent, dice.randrange(2), codec)
        )
        found += _rechecked(broken(made, dice)) if dice.random() < 0.3 else made
    return found


def _rechecked(made: bytes) -> bytes:
    """With a right checksum, so that damage behind it is looked at (batches of format 2)."""
    import crc32c

    if len(made) < 61 or made[16] != 2:
        return made
    return made[:17] + struct.pack(">I", crc32c.crc32c(made[21:])) + made[21:]


@cache
def blobs() -> list[bytes]:
    """What members of groups and SASL say in bytes."""
    topics = struct.pack(">i", 1) + b"\0\1t" + struct.pack(">iii", 2, 0, 1)
    subscription = struct.pack(">hi", 1, 1) + b"\0\1t" + struct.pack(">i", -1) + topics
    return [
        b"",
        b"\0",
        subscription,
        struct.pack(">h", 0) + topics + struct.pack(">i", -1),
        b"\0user\0password",
        b"n,,n=user,r=abc",
        b"n,,\x01auth=Bearer abc.def.ghi\x01\x01",
        struct.pack(">h", 1) + b"\0\3url" + struct.pack(">q", 4),
        b'{"host":"a","port":1}',
    ]


def talk(dice: Random) -> list[Piece]:
    """Requests of one to four APIs with their answers, some without, some out of order."""
    pieces = []
    for _ in range(dice.choice([1, 1, 2, 4])):
        key = dice.choice(_BUSY) if dice.random() < 0.7 else dice.choice(schema.api_keys())
        api = schema.api(key)
        assert api is not None
        version = dice.randint(api.versions.first, api.versions.last or 0)
        number = dice.choice([0, 1, 2, 3, 7, 2**31 - 1])
        asked = Piece(
            FROM_CLIENT | FRAMED, request_head(api, version, number, dice) + body(key, version, "request", dice)
        )
        answer = Piece(FRAMED, answer_head(api, version, number) + body(key, version, "response", dice))
        pieces += dice.choice([[asked, answer], [asked, answer], [asked, answer], [asked], [answer, asked]])
    return pieces


def request_head(api: schema.Api, version: int, number: int, dice: Random) -> bytes:
    """A request header as the version has it."""
    client = dice.choice([b"c", b"", b"consumer-1"])
    head = struct.pack(">hhih", api.key, version, number, len(client)) + client
    if api.key == 7 and version == 0:  # ControlledShutdown 0 has no client id
        head = head[:8]
    return head + (b"\0" if api.is_flexible(version) else b"")


def answer_head(api: schema.Api, version: int, number: int) -> bytes:
    """A response header; that of ApiVersions is never flexible."""
    return struct.pack(">i", number) + (b"\0" if api.is_flexible(version) and api.key != 18 else b"")


ASKED = [
    Asked(direction, api.name, str(version))
    for key, version, direction in MESSAGES
    if (api := schema.api(key)) is not None
]


def message(dice: Random) -> tuple[int, bytes]:
    """One frame, and its place in ASKED."""
    place = dice.randrange(len(MESSAGES))
    key, version, direction = MESSAGES[place]
    api = schema.api(key)
    assert api is not None
    head = request_head(api, version, 1, dice) if direction == "request" else answer_head(api, version, 1)
    whole = head + body(key, version, direction, dice)
    return place, len(whole).to_bytes(4, "big") + whole

"""Valid Kafka messages of every API and version from our own schemas: random values and their bytes.

It shares the schemas with the decoders, so it proves nothing about them; it feeds the tests that compare decoders with
each other and that break valid bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random
from typing import Any

from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.definitions import Direction, Field

STRUCTS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "uuid": "16s",
}

MESSAGES: list[tuple[int, int, Direction]] = [
    (key, version, direction)
    for key in schema.api_keys()
    if (api := schema.api(key)) is not None
    for version in range(api.versions.first, (api.versions.last or 0) + 1)
    for direction in ("request", "response")
]


def is_edge(key: int, version: int) -> bool:
    """Is it the oldest or newest version of its API, the first flexible one, or the last before that?"""
    api = schema.api(key)
    assert api is not None
    first, last = api.versions.first, api.versions.last or 0
    neighbours = range(max(version - 1, first), min(version + 1, last) + 1)
    return version in (first, last) or len({api.is_flexible(one) for one in neighbours}) > 1


def message(api_key: int, version: int, direction: Direction, random: Random) -> tuple[bytes, dict[str, Any]]:
    """Bytes of a message body, and its value with records as bytes and secrets masked."""
    api = schema.api(api_key)
    assert api is not None
    return Encoder(version, api.is_flexible(version), random).struct(api.fields(direction))


def record_part(record: schema.Api, version: int | None, random: Random) -> tuple[bytes, dict[str, Any]]:
    """Bytes and value of a record's value in a version, of its key where there is none, without the number in front."""
    if version is None:
        return Encoder(0, False, random).struct(record.request)
    return Encoder(version, record.is_flexible(version), random).struct(record.response)


def uvarint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


class Encoder:
    """Random values of fields and their bytes; a subclass may choose others."""

    # How often a tagged field that the schema knows is there, and one that it does not know.
    known_tags, unknown_tags = 0.5, 0.1
    # How many elements an array may have.
    counts: Sequence[int] = (0, 1, 1, 2, 4, 5)

    def __init__(self, version: int, flexible: bool, random: Random) -> None:
        self.version = version
        self.flexible = flexible
        self.random = random

    def struct(self, fields: Sequence[Field]) -> tuple[bytes, dict[str, Any]]:
        body, value, tagged = b"", {}, {}
        for one in fields:
            if one.versions.has(self.version):
                part, value[one.name] = self.field(one)
                if one.tag is None:
                    body += part
                elif self.random.random() < self.known_tags:
                    tagged[one.tag] = part
                else:
                    value[one.name] = None
        if self.flexible:
            if self.random.random() < self.unknown_tags:
                tagged[9 + self.random.randrange(300)] = self.random.randbytes(self.random.choice([0, 3, 130]))
            body += uvarint(len(tagged))
            body += b"".join(uvarint(tag) + uvarint(len(tagged[tag])) + tagged[tag] for tag in sorted(tagged))
        return body, value

    def field(self, one: Field) -> tuple[bytes, Any]:
        nullable = one.nullable(self.version)
        if nullable and self.random.random() < 0.3:
            return self.null(one), None
        if one.array:
            elements = [self.plain(one) for _ in range(self.random.choice(self.counts))]
            return self.size("i", len(elements)) + b"".join(part for part, _ in elements), [v for _, v in elements]
        part, value = self.plain(one)
        return (b"\x01" if nullable and one.type == "struct" else b"") + part, value

    def null(self, one: Field) -> bytes:
        if one.type == "struct" and not one.array:
            return b"\xff"
        return self.size("h" if one.type == "string" and not one.array else "i", -1)

    def size(self, format_: str, value: int) -> bytes:
        return uvarint(value + 1) if self.flexible else struct.pack(">" + format_, value)

    def plain(self, one: Field) -> tuple[bytes, Any]:
        if one.type == "struct":
            return self.struct(one.fields)
        if one.type in STRUCTS:
            format_ = ">" + STRUCTS[one.type]
            raw = self.random.randbytes(struct.calcsize(format_))
            if one.type in ("bool", "float64"):
                raw = struct.pack(format_, self.random.random() < 0.5)
            return raw, struct.unpack(format_, raw)[0]
        if one.secret:
            raw = self.random.randbytes(self.random.choice([0, 1, 20, 127, 128]))
            return self.size("h" if one.type == "string" else "i", len(raw)) + raw, schema.MASKED[one.type]
        if one.type == "string":
            text = "".join(self.random.choices("ab.-é漢", k=self.random.choice([0, 1, 9, 60, 127, 200])))
            return self.size("h", len(text.encode())) + text.encode(), text
        raw = self.random.randbytes(self.random.choice([0, 1, 70, 127, 300]))
        return self.size("i", len(raw)) + raw, raw

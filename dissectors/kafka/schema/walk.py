"""Slow and complete reading of one message body: bytes in, a tree of fields with their byte spans out.

`walk` says what a message means; a property test holds the generated decoders of `compile` to it. It never raises:
a broken message gives the fields up to the break, what is wrong and where.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.inspect import Node
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.definitions import Direction, Field
from wirewitness.dissectors.kafka.schema.primitives import read_uvarint, text

NUMBERS = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint16": struct.Struct(">H"),
    "uint32": struct.Struct(">I"),
    "float64": struct.Struct(">d"),
    "uuid": struct.Struct(">16s"),
}

# Bytes of an unsigned varint of 32 bits at most.
_LONGEST_UVARINT = 5


class Walked(NamedTuple):
    """What a message holds. `pos` is where reading stopped; `error` is None, or says what is wrong at `error_at`.

    secret: the bytes of secret values, from the first to before the last, also of one that is cut.
    """

    value: dict[str, Any]
    nodes: list[Node]
    pos: int
    error: str | None
    error_at: int | None
    secret: list[tuple[int, int]]


def walk(
    api_key: int, version: int, direction: Direction, buf: bytes, pos: int, end: int, max_nodes: int | None = None
) -> Walked:
    """Read the message body at `pos` (0 <= pos <= end) in `buf`; `end` is where its frame stops. Never raises.

    max_nodes: reading stops with an error when there are more fields.
    """
    api = schema.api(api_key)
    if api is None or not api.versions.has(version):
        return Walked({}, [], pos, f"no schema for API key {api_key} version {version}", pos, [])
    walker = _Walker(buf, pos, min(end, len(buf)), version, api.is_flexible(version), max_nodes)
    value: dict[str, Any] = {}
    nodes: list[Node] = []
    try:
        walker.struct(api.fields(direction), value, nodes)
        if end > len(buf):
            raise DecodeError("the message is longer than the buffer")
    except DecodeError as error:
        return Walked(value, nodes, walker.pos, str(error), walker.known_until, walker.secret)
    return Walked(value, nodes, walker.pos, None, None, walker.secret)


def begins(api_key: int, version: int, direction: Direction, buf: bytes, pos: int, frame_end: int) -> int | None:
    """Can what `buf` has from `pos` on be the beginning of a body that ends at `frame_end`, behind the buffer?

    How many of the bytes fields account for; None when a field contradicts, or the body ends too early.
    """
    api = schema.api(api_key)
    if api is None or not api.versions.has(version):
        return None
    walker = _Walker(buf, pos, len(buf), version, api.is_flexible(version), None)
    walker.frame_end = frame_end
    try:
        walker.struct(api.fields(direction), {}, [])
    except DecodeError:
        return walker.known_until - pos if len(buf) < walker.wanted_end <= frame_end else None
    return None


class _Walker:
    """The reading position in one message. Its methods read one thing each, fill what they are given, or raise.

    frame_end: where the frame ends, which may be behind the buffer. wanted_end: where the last field that was cut ends.
    doubtful_from: where a count stands that is larger than the bytes behind it; what was read as its elements is shown.
    """

    def __init__(self, buf: bytes, pos: int, end: int, version: int, flexible: bool, max_nodes: int | None) -> None:
        self.buf = buf
        self.pos = pos
        self.end = end
        self.version = version
        self.flexible = flexible
        self.room = max_nodes
        self.frame_end = end
        self.wanted_end = 0
        self.doubtful_from: int | None = None
        self.secret: list[tuple[int, int]] = []

    @property
    def known_until(self) -> int:
        """How far the bytes mean what the schema says."""
        return self.pos if self.doubtful_from is None else self.doubtful_from

    def struct(self, fields: Sequence[Field], value: dict[str, Any], nodes: list[Node]) -> None:
        present = [one for one in fields if one.versions.has(self.version)]
        for one in present:
            if one.tag is None:
                with self.node(one.name, nodes) as node:
                    self.field(one, node, value)
        if self.flexible:
            self.tags([one for one in present if one.tag is not None], value, nodes)

    @contextmanager
    def node(self, name: str, nodes: list[Node]) -> Iterator[Node]:
        """A node from here to where the block leaves the position, also when it raises."""
        if self.room is not None:
            if not self.room:
                raise DecodeError("the message has more fields than are shown")
            self.room -= 1
        node = Node(name, self.pos, self.pos)
        nodes.append(node)
        try:
            yield node
        finally:
            node.end = self.pos

    def field(self, one: Field, node: Node, value: dict[str, Any]) -> None:
        if one.array:
            self.array(one, node, value)
        elif one.type == "struct":
            if one.nullable(self.version) and self.number("int8") < 0:
                value[one.name] = None
            else:
                node.value = value[one.name] = {}
                self.struct(one.fields, node.value, node.children)
        else:
            node.value = value[one.name] = self.plain(one, one.nullable(self.version))

    def plain(self, one: Field, nullable: bool) -> Any:
        """A number, string, bytes or records value."""
        if one.type in NUMBERS:
            return self.number(one.type)
        size = self.length(one.name, "int16" if one.type == "string" else "int32", nullable)
        if size is None:
            return None
        start = self.pos
        if one.secret:
            self.secret.append((start, min(start + size, self.end)))
        raw = self.take(size)
        if one.secret:
            return schema.MASKED[one.type]
        if one.type == "records":
            return (start, size)
        return text(raw) if one.type == "string" else raw

    def array(self, one: Field, node: Node, value: dict[str, Any]) -> None:
        start = self.pos
        count = self.length(one.name, "int32", one.nullable(self.version))
        if count is None:
            value[one.name] = None
            return
        elements: list[Any] = []
        node.value = value[one.name] = elements
        # Every element has a byte at least; without this a message of a few bytes could ask for 2**31 of nothing.
        room = self.end - self.pos
        if self.frame_end > self.end and count > self.frame_end - self.pos:
            raise DecodeError(f"{one.name} has more elements than the frame has bytes")
        for index in range(min(count, room)):
            with self.node(f"[{index}]", node.children) as element:
                self.element(one, element, elements)
        if count > room:
            self.doubtful_from, self.wanted_end = start, self.end + 1
            raise DecodeError(f"{one.name} has more elements than bytes left")

    def element(self, one: Field, node: Node, elements: list[Any]) -> None:
        if one.type == "struct":
            node.value = {}
            elements.append(node.value)
            self.struct(one.fields, node.value, node.children)
        else:
            node.value = self.plain(one, nullable=False)
            elements.append(node.value)

    def tags(self, known: Sequence[Field], value: dict[str, Any], nodes: list[Node]) -> None:
        value.update({one.name: None for one in known})
        by_tag = {one.tag: one for one in known}
        with self.node("tagged_fields", nodes) as section:
            section.value = self.uvarint()
            for _ in range(section.value):
                with self.node("", section.children) as node:
                    self.tagged(by_tag, node, value)

    def tagged(self, by_tag: dict[int | None, Field], node: Node, value: dict[str, Any]) -> None:
        tag, size = self.uvarint(), self.uvarint()
        one = by_tag.get(tag)
        node.name = one.name if one else f"tag {tag}"
        if one is None:
            node.value = self.take(size)
            return
        if size > self.end - self.pos:
            self.wanted_end = self.pos + size
            raise DecodeError(f"tagged field {tag} runs past the end")
        outer, self.end = self.end, self.pos + size
        self.field(one, node, value)
        if self.pos != self.end:
            raise DecodeError(f"{one.name} does not fill its tagged field")
        self.end = outer

    def length(self, name: str, type_: str, nullable: bool) -> int | None:
        """A length or count; None for null. In flexible versions it is written one too high, and 0 is null."""
        start = self.pos
        size = self.uvarint() - 1 if self.flexible else self.number(type_)
        if size >= 0:
            return int(size)
        if not nullable:
            self.pos = start
            raise DecodeError(f"{name} is null where it may not be")
        return None

    def uvarint(self) -> int:
        try:
            value, self.pos = read_uvarint(self.buf, self.pos, self.end)
        except DecodeError:
            if self.end - self.pos < _LONGEST_UVARINT:
                self.wanted_end = self.end + 1
            raise
        return value

    def number(self, type_: str) -> Any:
        return NUMBERS[type_].unpack(self.take(NUMBERS[type_].size))[0]

    def take(self, size: int) -> bytes:
        if size > self.end - self.pos:
            self.wanted_end = self.pos + size
            raise DecodeError("the message ends inside a field")
        self.pos += size
        return self.buf[self.pos - size : self.pos]

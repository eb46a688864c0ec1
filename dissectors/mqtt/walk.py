"""Reading of any control packet by its layout: bytes in, values, a tree with byte spans and broken rules out.

`walk` says what a packet means; the quicker readers of `publishing.py` are held to it by a property test. It never
raises: a broken packet gives the fields up to the break, what is wrong and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.inspect import Hidden, HiddenKind, Node
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.mqtt.layout import FLAG_BITS, LAYOUT, PROPERTIES_OF, Field, flag_bits
from wirewitness.dissectors.mqtt.levels import LEVEL_50, known_level
from wirewitness.dissectors.mqtt.properties import PROPERTIES, Property
from wirewitness.dissectors.mqtt.text import string

MASKED = "***"
MAX_LENGTH_BYTES = 4
_SIZES = {"u8": 1, "u16": 2, "u32": 4}
_LIMITS = Limits()

# What is wrong: code of `rules.RULES`, position, words for people.
Problem = tuple[str, int, str]


@dataclass(slots=True)
class Walked:
    """What a packet holds. type, flags: of its first byte. body: where the fields behind the fixed header start.

    declared_end: where the packet says that it ends. value: fields by name; a list's elements stand in `each`, a
    payload is (position, size). pos: where reading stopped; error: None, or why it stopped before the end.
    """

    type: int = 0
    flags: int = 0
    level: int | None = None
    body: int = 0
    declared_end: int = 0
    value: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    hidden: list[Hidden] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    pos: int = 0
    error: str | None = None

    @property
    def properties(self) -> dict[str, Any]:
        """The properties of the packet; none below 5.0."""
        return self.value.get("properties") or {}

    @property
    def sound(self) -> bool:
        """It was read to its last byte, and no rule about its bytes is broken."""
        return self.error is None and self.pos == self.declared_end and not self.problems


def remaining_length(data: bytes, position: int, end: int) -> tuple[int, int]:
    """(value, position behind it) of a variable byte integer; DecodeError when it is cut or longer than 4 bytes."""
    value = 0
    for count in range(MAX_LENGTH_BYTES):
        if position + count >= end:
            raise DecodeError("a variable byte integer is cut")
        byte = data[position + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, position + count + 1
    raise DecodeError("a variable byte integer has more than 4 bytes")


def walk(data: bytes, start: int, end: int, level: int | None, limits: Limits = _LIMITS) -> Walked:
    """Read the packet at `start`, of which the bytes before `end` are there. Never raises.

    level: below 5 there are no properties; CONNECT says its own, and without one everything is read as below 5.
    """
    walker = _Walker(data, start, end, level, limits)
    try:
        walker.packet()
    except DecodeError as error:
        walker.found.error = str(error)
    walker.found.pos = walker.pos
    walker.found.level = walker.level
    return walker.found


class _Walker:
    """The reading position in one packet. Its methods read one thing each, fill what they are given, or raise."""

    def __init__(self, data: bytes, start: int, end: int, level: int | None, limits: Limits) -> None:
        self.data = data
        self.pos = start
        self.end = end
        self.level = level
        self.limits = limits
        self.found = Walked(pos=start)
        self.properties_left = limits.max_properties

    def packet(self) -> None:
        found = self.found
        with self.node("packet_type_and_flags", found.nodes) as node:
            node.value = self.take(1)[0]
        found.type, found.flags = node.value >> 4, node.value & 15
        with self.node("remaining_length", found.nodes) as node:
            size = node.value = self.varint()
        found.body, found.declared_end = self.pos, self.pos + size
        self.end = min(self.end, found.declared_end)
        layout = LAYOUT.get(found.type)
        if layout is None:
            raise DecodeError(f"packet type {found.type} is reserved")
        for one in layout.fields:
            if self.present(one):
                self.field(one, found.value, found.nodes)
        if layout.each and (self.five or not layout.each_since_5):
            self.elements(layout.each)
        if self.pos < self.end:
            found.problems.append(("trailing_bytes", self.pos, f"{self.end - self.pos} bytes behind the last field"))
        if self.end < found.declared_end:
            raise DecodeError("the packet is cut")

    @property
    def five(self) -> bool:
        return self.level == LEVEL_50

    def present(self, one: Field) -> bool:
        if one.since_5 and not self.five:
            return False
        if one.when is None:
            return True
        if one.when == "more":
            return self.pos < self.found.declared_end
        if one.when == "qos":
            return self.found.flags & 6 != 0
        return bool(self.found.value["connect_flags"][one.when])

    def elements(self, each: tuple[Field, ...]) -> None:
        elements: list[dict[str, Any]] = []
        self.found.value["each"] = elements
        while self.pos < self.end:
            if len(elements) >= self.limits.max_filters:
                text = f"more than {self.limits.max_filters} elements; the rest is left out"
                self.found.problems.append(("too_many_filters", self.pos, text))
                self.pos = self.end
                return
            with self.node(f"[{len(elements)}]", self.found.nodes) as node:
                node.value = {}
                elements.append(node.value)
                for one in each:
                    self.field(one, node.value, node.children)

    def field(self, one: Field, value: dict[str, Any], nodes: list[Node]) -> None:
        with self.node(one.name, nodes) as node:
            if one.type in ("properties", "will_properties"):
                value[one.name] = node.value = {}
                self.properties(PROPERTIES_OF.get(one.type, self.found.type), node.value, node)
            elif one.name in FLAG_BITS:
                value[one.name] = node.value = flag_bits(one.name, self.number("u8", one.name))
            elif one.type == "payload":
                # A cut one is as long as the packet says.
                node.value = value[one.name] = (self.pos, self.found.declared_end - self.pos)
                self.hide(self.pos, self.end, "payload")
                self.pos = self.end
            else:
                value[one.name] = node.value = self.plain(one.type, one.name, one.hidden)
        if one.name == "protocol_level":
            self.level = known_level(value[one.name])
            if self.level is None:
                raise DecodeError(f"protocol level {value[one.name]} is not known")

    def properties(self, of: int, value: dict[str, Any], node: Node) -> None:
        start = self.pos
        size = self.varint()
        stop = self.pos + size
        if stop > self.found.declared_end:
            self.pos = start
            raise DecodeError("the properties are longer than the packet")
        packet_end, self.end = self.end, min(self.end, stop)
        seen: set[int] = set()
        while self.pos < self.end:
            if not self.properties_left:
                text = f"more than {self.limits.max_properties} properties; the rest is left out"
                self.found.problems.append(("too_many_properties", self.pos, text))
                self.pos = self.end
                break
            self.properties_left -= 1
            self.property(of, value, node, seen)
        if self.end < stop:
            raise DecodeError("the packet ends inside the properties")
        self.end = packet_end

    def property(self, of: int, value: dict[str, Any], node: Node, seen: set[int]) -> None:
        at = self.pos
        identifier = self.varint()
        known = PROPERTIES.get(identifier)
        if known is None:
            self.found.problems.append(("unknown_property", at, f"property {identifier:#04x} is not known"))
            raise DecodeError(f"property {identifier:#04x} is not known, so nobody knows where it ends")
        with self.node(known.name, node.children, at) as child:
            hidden: HiddenKind | None = "secret" if known.secret else None
            if known.name == "correlation_data":
                hidden = "payload"
            child.value = self.plain(known.type, known.name, hidden)
        self.judge(known, of, child, identifier in seen)
        seen.add(identifier)
        if known.often:
            value.setdefault(known.name, []).append(child.value)
        else:
            value.setdefault(known.name, child.value)

    def judge(self, known: Property, of: int, node: Node, again: bool) -> None:
        """Whether the property may stand here, this often, with this value."""
        problems = self.found.problems
        if of not in known.packets:
            problems.append(("property_not_allowed", node.start, f"{known.name} does not belong here"))
        if again and of not in known.often:
            problems.append(("duplicate_property", node.start, f"{known.name} stands here twice"))
        if known.allowed is not None and not known.allowed[0] <= node.value <= known.allowed[1]:
            problems.append(("property_value", node.start, f"{known.name} is {node.value}"))

    def plain(self, kind: str, name: str, hidden: HiddenKind | None) -> Any:
        if kind == "varint":
            return self.varint()
        if kind == "pair":
            return [self.text(name), self.text(name)]
        if kind == "string":
            return self.text(name)
        if kind == "binary":
            return self.binary(name, hidden)
        return self.number(kind, name)

    def text(self, name: str) -> str:
        start = self.pos
        size = self.number("u16", name)
        text, codes = string(self.take(size, name))
        self.found.problems += [(code, start, f"{name} holds {_STRING_PROBLEMS[code]}") for code in codes]
        return text

    def binary(self, name: str, hidden: HiddenKind | None) -> str | bytes:
        size = self.number("u16", name)
        if hidden is not None:
            # Also of a value that is cut, what is there stays hidden.
            self.hide(self.pos, min(self.pos + size, self.end), hidden)
        raw = self.take(size, name)
        return MASKED if hidden == "secret" else raw

    def number(self, kind: str, name: str) -> int:
        return int.from_bytes(self.take(_SIZES[kind], name), "big")

    def varint(self) -> int:
        start = self.pos
        value, self.pos = remaining_length(self.data, start, self.end)
        if self.pos - start > 1 and value < 1 << 7 * (self.pos - start - 1) and self.five:
            self.found.problems.append(("overlong_integer", start, f"{value} is written with {self.pos - start} bytes"))
        return value

    def take(self, size: int, name: str = "the packet") -> bytes:
        if size > self.end - self.pos:
            raise DecodeError(f"the packet ends inside {name}")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def hide(self, start: int, end: int, kind: HiddenKind) -> None:
        if end > start:
            self.found.hidden.append(Hidden(start, end, kind))

    @contextmanager
    def node(self, name: str, nodes: list[Node], start: int | None = None) -> Iterator[Node]:
        """A node from here, or from `start`, to where the block leaves the position, also when it raises."""
        node = Node(name, self.pos if start is None else start, self.pos)
        nodes.append(node)
        try:
            yield node
        finally:
            node.end = self.pos


_STRING_PROBLEMS = {
    "invalid_utf8": "bytes that are no UTF-8",
    "null_character": "U+0000",
    "control_character": "control characters or non-characters",
}

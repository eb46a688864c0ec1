"""tshark's packets to messages: one reader for each protocol, which takes the values that our tables have too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from analyser.crosscheck.message import Key, Theirs, partition_order
from analyser.crosscheck.tshark import Packet, Pairs
from dissectors.kafka.schema.api_keys import api_name
from dissectors.mongo.opcodes import OP_COMPRESSED, OP_MSG, OP_QUERY, OPCODES
from dissectors.mqtt.packet_types import CONNECT, PUBLISH, SUBSCRIBE, TYPES, UNSUBSCRIBE

Reader = Callable[[Packet, Pairs], Theirs | None]
MALFORMED = "_ws.malformed"
_NULL = "[ Null ]"
_KNOWN_VERSIONS = re.compile(
    r"Unsupported (?P<name>.+) version\.(?: Supports v(?P<lowest>\d+)(?:-(?P<highest>\d+))?\.)?"
)
_UNKNOWN_KEY = re.compile(r"(?:Unknown )?(-?\d+) API key")
# How remarks begin that say that a message could not be read; others are about what it means.
_GAVE_UP = re.compile(
    r"Unsupported compression|Unknown (section type|Data)|Dissected message does not end|Request missing|Invalid "
    r"|Bogus |Error uncompressing|BSON document"
)
_COMPRESSORS = {0: "noop", 1: "snappy", 2: "zlib", 3: "zstd"}
_LEVELS = {3: "3.1", 4: "3.1.1", 5: "5.0"}
# Kafka messages whose topics and partitions are rows of ours, with the field that holds their offsets.
_WITH_PARTITIONS = {
    ("OffsetCommit", "request"): "kafka.offset",
    ("OffsetCommit", "response"): None,
    ("TxnOffsetCommit", "request"): "kafka.offset",
    ("TxnOffsetCommit", "response"): None,
    ("OffsetFetch", "response"): "kafka.offset",
    ("Produce", "request"): None,
    ("Produce", "response"): None,
    ("Fetch", "response"): None,
}


def messages(packet: Packet) -> list[Theirs]:
    """The messages that end in a packet, in the order of the stream."""
    found: list[Theirs] = []
    for place, (name, tree) in enumerate(packet.layers):
        if name == MALFORMED or not isinstance(tree, list):
            continue
        broken = place + 1 < len(packet.layers) and packet.layers[place + 1][0] == MALFORMED
        message = _READERS[name](packet, [*tree, (MALFORMED, "")] if broken else tree)
        if message is not None:
            found.append(message)
    return found


def _kafka(packet: Packet, tree: Pairs) -> Theirs | None:
    head = dict(tree)
    if "kafka.len" not in head:
        return None
    number, length = int(head.get("kafka.correlation_id", 0)), int(head["kafka.len"]) + 4
    asked, answered = head.get("kafka.request_key"), head.get("kafka.response_key")
    values: dict[str, Any] = {"number": number, "length_bytes": length}
    key = asked if asked is not None else answered
    operation = role = version = None
    remarks = _remarks(tree)
    if key is not None:
        operation, role = api_name(int(key)), "request" if asked is not None else "response"
        version = head.get("kafka.api_version", head.get("kafka.response.version"))
        values |= {"operation": operation, "version": version}
        if role == "request":
            values["client_id"] = _text(head.get("kafka.client_id"))
        values |= _kafka_body(operation, role, tree)
    if "kafka.request_frame" in head:
        values["request"] = int(head["kafka.request_frame"])
    return _made(packet, "kafka", length, number, (operation, role, version), values, tree, remarks)


def _kafka_body(operation: str, role: str, tree: Pairs) -> dict[str, Any]:
    leaves = list(_leaves(tree))
    values: dict[str, Any] = {}
    if role == "request":
        groups = [value for name, value in leaves if name == "kafka.consumer_group"]
        if len(groups) == 1:
            values["group_id"] = groups[0]
    else:
        codes = [int(value) for name, value in leaves if name == "kafka.error"]
        if codes:
            values["error_code"] = next((code for code in codes if code), 0)
    if (operation, role) in _WITH_PARTITIONS:
        values["partitions"] = _partitions(leaves, _WITH_PARTITIONS[operation, role])
    return values


def _partitions(leaves: list[tuple[str, str]], offset_name: str | None) -> list[tuple[Any, ...]]:
    """(topic, partition) or (topic, partition, offset) of every partition, sorted."""
    found: list[list[Any]] = []
    topic: str | None = None
    for name, value in leaves:
        if name == "kafka.topic_name":
            topic = value
        elif name == "kafka.partition_id":
            found.append([topic, int(value)])
        elif offset_name is not None and name == offset_name and found and len(found[-1]) == 2:
            found[-1].append(int(value))
    return sorted({tuple(one) for one in found}, key=partition_order)


def _mqtt(packet: Packet, tree: Pairs) -> Theirs | None:
    head = dict(tree)
    if "mqtt.hdrflags" not in head or "mqtt.len" not in head:
        return None
    flags, left = int(head["mqtt.hdrflags"], 16), int(head["mqtt.len"])
    kind = flags >> 4
    operation = TYPES[kind].name if kind in TYPES else f"Type {kind}"
    length = left + 1 + next(size for size in (1, 2, 3, 4, 5) if left < 128**size)
    number = int(head["mqtt.msgid"]) if "mqtt.msgid" in head else None
    version = _LEVELS.get(int(head["mqtt.ver"])) if "mqtt.ver" in head else None
    values: dict[str, Any] = {"operation": operation, "length_bytes": length}
    if number is not None:
        values["number"] = number
    if version is not None:
        values["version"] = version
    topics = [value for name, value in tree if name == "mqtt.topic"]
    if kind == CONNECT and "mqtt.clientid" in head:
        values["client_id"] = head["mqtt.clientid"] or None
    elif kind == PUBLISH:
        values |= {"qos": flags >> 1 & 3, "retain": bool(flags & 1), "dup": bool(flags & 8)}
        values["topic"] = topics[0] if topics else ""
    elif kind in {SUBSCRIBE, UNSUBSCRIBE}:
        values["filters"] = topics
    elif "mqtt.conack.val" in head:
        values["error_code"] = int(head["mqtt.conack.val"])
    return _made(packet, "mqtt", length, (operation, number), (operation, None, version), values, tree, _remarks(tree))


def _mongo(packet: Packet, tree: Pairs) -> Theirs | None:
    head = dict(tree)
    if "mongo.request_id" not in head or "mongo.opcode" not in head:
        return None
    number, answers = _signed(head["mongo.request_id"]), _signed(head["mongo.response_to"])
    length, opcode = int(head["mongo.message_length"]), int(head["mongo.opcode"])
    values: dict[str, Any] = {"number": number, "length_bytes": length, "compressor": "none"}
    if opcode == OP_COMPRESSED:
        inside = dict(head.get("mongo.compression") or [])
        opcode = int(inside.get("mongo.compression.original_opcode", opcode))
        compressor = int(inside.get("mongo.compression.compressor", -1))
        values["compressor"] = _COMPRESSORS.get(compressor, str(compressor))
    version = OPCODES.get(opcode, str(opcode))
    values["version"] = version
    role = "response" if answers or version == "OP_REPLY" else "request"
    if answers:
        values["request"] = answers
    command = None
    flags = dict(head.get("mongo.msg.flags_tree") or [])
    if flags.get("mongo.msg.flags.checksumpresent") in {"1", "True"}:
        values["checksum_present"] = True
    if opcode == OP_MSG:
        body = _elements(_inside(tree, "mongo.msg.sections.section", "mongo.msg.sections.section.body"))
        if role == "request":
            command = body[0][0] if body else None
            values |= {"operation": command, "database": _bson_text(body, "$db")}
        else:
            values["ok"] = _bson_ok(body)
    elif opcode == OP_QUERY:
        names = dict(head.get("mongo.full_collection_name_tree") or [])
        values["database"] = names.get("mongo.database_name")
        query = _elements(_inside(tree, "mongo.query"))
        if names.get("mongo.collection_name") == "$cmd" and query and not query[0][0].startswith("$"):
            command = values["operation"] = query[0][0]
    remarks = _remarks(tree)
    kinds = (command, role, version)
    known = {name: value for name, value in values.items() if value is not None}
    return _made(packet, "mongo", length, number, kinds, known, tree, remarks)


_READERS: dict[str, Reader] = {"kafka": _kafka, "mqtt": _mqtt, "mongo": _mongo}


def _made(
    packet: Packet,
    protocol: str,
    length: int,
    number: Any,
    kinds: tuple[str | None, str | None, str | None],
    values: dict[str, Any],
    tree: Pairs,
    remarks: tuple[str, ...],
) -> Theirs:
    key = Key(protocol, packet.sender, packet.receiver, length, number)
    malformed = any(name == MALFORMED for name, _ in tree) or any(mark.startswith("Malformed") for mark in remarks)
    too_new = protocol == "kafka" and _too_new(kinds[0], kinds[2], remarks)
    gave_up = malformed or too_new or any(_GAVE_UP.match(remark) for remark in remarks)
    return Theirs(packet.number, key, *kinds, values, packet.stream, malformed, too_new, gave_up, remarks)


def _too_new(operation: str | None, version: str | None, remarks: tuple[str, ...]) -> bool:
    """Whether a remark says so of this message; in ApiVersions there are such on all versions that a broker offers."""
    for remark in remarks:
        known = _KNOWN_VERSIONS.fullmatch(remark)
        if known and operation != "ApiVersions":
            return True
        if known and known["name"] == operation:
            lowest, highest = known["lowest"], known["highest"] or known["lowest"]
            if lowest is None or not int(lowest) <= int(version or -1) <= int(highest):
                return True
        key = _UNKNOWN_KEY.fullmatch(remark)
        if key and api_name(int(key[1])) == operation:
            return True
    return False


def _leaves(tree: Pairs) -> Iterator[tuple[str, str]]:
    """All values of a tree in the order of the bytes."""
    waiting = [iter(tree)]
    while waiting:
        for name, value in waiting[-1]:
            if isinstance(value, list):
                waiting.append(iter(value))
                break
            yield name, value
        else:
            waiting.pop()


def _remarks(tree: Pairs) -> tuple[str, ...]:
    return tuple(value for name, value in _leaves(tree) if name == "_ws.expert.message")


def _inside(tree: Pairs, *path: str) -> Pairs:
    """The first tree of that path in which the path can be gone to its end; empty without one."""
    if not path:
        return tree
    for name, value in tree:
        if name == path[0] and isinstance(value, list):
            found = _inside(value, *path[1:])
            if found:
                return found
    return []


def _elements(document: Pairs) -> list[tuple[str, Pairs]]:
    """Names and trees of a document's own elements."""
    elements: list[tuple[str, Pairs]] = []
    name = ""
    for label, value in _inside(document, "mongo.elements"):
        if label == "mongo.element.name":
            name = value
            elements.append((name, []))
        elif label == "mongo.element.name_tree" and elements:
            elements[-1] = (name, value)
    return elements


def _bson_text(elements: list[tuple[str, Pairs]], name: str) -> str | None:
    tree = next((dict(tree) for key, tree in elements if key == name), {})
    return tree.get("mongo.element.value.string")


def _bson_ok(elements: list[tuple[str, Pairs]]) -> bool | None:
    tree = next((dict(tree) for key, tree in elements if key == "ok"), {})
    numbers = [value for name, value in tree.items() if name.startswith("mongo.element.value.")]
    return bool(float(numbers[0])) if numbers else None


def _signed(text: str) -> int:
    """A 32-bit number that tshark shows as unsigned hexadecimal."""
    return (int(text, 0) ^ 1 << 31) - (1 << 31)


def _text(value: str | None) -> str | None:
    """Text; tshark shows a null one as a word."""
    return None if value in {None, _NULL} else value

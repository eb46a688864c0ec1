"""Records of Kafka's own topics, and control records: key and value bytes in, typed values out.

`__consumer_offsets` holds commits and groups, `__transaction_state` transactional ids, `__share_group_state` what share
groups have read; control records stand between the records of any partition. A key starts with the number of its type,
a value with its version; both are described in `internal/TOPIC/NN_name.kafka`. Sources: the coordinators' record types
and ControlRecordType of Apache Kafka 4.3.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.blobs.member_blobs import told_assignment, told_subscription
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.compile import Decoder, record_decoder
from wirewitness.dissectors.kafka.schema.primitives import Value, uuid_text

CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_STATE = "__consumer_offsets", "__transaction_state", "__share_group_state"
TOPICS = {
    CONSUMER_OFFSETS: "consumer_offsets",
    TRANSACTION_STATE: "transaction_state",
    SHARE_STATE: "share_group_state",
}
_CONTROL = "control"
# Types whose records begin as another type's do: commits had version 0 and 1 of one key.
_SAME = {("consumer_offsets", 0): 1}
# KRaft's control records say their version in a field of their own, the first one.
_VERSION_INSIDE = (2, 3, 4, 5, 6)


class InternalRecord(NamedTuple):
    """type: name of the record type. version, value: None for a tombstone: what the key names is forgotten."""

    type: str
    key: Value
    version: int | None
    value: Value | None


def internal_record(topic: str, key: bytes, value: bytes | None) -> InternalRecord:
    """A record of one of TOPICS. Raises DecodeError, also for types and versions that are not known."""
    folder = TOPICS[topic]
    number = _int16(key, "key")
    record = _types(folder).get(_SAME.get((folder, number), number))
    if record is None:
        raise DecodeError(f"{topic} has no record type {number} that is known")
    known = _read(_key_decoder(folder, record.key), key, 2)
    if value is None:
        return InternalRecord(record.name, known, None, None)
    version = _int16(value, "value")
    return InternalRecord(record.name, known, version, _read(_value_decoder(folder, record.key, version), value, 2))


def control_record(key: bytes, value: bytes | None) -> InternalRecord:
    """A control record: the end of a transaction, or a record of the metadata quorum. Raises DecodeError."""
    _int16(key, "key")
    number = _int16(key[2:], "key")
    record = _types(_CONTROL).get(number)
    if record is None:
        raise DecodeError(f"control record type {number} is not known")
    if value is None:
        return InternalRecord(record.name, {}, None, None)
    version = _int16(value, "value")
    start = 0 if number in _VERSION_INSIDE else 2
    return InternalRecord(record.name, {}, version, _read(_value_decoder(_CONTROL, number, version), value, start))


def _int16(data: bytes, what: str) -> int:
    if len(data) < 2:
        raise DecodeError(f"the {what} ends inside its version")
    return int.from_bytes(data[:2], "big", signed=True)


def _read(decode: Decoder, data: bytes, start: int) -> Value:
    """What `decode` makes of the bytes; later versions may have put fields behind those that are known."""
    return decode(data, start, len(data))[0]


@cache
def _types(folder: str) -> dict[int, schema.Api]:
    return schema.records(folder)


@cache
def _key_decoder(folder: str, number: int) -> Decoder:
    return record_decoder(replace(_types(folder)[number], flexible=None), 0, "request")


def _value_decoder(folder: str, number: int, version: int) -> Decoder:
    record = _types(folder)[number]
    if not record.versions.has(version):
        raise DecodeError(f"version {version} of {record.name} is not known")
    return _known_value_decoder(folder, number, version)


@cache
def _known_value_decoder(folder: str, number: int, version: int) -> Decoder:
    return record_decoder(_types(folder)[number], version, "response")


# Records of Kafka's own topics told in JSON: an InternalRecord in, one line out.
#
# Ids are written as Kafka prints them, blobs of group members as what they say, other bytes in hex.

_ID_BYTES = 16


def told_record(record: InternalRecord) -> str:
    """Type, version, key and value; version and value are null for a tombstone."""
    kind = record.value.get("protocol_type") if record.value else None
    protocol = record.value.get("protocol") if record.value else None
    said = {
        "type": record.type,
        "version": record.version,
        "key": _plain(record.key, kind, protocol),
        "value": None if record.value is None else _plain(record.value, kind, protocol),
    }
    return json.dumps(said, separators=(",", ":"))


def _plain(value: Value, kind: str | None, protocol: str | None) -> dict[str, Any]:
    return {name: _one(name, field, kind, protocol) for name, field in value.items()}


def _one(name: str, value: Any, kind: str | None, protocol: str | None) -> Any:
    if isinstance(value, dict):
        return _plain(value, kind, protocol)
    if isinstance(value, list):
        return [_one(name, element, kind, protocol) for element in value]
    if not isinstance(value, bytes):
        return value
    if len(value) == _ID_BYTES and name.endswith("_id"):
        return uuid_text(value)
    if name == "subscription":
        return _parsed(told_subscription(kind, protocol, value), value)
    return _parsed(told_assignment(kind, protocol, value), value) if name == "assignment" else value.hex()


def _parsed(line: str | None, value: bytes) -> Any:
    return value.hex() if line is None else json.loads(line)

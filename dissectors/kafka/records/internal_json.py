"""Records of Kafka's own topics told in JSON: an InternalRecord in, one line out.

Ids are written as Kafka prints them, blobs of group members as what they say, other bytes in hex.
"""

from __future__ import annotations

import json
from typing import Any

from wirewitness.dissectors.kafka.blobs.member_blobs import told_assignment, told_subscription
from wirewitness.dissectors.kafka.records.internal_topics import InternalRecord
from wirewitness.dissectors.kafka.schema.primitives import Value, uuid_text

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

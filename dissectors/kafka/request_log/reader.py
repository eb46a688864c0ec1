"""The line by which Kafka's request log enters the table of contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wirewitness.dissectors.core.closed import close, closed_user
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.inspect import MAX_NODES, Inspected, Node
from wirewitness.dissectors.core.log_reader import LogError, LogReader
from wirewitness.dissectors.core.masked_trees import without_secrets
from wirewitness.dissectors.kafka.closed_fields import closed_fields
from wirewitness.dissectors.kafka.request_log.bodies import body_value
from wirewitness.dissectors.kafka.request_log.decoder import LoggedKafka
from wirewitness.dissectors.kafka.request_log.entry import MEANINGS, Entry, entry
from wirewitness.dissectors.kafka.schema.definitions import MASKED
from wirewitness.dissectors.kafka.schema.primitives import UNSEEN
from wirewitness.dissectors.kafka.schema.secret_settings import shown

# The tree of one message of the request log, for `show`: the JSON of a line in, fields in the order of the schema
# out.
#
# What must not be shown is masked as in messages of the wire: credentials by the schema, settings by their names. A
# log has no records, so nothing that applications sent is in it. No field has bytes.

# A setting's name, and its value.
_NAMES = ("name", "config_name")
_VALUES = ("value", "config_value")


def inspect_line(text: bytes, role: str | None) -> Inspected:
    """The request or, for the role `response`, the answer that a line tells. Never raises."""
    try:
        logged = entry(text)
    except LogError as error:
        return Inspected([], [], str(error), 0)
    is_request = role != "response"
    nodes = [*_head(logged, is_request)]
    try:
        value = body_value(logged, "request" if is_request else "response")
    except DecodeError as error:
        return Inspected(nodes, [], str(error), 0)
    if value is None:
        return Inspected(nodes, [], "no schema covers this version", 0)
    room = [MAX_NODES]
    fields = [*_fields(value, room)]
    # A line has no bytes of single fields: what is closed is closed in the tree alone.
    list(close(fields, closed_fields(logged.api_key)))
    too_many = None if room[0] > 0 else "the message has more fields than are shown"
    return without_secrets(b"", Inspected([*nodes, *fields], [], too_many, 0))


def _head(logged: Entry, is_request: bool) -> Iterator[Node]:
    """The header, and what the broker adds to the message."""
    told: dict[str, Any]
    if is_request:
        told = {
            "api_key": logged.api_key,
            "api_version": logged.version,
            "correlation_id": logged.correlation_id,
            "client_id": logged.client_id,
            "principal": None if logged.principal is None else closed_user(logged.principal),
            "listener": logged.listener,
            "security_protocol": logged.security_protocol,
        }
    else:
        times = {f"{name}_ms": value for name, value in logged.times._asdict().items()}
        told = {"correlation_id": logged.correlation_id, **times}
    for name, value in told.items():
        yield Node(name, 0, 0, value)


def _fields(value: Mapping[str, Any], room: list[int]) -> Iterator[Node]:
    """The fields of a struct. room: how many more nodes there may be."""
    setting = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)
    for name, inner in value.items():
        is_setting = setting is not None and name in _VALUES and isinstance(inner, str)
        yield from _node(name, shown(setting or "", inner) if is_setting else inner, room)


def _node(name: str, value: Any, room: list[int]) -> Iterator[Node]:
    """The node of a value; none where there is no room for it."""
    if room[0] <= 0:
        return
    room[0] -= 1
    if isinstance(value, dict):
        yield Node(name, 0, 0, None, [*_fields(value, room)])
    elif isinstance(value, list):
        inner = [node for place, one in enumerate(value) for node in _node(f"[{place}]", one, room)]
        yield Node(name, 0, 0, value, inner)
    elif isinstance(value, tuple) and value[0] == UNSEEN:
        yield Node(f"{name}_bytes", 0, 0, value[1])
    else:
        yield Node(name, 0, 0, MASKED["string"] if value == MASKED["bytes"] else value)


READER = LogReader(entry, LoggedKafka, MEANINGS, inspect_line)

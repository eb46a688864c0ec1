"""The bodies of an entry as decoded values, in the form in which the broker read and wrote them."""

from __future__ import annotations

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.headers import API_VERSIONS, UNSUPPORTED_VERSION
from wirewitness.dissectors.kafka.request_log.entry import Entry
from wirewitness.dissectors.kafka.request_log.values import reader
from wirewitness.dissectors.kafka.schema.definitions import Direction
from wirewitness.dissectors.kafka.schema.primitives import Value

UNREAD = "the broker does not know this version, so nothing of it is logged"


def is_refused(logged: Entry) -> bool:
    """Is it an ApiVersions request that the broker could not read? It answers in the form of version 0 (KIP-511)."""
    answer = logged.response
    return (
        logged.api_key == API_VERSIONS and isinstance(answer, dict) and answer.get("errorCode") == UNSUPPORTED_VERSION
    )


def body_value(logged: Entry, direction: Direction) -> Value | None:
    """The value; None where no schema covers the version. Raises DecodeError."""
    version = logged.version
    if is_refused(logged):
        if direction == "request":
            raise DecodeError(UNREAD)
        version = 0
    read = reader(logged.api_key, version, direction)
    return None if read is None else read(logged.request if direction == "request" else logged.response)

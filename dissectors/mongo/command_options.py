"""Options that many commands share: session, transaction, concerns, limits.

In: the value of a field of a command. Out: the value of a column of mongo_commands. Sources: driver sessions, read and
write concern, server selection specifications.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import bson

from wirewitness.dissectors.mongo.bson_fields import BINARY, DOCUMENT, Span, boolean, inner, integer, raw_bytes, text


def _lsid(data: bytes, span: Span) -> str | None:
    """The UUID of a session; drivers write nothing but {id: UUID}."""
    _, start, end = span
    if end - start == 30 and data[start + 4 : start + 13] == b"\x05id\0\x10\0\0\0\x04":
        return uuid_text(data[start + 13 : end - 1])
    found = inner(data, span).get(b"id")
    value = raw_bytes(data, found)
    return None if value is None or len(value) != 16 or found is None or found[0] != BINARY else uuid_text(value)


@lru_cache(maxsize=4096)
def uuid_text(value: bytes) -> str:
    """16 bytes as a UUID is written."""
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _mode(data: bytes, span: Span) -> str | None:
    return text(data, inner(data, span).get(b"mode"))


def _level(data: bytes, span: Span) -> str | None:
    return text(data, inner(data, span).get(b"level"))


def _concern(data: bytes, span: Span) -> str | None:
    return _small_json(data[span[1] : span[2]]) if span[0] == DOCUMENT and span[2] - span[1] <= 1024 else None


@lru_cache(maxsize=256)
def _small_json(value: bytes) -> str | None:
    """A small document as JSON."""
    try:
        return json.dumps(bson.decode(value), default=str)
    except Exception:  # pymongo's bson raises what it likes on broken values
        return None


def _there(data: bytes, span: Span) -> bool:
    """Is it a document that says something?"""
    return span[0] == DOCUMENT and span[2] - span[1] > 5


# Field of a command -> column and how its value is read.
OPTIONS: dict[bytes, tuple[str, Callable[[bytes, Span], Any]]] = {
    b"lsid": ("lsid", _lsid),
    b"txnNumber": ("txn_number", integer),
    b"startTransaction": ("start_transaction", boolean),
    b"autocommit": ("autocommit", boolean),
    b"$readPreference": ("read_preference", _mode),
    b"readConcern": ("read_concern", _level),
    b"writeConcern": ("write_concern", _concern),
    b"batchSize": ("batch_size", integer),
    b"limit": ("limit", integer),
    b"skip": ("skip", integer),
    b"sort": ("has_sort", _there),
    b"projection": ("has_projection", _there),
    b"maxTimeMS": ("max_time_ms", integer),
    b"maxAwaitTimeMS": ("await_time_ms", integer),
    b"noCursorTimeout": ("no_cursor_timeout", boolean),
    b"tailable": ("tailable", boolean),
    b"cursor": ("batch_size", lambda data, span: integer(data, inner(data, span).get(b"batchSize"))),
}

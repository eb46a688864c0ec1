"""What a reply says: success or error, documents, counts, the cursor.

In: a decoded reply. Out: facts under the names of mongo_commands' columns. Sources: database command reference, CRUD,
retryable writes and transactions specifications (errorLabels), bulkWrite command; OP_REPLY flags: wire protocol page.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from wirewitness.dissectors.core.secrets import MASK
from wirewitness.dissectors.mongo.bson_fields import (
    ARRAY,
    DOCUMENT,
    Fields,
    Span,
    boolean,
    count_elements,
    element_spans,
    inner,
    integer,
    text,
    texts,
)
from wirewitness.dissectors.mongo.command_shapes import id_of_document
from wirewitness.dissectors.mongo.error_codes import ERROR_NAMES
from wirewitness.dissectors.mongo.messages import Message
from wirewitness.dissectors.mongo.opcodes import OP_REPLY
from wirewitness.dissectors.mongo.rows import Facts

CURSOR_NOT_FOUND, QUERY_FAILURE = 1 << 0, 1 << 1
CURSOR_NOT_FOUND_CODE = 43
MAX_WRITE_ERRORS = 10_000
MAX_LABELS = 20


class Outcome(NamedTuple):
    """ok: None where the reply does not say. code: of the first error, 0 for none; None where nothing is readable."""

    ok: bool | None
    code: int | None
    name: str | None
    status: str


FINE = Outcome(True, 0, ERROR_NAMES[0], "ok")
_DOUBLE_ONE = struct.pack("<d", 1)
# Fields of a reply that says ok and tells an error nevertheless.
ERRORS = frozenset({b"writeErrors", b"writeConcernError", b"err", b"nErrors"})
_UNREADABLE = Outcome(None, None, None, "ok")


def outcome(message: Message, to_command: bool) -> Outcome:
    """Success or the first error of a reply: of the command, else of a write, else of the write concern.

    to_command: the reply answers a command; else an OP_REPLY holds documents, in which `ok` may mean anything.
    """
    data, fields = message.data, message.body
    if message.opcode == OP_REPLY:
        failed = _legacy_failure(message)
        if failed is not None:
            return failed
        if not to_command:
            return _UNREADABLE if message.error is not None else Outcome(None, 0, ERROR_NAMES[0], "ok")
    if fields is None or b"ok" not in fields:
        return _UNREADABLE
    ok = fields[b"ok"]
    if data[ok[1] : ok[2]] == _DOUBLE_ONE and ERRORS.isdisjoint(fields):  # nearly every reply
        return FINE
    if not boolean(data, ok):
        return _failed(False, data, fields)
    if b"writeErrors" in fields:
        first = next(iter(element_spans(data, fields[b"writeErrors"], 1)), None)
        if first is not None:
            return _failed(True, data, inner(data, first))
    if integer(data, fields.get(b"nErrors")):  # bulkWrite; the statement that failed may be in a later batch
        return _failed(True, data, next(_failed_statements(data, fields), {}))
    if b"writeConcernError" in fields:
        return _failed(True, data, inner(data, fields[b"writeConcernError"]))
    if b"err" in fields and text(data, fields[b"err"]) is not None:  # getLastError
        return _failed(True, data, fields)
    return FINE


def _failed(ok: bool, data: bytes, fields: Fields) -> Outcome:
    code = integer(data, fields.get(b"code"))
    name = text(data, fields.get(b"codeName")) or (None if code is None else ERROR_NAMES.get(code))
    return Outcome(ok, code, name, "error")


def _legacy_failure(message: Message) -> Outcome | None:
    """The errors that OP_REPLY itself tells."""
    if message.flags & CURSOR_NOT_FOUND:
        return Outcome(False, CURSOR_NOT_FOUND_CODE, ERROR_NAMES[CURSOR_NOT_FOUND_CODE], "error")
    fields = message.body or {}
    if message.flags & QUERY_FAILURE or (message.legacy and message.legacy.documents == 1 and b"$err" in fields):
        return _failed(False, message.data, fields)
    return None


def reply_facts(command: str | None, message: Message, found: Outcome, to_command: bool) -> Facts:
    """Everything else that a reply tells; `command` is what it answers, to_command as with `outcome`."""
    data, fields = message.data, message.body
    facts: Facts = {"ok": found.ok, "error_code": found.code, "error_name": found.name}
    legacy = message.legacy
    if legacy is not None and legacy.cursor_id is not None and not to_command:
        facts["documents_returned"] = 0 if message.flags & QUERY_FAILURE else legacy.documents
        _add_cursor(facts, legacy.cursor_id)
        return facts
    if fields is None:
        return facts
    for key, span in fields.items():
        add = ADD.get(key)
        if add is not None:
            add(facts, data, span)
    if command in ("findAndModify", "findandmodify") and b"value" in fields:
        kind, start, end = fields[b"value"]
        facts["documents_returned"] = int(kind == DOCUMENT)
        given = id_of_document(data, start, end) if kind == DOCUMENT else None
        if given is not None:
            facts["document_ids"] = [given]
    elif command == "bulkWrite":
        counts = [integer(data, fields.get(key)) for key in (b"nInserted", b"nMatched", b"nDeleted")]
        facts["n"] = sum(count for count in counts if count is not None)
        if facts.get("write_errors"):
            _add_codes(facts, [integer(data, one.get(b"code")) for one in _failed_statements(data, fields)])
    return facts


def stopped_at(message: Message) -> int | None:
    """The place of the statement at which an ordered bulkWrite stopped; None where the reply tells none."""
    fields = message.body or {}
    if not integer(message.data, fields.get(b"nErrors")):
        return None
    failed: Fields = next(_failed_statements(message.data, fields), {})
    return integer(message.data, failed.get(b"idx"))


def _failed_statements(data: bytes, fields: Fields) -> Iterator[Fields]:
    """The statements of a bulkWrite that its first batch says were refused."""
    batch = inner(data, fields.get(b"cursor")).get(b"firstBatch")
    if batch is not None and batch[0] == ARRAY:
        for span in element_spans(data, batch, MAX_WRITE_ERRORS):
            statement = inner(data, span)
            if boolean(data, statement.get(b"ok")) is False:
                yield statement


# `E11000 duplicate key error collection: shop.users index: email_1 dup key: { email: "a@b.org" }`, since MongoDB 4.2.
_DUPLICATE = re.compile(r"(E11\d{3} duplicate key error[^{]{0,512}dup key: )\{(.{0,4096})\}", re.DOTALL)
_KEY = re.compile(r"(?:^|, )([\w.$-]{0,128}): ")


def duplicate_key(text: str | None) -> str | None:
    """What may be said of such an error without payload: collection, index and the names of its keys; else None."""
    found = _DUPLICATE.match(text or "")
    if found is None:
        return None
    unquoted = re.sub(r'"(?:[^"\\]|\\.){0,4096}"', "", found[2].strip())
    return f"{found[1]}{{ {', '.join(f'{key}: {MASK}' for key in _KEY.findall(unquoted)) or MASK} }}"


def error_message(message: Message) -> str | None:
    """The server's words on the first error. They may repeat values of documents."""
    data, fields = message.data, message.body or {}
    for key in (b"errmsg", b"$err", b"err"):
        if (found := text(data, fields.get(key))) is not None:
            return found
    for span in element_spans(data, fields[b"writeErrors"], 1) if b"writeErrors" in fields else ():
        return text(data, inner(data, span).get(b"errmsg"))
    if integer(data, fields.get(b"nErrors")):
        return text(data, next(_failed_statements(data, fields), {}).get(b"errmsg"))
    return text(data, inner(data, fields.get(b"writeConcernError")).get(b"errmsg"))


def cursor_of(message: Message) -> int | None:
    """The cursor id that a reply carries, 0 for an exhausted one."""
    legacy = message.legacy
    if legacy is not None and legacy.cursor_id is not None:
        return legacy.cursor_id
    return integer(message.data, inner(message.data, (message.body or {}).get(b"cursor")).get(b"id"))


def _batch(facts: Facts, data: bytes, span: Span) -> None:
    cursor = inner(data, span)
    cursor_id = integer(data, cursor.get(b"id"))
    batch = cursor.get(b"firstBatch") or cursor.get(b"nextBatch")
    if batch is not None and batch[0] == ARRAY:
        facts["documents_returned"] = count_elements(data, batch)
    if cursor_id is not None:
        _add_cursor(facts, cursor_id)


def _add_cursor(facts: Facts, cursor_id: int) -> None:
    facts["cursor_exhausted"] = cursor_id == 0
    if cursor_id:
        facts["cursor_id"] = cursor_id


def _write_errors(facts: Facts, data: bytes, span: Span) -> None:
    elements = element_spans(data, span, MAX_WRITE_ERRORS) if span[0] == ARRAY else []
    codes = [integer(data, inner(data, element).get(b"code")) for element in elements]
    facts["write_errors"] = len(elements)
    _add_codes(facts, codes)


def _add_codes(facts: Facts, codes: list[int | None]) -> None:
    known = sorted({code for code in codes if code is not None})
    facts["write_error_codes"] = known
    facts["write_error_names"] = ",".join(ERROR_NAMES.get(code, str(code)) for code in known) or None


def _concern_error(facts: Facts, data: bytes, span: Span) -> None:
    failed = _failed(True, data, inner(data, span))
    facts["write_concern_error_code"] = failed.code
    facts["write_concern_error_name"] = failed.name


def _labels(facts: Facts, data: bytes, span: Span) -> None:
    facts["error_labels"] = ",".join(texts(data, span, MAX_LABELS)) or None


def _upserted(facts: Facts, data: bytes, span: Span) -> None:
    facts["upserted"] = count_elements(data, span) if span[0] == ARRAY else 1


def _values(facts: Facts, data: bytes, span: Span) -> None:
    if span[0] == ARRAY:
        facts["documents_returned"] = count_elements(data, span)


def _last_error(facts: Facts, data: bytes, span: Span) -> None:
    facts["n"] = integer(data, inner(data, span).get(b"n"))


def _number(column: str) -> Callable[[Facts, bytes, Span], None]:
    """Takes a number over into a column."""

    def add(facts: Facts, data: bytes, span: Span) -> None:
        facts[column] = integer(data, span)

    return add


# Field of a reply -> the column that takes its number over.
NUMBERS = {b"n": "n", b"nModified": "n_modified", b"nUpserted": "upserted", b"nErrors": "write_errors"}
# Field of a reply -> what it adds to the facts.
ADD: dict[bytes, Callable[[Facts, bytes, Span], None]] = {
    b"cursor": _batch,
    **{key: _number(column) for key, column in NUMBERS.items()},
    b"writeErrors": _write_errors,
    b"writeConcernError": _concern_error,
    b"errorLabels": _labels,
    b"upserted": _upserted,
    b"values": _values,
    b"lastErrorObject": _last_error,
}

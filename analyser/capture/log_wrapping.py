"""Lines of a log as runtimes and layouts wrap them. In: bytes of whole lines. Out: what the program itself wrote.

Container runtimes cut long lines into parts (16 KiB): Docker's json-file writes an object for each, whose text ends
with a line feed in the last one only; CRI marks each with P, the last one with F. Layouts of JSON (JsonLayout and
JsonTemplateLayout of log4j2, logstash, GELF, ECS) hold the message as a text of an object, with quotes escaped.
Sources: moby's jsonfilelog, the CRI log format (KEP kubelet-cri-logging), log4j2's manual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

_CRI = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20} (stdout|stderr) ([PF])(?::\S{0,64})? ")
_DOCKER, _DOCKER_ENDS = b'{"log":"', b'","stream":"'
# Names under which layouts and shippers have the time of a line, in lower case.
_TIMES = frozenset({"instant", "timemillis", "@timestamp", "timestamp", "time", "ts", "date", "datetime", "@t"})
_MOST_TIME = 64
# How deep objects lie in each other, and texts of JSON in texts of JSON.
_MOST_DEPTH, _MOST_WRAPPERS = 8, 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers from here on count ms, us and ns; smaller ones seconds (of the years up to 2286).
_UNITS = ((Decimal(10) ** 17, 9), (Decimal(10) ** 14, 6), (Decimal(10) ** 11, 3))


class _Part(NamedTuple):
    """Where the program's own text lies in a line of a runtime. stream: which of its outputs."""

    stream: bytes
    begin: int
    end: int
    is_last: bool


def is_part(text: bytes | bytearray, begin: int, end: int) -> bool:
    """Is this line one part of a longer one, and not the last of it?"""
    part = _part(text, begin, end)
    return part is not None and not part.is_last


def joined(text: bytes | bytearray, begin: int, end: int, mark: bytes, most: int) -> tuple[bytes, bool]:
    """The line text[begin:end], which is a part, with the parts that follow it in `text`.

    mark: what only the first part of a line holds. most: so many bytes are joined. False: its end is not there yet.
    """
    first = _part(text, begin, end)
    if first is None:
        return bytes(text[begin:end]), True
    pieces, size, at, is_whole = [bytes(text[first.begin : first.end])], end - begin, end + 1, False
    while not is_whole and at < len(text) and size <= most:
        behind = text.find(b"\n", at)
        behind = len(text) if behind < 0 else behind
        part = _part(text, at, behind)
        if part is not None and part.stream == first.stream:
            if text.find(mark, part.begin, part.end) >= 0:  # the rest of the first one is missing
                is_whole = True
                break
            pieces.append(bytes(text[part.begin : part.end]))
            size += part.end - part.begin
            is_whole = part.is_last
        at = behind + 1
    whole = bytes(text[begin : first.begin]) + b"".join(pieces) + bytes(text[first.end : end])
    return whole, is_whole or size > most


def _part(text: bytes | bytearray, begin: int, end: int) -> _Part | None:
    if text.startswith(_DOCKER, begin, end):
        # A quote inside the text is escaped, so this is its end.
        behind = text.find(_DOCKER_ENDS, begin, end)
        if behind < 0:
            return None
        stream_at = behind + len(_DOCKER_ENDS)
        stream = bytes(text[stream_at : stream_at + 6])
        return _Part(stream, begin + len(_DOCKER), behind, text.endswith(b"\\n", begin, behind))
    found = _CRI.match(text, begin, end)
    return None if found is None else _Part(found[1], found.end(), end, found[2] == b"F")


def message_of(line: bytes, mark: bytes) -> tuple[bytes, bytes] | None:
    """What stands before the mark and behind it in the text that the objects of a line hold; None where none does.

    The times that the objects name come first, the innermost before the others, as Unix or ISO times in UTC.
    """
    times: list[bytes] = []
    for _ in range(_MOST_WRAPPERS):
        begin, at = line.find(b"{"), line.find(mark)
        if not 0 <= begin < at:
            return None
        try:
            wrapper = json.JSONDecoder(parse_float=Decimal).raw_decode(line[begin:].decode("utf-8", "backslashreplace"))
        except (ValueError, RecursionError):
            return None
        times = [*_times(wrapper[0]), line[:begin], *times]
        text = next(_texts(wrapper[0], mark.decode(), 0), None)
        if text is None:
            return None
        line = text.encode("utf-8", "backslashreplace")
        before, _, behind = line.partition(mark)
        if not behind.startswith(b"{\\"):
            return b" ".join((*times, before)), behind.rstrip(b"\r\n")
    return None


def _texts(value: Any, mark: str, depth: int) -> Iterator[str]:
    """The texts with the mark."""
    if isinstance(value, str):
        if mark in value:
            yield value
    elif isinstance(value, dict | list) and depth < _MOST_DEPTH:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner, mark, depth + 1)


def _times(wrapper: Any) -> Iterator[bytes]:
    """The times that an object names."""
    for name, value in wrapper.items() if isinstance(wrapper, dict) else ():
        if name.lower() not in _TIMES:
            continue
        if isinstance(value, dict):
            time = _of_instant(value.get("epochSecond"), value.get("nanoOfSecond", 0))
        elif isinstance(value, str):
            time = value[:_MOST_TIME].encode("utf-8", "replace")
        else:
            time = _of_number(value)
        if time is not None:
            yield time


def _of_instant(seconds: Any, ns: Any) -> bytes | None:
    if type(seconds) is not int or type(ns) is not int or not 0 <= ns < 10**9:
        return None
    return _iso(seconds, ns)


def _of_number(value: Any) -> bytes | None:
    if type(value) not in (int, Decimal):
        return None
    try:
        number = Decimal(value)
        digits = next((digits for least, digits in _UNITS if number >= least), 0)
        seconds, fraction = divmod(number.scaleb(-digits), 1)
        return _iso(int(seconds), int(fraction.scaleb(9)))
    except (InvalidOperation, OverflowError, ValueError):
        return None


def _iso(seconds: int, ns: int) -> bytes | None:
    try:
        return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.{ns:09}Z".encode()
    except OverflowError:
        return None

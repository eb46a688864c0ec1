"""What changed between two payloads. In: their bytes; out: places with what stood there before and after.

JSON is compared value by value, other text and bytes by the part that differs. Time and size are linear in the
payloads and bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from zlib import crc32

from wirewitness.analyser.base.bounded import beginning
from wirewitness.analyser.base.words import shared_start

MOST_BYTES = 1 << 20
MOST_CHANGES = 100
# Of an unchanged beginning or end, beside the part that differs.
_AROUND = 24
_LONGEST_VALUE = 400
_CUT = ".."
_LONGEST_KEY = 80
_MOST_VALUES, _DEEPEST = 20_000, 64


class Change(NamedTuple):
    """place: a path in JSON, or the bytes or characters that differ. None: nothing stood there."""

    place: str
    before: str | None
    after: str | None


class Changes(NamedTuple):
    """What differs, the first MOST_CHANGES of it; left: how many more. kind: JSON, text, bytes."""

    kind: str
    changes: tuple[Change, ...]
    left: int = 0


def payload_changes(before: bytes, after: bytes) -> Changes:
    """What to change in `before` to get `after`; only the first MOST_BYTES of each are looked at."""
    one, other = before[:MOST_BYTES], after[:MOST_BYTES]
    if one == other:
        return Changes("bytes", ())
    values = _values(one), _values(other)
    if values[0] is not None and values[1] is not None:
        changes = list(_between(values[0], values[1]))
        return Changes("JSON", tuple(changes[:MOST_CHANGES]), max(len(changes) - MOST_CHANGES, 0))
    texts = _text(one), _text(other)
    if texts[0] is not None and texts[1] is not None:
        return Changes("text", (_part(texts[0], texts[1], "characters"),))
    return Changes("bytes", (_part(one, other, "bytes"),))


def _between(before: dict[str, str], after: dict[str, str]) -> Iterator[Change]:
    for path in dict.fromkeys([*after, *before]):
        if before.get(path) != after.get(path):
            yield Change(path, before.get(path), after.get(path))


def _values(data: bytes) -> dict[str, str] | None:
    """Path -> value as JSON of every value that holds no others; None where it is no JSON object or list."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict | list):
        return None
    values: dict[str, str] = {}
    waiting: list[tuple[str, int, Any]] = [("", 0, found)]
    while waiting:
        path, depth, value = waiting.pop()
        if len(values) + len(waiting) > _MOST_VALUES:
            return None
        inside = _inside(value) if depth < _DEEPEST else ()
        if inside:
            waiting += [(f"{path}{step}", depth + 1, one) for step, one in reversed(inside)]
        else:
            values[path.removeprefix(".")] = _cut(json.dumps(value, ensure_ascii=False))
    return values


def _inside(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f".{_key(name)}", one) for name, one in value.items()]
    return [(f"[{place}]", one) for place, one in enumerate(value)] if isinstance(value, list) else []


def _key(name: str) -> str:
    """A long one is said in every path below it, so it is cut; its CRC-32 tells it from others."""
    return name if len(name) <= _LONGEST_KEY else f"{name[:_LONGEST_KEY]}..{crc32(name.encode('utf-8', 'replace')):08x}"


def _part(before: Any, after: Any, unit: str) -> Change:
    """The part between what both begin and end with, with a little of that."""
    start = shared_start(before, after)
    end = shared_start(before[start:][::-1], after[start:][::-1])
    stop = max(len(before), len(after)) - end
    place = f"{unit} {start} to {stop - 1}" if stop - 1 > start else f"{unit[:-1]} {start}"
    return Change(place, *(_around(one, start, len(one) - end) for one in (before, after)))


def _around(whole: str | bytes, start: int, stop: int) -> str:
    first, last = max(start - _AROUND, 0), stop + _AROUND
    part = whole[first : min(last, first + _LONGEST_VALUE)]
    text = part.hex(" ") if isinstance(part, bytes) else part
    return f"{'..' if first else ''}{text}{'..' if first + len(part) < len(whole) else ''}"


def _text(data: bytes) -> str | None:
    """The payload as text, where it is some."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(one.isprintable() or one in "\t\r\n" for one in text) else None


def _cut(text: str) -> str:
    return beginning(text, _LONGEST_VALUE + len(_CUT), _CUT)

"""Answers that stay small, whatever they tell of: one owner of how texts, lists and values are cut.

In: what is to be shown, and how much of it. Out: as much, and how much was left out. Names in tables have their
own limit where they are decoded; here is what people and programs are told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

# Characters of one message of the program (an error, a remark) with what it quotes; of one thing that is quoted.
MOST_MESSAGE = 4_000
MOST_QUOTED = 200
# Texts and lists of an answer are cut so far, one after the other, until it is small enough.
_STEPS = ((10_000, 1_000), (2_000, 100), (200, 20))
_DEEPEST = 50
_LEFT_OUT = " … ({:,} characters left out) … "


def beginning(text: str, most: int, mark: str = "…") -> str:
    """At most `most` characters; where the text is longer, `mark` stands at their end."""
    return text if len(text) <= most else f"{text[: most - len(mark)]}{mark}"


def both_ends(text: str, most: int, end: int, mark: str = "…") -> str:
    """At most `most` characters, of which `end` are the last ones of a longer text: they tell ids of one kind apart."""
    if len(text) <= most:
        return text
    return f"{text[: most - end - len(mark)]}{mark}{text[len(text) - end :]}"


def bounded(text: str, most: int = MOST_MESSAGE) -> str:
    """At most `most` characters (100 at least). Of a longer text both ends, since a message begins with what is wrong
    and ends with what to do, and how many characters are missing between them."""
    if len(text) <= most:
        return text
    mark = _LEFT_OUT.format(len(text))  # as long as the number that is left out can be
    kept = max(most, 100) - len(mark)
    head = (kept + 1) // 2
    return f"{text[:head]}{_LEFT_OUT.format(len(text) - kept)}{text[len(text) - (kept - head) :]}"


def excerpt(text: str) -> str:
    """What a sentence quotes of what somebody gave."""
    return bounded(text, MOST_QUOTED)


def bounded_value(value: Any, characters: int, items: int, levels: int = _DEEPEST) -> Any:
    """A value of JSON with its texts cut, and its lists and objects after so many items, at all levels: a last item
    says how many are left out. Below so many levels nothing is shown."""
    if levels == 0 and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, str):
        return bounded(value, characters)
    if isinstance(value, Mapping):
        kept = {
            bounded(str(k), characters): bounded_value(v, characters, items, levels - 1)
            for k, v in islice(value.items(), items)
        }
        return {**kept, **({"…": _more(value, items)} if len(value) > items else {})}
    if isinstance(value, list | tuple):
        kept_items = [bounded_value(one, characters, items, levels - 1) for one in islice(value, items)]
        return [*kept_items, *([_more(value, items)] if len(value) > items else [])]
    return value


def bounded_lines(lines: Iterable[str], most: int, most_bytes: int) -> tuple[list[str], bool]:
    """The first lines, at most so many and so many bytes of UTF-8 with their ends; whether there are more. Of a line
    that is longer than all of that both ends."""
    kept: list[str] = []
    left = most_bytes
    for whole in lines:
        line = whole if _bytes(whole) < most_bytes else bounded(whole, most_bytes // 4)
        size = _bytes(line) + 1
        if len(kept) == most or size > left:
            return kept, True
        kept.append(line)
        left -= size
    return kept, False


def bounded_json(line: str, most_bytes: int) -> str:
    """A line of JSON, its texts and lists cut as far as it takes to have at most so many bytes (1,000 at least)."""
    if _bytes(line) <= most_bytes:
        return line
    try:
        value = json.loads(line)
    except RecursionError:
        value = line
    for characters, items in _STEPS:
        line = json.dumps(bounded_value(value, characters, items))
        if _bytes(line) <= most_bytes:
            return line
    return json.dumps(bounded(line, max(100, most_bytes // 10)))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _more(value: Mapping[Any, Any] | Sequence[Any], items: int) -> str:
    return f"… ({len(value) - items:,} more left out)"

"""Numbers and texts in words, for findings and reports alike. In: values. Out: short English."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any, AnyStr

from wirewitness.analyser.base.bounded import beginning

# Control, format (text direction, zero width, tags), line and paragraph separators, lone surrogates.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
# How a name ends that tables hold only the beginning of: a regular expression, for SQL too. Its dots may be masked.
CUT_NAME = r" \(\d+ characters, [0-9a-f]{16}\)$"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 packet`, `2,500 packets`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def number_word(number: int) -> str:
    """`two`, `nine`, `10`: as a number stands in a sentence."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if 0 <= number < len(words) else f"{number:,}"


def times(number: int) -> str:
    """`once`, `twice`, `7 times`."""
    return {1: "once", 2: "twice"}.get(number, count(number, "time"))


def names_text(names: Sequence[str], most: int = 5) -> str:
    """`a, b and 3 more`; all of them where there are at most so many."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return ", ".join(names)


def sentence_start(text: str) -> str:
    """The text with a capital letter; names in it stay as they are."""
    return text[:1].upper() + text[1:]


def shown(value: object, form: str = "") -> str:
    """The value in that format, `?` where it is not known: no sentence says None."""
    return "?" if value is None else format(value, form)


def printable(text: str, most: int | None = None) -> str:
    """The text with control and direction characters as escapes, cut after `most` characters.

    Names come from the wire: a client id must not be able to write on a terminal.
    """
    if most is not None:
        text = beginning(text, most)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def rest_of_name(characters: int, digest: str) -> str:
    """What stands for the rest of a name that is cut: of so many characters, with a digest of 16 hex digits."""
    return f"... ({characters} characters, {digest})"


def is_unsafe(char: str) -> bool:
    """Does a terminal or a page obey the character instead of showing it?"""
    return unicodedata.category(char) in _UNSAFE_CATEGORIES


def json_text(value: Any, *, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """JSON that keeps every value as it is and holds no character that a terminal obeys, line ends of its own aside."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)
    if text.isprintable():
        return text
    return "".join(json.dumps(c)[1:-1] if c != "\n" and is_unsafe(c) else c for c in text)


def shared_start(one: AnyStr, other: AnyStr) -> int:
    """With how many equal characters or bytes both begin."""
    least = min(len(one), len(other))
    return next((place for place in range(least) if one[place] != other[place]), least)

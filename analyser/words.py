"""Numbers and texts in words, for findings and reports alike. In: values. Out: short English."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 packet`, `2,500 packets`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


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


def printable(text: str, most: int | None = None) -> str:
    """The text with control and direction characters as escapes, cut after `most` characters.

    Names come from the wire: a client id must not be able to write on a terminal.
    """
    if most is not None and len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)

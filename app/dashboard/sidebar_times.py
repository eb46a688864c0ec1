"""Times as people write them. In: text; out: Unix ns, and the other way round; all in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from wirewitness.reports.base.formats.values import time_text


def moment_words(at_ns: int, with_day: bool) -> str:
    """A time in UTC to the ms, as `moment_ns` reads it."""
    text = time_text(at_ns)[:23]
    return text if with_day else text[11:]


def moment_ns(text: str, day_of_ns: int) -> int | None:
    """Unix ns of a time in UTC that somebody wrote, without a day on the day of `day_of_ns`; None: it is no time."""
    words = text.strip().removesuffix("Z").replace(" ", "T")
    if "T" not in words:
        words = f"{time_text(day_of_ns)[:10]}T{words}"
    whole, _, fraction = words.partition(".")
    try:
        at = datetime.fromisoformat(whole).replace(tzinfo=UTC)
        rest = int(f"{fraction:0<9}"[:9]) if fraction else 0
    except ValueError:
        return None
    return int(at.timestamp()) * 1_000_000_000 + rest

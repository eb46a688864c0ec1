"""Times on the command line: ISO 8601 text to Unix ns. Without a zone it is UTC, as all times that are printed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_PATTERN = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<minutes>\d{2}:\d{2})(?P<seconds>:\d{2})?(?(seconds)(?:[.,](?P<fraction>\d{1,9}))?)"
    r"(?P<zone>Z|[+-]\d{2}:?\d{2})?)?",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_NS = 2**63 - 1


def unix_ns(text: str) -> int:
    """Unix ns of an ISO 8601 date or time with up to 9 digits of fraction. ValueError otherwise."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time such as 2026-11-20T10:52:44 or 2026-11-20T10:52:44.123456789Z")
    try:
        clock = (match["minutes"] or "00:00") + (match["seconds"] or "")
        moment = datetime.fromisoformat(f"{match['date']}T{clock}{(match['zone'] or 'Z').upper()}")
        whole_seconds = (moment - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None
    ns = whole_seconds * 1_000_000_000 + int((match["fraction"] or "").ljust(9, "0"))
    if abs(ns) > _LARGEST_NS:
        raise ValueError(f"{text!r} is outside the years 1678 to 2261 that timestamps in ns can hold")
    return ns

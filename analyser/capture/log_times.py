"""When a line of a log was written. In: what stands before its message. Out: Unix time in ns.

log4j writes dates as its layout says: ISO 8601 with a comma or a point before the fraction and a blank or a T before
the time (Kafka's own `%d`, `%d{ISO8601}`), hardly ever with a zone, or Unix ms (`%d{UNIX_MILLIS}`). Container runtimes
put a date of their own in front, with a zone: that one is taken, since the other's zone is anybody's guess.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_DATE = re.compile(rb"(?<!\d)(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|[+-]\d\d:?\d\d)(?![\d:]))?")
_UNIX_MS = re.compile(rb"(?<![\d.,:-])(1\d{12})(?!\d)")
# Layouts and runtimes put less than this in front of a message.
_PREFIX_BYTES = 1024
_YEARS = range(1971, 2262)
_NS_PER_S = 1_000_000_000


class LineTimes:
    """Reads the times of lines. zone_ns: how far the zone of times that name none is ahead of UTC, None for unknown.

    without_zone: lines whose time named none. without_fraction: lines whose time is cut to the second.
    """

    def __init__(self, zone_ns: int | None) -> None:
        self._ahead_ns = zone_ns or 0
        self.without_zone = self.without_fraction = 0

    def of(self, prefix: bytes) -> int | None:
        """The time in what stands before a message; None where there is none."""
        dates = [*_DATE.finditer(prefix, max(0, len(prefix) - _PREFIX_BYTES))]
        if dates:
            date, fraction, zone = next((one for one in dates if one[3]), dates[-1]).groups()
            seconds = _seconds(date)
            zone_ns = None if zone is None else _zone_or_none(zone)
            if seconds is not None and (zone is None) == (zone_ns is None):
                ns = seconds * _NS_PER_S + int((fraction or b"0").ljust(9, b"0"))
                self.without_fraction += fraction is None
                if zone_ns is None:
                    self.without_zone += 1
                return ns - (self._ahead_ns if zone_ns is None else zone_ns)
        ms = _UNIX_MS.search(prefix[-_PREFIX_BYTES:])
        return None if ms is None else int(ms[1]) * 1_000_000


def zone_ns_of(text: str) -> int:
    """ns that a zone such as +02:00, -0330 or Z is ahead of UTC. ValueError for anything else."""
    if text in ("Z", "z"):
        return 0
    found = re.fullmatch(r"([+-])(\d\d):?(\d\d)", text, re.ASCII)
    if found is None or int(found[2]) > 18 or int(found[3]) > 59:
        raise ValueError(f"{text!r} is no zone such as +02:00")
    ns = (int(found[2]) * 3600 + int(found[3]) * 60) * _NS_PER_S
    return -ns if found[1] == "-" else ns


def _zone_or_none(zone: bytes) -> int | None:
    try:
        return zone_ns_of(zone.decode())
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _seconds(text: bytes) -> int | None:
    try:
        moment = datetime.fromisoformat(text.decode()).replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) if moment.year in _YEARS else None

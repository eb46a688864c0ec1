"""Connections that were opened for a request or two and are left open.

In: connections of one application with their hellos, and the times of their work. Out: those of one server that are
open and idle at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.engine.rules.frame_rows import Row

# Where more of them end before the last one begins, somebody closes them.
_NEARLY_ALL = 0.9


class Short(NamedTuple):
    """A connection for a request or two. begun_ns: of its work, None without one in the capture."""

    flow: Row
    hello: Row
    begun_ns: int | None


def lasted_ns(flow: Row) -> float:
    """How long a connection was open; for ever where its end is not in the capture."""
    return math.inf if flow["ts_closed"] is None else flow["ts_closed"] - flow["ts_first"]


def left_open(
    mine: Mapping[str, Row],
    opened: Mapping[str, Row],
    work: Mapping[str, Sequence[int]],
    commands_most: int,
    idle_ns: float,
) -> list[Short]:
    """The connections to one server that did a little at their beginning and rest since, all open at once."""
    by_server: dict[str, list[Short]] = {}
    for name, hello in mine.items():
        flow, did = opened[name], work.get(name, ())
        if 0 < len(did) <= commands_most and max(did) - flow["ts_first"] <= idle_ns:
            end = flow["ts_closed"] or flow["observed_until"] or flow["ts_last"]
            if end - max(did) >= idle_ns:
                by_server.setdefault(server_text(hello), []).append(Short(flow, hello, min(did)))
    most = max(by_server.values(), key=len, default=[])
    last_ns = max((one.flow["ts_first"] for one in most), default=0)
    left = [one for one in most if one.flow["ts_first"] + lasted_ns(one.flow) >= last_ns]
    return left if len(left) >= _NEARLY_ALL * len(most) else []


def goes_on(short: Sequence[Short], until_ns: float) -> bool:
    """Were they opened all the time?"""
    begins = [one.flow["ts_first"] for one in short]
    return bool(0.25 <= (median(begins) - min(begins)) / max(until_ns - min(begins), 1) <= 0.75)

"""Ten seconds and more in which a broker answered requests of a client much later than it used to, or than it may.

In: the requests of one server, and its connections. Out: `Slow`, the windows of one client and API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.engine.rules.broker_clients import PREFIXES
from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.engine.rules.sweeps import Spans
from wirewitness.analyser.kafka.rules.stalls import Silence, client_of

# A pause of a moment delays many requests at once: late ones must come in so many different seconds of a window.
_SECONDS = 3

# The way of a larger answer takes time.
MOST_ANSWER_BYTES = 1 << 16

Connections = Mapping[str, Row]


class Limits(NamedTuple):
    """The thresholds, as the rule that looks for them says them."""

    window_s: float
    samples: int
    windows_least: int
    ratio: float
    slow_ms: float
    beyond_wait_ms: float


class Window(NamedTuple):
    """Requests of one client and API in ten seconds; p90 and p99 in ms, of a Fetch beyond its max_wait_ms.

    late: those of them that took long.
    """

    since_ns: int
    rows: Sequence[Row]
    late: Sequence[Row]
    p90: float
    p99: float


class Slow(NamedTuple):
    """The slow windows of one client and API.

    usual: what the 90th percentile is in most windows, in ms; None for a Fetch. may_wait_ms: its max_wait_ms.
    """

    windows: Sequence[Window]
    usual: float | None
    may_wait_ms: int | None = None

    @property
    def worst(self) -> Window:
        """The slowest one."""
        return max(self.windows, key=lambda window: window.p90)


def slow_apis(
    rows: Sequence[Row], connections: Connections, stood: Sequence[Silence], limits: Limits
) -> Iterator[Slow]:
    """What was slow while the broker did not stand still. rows: in the order of time."""
    silent = Spans((one.since_ns, one.until_ns, None) for one in stood)
    for own in _streams(rows, connections).values():
        windows = [one for one in _windows(own, limits) if len(one.rows) >= limits.samples]
        if len(windows) < limits.windows_least:
            continue
        usual = (median(w.p90 for w in windows), median(w.p99 for w in windows))
        bad = [
            w
            for w in windows
            if w.p90 > max(limits.slow_ms, limits.ratio * usual[0]) and w.p99 > limits.ratio * usual[1]
        ]
        if bad := _spread(bad, silent):
            yield Slow(bad, usual[0])
    for own in _late_fetches(rows, connections, limits).values():
        if bad := _spread(list(_windows(own, limits, connections)), silent):
            yield Slow(bad, None, connections[own[0]["flow_id"]]["max_wait_ms"])


def _spread(windows: Sequence[Window], stood: Spans) -> list[Window]:
    """Those that are slow all the time, and not because the broker stood still."""
    spread = [w for w in windows if len({row["ts"] // NS_PER_S for row in w.late}) >= _SECONDS]
    return [w for w in spread if not stood.meets(w.rows[0]["ts"], w.rows[-1]["ts"])]


def _streams(rows: Sequence[Row], connections: Connections) -> dict[tuple[object, ...], list[Row]]:
    """Requests that say how quick the broker is, by client and API."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        counts = not row["awaitable"] and row["status"] == "ok" and row["latency_ms"] is not None
        if counts and not _is_throttled(row, connections) and not _is_of_a_broker(row):
            found.setdefault((*client_of(row), row["operation"]), []).append(row)
    return found


def _late_fetches(rows: Sequence[Row], connections: Connections, limits: Limits) -> dict[tuple[object, ...], list[Row]]:
    """Those that were answered long after their max_wait_ms, by client; what others of its address took is the way."""
    way_ms: dict[object, float] = {}
    for row in rows:
        if row["latency_ms"] is not None:
            address = row["client_address"]
            way_ms[address] = min(way_ms.get(address, row["latency_ms"]), row["latency_ms"])
    found: dict[tuple[object, ...], list[Row]] = {}
    answered_ns: dict[str, int] = {}
    for row in rows:
        if row["operation"] != "Fetch" or row["status"] != "ok" or not row["awaitable"] or row["latency_ms"] is None:
            continue
        # One that was sent before the last one was answered waited for that first.
        behind = answered_ns.get(row["flow_id"], 0) > row["ts"]
        answered_ns[row["flow_id"]] = row["ts_response"] or 0
        beyond = _beyond_ms(row, connections)
        if beyond is None or behind or (row["response_bytes"] or 0) > MOST_ANSWER_BYTES:
            continue
        if _is_throttled(row, connections) or _is_of_a_broker(row):
            continue
        way = way_ms[row["client_address"]]
        if beyond - (way if way < row["latency_ms"] else 0) > limits.beyond_wait_ms:
            found.setdefault(client_of(row), []).append(row)
    return found


def _beyond_ms(row: Row, connections: Connections) -> float | None:
    connection = connections.get(row["flow_id"])
    may_wait_ms = None if connection is None else connection["max_wait_ms"]
    return None if may_wait_ms is None else float(row["latency_ms"] - may_wait_ms)


def _is_throttled(row: Row, connections: Connections) -> bool:
    """A quota makes this client wait: the broker reads its next request later (KIP-219)."""
    connection = connections.get(row["flow_id"])
    return connection is not None and bool(connection["throttled"])


def _is_of_a_broker(row: Row) -> bool:
    return str(row["client_id"]).startswith(PREFIXES)


def _windows(rows: Sequence[Row], limits: Limits, connections: Connections | None = None) -> Iterator[Window]:
    """connections: for Fetch, of which the time beyond max_wait_ms counts, and all rows are late."""
    length_ns = round(limits.window_s * NS_PER_S)
    by_time: dict[int, list[Row]] = {}
    for row in rows:
        by_time.setdefault(row["ts"] // length_ns, []).append(row)
    for place, own in by_time.items():
        if connections is None:
            took = sorted(row["latency_ms"] for row in own)
            late = [row for row in own if row["latency_ms"] > limits.slow_ms]
        else:
            took = sorted(_beyond_ms(row, connections) or 0.0 for row in own)
            late = own
        yield Window(place * length_ns, own, late, took[len(took) * 9 // 10], took[len(took) * 99 // 100])

"""MON124 slower-than-others: one application waits much longer for a query than others do for the same.

Finds
    Applications whose commands of one shape take several times as long as the same shape of other applications, and
    those that wait most of their time for the way to the server.

Why it matters
    The query and its index are fine, as the others show. What differs is the application: where it runs, which member
    answers it, what it asks for beside the query (read preference, read and write concern), or its driver.

How it decides
    At least 20 commands (least) of one shape, of two applications or more, told apart by address and name. The median
    latency of one is five times (times) the median of the others' medians, and 10 ms (longer_ms) more. Its hellos show
    the way to the server: where these take as long, it is the way; else what differs is named.
    A capture at the server shows no latency of the way. There the round trip is the shortest time from the first SYN of
    a connection to its first request, over two connections (connections_least) or more; that of one application is
    five times (times) and 10 ms (longer_ms) more than the median of others that send the same, and that times its
    commands is a third (waiting) of the time of its connections.

False alarms
    Values that match many documents of one application and few of another.

References
    MongoDB manual: read preference, read concern, write concern.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_MS, ms_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    HELLO_NAMES,
    MONGO_FLOWS,
    client_text,
    client_title,
    command_text,
    command_title,
)
from wirewitness.analyser.mongo.rules.use import DATA, USE, USE_COLUMNS, client_of, every_ms, span_s, use_finding


def detect(
    frames: Frames,
    *,
    least: int = 20,
    times: float = 5.0,
    longer_ms: float = 10.0,
    connections_least: int = 2,
    waiting: float = 1 / 3,
) -> Iterator[Finding]:
    """One finding for each application that is slower, on its slowest shape."""
    every = rows_of(frames[USE])
    shapes: dict[str | None, list[Row]] = {}
    for row in every:
        if row["command"] in DATA and row["succeeded"] >= least and row["median_latency_ms"] is not None:
            shapes.setdefault(row["shape_id"], []).append(row)
    found: dict[tuple[Any, ...], list[tuple[Row, list[Row]]]] = {}
    for same in shapes.values():
        for row in same:
            others = [one for one in same if client_of(one) != client_of(row)]
            if others and _usual(others) * times <= row["median_latency_ms"] >= _usual(others) + longer_ms:
                found.setdefault(client_of(row), []).append((row, others))
    for slow in found.values():
        slow.sort(key=lambda one: -one[0]["latency_sum_ms"])
        yield _finding(slow, every)
    ways = _ways_ms(rows_of(frames["flows"]), rows_of(frames["mongo_commands"]), connections_least)
    for same in shapes.values():
        for row in same:
            theirs = {client_of(one): ways[client_of(one)] for one in same if client_of(one) in ways}
            way = theirs.pop(client_of(row), None)
            if way is None or not theirs or client_of(row) in found:
                continue
            usual = median(theirs.values())
            waits = way * row["commands"] / max(span_s(row) * 1000 * row["connections"], 1e-9)
            if way >= usual * times and way >= usual + longer_ms and waits >= waiting:
                found[client_of(row)] = []
                yield _far(row, way, usual, same)


def _ways_ms(flows: Sequence[Row], firsts: Sequence[Row], least: int) -> dict[tuple[Any, ...], float]:
    """The round trip of each application: the least time until a first request, in which one is spent."""
    opened = {flow["flow_id"]: flow["ts_first"] for flow in flows}
    took: dict[tuple[Any, ...], list[float]] = {}
    for row in firsts:
        if row["flow_id"] in opened:
            took.setdefault(client_of(row), []).append((row["ts"] - opened[row["flow_id"]]) / NS_PER_MS)
    return {who: min(own) for who, own in took.items() if len(own) >= least}


def _far(row: Row, way: float, usual: float, same: Sequence[Row]) -> Finding:
    others = [client_title(one) for one in same if client_of(one) != client_of(row)]
    return use_finding(
        RULE,
        [row],
        severity="warning",
        title=f"{client_title(row)} is far from the server: a round trip of {ms_text(way)} for each command",
        sentence=(
            f"{sentence_start(client_text(row))} is far from {server_text(row)}: a round trip takes "
            f"{ms_text(way)}, that of {names_text(others, 3)} {ms_text(usual)}. It sent "
            f"{command_text(row)} {row['commands']:,} times, one each {ms_text(every_ms(row))} and mostly "
            f"waits for the way; the server takes {ms_text(row['median_latency_ms'] or 0)} (median)."
        ),
        next_step=(
            "Run it near the server or read from a member that is near (readPreference nearest), and ask for more with "
            "each command ($in, larger batches, several at a time)."
        ),
        numbers={
            "round_trip_ms": round(way, 3),
            "others_ms": round(usual, 3),
            "others": len(others),
            "commands": row["commands"],
            "wasted_ms": round(way * row["commands"], 3),
        },
    )


def _usual(others: Sequence[Row]) -> float:
    return float(median(row["median_latency_ms"] for row in others))


def _finding(slow: Sequence[tuple[Row, list[Row]]], every: Sequence[Row]) -> Finding:
    row, others = slow[0]
    more = f" So it is with {count(len(slow) - 1, 'more shape')} of it." if len(slow) > 1 else ""
    return use_finding(
        RULE,
        [row],
        severity="warning",
        title=f"{command_title(row)} {row['median_latency_ms'] / max(_usual(others), 1e-3):,.0f} times as slow as for "
        f"others: {client_title(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} waits {ms_text(row['median_latency_ms'])} (median of "
            f"{row['succeeded']:,}) for {command_text(row)} at {server_text(row)}; "
            f"{names_text([client_title(one) for one in others], 3)} {'waits' if len(others) == 1 else 'wait'} "
            f"{ms_text(_usual(others))} for the same.{_differs(row, others, every)}{more}"
        ),
        next_step=(
            "Look at what differs: the way between them and the server (region, proxy), the member that answers, read "
            "preference, read and write concern of this application; not at the query."
        ),
        numbers={
            "median_ms": row["median_latency_ms"],
            "others_ms": round(_usual(others), 3),
            "others": len(others),
            "shapes": len(slow),
            "read_preference": row["read_preference"],
            "wasted_ms": round((row["median_latency_ms"] - _usual(others)) * row["succeeded"], 3),
        },
    )


def _hello_ms(row: Row, every: Sequence[Row]) -> float | None:
    """How long its hellos take at this server."""
    hellos = [
        one["median_latency_ms"] for one in every
        if one["command"] in HELLO_NAMES and one["median_latency_ms"] is not None and client_of(one) == client_of(row)
        and (one["server_address"], one["server_port"]) == (row["server_address"], row["server_port"])
    ]  # fmt: skip
    return median(hellos) if hellos else None


def _differs(row: Row, others: Sequence[Row], every: Sequence[Row]) -> str:
    hello = _hello_ms(row, every)
    if hello is not None and hello * 2 >= row["median_latency_ms"]:
        return f" Its hellos take {ms_text(hello)} as well: the way to the server is long."
    parts = []
    servers = {server_text(one) for one in others}
    if server_text(row) not in servers:
        parts.append(f"they ask {names_text(sorted(servers), 2)}")
    for option in ("read_preference", "read_concern", "write_concern"):
        theirs = {one[option] for one in others}
        if theirs != {row[option]}:
            parts.append(
                f"its {option.replace('_', ' ')} is {printable(row[option] or 'the default', 60)}, theirs "
                f"{names_text(sorted(printable(one or 'the default', 60) for one in theirs), 2)}"
            )
    if hello is not None:
        parts.append(f"its hellos take {ms_text(hello)}")
    return f" {sentence_start('; '.join(parts))}." if parts else ""


RULE = Rule(
    code="MON124",
    question="waiting",
    name="slower-than-others",
    severity="warning",
    confidence="medium",
    reads={
        USE: (
            *USE_COLUMNS, "median_latency_ms", "latency_sum_ms", "read_preference", "read_concern", "write_concern",
            "connections",
        ),
        "flows": ("flow_id", "ts_first"),
        "mongo_commands": ("ts", "flow_id", "client_address", "app_name", "driver"),
    },
    partition_by=(),
    detect=detect,
    rows={
        USE: f"command IN {(*DATA, *HELLO_NAMES)}",
        "flows": f"{MONGO_FLOWS} AND handshake_seen",
        "mongo_commands": "exchange_id IN (SELECT arg_min(exchange_id, ts) FROM mongo_commands GROUP BY flow_id)",
    },
)  # fmt: skip

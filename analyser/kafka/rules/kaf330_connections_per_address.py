"""KAF330 connections-per-address: a broker closes new connections of an address that has too many.

Finds
    Addresses whose new connections a broker closes at once, without a response, whenever they have a number of
    connections there already, while these go on. Question: who ended it, and with what pending.

Why it matters
    The broker says nothing: it accepts, sees that the address has as many connections as it may, and closes. Clients
    report "disconnected" while they ask for versions, and try again all the time. The other clients of that address
    work, so it looks like a fault of the one that came last. Clients behind one NAT share one address.

How it decides
    Five connections (closed_least) of one address to one broker ended alike: opened, and closed or reset by the broker
    within a second (at_once_s), with no byte of it before. Each was opened while at least two others of that address
    were open there; each one that the broker answered was opened while fewer were. A connection that was closed less
    than a second before (slack_s) may still count at the broker. Of the others two at least are heard of after the last
    refusal, or so shortly before as is usual for them (its usual gap between two responses, half as much again), so the
    broker was well. That it refuses not everybody shows a new connection that it answered after the first refusal: of
    another address, or of this one with fewer open. Where nobody else tried in that time, the finding says that it may
    be a limit of the whole broker, with confidence medium, and only of clients that it had answered before; where
    another address was refused likewise, nothing is said. Connections that carry something else than Kafka do not
    count.

False alarms
    A load balancer or firewall on the way with such a limit looks the same.

What it cannot tell
    The limit where connections are missing from the capture, or go to another port of the same broker: it counts all
    of an address. A quota of new connections a second (connection_creation_rate) ends them likewise, but whatever the
    number that is open.

References
    max.connections.per.ip and max.connections.per.ip.overrides of brokers ("Too many connections from ... (maximum =
    ...)" in their logs); KIP-402, KIP-612.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_S, period_text
from wirewitness.analyser.base.words import count, names_text, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.connections import (
    CONNECTIONS,
    PLACE_COLUMNS,
    client_keys,
    clients_of,
    connections_proof,
    ended,
)

# A connection is well that was heard of within so many of its usual gaps.
_USUAL_GAPS = 1.5
# Two that are opened at the same moment may be counted in either order.
_TOGETHER_NS = NS_PER_S // 20


class _Limit(NamedTuple):
    """Refused connections of an address. least, most: between them lies how many it may have. alone: nobody else tried
    in that time."""

    refused: Sequence[Row]
    least: int
    most: int
    alone: bool = False


def detect(frames: Frames, *, closed_least: int = 5, at_once_s: float = 1.0, slack_s: float = 1.0) -> Iterator[Finding]:
    """One finding per address."""
    rows = rows_of(frames[CONNECTIONS])
    refused: dict[str | None, list[Row]] = {}
    held: dict[str | None, list[Row]] = {}
    for row in rows:
        if _is_refused(row, at_once_s * NS_PER_S):
            refused.setdefault(row["client_address"], []).append(row)
        elif row["answered"] or row["bytes_to_client"]:
            held.setdefault(row["client_address"], []).append(row)
    for address, own in refused.items():
        others = held.get(address, [])
        if len(own) < closed_least or not _goes_on(own, others):
            continue
        limit = _limit(own, others, slack_s * NS_PER_S)
        if limit is None:
            continue
        if _lets_in(own, held):
            yield _finding(limit)
        elif len(refused) == 1 and _known(own, others):
            yield _finding(limit._replace(alone=True))


def _is_refused(row: Mapping[str, Any], at_once_ns: float) -> bool:
    if row["handshake"] != "complete" or row["closed_by"] != "server" or row["ts_closed"] is None or row["gap_bytes"]:
        return False
    if row["answered"] or row["bytes_to_client"] or (row["bytes_to_server"] and row["protocol"] != "kafka"):
        return False
    return bool(row["ts_closed"] - row["ts"] <= at_once_ns)


def _goes_on(refused: Sequence[Row], others: Sequence[Row]) -> bool:
    """The broker went on sending to two connections of that address to the last refusal."""
    last = refused[-1]["ts_closed"]
    return bool(sum(row["ts"] < last < _heard_until(row) for row in others) > 1)


def _heard_until(row: Mapping[str, Any]) -> float:
    """Until when it may be silent, as is usual for it: the last packet of the server, and its gap between responses."""
    heard = row["ts_last_from_server"] or 0
    return float(heard + _USUAL_GAPS * max(0, heard - row["ts"]) / max(1, row["answered"] or 1))


def _known(refused: Sequence[Row], others: Sequence[Row]) -> bool:
    """The broker answers the same clients on other connections: what they speak is right for its port."""
    names = {row["client_id"] for row in refused if row["client_id"]}
    return bool(names) and names <= {row["client_id"] for row in others}


def _lets_in(refused: Sequence[Row], held: Mapping[str | None, Sequence[Row]]) -> bool:
    """New connections were answered after the first refusal: it does not refuse everybody."""
    since = refused[0]["ts"]
    return any(row["handshake"] == "complete" and row["ts"] > since for rows in held.values() for row in rows)


def _limit(refused: Sequence[Row], others: Sequence[Row], slack_ns: float) -> _Limit | None:
    """None where one was answered with as many open as when another was refused."""
    # Whose begin was not seen was open all the time.
    begins = sorted(row["ts"] if row["handshake"] == "complete" else 0 for row in others)
    ends = sorted(row["ts_closed"] or inf for row in others)
    most = min(
        bisect_left(begins, row["ts"] + _TOGETHER_NS) - bisect_right(ends, row["ts"] - slack_ns) for row in refused
    )
    least = max(
        (
            bisect_left(begins, row["ts"] - _TOGETHER_NS) - bisect_right(ends, row["ts"])
            for row in others
            if row["handshake"] == "complete"
        ),
        default=-1,
    )
    return _Limit(refused, least + 1, most) if most >= 2 and least < most else None


def _finding(limit: _Limit) -> Finding:
    refused, most = limit.refused, limit.most
    first, last = refused[0], refused[-1]
    address, server = first["client_address"] or "(unknown address)", server_text(first)
    names = sorted({row["client_id"] for row in refused if row["client_id"]})
    who = f"{address} ({names_text(names, 3)})" if names else address
    exact = limit.least == most
    return RULE.finding(
        confidence="high" if exact and not limit.alone else "medium",
        subject={"cluster": first["cluster_id"], "address": first["client_address"], "server": server},
        title=f"{count(len(refused), 'connection')} closed at once: {address} has {most:,} open at {server}",
        sentence=(
            f"{sentence_start(server)} closed {count(len(refused), 'connection')} of {who} as soon as they were "
            f"opened, {period_text(first['ts'], ended(last))}. {most:,}{'' if exact else ' or more'} of that address "
            f"were open and went on; with fewer it answered: a limit of {f'{most:,} ' if exact else ''}connections "
            f"{'for each address, or of the broker (nobody else tried)' if limit.alone else 'for each address'}."
        ),
        next_step=(
            f'Look for "Too many connections from {address}" in the broker\'s log. Raise max.connections.per.ip there '
            "(or max.connections.per.ip.overrides for this address), or let the clients of that address open fewer "
            "connections; behind a NAT all of them count as one address."
        ),
        proof=connections_proof(refused),
        numbers={
            **client_keys(next((row for row in refused if row["client_id"]), first)),
            "server": server_of(first),
            "where": server,
            "connections": len(refused),
            "open_least": most,
            "limit": most if exact else None,
            "clients": clients_of(refused),
        },
    )


RULE = Rule(
    code="KAF330",
    question="ended",
    name="connections-per-address",
    severity="warning",
    confidence="high",
    reads={
        CONNECTIONS: (
            *PLACE_COLUMNS, "protocol", "handshake", "closed_by", "gap_bytes", "answered", "bytes_to_server",
            "bytes_to_client", "ts_last_from_server",
        )
    },
    partition_by=("cluster_id", "server_address", "server_port"),
    detect=detect,
    suspects=f"""
        SELECT cluster_id, server_address, server_port FROM r_{CONNECTIONS}
        WHERE closed_by = 'server' AND answered = 0 AND coalesce(bytes_to_client, 0) = 0
        GROUP BY ALL HAVING count(*) >= 5""",
)  # fmt: skip

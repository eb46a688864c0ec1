"""MQT158 one-age: connections end at one age, whatever passes on them, and their clients come back at once.

Finds
    Addresses, or a server, all of whose connections are closed when they are equally old, in the middle of their
    traffic. Question: who ended it, and with what pending.

Why it matters
    A balancer, a proxy or a program with a limit for the age of connections ends them in the midst of work. Clients
    come back, which looks like a bad network in their logs; each time sessions are resumed and messages sent again, and
    whoever has a clean session loses what came meanwhile.

How it decides
    At least ends_least connections from one address to a server were closed without a DISCONNECT, by the same side, at
    ages that differ from their middle by a fiftieth (spread) at most; they are nine tenths of its connections that
    ended, and none lived longer. Four fifths of them were busy: the client was heard of in the last quarter of the age;
    and their clients were back within a quarter of it. Where the server closes most of them right after
    a CONNECT, these are take-overs. Where
    other connections to the server live twice as long or longer, the address is told, else the server.

False alarms
    A program that makes a new connection after a fixed time on purpose, such as for a new token.

What it cannot tell
    Whether the limit is set in a balancer, a proxy or the program: the side that closes is told.

References
    MQTT 3.1.1 and 5.0: section 4.2 (network connections). HAProxy: timeout tunnel, hard-stop; AWS NLB, Envoy:
    max_connection_duration.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text, seconds_text
from wirewitness.analyser.base.words import count, names_text, printable
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import MOST_CLIENTS, client_numbers

_NEARLY_ALL, _MOST = 0.9, 0.8
# Back, and heard of, within this part of the age.
_SOON = 0.25
# A take-over ends a connection within this part of the usual time between two CONNECTs.
_PART_OF_A_GAP = 20
_LONGER, _MUCH_LONGER = 1.1, 2.0


class _OfOneAge(NamedTuple):
    """Connections of one address that ended at one age."""

    address: str | None
    ended: Sequence[Row]
    age: int


def detect(frames: Frames, *, ends_least: int = 6, spread: float = 0.02) -> Iterator[Finding]:
    """One finding for each such address of this server, or for the server."""
    ports: dict[int | None, list[Row]] = {}
    for row in rows_of(frames["mqtt_connections"]):
        ports.setdefault(row["server_port"], []).append(row)
    for rows in ports.values():
        begun = [row["ts"] for row in rows]
        addresses: dict[str | None, list[Row]] = {}
        for row in rows:
            addresses.setdefault(row["client_address"], []).append(row)
        found = [
            one for address, own in addresses.items()
            if len(own) > ends_least and (one := _of_one_age(address, own, begun, ends_least, spread)) is not None
        ]  # fmt: skip
        if not found:
            continue
        longest = max((_lived(row) for row in rows), default=0)
        if longest >= _MUCH_LONGER * max(one.age for one in found):
            for one in found:
                yield _finding(one, sum(_lived(row) >= _MUCH_LONGER * one.age for row in rows))
        else:
            ended = [row for one in found for row in one.ended]
            yield _finding(_OfOneAge(None, ended, int(median(_lived(row) for row in ended))), 0)


def _of_one_age(
    address: str | None, own: Sequence[Row], begun: Sequence[int], ends_least: int, spread: float
) -> _OfOneAge | None:
    over = [row for row in own if row["ts_closed"] is not None or row["ts_disconnect"] is not None]
    cut = [row for row in over if row["ts_closed"] is not None and row["disconnected_by"] is None]
    if len(cut) < ends_least:
        return None
    age = int(median(_lived(row) for row in cut))
    alike = [row for row in cut if abs(_lived(row) - age) <= spread * age and row["closed_by"] == cut[0]["closed_by"]]
    if len(alike) < max(ends_least, _NEARLY_ALL * len(over)) or any(_lived(row) > _LONGER * age for row in own):
        return None
    busy = sum((row["ts_last_from_client"] or row["ts"]) >= row["ts_closed"] - _SOON * age for row in alike)
    is_kept_busy = min(busy, _back(alike, own, age)) >= _MOST * len(alike)
    return _OfOneAge(address, alike, age) if is_kept_busy and not _are_taken_over(alike, begun) else None


def _are_taken_over(alike: Sequence[Row], begun: Sequence[int]) -> bool:
    """Does the server close most of them right after somebody's CONNECT?"""
    if alike[0]["closed_by"] != "server":
        return False
    at_once = int(median(after - before for before, after in pairwise(begun))) // _PART_OF_A_GAP
    taken = sum(_begins(begun, row["ts_closed"] - at_once, row["ts_closed"]) > 0 for row in alike)
    return taken > (1 - _MOST) * len(alike)


def _lived(row: Row) -> int:
    return int((row["ts_closed"] or row["ts_disconnect"] or row["observed_until"] or row["ts"]) - row["ts"])


def _begins(begun: Sequence[int], since: int, until: int) -> int:
    return bisect_right(begun, until) - bisect_left(begun, since)


def _back(alike: Sequence[Row], own: Sequence[Row], age: int) -> int:
    """How many of them were followed at once by one of their client; those at the very end of the capture count."""
    times: dict[str, list[int]] = {}
    for row in own:
        times.setdefault(row["client_id"], []).append(row["ts"])
    last = max(row["observed_until"] or row["ts"] for row in own)
    return sum(
        row["ts_closed"] + _SOON * age > last
        or _begins(times[row["client_id"]], row["ts_closed"], row["ts_closed"] + int(_SOON * age)) > 0
        for row in alike
    )


def _finding(found: _OfOneAge, longer: int) -> Finding:
    first, last = found.ended[0], max(found.ended, key=lambda row: row["ts_closed"])
    server, names = server_text(first), sorted({row["client_id"] for row in found.ended})
    who = names_text([printable(name, 60) for name in names], 4)
    side = "the server" if first["closed_by"] == "server" else f"{found.address or 'the side of the clients'}"
    whose = f"from {found.address} to {server}" if found.address is not None else f"to {server}"
    unlike = f" {count(longer, 'other connection')} to this server lived twice as long or longer." if longer else ""
    age = seconds_text(found.age)
    return RULE.finding(
        subject={"server": first["server_address"], "address": found.address, "client_id": names[0]},
        title=f"Connections {whose} are closed when they are {age} old, {len(found.ended):,} times",
        sentence=(
            f"All connections {whose} end at one age: {side} closed {len(found.ended):,} of them when they were {age} "
            f"old, without DISCONNECT and in the middle of their traffic, "
            f"{period_text(first['ts'], last['ts_closed'])}. Their {count(len(names), 'client')} ({who}) came back at "
            f"once.{unlike}"
        ),
        next_step=(
            "Look for a limit for the age of connections: of a balancer or proxy at that address, of the program, or "
            "of the server."
        ),
        proof=Proof(
            first["ts"],
            last["ts_closed"],
            (Evidence(row["file"], row["packet"], row["exchange_id"]) for row in found.ended),
        ),
        numbers={
            "address": found.address,
            "server": server_of(first),
            "closed_by": first["closed_by"],
            "connections": len(found.ended),
            "requests_refused": len(found.ended),
            "age_ms": round(found.age / NS_PER_MS, 3),
            "lived_longer": longer,
            "seconds": round((last["ts_closed"] - first["ts"]) / NS_PER_S, 3),
            "where": server,
            "clients": [client_numbers(row) for row in {row["client_id"]: row for row in found.ended}.values()][
                :MOST_CLIENTS
            ],
        },
    )


RULE = Rule(
    code="MQT158",
    question="ended",
    name="one-age",
    severity="warning",
    confidence="medium",
    reads={
        "mqtt_connections": (
            "ts", "exchange_id", "client_id", "client_address", "client_port", "server_port", "version",
            "disconnected_by", "ts_disconnect", "closed_by", "ts_closed", "observed_until", "ts_last_from_client",
            "file", "packet",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    rows={"mqtt_connections": "client_id <> '' AND connect_seen AND error_code = 0"},
    suspects="""
        SELECT server_address FROM r_mqtt_connections GROUP BY server_address
        HAVING count(*) FILTER (ts_closed IS NOT NULL AND disconnected_by IS NULL) >= 6""",
)  # fmt: skip

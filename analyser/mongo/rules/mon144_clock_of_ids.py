"""MON144 clock-of-ids: the ObjectIds of one client have another time than those of others.

Finds
    Clients whose documents carry a time in their _id that is constantly ahead of the packets, or behind, while that of
    others is not. Question: whose content differs.

Why it matters
    Drivers make ObjectIds by the clock of their host. Who sorts by _id or by a time of that client gets its documents
    first, or last, for good; leases and TTL indexes end too early or too late.

How it decides
    The time in the ObjectId of each insert's first document, and the time of its packet. Of a client (address, name,
    driver) with 10 inserts (least) or more within 10 s (span_s) or more, their difference stays within 2 s (spread_s):
    ids are made when they are sent, and the clock runs. Two other addresses (others) or more have such differences
    within 2 s of each other, and this one is 10 s (apart_s) or more away from their middle.

False alarms
    A program that keeps documents back for a fixed time, with ids made before.

What it cannot tell
    Clocks of clients whose _id is no ObjectId, or is made by the server. Which clock is right: the majority is taken
    for it.

References
    MongoDB manual: ObjectId (4 bytes of seconds since 1970, big-endian).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import NS_PER_S, seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    TITLE_NAME,
    by_client,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    listed,
    namespace,
)


class _Clock(NamedTuple):
    """The inserts of a client, and how far their ids are ahead of the packets, in s."""

    rows: list[Row]
    ahead_s: float


def detect(
    frames: Frames,
    *,
    least: int = 10,
    span_s: float = 10.0,
    spread_s: float = 2.0,
    others: int = 2,
    apart_s: float = 10.0,
) -> Iterator[Finding]:
    """One finding for each client of this server whose clock is apart."""
    found = [_clock(rows, least, span_s, spread_s) for rows in by_client(rows_of(frames["mongo_commands"]))]
    clocks = [one for one in found if one is not None]
    compared(len(clocks) ** 2)
    for one in clocks:
        likes = [other for other in clocks if other.rows[0]["client_address"] != one.rows[0]["client_address"]]
        if len({other.rows[0]["client_address"] for other in likes}) < others:
            continue
        middle = median(other.ahead_s for other in likes)
        near = {other.rows[0]["client_address"] for other in likes if abs(other.ahead_s - middle) <= spread_s}
        if len(near) >= max(others, (len(likes) + 1) // 2) and abs(one.ahead_s - middle) >= apart_s:
            yield _finding(one, one.ahead_s - middle, likes)


def _clock(rows: list[Row], least: int, span_s: float, spread_s: float) -> _Clock | None:
    """None where its ids are too few, or not made when they are sent."""
    if len(rows) < least or max(r["ts"] for r in rows) - min(r["ts"] for r in rows) < span_s * NS_PER_S:
        return None
    ahead = [(row["id_time"] - row["ts"]) / NS_PER_S for row in rows]
    return _Clock(rows, median(ahead)) if max(ahead) - min(ahead) <= spread_s else None


def _finding(clock: _Clock, apart_s: float, likes: Sequence[_Clock]) -> Finding:
    first = clock.rows[0]
    places = listed(namespace(row) for row in clock.rows)
    where = "ahead" if apart_s > 0 else "behind"
    apart = seconds_text(round(abs(apart_s)) * NS_PER_S)
    return command_finding(
        RULE,
        clock.rows[:25],
        severity="warning",
        confidence="medium",
        subject={**client_key(first), "where": where},
        title=f"Clock {apart} {where}: {printable(client_title(first), TITLE_NAME)}",
        sentence=(
            f"{sentence_start(client_text(first))} makes ObjectIds whose time is {apart} {where} of that of others, in "
            f"all of {count(len(clock.rows), 'insert')} into {places} at {server_text(first)}. The clock of its host "
            f"is {where}; the ids of {listed(client_text(other.rows[0]) for other in likes)} agree with each other."
        ),
        next_step=(
            "Look at the clock of this host and its NTP (chronyc tracking, timedatectl). Documents that it wrote keep "
            "the wrong time: look at what sorts by _id or by a time of this client."
        ),
        numbers={
            "apart_s": round(apart_s, 1),
            "inserts": len(clock.rows),
            "breaches": len(clock.rows),
            "clients": [client_numbers(first, inserts=len(clock.rows))],
        },
    )


RULE = Rule(
    code="MON144",
    question="differs",
    name="clock-of-ids",
    severity="warning",
    confidence="medium",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "id_time")},
    partition_by=("server_address", "server_port"),
    detect=detect,
    rows={"mongo_commands": "command = 'insert' AND id_time IS NOT NULL"},
    suspects="SELECT server_address, server_port FROM r_mongo_commands GROUP BY server_address, server_port "
    "HAVING max(id_time - ts) - min(id_time - ts) >= 8000000000",
)

"""MQT126 old-will: the will of a connection that is gone stands for a client that lives.

Finds
    Wills that a server published over a newer message of the same client, which had come back, and retained wills that
    new subscribers still get while the client is connected again. Question: what went back.

Why it matters
    The last message on the topic counts as the state. It says that the client is gone, for as long as nobody publishes
    there again, so alarms ring and commands are not sent, while the client works.

How it decides
    By the fact `mqtt_wills`: a will that was due and seen, and the connection after it of the same client id, or the
    only other one with this will topic, which began when the old one was silent already. Over a newer message: that
    connection lived, and had published other content on the topic, which that subscriber got before the will came.
    Left behind: the will was retained, the client had been back for 3 s, nobody had published on the topic since, and
    the server sent the will as retained to a subscriber (served_least times).

False alarms
    Two devices that share a will topic and of which one is gone; then their client ids differ.

What it cannot tell
    Whether somebody puts it right after the capture.

References
    MQTT 3.1.1: section 3.1.2.5; 5.0: section 3.1.2.5, 3.1.3.2.2 (Will Delay Interval), [MQTT-3.1.4-3] (take-over).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import client_endpoint_text, server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, moment_text, seconds_text
from wirewitness.analyser.base.words import printable, times
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

WILLS = "mqtt_wills"
_STEP = (
    "Let the client publish its state at each connect, and again when it sees its own will (it may subscribe to it). "
    "Give it one fixed client id, so that the server ends the old connection at once, and a shorter keep-alive."
)


def detect(frames: Frames, *, served_least: int = 1) -> Iterator[Finding]:
    """At most one finding of each kind for this client and will topic."""
    over: dict[str, list[Row]] = {}
    left: dict[str, list[Row]] = {}
    for row in rows_of(frames[WILLS]):
        if None not in (row["newer_message_id"], row["ts_newer"], row["ts_sent"]):
            over.setdefault(row["topic"], []).append(row)
        elif row["retain"] and row["served"] >= served_least and None not in (row["ts_next"], row["ts_served"]):
            left.setdefault(row["topic"], []).append(row)
    for rows in over.values():
        yield _over(rows)
    for topic, rows in left.items():
        if topic not in over:
            yield _left(rows)


def _over(rows: list[Row]) -> Finding:
    row = rows[0]
    topic = printable(row["topic"], 80)
    often = f" So it went {times(len(rows))} in this capture." if len(rows) > 1 else ""
    return _finding(
        "over a newer message",
        rows,
        f"Old will over a newer message: {short(row['topic'])} of {client_title(_next(row))}",
        f"The will of an earlier connection of {client_text(row)} went out on {topic} at "
        f"{moment_text(row['ts_sent'])}, {seconds_text(row['ts_sent'] - row['ts_newer'])} after "
        f"{client_text(_next(row))}, which was connected and is "
        f"the same client, had published a newer message there.{_until(row, row['ts_sent'])}{often}",
        [
            (row["ts_newer"], Evidence(None, None, row["newer_message_id"])),
            (row["ts_sent"], Evidence(None, None, row["sent_message_id"])),
        ],
    )


def _left(rows: list[Row]) -> Finding:
    row = rows[0]
    topic = printable(row["topic"], 80)
    return _finding(
        "left behind",
        rows,
        f"Old will still served: {short(row['topic'])} of {client_title(_next(row))}, which is connected",
        f"{server_text(row)} sent the retained will of an earlier connection of {client_text(row)} on {topic} to "
        f"subscribers {times(row['served'])}, first at {moment_text(row['ts_served'])}, while "
        f"{client_text(_next(row))} had been connected again for {seconds_text(row['ts_served'] - row['ts_next'])} and "
        f"had published nothing there.{_until(row, row['ts_served'])}",
        [(row["ts_served"], Evidence(None, None, row["served_message_id"]))],
    )


def _next(row: Row) -> Row:
    """Who came after, as the words about clients want it."""
    return {
        "client_id": row["next_client_id"],
        "client_address": row["next_client_address"],
        "client_port": row["next_client_port"],
        "version": row["version"],
    }


def _until(row: Row, since: int) -> str:
    if row["ts_corrected"] is None:
        return " Nobody published on the topic after that in this capture."
    return f" The next message there came {seconds_text(row['ts_corrected'] - since)} later."


def _finding(kind: str, rows: list[Row], title: str, sentence: str, seen: list[tuple[int, Evidence]]) -> Finding:
    row = rows[0]
    until = row["ts_corrected"] or row["ts_next_until"]
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["next_client_id"], "topic": row["topic"],
                 "kind": kind},
        title=title,
        sentence=sentence,
        next_step=_STEP,
        proof=Proof(
            seen[0][0], seen[-1][0], [*(one for _, one in seen), Evidence(row["file"], row["packet"], None)]
        ),
        numbers={
            "kind": kind,
            "client_id": row["next_client_id"],
            "address": row["next_client_address"],
            "server": server_of(row),
            "wills": len(rows),
            "served": sum(one["served"] for one in rows),
            "old_endpoint": client_endpoint_text(row),
            **({} if until is None else {"stood_still_ms": round((until - seen[-1][0]) / NS_PER_MS, 3)}),
            "topics": [printable(row["topic"], 80)],
            "where": printable(row["topic"], 80),
            "clients": [client_numbers(_next(row)), client_numbers(row)],
        },
    )  # fmt: skip


RULE = Rule(
    code="MQT126",
    question="went back",
    name="old-will",
    severity="warning",
    confidence="high",
    reads={
        WILLS: (
            "ts", "flow_id", "topic", "retain", "client_address", "client_port", "version", "ts_sent",
            "sent_message_id", "next_flow_id", "next_client_id", "next_client_address", "next_client_port", "ts_next",
            "ts_next_until", "newer_message_id", "ts_newer", "ts_corrected", "served", "served_message_id", "ts_served",
            "server_port", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    suspects=AnyRow(WILLS, "next_flow_id IS NOT NULL"),
)  # fmt: skip

"""MQT157 rebirths: a host asks a node of Sparkplug B for its birth again and again, and gets it each time.

Finds
    Edge nodes that publish NBIRTH over and over within one connection, each after a command (NCMD) of a host. Question:
    what is repeated without effect.

Why it matters
    A birth holds all metrics of a node, a hundred times the size of its data. A host asks for one where it cannot make
    sense of what the node sends: a sequence number that does not follow, an alias or a metric that it does not know.
    Where the birth does not heal that, both go round for ever: the node looks alive, and its data are thrown away.

How it decides
    By the fact `mqtt_births`: at least `asked_least` births of the node came on a connection that had one already, each
    after a command for this node, with nothing of the node between; they are at least a fifth (share) as many as its
    data messages; and they are twice (apart) those of all other nodes together, where there are others.

False alarms
    A tool with which somebody asks for births by hand, of a node that sends little.

What it cannot tell
    Which of both is wrong, and what the command says: payloads are not read. The node, where its sequence number does
    not begin at 0 with its birth; the host, where it counts wrongly or misses messages.

References
    Sparkplug 3.0: Operational behavior, Edge Node session establishment (seq of NBIRTH is 0), Rebirth (Node
    Control/Rebirth, reordering).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import ms_text, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

BIRTHS = "mqtt_births"


def detect(frames: Frames, *, asked_least: int = 5, share: float = 0.2, apart: float = 2.0) -> Iterator[Finding]:
    """One finding for each node of this server."""
    for row in rows_of(frames[BIRTHS]):
        is_much = row["asked"] >= asked_least and row["asked"] >= share * row["data"]
        if is_much and row["asked"] >= apart * row["likes_asked"]:
            yield _finding(row)


def _finding(row: Row) -> Finding:
    node, host = printable(row["node"], 80), printable(row["host"] or "?", 60)
    others, late = "", "" if row["late_ms"] is None else f"{ms_text(row['late_ms'])} "
    if row["likes"]:
        others = (
            f" {sentence_start(count(row['likes'], 'other node'))} of this server: "
            f"{count(row['likes_asked'], 'birth')} on command."
        )
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "host": row["host"], "node": node},
        title=f"Rebirth {times(row['asked'])}: {short(row['host'])} asks {client_title(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} published its birth (NBIRTH) as the node {node} "
            f"{times(row['births'])} to {server_text(row)}, {row['asked']:,} of them on a connection that had one, "
            f"{late}after a command (NCMD) of {host}, beside {count(row['data'], 'data message')}, "
            f"{period_text(row['ts'], row['ts_last'])}. The births heal nothing: {host} asks again.{others}"
        ),
        next_step=(
            "Compare the sequence numbers of this node with the log of the host: seq has to be 0 in NBIRTH and to "
            "grow by one with each message, and each alias in its data has to stand in the birth."
        ),
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids(row[one] for one in ("command_message_id", "message_id", "last_message_id")),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "births": row["births"],
            "asked": row["asked"],
            "records_again": row["asked"],
            "data": row["data"],
            "host": row["host"],
            "likes": row["likes"],
            "topics": [printable(row["topic"], 80)],
            "where": node,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT157",
    question="repeated",
    name="rebirths",
    severity="warning",
    confidence="medium",
    reads={
        BIRTHS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "node", "topic", "births",
            "asked", "data", "host", "late_ms", "likes", "likes_asked", "message_id", "command_message_id",
            "last_message_id", "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(BIRTHS, "asked >= 5"),
)  # fmt: skip

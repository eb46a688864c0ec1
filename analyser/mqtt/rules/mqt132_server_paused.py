"""MQT132 server-paused: a server sent nothing to anybody while several clients waited for it.

Finds
    Times in which all clients of a server that had asked something were left without an answer, and nobody else got
    anything. Question: who waits for whom (all clients for the server).

Why it matters
    Each client sees a slow answer or a ping that is late and blames its own network. Together they say that the server,
    its host or the way to it stood still: a disk that was slow to sync, a process that was stopped, a machine that
    swapped.

How it decides
    By the fact `mqtt_server_pauses`: two clients or more had sent a request to which an answer was due, on connections
    without gaps that the server had not ended, from two addresses, or confirmed by its TCP, and
    answered afterwards, unless the capture ends so; and no message of the
    server to any client is in the capture until the pause was over: 1 s at least (paused_s), and twenty times as long
    as it takes usually.

False alarms
    A capture on one of several ways to the server, which lost sight of it.

What it cannot tell
    Whether the process stood still or the way did, unless TCP says so. A pause that began before the capture.

References
    MQTT 3.1.1 and 5.0: section 3.12.4 (PINGRESP). Mosquitto: one thread; autosave_interval, persistence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import ms_text, period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule

PAUSES = "mqtt_server_pauses"


def detect(frames: Frames, *, paused_s: float = 1.0) -> Iterator[Finding]:
    """One finding for this server."""
    rows = [row for row in rows_of(frames[PAUSES]) if row["waited_ms"] >= paused_s * 1000]
    if rows:
        yield _finding(rows)


def _finding(rows: list[Row]) -> Finding:
    worst = max(rows, key=lambda row: float(row["waited_ms"]))
    names = [printable(str(one), 60) for one in json.loads(worst["names"] or "[]")]
    server = server_text(worst)
    often = f" There were {count(len(rows), 'such pause')}; this is the longest." if len(rows) > 1 else ""
    went_on = (
        f" Then it answered {worst['answered']:,} of them." if worst["answered"]
        else " It answered none of them in this capture."
    )  # fmt: skip
    return RULE.finding(
        provisional=not worst["answered"],
        subject={"server": server},
        title=f"Server {server} sent nothing for {ms_text(worst['waited_ms'])} while {worst['clients']} clients waited",
        sentence=(
            f"{sentence_start(server)} sent nothing to anybody while {count(worst['clients'], 'client')} "
            f"({names_text(names, 4)}) waited for an answer to {count(worst['requests'], 'request')} "
            f"({printable(worst['operations'], 80)}), {period_text(worst['ts'], worst['ts_until'])}. Usually it "
            f"answers within {ms_text(worst['usual_ms'])}.{went_on}{_tcp(worst)}{often}"
        ),
        next_step=(
            "Look at the server at that time: was its process stopped, its disk slow, its host out of memory or CPU? "
            "Look at the network beside it only where nothing of its TCP came either."
        ),
        proof=Proof(
            min(row["ts"] for row in rows),
            max(row["ts_until"] for row in rows),
            (Evidence(None, None, one) for row in rows for one in (row["exchange_id"], row["last_exchange_id"])),
        ),
        numbers={
            "server": server_of(worst),
            "pauses": len(rows),
            "stood_still_ms": round(worst["waited_ms"], 3),
            "usual_ms": round(worst["usual_ms"], 3),
            "waiting": worst["clients"],
            "requests": worst["requests"],
            "answered": worst["answered"],
            "where": server,
            "clients": [{"client_id": one} for one in names],
        },
    )


def _tcp(row: Row) -> str:
    if row["heard"] < row["clients"]:
        return ""
    return " Its TCP confirmed what they sent meanwhile, so the process stood still, not the network."


RULE = Rule(
    code="MQT132",
    question="waiting",
    name="server-paused",
    severity="warning",
    confidence="high",
    reads={
        PAUSES: (
            "ts", "ts_until", "waited_ms", "usual_ms", "clients", "heard", "requests", "answered", "names",
            "operations", "exchange_id", "last_exchange_id",
        ),
    },
    partition_by=("server_address", "server_port"),
    detect=detect,
    rows={PAUSES: "usual_ms IS NOT NULL"},
    suspects=AnyRow(PAUSES),
)  # fmt: skip

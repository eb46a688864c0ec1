"""MON121 session-for-each-command: an application uses a new logical session for nearly each command.

Finds
    Applications whose commands name a session of their own each, over connections that stay.

Why it matters
    A server keeps each session for thirty minutes after its last use and writes them to config.system.sessions; it
    takes a million at most (maxSessions), then it refuses new ones. Drivers take sessions from a pool and use them
    again. A session that is started and never ended, or thrown away, defeats that.

How it decides
    At least 20 commands (least) of one shape of which nine tenths (share) name different sessions, on fewer connections
    than half of them and five times as many sessions as connections (times): as many as work at the same time are
    usual. Where each has a connection of its own MON107 tells it. One finding for each application.

False alarms
    A gateway that passes on the sessions of many clients over a few connections.

References
    Driver sessions specification: server session pool; MongoDB manual: maxSessions,
    localLogicalSessionTimeoutMinutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import seconds_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import CLIENT_KEY, client_text, client_title, command_text, listed
from wirewitness.analyser.mongo.rules.use import USE, USE_COLUMNS, use_finding


def detect(frames: Frames, *, least: int = 20, share: float = 0.9, times: float = 5.0) -> Iterator[Finding]:
    """At most one finding for this application."""
    own = [
        row for row in rows_of(frames[USE])
        if row["commands"] >= least and row["sessions"] >= share * row["commands"]
        and row["sessions"] > times * row["connections"] and row["connections"] * 2 < row["commands"]
    ]  # fmt: skip
    if own:
        yield _finding(sorted(own, key=lambda row: -row["sessions"]))


def _finding(own: Sequence[Row]) -> Finding:
    first = own[0]
    sessions, commands = (sum(row[name] for row in own) for name in ("sessions", "commands"))
    lasted = max(row["ts_last"] for row in own) - min(row["ts"] for row in own)
    return use_finding(
        RULE,
        own,
        severity="warning",
        title=f"A session for each command, {sessions:,} of them: {client_title(first)}",
        sentence=(
            f"{sentence_start(client_text(first))} used {count(sessions, 'session')} for {count(commands, 'command')} "
            f"to {server_text(first)} in {seconds_text(lasted)}, on {count(first['connections'], 'connection')}: "
            f"{listed(command_text(row) for row in own)}."
        ),
        next_step=(
            "End sessions that the application starts (with, try-with-resources, endSession), or use one for a piece "
            "of work; the driver then takes the next one from its pool. Look at sessions of db.serverStatus()."
        ),
        numbers={
            "sessions": sessions,
            "left_behind": sessions,
            "commands": commands,
            "connections": max(row["connections"] for row in own),
            "commands_named": sorted({row["command"] for row in own}),
        },
    )


RULE = Rule(
    code="MON121",
    question="growing",
    name="session-for-each-command",
    severity="warning",
    confidence="medium",
    reads={USE: (*USE_COLUMNS, "sessions", "connections")},
    partition_by=CLIENT_KEY,
    detect=detect,
    rows={USE: "commands >= 20 AND sessions >= 0.9 * commands"},
)

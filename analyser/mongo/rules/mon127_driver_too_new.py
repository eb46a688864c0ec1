"""MON127 driver-too-new: a driver does not talk to a server as old as this one.

Finds
    Applications that say hello and never send a command, because the server's newest wire version is below the oldest
    that their driver takes.

Why it matters
    The server answers, the network is fine, and no operation of the application works: the driver raises an error about
    wire versions (in its log only) or says that it found no server.

How it decides
    The hello's reply tells maxWireVersion; which one the driver asks for at least is known by its name and version
    (dissectors/mongo/driver_versions.py). It is higher, and the application sent no command to this server besides
    hello: at least 2 hellos (hellos_least).

False alarms
    A build of a driver that was changed to take older servers.

What it cannot tell
    Drivers that are not in the table.

References
    Server discovery and monitoring specification: checking wire protocol compatibility.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    AROUND,
    CLIENT_KEY,
    COMMAND_COLUMNS,
    HELLO_NAMES,
    HELLOS,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    driver_text,
)
from wirewitness.dissectors.mongo.driver_versions import oldest_wire_version, server_release


def detect(frames: Frames, *, hellos_least: int = 2) -> Iterator[Finding]:
    """At most one finding for this application."""
    rows = rows_of(frames["mongo_commands"])
    hellos = [row for row in rows if row["command"] in HELLO_NAMES and row["max_wire_version"] is not None]
    works = any(row["command"] not in HELLO_NAMES and row["command"] not in AROUND for row in rows)
    if works or len(hellos) < hellos_least:
        return
    row = hellos[-1]
    least = oldest_wire_version(row["driver"], row["driver_version"])
    if least is not None and max(one["max_wire_version"] for one in hellos) < least:
        yield _finding(hellos, row, least)


def _finding(hellos: list[Row], row: Row, least: int) -> Finding:
    wire = row["max_wire_version"]
    return command_finding(
        RULE,
        hellos,
        severity="warning",
        subject=client_key(row),
        title=f"Server too old for {driver_text(row)}: {client_title(row)} at {server_text(row)}",
        sentence=(
            f"{sentence_start(client_text(row))} sent {count(len(hellos), 'hello')} to {server_text(row)} and no "
            f"command: the server's newest wire version is {wire} (MongoDB {server_release(wire)}), and this driver "
            f"takes {least} (MongoDB {server_release(least)}) at least."
        ),
        next_step=(
            f"Upgrade the server to MongoDB {server_release(least)} or later, or use a release of the driver that "
            "still takes this one."
        ),
        numbers={
            "max_wire_version": wire,
            "oldest_wire_version": least,
            "hellos": len(hellos),
            "requests_refused": len(hellos),
            "where": server_text(row),
            "clients": [client_numbers(row, hellos=len(hellos))],
        },
    )


RULE = Rule(
    code="MON127",
    question="ended",
    name="driver-too-new",
    severity="warning",
    confidence="high",
    reads={"mongo_commands": (*COMMAND_COLUMNS, "max_wire_version")},
    partition_by=CLIENT_KEY,
    detect=detect,
    # Of what shows that an application works one row is enough.
    rows={
        "mongo_commands": f"(command IN {HELLOS} AND max_wire_version < 13) OR exchange_id IN (SELECT min(exchange_id) "
        f"FROM mongo_commands WHERE command NOT IN {HELLOS} AND command NOT IN {AROUND} "
        f"GROUP BY {', '.join(CLIENT_KEY)})"
    },
    suspects=f"SELECT {', '.join(CLIENT_KEY)} FROM r_mongo_commands GROUP BY ALL "
    f"HAVING bool_and(command IN {HELLOS}) AND count(*) >= 2",
)

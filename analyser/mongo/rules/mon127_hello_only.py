"""MON127 hello-only: an application says hello to a server and never sends a command.

Finds
    Applications whose driver does not take the server, because its newest wire version is below the oldest that the
    driver talks to; and those that turn away after the hello each time for a reason that is not on the wire.

Why it matters
    The server answers, the network is fine, and no operation of the application works: its driver finds no server that
    it may use, and says so in the application's log only.

How it decides
    too old: the hello's reply tells maxWireVersion; which one the driver asks for at least is known by its name and
    version (dissectors/mongo/driver_versions.py). It is higher, and the application sent no command to this server
    besides hello: at least 2 hellos (hellos_least). A warning.
    turned away: at least 3 connections (connections_least) of a driver that names itself, each with hellos only, none
    of which waits for news, closed by the client; the application sent nothing else to this server. A warning where
    another application works at this server meanwhile, else info. Hosts that cannot be reached are told by MON117.

False alarms
    A program that only looks whether the server answers, with a driver. A build of a driver that was changed to take
    older servers.

What it cannot tell
    What the application expects: the name of the replica set, a member it may write to, a certificate.

References
    Server discovery and monitoring specification: checking wire protocol compatibility, setName.
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    HELLO_NAMES,
    HELLOS,
    MONGO_FLOWS,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    driver_text,
)
from wirewitness.analyser.mongo.rules.use import SERVER_KEY, client_of
from wirewitness.dissectors.mongo.driver_versions import oldest_wire_version, server_release


def detect(frames: Frames, *, hellos_least: int = 2, connections_least: int = 3) -> Iterator[Finding]:
    """At most one finding for each application of this server."""
    closed = {flow["flow_id"] for flow in rows_of(frames["flows"]) if flow["closed_by"] == "client"}
    rows = rows_of(frames["mongo_commands"])
    works = {client_of(row) for row in rows if row["command"] not in HELLO_NAMES}
    waits = {client_of(row) for row in rows if row["awaitable"]}
    hellos: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row["command"] in HELLO_NAMES and client_of(row) not in works:
            hellos.setdefault(client_of(row), []).append(row)
    for who, own in hellos.items():
        row = own[-1]
        least = oldest_wire_version(row["driver"], row["driver_version"])
        wires = [one["max_wire_version"] for one in own if one["max_wire_version"] is not None]
        if least is not None and wires and max(wires) < least:
            if len(own) >= hellos_least:
                yield _too_old(own, row, max(wires), least)
            continue
        ended = {one["flow_id"] for one in own}
        if row["driver"] and who not in waits and len(ended) >= connections_least and ended <= closed:
            hosts = row["advertised_hosts"]
            if hosts is None or server_text(row) in hosts.split(","):
                yield _turned_away(own, row, len(ended), works)


def _too_old(hellos: list[Row], row: Row, wire: int, least: int) -> Finding:
    return _finding(
        hellos,
        row,
        severity="warning",
        kind="too old",
        title=f"Server too old for {driver_text(row)}: {client_title(row)} at {server_text(row)}",
        why=(
            f"The server's newest wire version is {wire} (MongoDB {server_release(wire)}), and this driver takes "
            f"{least} (MongoDB {server_release(least)}) at least"
        ),
        next_step=(
            f"Upgrade the server to MongoDB {server_release(least)} or later, or use a release of the driver that "
            "still takes this one."
        ),
    )


def _turned_away(hellos: list[Row], row: Row, connections: int, works: set[tuple[object, ...]]) -> Finding:
    said = [f"it is {printable(row['server_role'], 40)}"] if row["server_role"] else []
    said += [f"of the replica set {printable(row['set_name'], 80)}"] if row["set_name"] else []
    wire = row["max_wire_version"]
    said += [f"with wire version {wire} (MongoDB {server_release(wire)})"] if wire is not None else []
    others = "; others work there" if works else ""
    return _finding(
        hellos,
        row,
        severity="warning" if works else "info",
        kind="turned away",
        title=f"Hellos, no command: {client_title(row)} at {server_text(row)}",
        why=f"It closed each of {count(connections, 'connection')} after it{others}. The server had said that "
        f"{' '.join(said) or 'it is there'}",
        next_step=(
            "Look at the application's log for why its driver takes no server: the name of the replica set "
            "(replicaSet=) in its connection string, read preference and write concern, TLS, the driver's version."
        ),
    )


def _finding(
    hellos: list[Row], row: Row, *, severity: Severity, kind: str, title: str, why: str, next_step: str
) -> Finding:
    return command_finding(
        RULE,
        hellos,
        severity=severity,
        confidence="high" if kind == "too old" else "medium",
        subject=client_key(row),
        title=title,
        sentence=(
            f"{sentence_start(client_text(row))} sent {count(len(hellos), 'hello')} to {server_text(row)} and no "
            f"command. {why}."
        ),
        next_step=next_step,
        numbers={
            "kind": kind,
            "max_wire_version": row["max_wire_version"],
            "oldest_wire_version": oldest_wire_version(row["driver"], row["driver_version"]),
            "set": row["set_name"],
            "hellos": len(hellos),
            "requests_refused": len(hellos),
            "where": server_text(row),
            "clients": [client_numbers(row, hellos=len(hellos))],
        },
    )


_CLIENT = "server_address, server_port, client_address, app_name, driver"
# A login that is refused is told by MON102.
_OTHER = f"command NOT IN {HELLOS} AND command NOT IN ('endSessions', 'killCursors')"
RULE = Rule(
    code="MON127",
    question="ended",
    name="hello-only",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "awaitable", "max_wire_version", "set_name", "server_role",
            "advertised_hosts",
        ),
        "flows": ("flow_id", "closed_by"),
    },
    partition_by=SERVER_KEY,
    detect=detect,
    rows={
        # Of what shows that an application works one row is enough.
        "mongo_commands": f"(command IN {HELLOS} AND ({_CLIENT}) NOT IN (SELECT ({_CLIENT}) FROM mongo_commands WHERE "
        f"{_OTHER})) OR exchange_id IN (SELECT min(exchange_id) FROM mongo_commands WHERE {_OTHER} GROUP BY {_CLIENT})",
        "flows": MONGO_FLOWS,
    },
    suspects=f"SELECT server_address, server_port FROM r_mongo_commands GROUP BY {_CLIENT} "
    f"HAVING bool_and(command IN {HELLOS}) AND count(*) >= 2",
)  # fmt: skip

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
    turned away: at least 3 connections (connections_least) of a driver that names itself, with hellos only, one each
    for the most part, none of which waits for news, closed by the client, with no byte missing. The application sent
    nothing else to any server, and nothing shows that its driver took one: a hello in a session or the end of sessions,
    as of a probe that asks by hello, or a hello again on the same connection, as of a driver that watches. A warning
    where another application works at this server meanwhile, else info. MON117 tells hosts that cannot be reached.

False alarms
    A program that makes a client object, looks whether it knows a server, and sends nothing. A build of a driver that
    was changed to take older servers.

What it cannot tell
    What the application expects: the name of the replica set, a member it may write to, a certificate.

References
    Server discovery and monitoring specification: checking wire protocol compatibility, setName.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from wirewitness.analyser.mongo.rules.use import client_of
from wirewitness.dissectors.mongo.driver_versions import oldest_wire_version, server_release


def detect(frames: Frames, *, hellos_least: int = 2, connections_least: int = 3) -> Iterator[Finding]:
    """At most one finding for each application and server."""
    flows = rows_of(frames["flows"])
    # A command may be in what is missing.
    closed = {flow["flow_id"] for flow in flows if flow["closed_by"] == "client" and not flow["gap_bytes"]}
    rows = rows_of(frames["mongo_commands"])
    works = {(client_of(row), server_text(row)) for row in rows if row["command"] not in (*HELLO_NAMES, *_GOODBYE)}
    took = {who for who, _ in works} | {client_of(row) for row in rows if _took_a_server(row)}
    hellos: dict[tuple[tuple[Any, ...], str], list[Row]] = {}
    for row in rows:
        if row["command"] in HELLO_NAMES and (client_of(row), server_text(row)) not in works:
            hellos.setdefault((client_of(row), server_text(row)), []).append(row)
    for (who, server), own in hellos.items():
        row = own[-1]
        least = oldest_wire_version(row["driver"], row["driver_version"])
        wires = [one["max_wire_version"] for one in own if one["max_wire_version"] is not None]
        if least is not None and wires and max(wires) < least:
            if len(own) >= hellos_least:
                yield _too_old(own, row, max(wires), least)
            continue
        ended = {one["flow_id"] for one in own}
        is_watched = len(own) >= 2 * len(ended)
        if row["driver"] and who not in took and len(ended) >= connections_least and ended <= closed and not is_watched:
            hosts = row["advertised_hosts"]
            if hosts is None or server in hosts.split(","):
                yield _turned_away(own, row, len(ended), any(place == server for _, place in works))


def _took_a_server(row: Row) -> bool:
    """Does it wait for news, or use a session, which a driver does with a server that it has selected?"""
    return bool(row["awaitable"]) or row["lsid"] is not None or row["command"] == "endSessions"


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


def _turned_away(hellos: list[Row], row: Row, connections: int, works: bool) -> Finding:
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
_GOODBYE = ("endSessions", "killCursors")
# A login that is refused is told by MON102.
_OTHER = f"command NOT IN {HELLOS} AND command NOT IN {_GOODBYE}"
# Of what shows that an application works, and of its goodbye, one row is enough.
_ONE_EACH = (
    f"SELECT min(exchange_id) FROM mongo_commands WHERE command NOT IN {HELLOS} "
    f"GROUP BY {_CLIENT}, command IN {_GOODBYE}, command = 'endSessions'"
)
RULE = Rule(
    code="MON127",
    question="ended",
    name="hello-only",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (
            *COMMAND_COLUMNS, "awaitable", "lsid", "max_wire_version", "set_name", "server_role",
            "advertised_hosts",
        ),
        "flows": ("flow_id", "closed_by", "gap_bytes"),
    },
    # The application may work at another member of the set.
    partition_by=(),
    detect=detect,
    rows={
        "mongo_commands": f"(command IN {HELLOS} AND ({_CLIENT}) NOT IN (SELECT ({_CLIENT}) FROM mongo_commands WHERE "
        f"{_OTHER})) OR exchange_id IN ({_ONE_EACH})",
        "flows": MONGO_FLOWS,
    },
)  # fmt: skip

"""MON117 unreachable-hosts: a replica set names hosts that the client does not reach.

Finds
    Clients that say hello to a member again and again, on a new connection each time, and never send a command, while
    the hosts that the member advertises are others than the one that answers.

Why it matters
    A driver takes the addresses of a replica set from the reply to its hello and drops the one it was given. Where it
    cannot resolve or reach the advertised ones it finds no server, and every operation fails after
    serverSelectionTimeoutMS, although the server answers.

How it decides
    At least 3 connections (connections_least) of one application to a server, each with a hello that is not a long poll
    and closed by the client. The reply names a replica set whose advertised hosts do not have the address of that
    server. The application sent no command and no authentication to any server, and no connection from its address to
    an advertised address was accepted. High confidence where such a connection was refused or not answered; else
    medium, as the capture may show one member only, or hosts by names, which nobody knows to be reached.

False alarms
    Programs that start again and again, ask one member for the others, and work with those out of the capture's sight.

What it cannot tell
    Whether a name was not resolved, or which address it stands for.

References
    Server discovery and monitoring specification, "updateRSWithPrimaryFromPrimary": hosts that are not in the list are
    removed; connection string option directConnection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.times import seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mongo.rules.rows import (
    COMMAND_COLUMNS,
    HELLO_NAMES,
    HELLOS,
    MAX_NAME,
    TITLE_NAME,
    client_key,
    client_numbers,
    client_text,
    client_title,
    command_finding,
    listed,
)

_MOST_HOSTS = 3


def detect(frames: Frames, *, connections_least: int = 3) -> Iterator[Finding]:
    """At most one finding for each application of this address and server."""
    flows = rows_of(frames["flows"])
    closed = {flow["flow_id"] for flow in flows if flow["closed_by"] == "client"}
    accepted = {server_text(flow) for flow in flows if flow["handshake"] in (None, "complete")}
    refused = {server_text(flow) for flow in flows} - accepted
    works: set[tuple[Any, ...]] = set()
    hellos: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(frames["mongo_commands"]):
        who = (row["app_name"], row["driver"])
        if row["command"] not in HELLO_NAMES or row["awaitable"]:
            works.add(who)
        elif row["flow_id"] in closed:
            hellos.setdefault((*who, server_text(row)), []).append(row)
    for (name, driver, server), rows in hellos.items():
        hosts = sorted({host for row in rows for host in row["advertised_hosts"].split(",")})
        if (name, driver) in works or server in hosts or accepted & {*hosts}:
            continue
        if len({row["flow_id"] for row in rows}) >= connections_least:
            yield _finding(rows, hosts, sorted(refused & {*hosts}))


def _finding(rows: Sequence[Row], hosts: Sequence[str], refused: Sequence[str]) -> Finding:
    first = rows[0]
    connections = len({row["flow_id"] for row in rows})
    tried = f"; it tried {listed(refused)} in vain" if refused else ", and no connection to these is in the capture"
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="high" if refused else "medium",
        subject=client_key(first),
        title=(
            f"Hellos, no command: {client_title(first)} at {server_text(first)}, set "
            f"{printable(first['set_name'], TITLE_NAME)}"
        ),
        sentence=(
            f"{sentence_start(client_text(first))} said hello to {server_text(first)} on "
            f"{count(connections, 'connection')} in {seconds_text(rows[-1]['ts'] - first['ts'])} and sent no command. "
            f"The replica set {printable(first['set_name'], MAX_NAME)} advertises {listed(hosts, _MOST_HOSTS)}{tried}."
        ),
        next_step=(
            "Let the client resolve and reach these hosts (DNS, routes, firewall), or have the set advertise addresses "
            "that it reaches (rs.reconfig, host of each member); for one member alone use directConnection=true. If "
            "only this member was captured, capture at the client."
        ),
        numbers={
            "connections": connections,
            "hosts": list(hosts)[:50],
            "refused_hosts": list(refused)[:50],
            "set": first["set_name"],
            "primary": first["primary_host"],
            "requests_refused": connections,
            "where": server_text(first),
            "clients": [client_numbers(first, connections=connections)],
        },
    )


_OTHER = f"(command NOT IN {HELLOS} AND command <> 'endSessions') OR awaitable"
_HELLO = (
    f"command IN {HELLOS} AND awaitable IS NOT TRUE AND status = 'ok' AND set_name IS NOT NULL "
    "AND advertised_hosts IS NOT NULL"
)
_CLIENT = "client_address, app_name, driver"

RULE = Rule(
    code="MON117",
    question="ended",
    name="unreachable-hosts",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": (*COMMAND_COLUMNS, "awaitable", "set_name", "advertised_hosts", "primary_host"),
        "flows": ("flow_id", "server_address", "server_port", "handshake", "closed_by"),
    },
    partition_by=("client_address",),
    detect=detect,
    rows={
        # Of what shows that a client works one row is enough.
        "mongo_commands": f"({_HELLO}) OR exchange_id IN (SELECT min(exchange_id) FROM mongo_commands "
        f"WHERE {_OTHER} GROUP BY {_CLIENT})",
        "flows": "duplicate_of IS NULL AND client_address IN (SELECT client_address FROM mongo_commands "
        f"WHERE {_HELLO})",
    },
    suspects=f"SELECT client_address FROM r_mongo_commands GROUP BY {_CLIENT} "
    f"HAVING count(DISTINCT flow_id) >= 3 AND count(*) FILTER ({_OTHER}) = 0",
)

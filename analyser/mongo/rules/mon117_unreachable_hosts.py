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
    and closed by the client. The server said then (mongo_servers) that it is of a replica set whose advertised hosts do
    not have its address. The application sent no command and no authentication to any server, used no session, and no
    connection from its address to an advertised address was accepted. High confidence where such a connection was
    refused or not answered; else medium, as the capture may show one member only, or hosts by names, which nobody knows
    to be reached.

False alarms
    Programs that start again and again, ask one member for the others, and work with those out of the capture's sight.

What it cannot tell
    Whether a name was not resolved, or which address it stands for.

References
    Server discovery and monitoring specification, "updateRSWithPrimaryFromPrimary": hosts that are not in the list are
    removed; connection string option directConnection.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
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
    """At most one finding for each application and server."""
    closed: set[str] = set()
    accepted: defaultdict[str, set[str]] = defaultdict(set)
    tried: defaultdict[str, set[str]] = defaultdict(set)
    for flow in rows_of(frames["flows"]):
        address, server = flow["client_address"], server_text(flow)
        tried[address].add(server)
        if flow["closed_by"] == "client":
            closed.add(flow["flow_id"])
        if flow["handshake"] in (None, "complete"):
            accepted[address].add(server)
    periods: defaultdict[str, list[Row]] = defaultdict(list)
    for period in rows_of(frames["mongo_servers"]):
        periods[server_text(period)].append(period)
    hellos: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(frames["mongo_commands"]):
        if row["flow_id"] in closed:
            hellos.setdefault((*client_key(row).values(), server_text(row)), []).append(row)
    for (*_, server), rows in hellos.items():
        address = rows[0]["client_address"]
        said = [one for row in rows if (one := _said(periods[server], row)) is not None]
        hosts = sorted({host for one in said for host in one["advertised_hosts"].split(",")})
        if not hosts or server in hosts or accepted[address] & {*hosts}:
            continue
        if len({row["flow_id"] for row in rows}) >= connections_least:
            refused = tried[address] - accepted[address]
            yield _finding(rows, said[0], hosts, sorted(refused & {*hosts}))


def _said(periods: Sequence[Row], hello: Row) -> Row | None:
    """What the server said of itself in the response to this hello; None: nothing of a replica set."""
    at = bisect_right(periods, hello["ts_response"] or hello["ts"], key=lambda period: period["ts"])
    said = periods[at - 1] if at else None
    return said if said is not None and said["set_name"] and said["advertised_hosts"] else None


def _finding(rows: Sequence[Row], said: Row, hosts: Sequence[str], refused: Sequence[str]) -> Finding:
    first, name = rows[0], said["set_name"]
    connections = len({row["flow_id"] for row in rows})
    tried = f"; it tried {listed(refused)} in vain" if refused else ", and no connection to these is in the capture"
    return command_finding(
        RULE,
        rows,
        severity="warning",
        confidence="high" if refused else "medium",
        subject=client_key(first),
        title=(f"Hellos, no command: {client_title(first)} at {server_text(first)}, set {printable(name, TITLE_NAME)}"),
        sentence=(
            f"{sentence_start(client_text(first))} said hello to {server_text(first)} on "
            f"{count(connections, 'connection')} in {seconds_text(rows[-1]['ts'] - first['ts'])} and sent no command. "
            f"The replica set {printable(name, MAX_NAME)} advertises {listed(hosts, _MOST_HOSTS)}{tried}."
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
            "set": name,
            "primary": said["primary_host"],
            "requests_refused": connections,
            "where": server_text(first),
            "clients": [client_numbers(first, connections=connections)],
        },
    )


# A session is used with a server that the driver has selected.
_OTHER = f"command NOT IN {HELLOS} OR awaitable OR lsid IS NOT NULL"
_CLIENT = "(client_address, coalesce(app_name, ''), coalesce(driver, ''))"
_OF_SETS = (
    "SELECT (server_address, server_port) FROM mongo_servers WHERE set_name IS NOT NULL AND advertised_hosts IS NOT "
    "NULL"
)
# Of those who do nothing else.
_HELLO = (
    f"command IN {HELLOS} AND awaitable IS NOT TRUE AND status = 'ok' AND (server_address, server_port) IN ({_OF_SETS})"
    f" AND {_CLIENT} NOT IN (SELECT {_CLIENT} FROM mongo_commands WHERE {_OTHER})"
)

RULE = Rule(
    code="MON117",
    question="ended",
    name="unreachable-hosts",
    severity="warning",
    confidence="high",
    reads={
        "mongo_commands": COMMAND_COLUMNS,
        "mongo_servers": (
            "ts", "server_address", "server_port", "set_name", "advertised_hosts", "primary_host",
        ),
        "flows": ("flow_id", "client_address", "server_address", "server_port", "handshake", "closed_by"),
    },
    partition_by=(),
    detect=detect,
    rows={
        "mongo_commands": _HELLO,
        "flows": "duplicate_of IS NULL AND client_address IN (SELECT client_address FROM mongo_commands "
        f"WHERE {_HELLO})",
    },
    signs={"mongo_commands": "bool_or(advertised_hosts IS NOT NULL)"},
)  # fmt: skip

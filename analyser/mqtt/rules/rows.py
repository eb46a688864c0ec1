"""What the rules about MQTT share: how a client is named, and findings from a dissector's remarks.

In: rows of a rule's frames as dicts. Out: words, the `clients` of a finding's numbers, evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import client_endpoint_text, server_text, who_is
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, Proof, proof_of
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

MAX_NAME = 80
# A name in a title, which has room for three.
TITLE_NAME = 28
# So many clients of a server that do the same have a finding each; more are told in one.
MOST_APART = 5
MOST_CLIENTS = 20
# Columns of mqtt_connections by which a client is named.
CLIENT_COLUMNS = ("ts", "client_id", "client_address", "client_port", "server_address", "server_port", "version")
_DISCONNECT_COLUMNS = (
    "file", "disconnect_packet", "disconnected_by", "ts_disconnect", "disconnect_reason_code", "gap_bytes",
)  # fmt: skip
TOLD_COLUMNS = (*REMARK_COLUMNS, "direction", "severity", "code", "text")


def client_text(row: Mapping[str, Any]) -> str:
    """`client sensor-7 at 10.0.0.3:40001`."""
    return who_is(row["client_id"], client_endpoint_text(row), most=MAX_NAME)


def short(name: str | None) -> str:
    """A client id, topic or filter in a title."""
    return printable(name or "?", TITLE_NAME)


def client_title(row: Mapping[str, Any]) -> str:
    """`sensor-7`; the endpoint of a client without a name."""
    return short(row["client_id"]) if row["client_id"] else client_endpoint_text(row)


def client_numbers(row: Mapping[str, Any], **more: Any) -> Row:
    """An element of `clients` in a finding's numbers."""
    return {
        "address": row["client_address"],
        "port": row["client_port"],
        "client_id": row["client_id"],
        "version": row.get("version"),
        **more,
    }


def ms_between(earlier_ns: int, later_ns: int) -> float:
    """Milliseconds."""
    return (later_ns - earlier_ns) / NS_PER_MS


def remark_findings(
    rule: Rule,
    frames: Frames,
    least: int,
    what: Mapping[str, tuple[Severity, str, str]],
    may_count: Callable[[Row, str], bool] = lambda _connection, _code: True,
) -> Iterator[Finding]:
    """One finding for each code of remark, side, server and client, from `least` remarks on.

    Many clients of one server that do the same are one finding, and so are all remarks on a server. what: code of the
    remark -> severity, what was done ("sent ..."), next step. The sentence quotes the first remark, which names the
    clause. may_count: whether remarks of this code count on a connection.
    """
    connections = {row["flow_id"]: row for row in rows_of(frames["mqtt_connections"])}
    by_kind: dict[tuple[str, str, object, object], dict[object, list[Row]]] = {}
    for remark in rows_of(frames["expert_infos"]):
        connection, code = connections.get(remark["flow_id"]), remark["code"]
        if connection is None or code not in what or not may_count(connection, code):
            continue
        side = "server" if remark["direction"] == "server_to_client" else "client"
        kind = code, side, connection["server_address"], connection["server_port"]
        client = connection["client_id"] or connection["client_address"]
        culprit = None if side == "server" else client
        by_kind.setdefault(kind, {}).setdefault(culprit, []).append(remark)
    for (_, side, *_), culprits in by_kind.items():
        groups = [*culprits.values()]
        if len(groups) > MOST_APART:
            groups = [sorted((one for each in groups for one in each), key=lambda one: int(one["ts"]))]
        for remarks in groups:
            if len(remarks) >= least:
                own = [connections[flow] for flow in dict.fromkeys(one["flow_id"] for one in remarks)]
                yield _remark_finding(rule, str(side), own, remarks, what[remarks[0]["code"]])


def _remark_finding(
    rule: Rule, side: str, own: Sequence[Row], remarks: Sequence[Row], what: tuple[Severity, str, str]
) -> Finding:
    """own: the connections of these remarks."""
    severity, done, next_step = what
    first, code = own[0], remarks[0]["code"]
    clients = list(dict.fromkeys(row["client_id"] or row["client_address"] for row in own))
    named = client_text(first) if len(clients) == 1 else f"{count(len(clients), 'client')} (first {client_text(first)})"
    server = server_text(first)
    who, to = (f"The server {server}", named) if side == "server" else (sentence_start(named), server)
    over = f" on {count(len(own), 'connection')}" if len(own) > 1 else ""
    culprit = {} if side == "server" else {"client": clients[0] if len(clients) == 1 else f"{len(clients)} clients"}
    counted = Counter(one["flow_id"] for one in remarks)
    return rule.finding(
        severity=severity,
        confidence="high",
        subject={"server": server, **culprit, "side": side, "remark": code},
        title=(
            f"{sentence_start(done)}: "
            f"{f'server {server}' if side == 'server' else _clients_title(own, clients)}, {times(len(remarks))}"
        ),
        sentence=(f"{who} {done} {times(len(remarks))}{over}, to {to}. First: {remarks[0]['text'].rstrip('.')}."),
        next_step=next_step,
        proof=proof_of(remarks),
        numbers={
            "flow_id": first["flow_id"],
            "side": side,
            "remark": code,
            "count": len(remarks),
            "breaches": len(remarks),
            "connections": len(own),
            "where": server,
            "clients": [client_numbers(row, count=counted[row["flow_id"]]) for row in own[:MOST_CLIENTS]],
        },
    )


def _clients_title(own: Sequence[Row], clients: Sequence[object]) -> str:
    return client_title(own[0]) if len(clients) == 1 else count(len(clients), "client")


def remark_rows(codes: Iterable[str]) -> str:
    """SQL condition for `expert_infos`: remarks of these codes."""
    return "code IN (" + ", ".join(f"'{code}'" for code in codes) + ") AND flow_id IS NOT NULL"


def remark_rule_tables(
    codes: Iterable[str] = (), columns: Iterable[str] = (), reason: int | None = None, condition: str | None = None
) -> dict[str, Any]:
    """Keyword arguments of a Rule that judges remarks of all connections.

    columns: more of mqtt_connections. reason: it looks at this reason code of DISCONNECT, too. condition: which
    remarks, instead of their codes.
    """
    wanted = condition or remark_rows(codes)
    of_mqtt = " AND flow_id IN (SELECT flow_id FROM mqtt_connections)" if condition else ""
    signs = {"expert_infos": f"bool_or({wanted})"}
    if reason is not None:
        signs["mqtt_connections"] = f"bool_or(disconnect_reason_code = {reason})"
    flows = f"flow_id IN (SELECT flow_id FROM expert_infos WHERE {wanted})"
    closed = "" if reason is None else f" OR disconnect_reason_code = {reason}"
    own = (*CLIENT_COLUMNS, "flow_id", *_DISCONNECT_COLUMNS, *columns)
    return {
        "reads": {"mqtt_connections": own, "expert_infos": (*TOLD_COLUMNS, "flow_id")},
        "partition_by": (),
        "signs": signs,
        "rows": {"expert_infos": wanted + of_mqtt, "mqtt_connections": flows + closed},
    }


def disconnect_finding(rule: Rule, frames: Frames, reason: int, words: str, next_step: str) -> Iterator[Finding]:
    """A finding for each flow whose first DISCONNECT has that reason code. words: what it stands for."""
    for row in rows_of(frames["mqtt_connections"]):
        if row["disconnect_reason_code"] != reason or row["ts_disconnect"] is None:
            continue
        by_server = row["disconnected_by"] == "server"
        side = "server" if by_server else "client"
        client, server = client_text(row), f"the server {server_text(row)}"
        who, whom = (server, client) if by_server else (client, server)
        yield rule.finding(
            severity="warning",
            confidence="high",
            subject={"flow": row["flow_id"], "reason": f"0x{reason:02X}"},
            title=f"Connection ended for {words} (0x{reason:02X}): {client_title(row)}, by the {side}",
            sentence=f"{sentence_start(who)} ended the connection with {whom} for {words} (0x{reason:02X}).",
            next_step=next_step,
            proof=Proof(
                row["ts_disconnect"], row["ts_disconnect"], (Evidence(row["file"], row["disconnect_packet"], None),)
            ),
            numbers={
                "flow_id": row["flow_id"],
                "disconnected_by": row["disconnected_by"],
                "reason_code": reason,
                "where": server_text(row),
                "clients": [client_numbers(row)],
            },
        )

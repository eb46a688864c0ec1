"""What the rules about MQTT share: how a client is named, and findings from a dissector's remarks.

In: rows of a rule's frames as dicts. Out: words, the `clients` of a finding's numbers, evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.addresses import client_endpoint_text, server_text, who_is
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS
from wirewitness.analyser.base.words import sentence_start, times
from wirewitness.analyser.engine.rules.evidence import REMARK_COLUMNS, Proof, proof_of
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule

MAX_NAME = 80
# Columns of mqtt_connections by which a client is named.
CLIENT_COLUMNS = ("ts", "client_id", "client_address", "client_port", "server_address", "server_port", "version")
_DISCONNECT_COLUMNS = (
    "file", "disconnect_packet", "disconnected_by", "ts_disconnect", "disconnect_reason_code", "gap_bytes",
)  # fmt: skip
TOLD_COLUMNS = (*REMARK_COLUMNS, "direction", "severity", "code", "text")


def client_text(row: Mapping[str, Any]) -> str:
    """`client sensor-7 at 10.0.0.3:40001`."""
    return who_is(row["client_id"], client_endpoint_text(row), most=MAX_NAME)


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
) -> Iterator[Finding]:
    """One finding for each code of remark and side of a flow, from `least` remarks on.

    what: code of the remark -> severity, what was done ("sent ..."), next step. The sentence quotes the first remark,
    which names the clause.
    """
    connections = rows_of(frames["mqtt_connections"])
    if not connections:
        return
    connection = connections[0]
    by_kind: dict[tuple[str, str | None], list[Row]] = {}
    for remark in rows_of(frames["expert_infos"]):
        by_kind.setdefault((remark["code"], remark["direction"]), []).append(remark)
    for (code, direction), remarks in by_kind.items():
        if len(remarks) < least or code not in what:
            continue
        severity, done, next_step = what[code]
        yield _remark_finding(rule, connection, direction, remarks, severity, done, next_step)


def _remark_finding(
    rule: Rule,
    connection: Row,
    direction: str | None,
    remarks: Sequence[Row],
    severity: Severity,
    done: str,
    next_step: str,
) -> Finding:
    by_server = direction == "server_to_client"
    client = client_text(connection)
    who = f"The server {server_text(connection)}" if by_server else sentence_start(client)
    to = f" to {client}" if by_server else f" to {server_text(connection)}"
    code = remarks[0]["code"]
    return rule.finding(
        severity=severity,
        confidence="high",
        subject={"flow": connection["flow_id"], "side": "server" if by_server else "client", "remark": code},
        sentence=f"{who} {done}{to} {times(len(remarks))}; first: {remarks[0]['text'].rstrip('.')}.",
        next_step=next_step,
        proof=proof_of(remarks),
        numbers={
            "flow_id": connection["flow_id"],
            "side": "server" if by_server else "client",
            "remark": code,
            "count": len(remarks),
            "breaches": len(remarks),
            "where": server_text(connection),
            "clients": [client_numbers(connection)],
        },
    )


def remark_rows(codes: Iterable[str]) -> str:
    """SQL condition for `expert_infos`: remarks of these codes."""
    return "code IN (" + ", ".join(f"'{code}'" for code in codes) + ") AND flow_id IS NOT NULL"


def remark_rule_tables(codes: Iterable[str]) -> dict[str, Any]:
    """Keyword arguments of a Rule that judges remarks on one flow."""
    return {
        "reads": {"mqtt_connections": (*CLIENT_COLUMNS, *_DISCONNECT_COLUMNS), "expert_infos": TOLD_COLUMNS},
        "partition_by": ("flow_id",),
        "rows": {"expert_infos": remark_rows(codes)},
        "suspects": "SELECT flow_id FROM r_expert_infos SEMI JOIN r_mqtt_connections USING (flow_id)",
    }


def disconnect_finding(rule: Rule, frames: Frames, reason: int, words: str, next_step: str) -> Iterator[Finding]:
    """A finding when this flow's first DISCONNECT has that reason code. words: what it stands for."""
    for row in rows_of(frames["mqtt_connections"]):
        if row["disconnect_reason_code"] != reason or row["ts_disconnect"] is None:
            continue
        by_server = row["disconnected_by"] == "server"
        client, server = client_text(row), f"the server {server_text(row)}"
        who, whom = (server, client) if by_server else (client, server)
        yield rule.finding(
            severity="warning",
            confidence="high",
            subject={"flow": row["flow_id"], "reason": f"0x{reason:02X}"},
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


def disconnect_suspects(reason: int) -> dict[str, str]:
    """For a rule that looks at remarks and at this reason code of DISCONNECT."""
    return {
        "suspects": "SELECT flow_id FROM r_expert_infos SEMI JOIN r_mqtt_connections USING (flow_id) UNION "
        f"SELECT flow_id FROM r_mqtt_connections WHERE disconnect_reason_code = {reason}"
    }

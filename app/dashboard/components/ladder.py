"""The ladder of a flow: its messages between client and server, one line each. In: tables; out: a mounted component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.tables.queries import literal
from wirewitness.app.dashboard.components.mounting import component
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.questions.source import Source, all_rows

# Remarks on a flow that stand between the messages of one page, at most.
MAX_REMARKS = 200
_TONES = {"error": "error", "warn": "warn"}

_MESSAGES = """
    SELECT m.message_id, strftime(m.ts, '%H:%M:%S.%f') AS time, epoch_ns(m.ts) AS ts_ns, m.direction, m.role,
        m.operation, m.version, m.length_bytes, m.packet_first, m.packet_last, m.line, m.complete, m.error,
        m.summary
    FROM messages AS m WHERE m.flow_id = {flow}
    ORDER BY m.ts, m.packet_last, m.stream_offset, m.message_id LIMIT {limit} OFFSET {offset}"""
_EXCHANGES = """
    SELECT request_message_id, response_message_id, latency_ms, status, error_code, error_name FROM exchanges
    WHERE flow_id = {flow} AND (request_message_id IN ({ids}) OR response_message_id IN ({ids}))"""
_REMARKS = """
    SELECT strftime(ts, '%H:%M:%S.%f') AS time, epoch_ns(ts) AS ts_ns, severity, packet, line, text FROM expert_infos
    WHERE flow_id = {flow} AND epoch_ns(ts) BETWEEN {first} AND {last} ORDER BY ts, packet LIMIT {limit}"""


def show_ladder(client: str, server: str, lines: Sequence[Mapping[str, Any]], key: str) -> str | None:
    """Mount the ladder; the id of the message that was just chosen in it."""
    data = {"client": visible(client), "server": visible(server), "rows": list(lines)}
    result = component("ladder")(data=data, key=key, on_chosen_change=lambda: None)
    chosen = result.chosen
    return str(chosen) if chosen else None


def ladder_lines(source: Source, flow_id: str, offset: int, limit: int, chosen: str | None) -> list[dict[str, Any]]:
    """Lines for `limit` messages from the one at `offset`, with the remarks of that time between them."""
    flow = literal(flow_id)
    messages = all_rows(source, _MESSAGES.format(flow=flow, limit=limit, offset=offset))
    if not messages:
        return []
    ids = ", ".join(literal(row["message_id"]) for row in messages)
    exchanges = all_rows(source, _EXCHANGES.format(flow=flow, ids=ids))
    answers = {row["response_message_id"]: row for row in exchanges if row["response_message_id"]}
    asked = {row["request_message_id"]: row for row in exchanges if row["request_message_id"]}
    last = messages[-1]["ts_ns"]
    between = _REMARKS.format(flow=flow, first=messages[0]["ts_ns"], last=last, limit=MAX_REMARKS)
    lines = [
        (row["ts_ns"], _message_line(row, asked.get(row["message_id"]), answers.get(row["message_id"]), chosen))
        for row in messages
    ]
    lines += [(row["ts_ns"], _remark_line(row)) for row in all_rows(source, between)]
    return [line for _, line in sorted(lines, key=lambda one: one[0])]


def _message_line(
    row: Mapping[str, Any], asked: Mapping[str, Any] | None, answer: Mapping[str, Any] | None, chosen: str | None
) -> dict[str, Any]:
    version = row["version"]
    number = f" v{version}" if version and version[:1].isdecimal() else ""
    label = f"{row['operation'] or 'unknown operation'}{number} {row['role'] or ''}".rstrip()
    tone = "error" if row["error"] or not row["complete"] else ""
    if answer is not None and answer["error_code"]:
        label += f", error {answer['error_code']}" + (f" {answer['error_name']}" if answer["error_name"] else "")
        tone = "error"
    if asked is not None and asked["status"] == "unanswered":
        label, tone = f"{label}, no response seen", "warn"
    if not row["complete"]:
        label += ", not whole in the capture"
    first, last = row["packet_first"], row["packet_last"]
    packets = f"packet {last}" if first == last else f"packets {first} to {last}"
    return {
        "kind": "message",
        "id": row["message_id"],
        "time": row["time"],
        "from_client": row["direction"] == "client_to_server",
        "label": visible(label),
        "latency": f"{ms_text(answer['latency_ms'])} ms" if answer and answer["latency_ms"] is not None else "",
        "detail": f"line {row['line']}" if row["line"] else f"{packets}, {row['length_bytes']:,} bytes",
        "hint": visible(row["summary"] or label),
        "tone": tone,
        "chosen": row["message_id"] == chosen,
    }


def _remark_line(row: Mapping[str, Any]) -> dict[str, Any]:
    place = next((f"{name} {row[name]}: " for name in ("packet", "line") if row[name]), "")
    return {
        "kind": "remark",
        "time": row["time"],
        "label": visible(f"{place}{row['text']}"),
        "tone": _TONES.get(row["severity"], ""),
    }

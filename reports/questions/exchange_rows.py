"""Exchanges and flows chosen by what people look for. In: what they look for; out: SELECTs over registered tables."""

from __future__ import annotations

from analyser.registry.queries import literal
from reports.questions.source import Source, rows

STATUSES = ("ok", "error", "unanswered", "orphan", "one_way")
_MOST_OPERATIONS = 200

_OPERATIONS = """
    select operation from exchanges where operation is not null
    group by operation order by count(*) desc, operation limit {most}"""

FLOWS = """
    select flow_id, protocol, client_address, client_port, server_address, server_port, ts_first, ts_last,
           packets, bytes_to_server, bytes_to_client, handshake_ms, closed_by, gap_bytes, retransmitted_segments,
           encapsulation, carrier, sni
    from flows"""
_FLOW = "select *, epoch_ns(ts_first) as first_ns, epoch_ns(ts_last) as last_ns from flows where flow_id = {flow}"
_MESSAGES = "select count(*) as messages from messages where flow_id = {flow}"
# In the order in which the ladder draws them.
_BEFORE = """
    with own as (
        select message_id, row_number() over (order by ts, packet_last, stream_offset, message_id) as place
        from messages where flow_id = {flow})
    select place - 1 as before from own where message_id = {message}"""


def operations(source: Source) -> list[str]:
    """Operations of the selected exchanges, the most frequent first."""
    return [row["operation"] for row in rows(source, _OPERATIONS.format(most=_MOST_OPERATIONS))]


def exchange_query(operation: str = "", status: str = "", slower_ms: float | None = None, client: str = "") -> str:
    """A SELECT of exchanges that fit; an empty text or None asks for nothing. client: part of client id or address."""
    conditions = []
    if operation:
        conditions.append(f"operation = {literal(operation)}")
    if status:
        conditions.append(f"status = {literal(status)}")
    if slower_ms is not None:
        conditions.append(f"latency_ms > {float(slower_ms)}")
    if client:
        text = literal(client.lower())
        conditions.append(
            f"(contains(lower(coalesce(client_id, '')), {text}) or contains(coalesce(client_address, ''), {text}))"
        )
    return "select * from exchanges" + (f" where {' and '.join(conditions)}" if conditions else "")


def flow_row(source: Source, flow_id: str) -> dict[str, object] | None:
    """A flow with `first_ns` and `last_ns`; None when there is none."""
    found = source.sql(_FLOW.format(flow=literal(flow_id))).to_pylist()
    return found[0] if found else None


def message_count(source: Source, flow_id: str) -> int:
    """Messages of a flow."""
    return int(source.sql(_MESSAGES.format(flow=literal(flow_id))).to_pylist()[0]["messages"])


def messages_before(source: Source, flow_id: str, message_id: str) -> int | None:
    """How many messages of the flow come before this one; None when it is none of the flow's."""
    query = _BEFORE.format(flow=literal(flow_id), message=literal(message_id))
    found = source.sql(query).to_pylist()
    return int(found[0]["before"]) if found else None

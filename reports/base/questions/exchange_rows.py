"""What a capture's exchanges and flows are: lists to choose from, one of them. In: a source; out: rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, all_rows, rows

STATUSES = ("ok", "error", "unanswered", "orphan", "one_way")
_MOST_OPERATIONS = 200

_OPERATIONS = """
    select operation from exchanges where operation is not null
    group by operation order by count(*) desc, operation limit {most}"""

_ERRORS = """
    select coalesce(error_name, error_code::varchar) as error from exchanges where status = 'error' and error_code <> 0
    group by error order by count(*) desc, error limit {most}"""
_PACKET = """
    select message_id, flow_id, file from messages where {where}
    order by packet_last = {packet} desc, packet_last, stream_offset, message_id limit 50"""

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


def errors_seen(source: Source) -> list[str]:
    """Names of the errors of the selected exchanges, the most frequent first."""
    return [row["error"] for row in rows(source, _ERRORS.format(most=_MOST_OPERATIONS))]


def constant(source: Source, query: str, columns: Sequence[str]) -> dict[str, Any]:
    """Of these columns of the query's rows those that have one value, with it (None: they are all empty)."""
    parts = (f"min({c}) as low_{c}, max({c}) as high_{c}, count({c}) as n_{c}" for c in columns)
    found = rows(source, f"select count(*) as n, {', '.join(parts)} from ({query}) as t")[0]
    return {
        c: found[f"low_{c}"]
        for c in columns
        if found[f"low_{c}"] == found[f"high_{c}"] and found[f"n_{c}"] in (0, found["n"])
    }


def packet_messages(source: Source, packet: int, file: str = "") -> list[dict[str, Any]]:
    """message_id, flow_id, file of the messages of which this packet may have bytes; those that it ends come first."""
    where = f"packet_first <= {int(packet)} and packet_last >= {int(packet)}"
    where += f" and file = {literal(file)}" if file else ""
    return all_rows(source, _PACKET.format(where=where, packet=int(packet)))


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

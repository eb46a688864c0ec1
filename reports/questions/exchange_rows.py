"""Exchanges and flows chosen by what people look for. In: what they look for; out: SELECTs over registered tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from analyser.registry.queries import literal
from reports.questions.source import Source, all_rows, rows

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


class Wanted(NamedTuple):
    """Which exchanges somebody looks for; what is empty asks for nothing.

    client: `id@address`, or a part of either. server: an address, or `address:port`. about: part of a topic, group or
    collection that the exchange names. error: the name of a code, or the code. packet: a number that the request or
    the answer has bytes in, or `low-high`: one of them ends there. text: part of what its messages say in short.
    """

    protocol: str = ""
    operation: str = ""
    status: str = ""
    slower_ms: float | None = None
    client: str = ""
    server: str = ""
    about: str = ""
    error: str = ""
    file: str = ""
    packet: str = ""
    text: str = ""


# Where exchanges name topics, groups and collections, and the column with the exchange's id.
ABOUT = (
    ("kafka_offset_commits", "exchange_id", ("topic", "group_id")),
    ("kafka_offset_fetches", "exchange_id", ("topic", "group_id")),
    ("kafka_group_events", "exchange_id", ("group_id", "topics")),
    ("kafka_produce_batches", "exchange_id", ("topic",)),
    ("kafka_fetch_partitions", "exchange_id", ("topic", "group_id")),
    ("kafka_list_offsets", "exchange_id", ("topic",)),
    ("kafka_share_acknowledges", "exchange_id", ("topic", "group_id")),
    ("kafka_share_fetches", "exchange_id", ("topic", "group_id")),
    ("mongo_commands", "exchange_id", ("concat_ws('.', database, collection)",)),
    ("mqtt_publishes", "message_id", ("topic",)),
    ("mqtt_subscriptions", "exchange_id", ("topic_filter",)),
)
# No error is no result to read.
EXCHANGES = "select * replace (case when error_code <> 0 then error_name end as error_name) from exchanges"


def exchange_query(wanted: Wanted) -> str:
    """A SELECT of the exchanges that fit; `error_name` is null where there is no error."""
    conditions = [condition for condition in _conditions(wanted) if condition]
    return EXCHANGES + (f" where {' and '.join(conditions)}" if conditions else "")


def _conditions(wanted: Wanted) -> list[str]:
    same = {"protocol": wanted.protocol, "operation": wanted.operation, "status": wanted.status,
            "request_file": wanted.file}  # fmt: skip
    return [
        *(f"{column} = {literal(value)}" for column, value in same.items() if value),
        f"latency_ms > {float(wanted.slower_ms)}" if wanted.slower_ms is not None else "",
        _client(wanted.client), _server(wanted.server), _error(wanted.error), _packets(wanted.packet),
        _about(wanted.about), _says(wanted.text),
    ]  # fmt: skip


def _client(text: str) -> str:
    """`id@address` is exactly that one, `@address` any client there, other text a part of either."""
    if not text:
        return ""
    name, at, address = text.rpartition("@")
    if at and name:
        return f"(client_id = {literal(name)} and client_address = {literal(address)} or {_part('client_id', text)})"
    if at:
        return f"client_address = {literal(address)}"
    return f"({_part('client_id', text)} or {_part('client_address', text)})"


def _server(text: str) -> str:
    if not text:
        return ""
    place = "case when contains(server_address, ':') then '[' || server_address || ']' else server_address end"
    return _part(f"{place} || ':' || server_port", text)


def _error(text: str) -> str:
    if not text:
        return ""
    return f"status = 'error' and ({_part('error_name', text)} or error_code::varchar = {literal(text)})"


def _packets(text: str) -> str:
    """A number or a range of numbers; nothing else finds anything."""
    if not text:
        return ""
    low, dash, high = text.partition("-")
    ends = [end.strip() for end in ((low, high) if dash else (low, low))]
    if not all(end.isdecimal() and len(end) < 19 for end in ends):
        return "false"
    between = f"between {int(ends[0])} and {int(ends[1])}"
    if not dash:
        spans = f"packet_first <= {int(ends[0])} and packet_last >= {int(ends[0])}"
        listed = f"select message_id from messages where {spans}"
        return f"(request_message_id in ({listed}) or response_message_id in ({listed}))"
    return f"(request_packet {between} or response_packet {between})"


def _about(text: str) -> str:
    if not text:
        return ""
    named = (
        f"select {key} from {table} where {' or '.join(_part(column, text) for column in columns)}"
        for table, key, columns in ABOUT
    )
    return f"exchange_id in ({' union all '.join(named)})"


def _says(text: str) -> str:
    if not text:
        return ""
    listed = f"select message_id from messages where {_part('summary', text)}"
    return f"(request_message_id in ({listed}) or response_message_id in ({listed}))"


def _part(column: str, text: str) -> str:
    return f"contains(lower(coalesce(({column})::varchar, '')), {literal(text.lower())})"


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

"""What an exchange says, in a few words for a list: `payments-ledger · payments 4 = 49`, `find shop.users`.

In: a source and ids of exchanges with their times, as many as a page shows. Out: a text for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, all_rows, narrowed
from wirewitness.reports.base.questions.wanted_exchanges import EXCHANGES, NAMING

# What a message's exchange has in common with others: values to look for. In: a source, a message; out: filters.

_NAMES_SHOWN = 8
_EXCHANGE = f"""
    select exchange_id, request_message_id, protocol, operation, client_id, client_address, server_address, server_port,
           status, coalesce(error_name, nullif(error_code, 0)::varchar) as error
    from ({EXCHANGES}) as e where {{message}} in (request_message_id, response_message_id) limit 1"""


class CommonValue(NamedTuple):
    """kind: client, server, operation, error, or about (a topic, group or collection). value: as `Wanted` takes it."""

    kind: str
    value: str


def exchange_values(source: Source, message_id: str) -> list[CommonValue]:
    """Of the exchange to which the message belongs; nothing where there is none."""
    found = all_rows(source, _EXCHANGE.format(message=literal(message_id)))
    if not found:
        return []
    row = found[0]
    address = row["server_address"] or ""
    server = f"[{address}]" if ":" in address else address
    told = [
        ("client", f"{row['client_id'] or ''}@{row['client_address']}" if row["client_address"] else ""),
        ("server", f"{server}:{row['server_port']}" if server else ""),
        ("operation", row["operation"] or ""),
        ("error", (row["error"] or "") if row["status"] == "error" else ""),
    ]
    names = [("about", name) for name in _names(source, row["exchange_id"], row["request_message_id"])]
    return [CommonValue(kind, value) for kind, value in (*told, *names) if value]


def _names(source: Source, *ids: str | None) -> list[str]:
    """Topics, groups and collections that the exchange names, in their order of the alphabet, not all of very many."""
    listed = ", ".join(literal(one) for one in ids if one)
    parts = (
        f"select ({column})::varchar as name from {naming.table} where {naming.key} in ({listed})"
        for naming in NAMING
        for column in naming.columns
    )
    query = (
        f"select distinct name from ({' union all '.join(parts)}) where name <> '' order by name limit {_NAMES_SHOWN}"
    )
    return [row["name"] for row in all_rows(source, query)]


_PARTS_SHOWN = 3

# Parts of each exchange in their order: exchange_id, before (said once), part, and how many there are.
_PARTS = {
    "kafka_offset_commits": """
        select exchange_id, group_id as before, coalesce(topic, topic_id) || ' ' || partition || ' = ' ||
               committed_offset as part, partition as place, topic as name from kafka_offset_commits""",
    "kafka_offset_fetches": """
        select exchange_id, group_id as before, coalesce(topic, topic_id) || ' ' || partition ||
               coalesce(': ' || committed_offset, '') as part, partition as place, topic as name
        from kafka_offset_fetches""",
    "kafka_produce_batches": """
        select exchange_id, null as before, coalesce(topic, topic_id) || ' ' || partition || coalesce(' + ' ||
               records_count, '') || case when base_offset >= 0 then ' at ' || base_offset else '' end as part,
               partition as place, topic as name from kafka_produce_batches""",
    "kafka_fetch_partitions": """
        select exchange_id, null as before, coalesce(topic, topic_id) || ' ' || partition || coalesce(' from ' ||
               fetch_offset, '') || case when records_count > 0 then ' got ' || records_count else '' end as part,
               partition as place, topic as name from kafka_fetch_partitions""",
    "kafka_group_events": """
        select exchange_id, group_id as before, concat_ws(' ', nullif(member_id, ''), 'generation ' || generation)
               as part, 0 as place, member_id as name from kafka_group_events""",
    "kafka_list_offsets": """
        select exchange_id, null as before, coalesce(topic, '') || ' ' || partition || coalesce(': ' || "offset", '')
               as part, partition as place, topic as name from kafka_list_offsets""",
    "mongo_commands": """
        select exchange_id, command || ' ' || concat_ws('.', database, collection) as before,
               case when documents_returned > 0 then documents_returned || ' documents' end as part, 0 as place,
               null as name from mongo_commands""",
    "mqtt_publishes": """
        select message_id as exchange_id, topic as before, 'QoS ' || qos || ', ' || payload_bytes || ' bytes' as part,
               0 as place, null as name from mqtt_publishes""",
    "mqtt_subscriptions": """
        select exchange_id, null as before, topic_filter as part, position as place, null as name
        from mqtt_subscriptions""",
}  # fmt: skip
_SAID = """
    select exchange_id, any_value(before) as before, list(part order by name, place)[1:{shown}] as parts,
           count(part) as n
    from ({parts}) where exchange_id in ({ids}) group by exchange_id"""
# An exchange has the id of its first message.
_SUMMARIES = """
    select message_id as exchange_id, summary from messages where message_id in ({ids})"""


def exchanges_say(source: Source, times_ns: Mapping[str, int]) -> dict[str, str]:
    """What each of these exchanges says; those of which nothing is known are left out.

    times_ns: id -> Unix ns of the exchange. Rows about it have its time, so most of the tables need not be read.
    """
    if not times_ns:
        return {}
    ids = ", ".join(literal(one) for one in times_ns)
    within = ReadOptions(from_ns=min(times_ns.values()), to_ns=max(times_ns.values()) + 1)
    found = {row["exchange_id"]: row["summary"] for row in _asked(source, _SUMMARIES.format(ids=ids), within)}
    for parts in _PARTS.values():
        said = _asked(source, _SAID.format(shown=_PARTS_SHOWN, parts=parts, ids=ids), within)
        found |= {row["exchange_id"]: _text(row) for row in said}
    return {key: text for key, text in found.items() if text}


def _asked(source: Source, query: str, within: ReadOptions) -> list[dict[str, Any]]:
    return all_rows(source, narrowed(query, within))


def _text(row: dict[str, Any]) -> str:
    parts = [part for part in row["parts"] or [] if part]
    more = f" and {row['n'] - len(parts)} more" if row["n"] > len(parts) else ""
    listed = ", ".join(parts) + more
    return " · ".join(text for text in (row["before"], listed) if text)

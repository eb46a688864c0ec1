"""What a message's exchange has in common with others: values to look for. In: a source, a message; out: filters."""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.analyser.tables.queries import literal
from wirewitness.reports.base.questions.source import Source, all_rows
from wirewitness.reports.base.questions.wanted_exchanges import EXCHANGES, NAMING

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

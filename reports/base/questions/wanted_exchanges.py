"""Exchanges chosen by what people look for. In: what they look for; out: a SELECT over registered tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from wirewitness.analyser.tables.queries import literal


class Wanted(NamedTuple):
    """Which exchanges somebody looks for; what is empty asks for nothing.

    client: `id@address`, or a part of either. server: an address, or `address:port`. about: part of a topic, group or
    collection that the exchange names; in double quotes the whole of it, and several of these are named together.
    partition: that of such a topic. error: the name of a code, or the code. packet: a number that the request or the
    answer has bytes in, or `low-high`: one of them ends there. text: part of what its messages say in short. version:
    of the request. between: `low-high`, Unix ns of the request, without the latter. took: `low-high` in ms, without the
    latter; without `high` all that took longer. waits: `no` leaves out what asks the server to wait. part_of:
    `cursor NUMBER`, `transaction SESSION/NUMBER`, or `finding ID`: on one of its connections, which are `flows`.
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
    partition: str = ""
    version: str = ""
    between: str = ""
    took: str = ""
    part_of: str = ""
    waits: str = ""
    flows: Sequence[str] = ()


class Naming(NamedTuple):
    """A table that names topics, groups or collections. key: its column with the exchange's id.

    lists: columns with several names in one text. partitioned: it has the partition, too.
    """

    table: str
    key: str
    columns: tuple[str, ...]
    lists: tuple[str, ...] = ()
    partitioned: bool = False


NAMING = (
    Naming("kafka_offset_commits", "exchange_id", ("topic", "group_id"), partitioned=True),
    Naming("kafka_offset_fetches", "exchange_id", ("topic", "group_id"), partitioned=True),
    Naming("kafka_group_events", "exchange_id", ("group_id",), ("topics",)),
    Naming("kafka_produce_batches", "exchange_id", ("topic",), partitioned=True),
    Naming("kafka_fetch_partitions", "exchange_id", ("topic", "group_id"), partitioned=True),
    Naming("kafka_list_offsets", "exchange_id", ("topic",), partitioned=True),
    Naming("kafka_share_acknowledges", "exchange_id", ("topic", "group_id"), partitioned=True),
    Naming("kafka_share_fetches", "exchange_id", ("topic", "group_id"), partitioned=True),
    Naming("mongo_commands", "exchange_id", ("concat_ws('.', database, collection)",)),
    Naming("mqtt_publishes", "message_id", ("topic",)),
    Naming("mqtt_subscriptions", "exchange_id", ("topic_filter",)),
)
# The kind of `part_of` whose connections the caller names.
FINDING = "finding"
# No error is no result to read.
EXCHANGES = "select * replace (case when error_code <> 0 then error_name end as error_name) from exchanges"
_PIECES = re.compile(r'"([^"]*)"|(\S+)')
_LONGEST_NUMBER = 19


def exchange_query(wanted: Wanted) -> str:
    """A SELECT of the exchanges that fit; `error_name` is null where there is no error."""
    conditions = [condition for condition in _conditions(wanted) if condition]
    return EXCHANGES + (f" where {' and '.join(conditions)}" if conditions else "")


def named_exactly(*names: str | None) -> str | None:
    """What `about` takes for an exchange that names all of these; None where no name is known."""
    known = [name for name in names if name]
    if any('"' in name for name in known):
        return known[0]
    return " ".join(f'"{name}"' for name in known) or None


def _conditions(wanted: Wanted) -> list[str]:
    same = {"protocol": wanted.protocol, "operation": wanted.operation, "status": wanted.status,
            "request_file": wanted.file, "version": wanted.version}  # fmt: skip
    return [
        *(f"{column} = {literal(value)}" for column, value in same.items() if value),
        f"latency_ms > {float(wanted.slower_ms)}" if wanted.slower_ms is not None else "",
        _client(wanted.client), _server(wanted.server), _error(wanted.error), _packets(wanted.packet),
        _about(wanted.about, wanted.partition), _says(wanted.text), _between(wanted.between), _took(wanted.took),
        _part_of(wanted.part_of, wanted.flows), "awaitable is not true" if wanted.waits else "",
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
    named = f"lower(error_name) = {literal(text.lower())}"
    return f"status = 'error' and ({named} or error_code::varchar = {literal(text)})"


def _packets(text: str) -> str:
    """A number or a range of numbers; nothing else finds anything."""
    if not text:
        return ""
    low, dash, high = text.partition("-")
    ends = [end.strip() for end in ((low, high) if dash else (low, low))]
    if not all(_is_number(end) for end in ends):
        return "false"
    between = f"between {int(ends[0])} and {int(ends[1])}"
    if not dash:
        spans = f"packet_first <= {int(ends[0])} and packet_last >= {int(ends[0])}"
        listed = f"select message_id from messages where {spans}"
        return f"(request_message_id in ({listed}) or response_message_id in ({listed}))"
    return f"(request_packet {between} or response_packet {between})"


def _about(text: str, partition: str) -> str:
    """One row of a table that names them has all of it."""
    if not text and not partition:
        return ""
    pieces = [(whole or part, bool(whole)) for whole, part in _PIECES.findall(text)] if '"' in text else [(text, False)]
    listed = (
        f"select {naming.key} from {naming.table} where {_names(naming, pieces, partition)}"
        for naming in NAMING
        if naming.partitioned or not partition
    )
    return f"exchange_id in ({' union all '.join(listed)})"


def _names(naming: Naming, pieces: list[tuple[str, bool]], partition: str) -> str:
    every = (*naming.columns, *naming.lists)
    conditions = [
        " or ".join(
            f"{column} = {literal(text)}" if exact and column not in naming.lists else _part(column, text)
            for column in every
        )
        for text, exact in pieces
        if text
    ]
    if partition:
        conditions.append(f"partition = {int(partition)}" if _is_number(partition) else "false")
    return " and ".join(f"({condition})" for condition in conditions) or "true"


def in_cell(between: str, took: str = "") -> str:
    """An SQL condition for rows with `ts` and `latency_ms` that a mark of a chart stands for; see Wanted."""
    return " and ".join(condition for condition in (_between(between), _took(took)) if condition) or "true"


def _between(text: str) -> str:
    low, _, high = text.partition("-")
    if not text:
        return ""
    if not (_is_number(low) and _is_number(high)):
        return "false"
    return f"epoch_ns(ts) >= {int(low)} and epoch_ns(ts) < {int(high)}"


def _took(text: str) -> str:
    low, dash, high = text.partition("-")
    if not text:
        return ""
    if not dash:
        return "false"
    try:
        at_least = f"latency_ms >= {float(low)!r}"
        return f"{at_least} and latency_ms < {float(high)!r}" if high else at_least
    except ValueError:
        return "false"


def _part_of(text: str, flows: Sequence[str]) -> str:
    """Commands of a cursor or a transaction, over all connections; or exchanges of the connections of a finding."""
    if not text:
        return ""
    kind, _, name = text.partition(" ")
    if kind == FINDING:
        return of_flows(flows)
    session, _, number = name.rpartition("/")
    digits = number.removeprefix("-")
    if not _is_number(digits) or kind not in ("cursor", "transaction"):
        return "false"
    if kind == "cursor":
        fits = f"cursor_id = {int(number)} or list_contains(cursors_killed, {int(number)})"
    else:
        fits = f"lsid = {literal(session)} and txn_number = {int(number)}"
    return f"exchange_id in (select exchange_id from mongo_commands where {fits})"


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _LONGEST_NUMBER


def of_flows(flow_ids: Sequence[str]) -> str:
    """An SQL condition for rows of these connections."""
    return f"flow_id in ({', '.join(map(literal, flow_ids)) or literal('')})"


def _says(text: str) -> str:
    if not text:
        return ""
    listed = f"select message_id from messages where {_part('summary', text)}"
    return f"(request_message_id in ({listed}) or response_message_id in ({listed}))"


def _part(column: str, text: str) -> str:
    return f"contains(lower(coalesce(({column})::varchar, '')), {literal(text.lower())})"

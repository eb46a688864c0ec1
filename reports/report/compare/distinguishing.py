"""What some exchanges have in common that the others have not. In: a source and a condition; out: rows.

A value (a client, a connection, a minute, a topic ...) stands out when more of the chosen exchanges have it than chance
would give them, were they drawn from all alike. That chance is bounded by Hoeffding's inequality for draws without
replacement (JASA 58, 1963, theorem 1 and section 6), exp(-n KL(m/n, M/N)), times the number of values that were looked
at: so many questions find something in anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Any, NamedTuple

from wirewitness.reports.base.questions.failures import IS_UNANSWERED
from wirewitness.reports.base.questions.source import Source, any_rows, rows
from wirewitness.reports.report.compare.differing_clients import NAME

# What chance makes of all values together less often than this stands out.
MOST_CHANCE = 0.01
_MOST_VALUES = 5000
_SIZE = "case when {0} is not null then '2^' || ceil(log2(greatest({0}, 1)))::int || ' bytes at most' end"


class _Dimension(NamedTuple):
    """What exchanges are told apart by. name: constant words. expr: SQL over a table, null where it has nothing to say.
    key: the column with the exchange's id."""

    name: str
    table: str
    expr: str
    key: str = "exchange_id"


_DIMENSIONS = (
    _Dimension("operation", "exchanges", "operation"),
    _Dimension("version", "exchanges", "operation || ' ' || version"),
    _Dimension("error", "exchanges", "case when status = 'error' then coalesce(error_name, error_code::varchar) end"),
    _Dimension("answer", "exchanges", f"case when {IS_UNANSWERED} or status = 'orphan' then status end"),
    _Dimension("client", "exchanges", NAME),
    _Dimension("client address", "exchanges", "client_address"),
    _Dimension("server", "exchanges", "server_address || ':' || server_port"),
    _Dimension("cluster", "exchanges", "cluster_id"),
    _Dimension("connection", "exchanges", "flow_id"),
    _Dimension("minute", "exchanges", "strftime(ts, '%Y-%m-%dT%H:%MZ')"),
    _Dimension("throttled", "exchanges", "case when throttle_time_ms > 0 then 'by a quota' end"),
    _Dimension("request size", "exchanges", _SIZE.format("request_bytes")),
    _Dimension("response size", "exchanges", _SIZE.format("response_bytes")),
    _Dimension("topic", "kafka_fetch_partitions", "coalesce(topic, topic_id)"),
    _Dimension("topic", "kafka_produce_batches", "coalesce(topic, topic_id)"),
    _Dimension("topic", "kafka_offset_commits", "coalesce(topic, topic_id)"),
    _Dimension("partition", "kafka_fetch_partitions", "coalesce(topic, topic_id) || '-' || partition"),
    _Dimension("partition", "kafka_produce_batches", "coalesce(topic, topic_id) || '-' || partition"),
    _Dimension("partition", "kafka_offset_commits", "coalesce(topic, topic_id) || '-' || partition"),
    _Dimension("group", "kafka_fetch_partitions", "group_id"),
    _Dimension("group", "kafka_offset_commits", "group_id"),
    _Dimension("group", "kafka_group_events", "group_id"),
    _Dimension("compression", "kafka_produce_batches", "codec"),
    _Dimension("acks", "kafka_produce_batches", "acks::varchar"),
    _Dimension("topic", "mqtt_publishes", "topic", "message_id"),
    _Dimension("QoS", "mqtt_publishes", "qos::varchar", "message_id"),
    _Dimension("collection", "mongo_commands", "database || '.' || collection"),
    _Dimension("query shape", "mongo_commands", "shape_id"),
    _Dimension("application", "mongo_commands", "app_name"),
    _Dimension("driver", "mongo_commands", "concat_ws(' ', driver, driver_version)"),
    _Dimension("read preference", "mongo_commands", "read_preference"),
    _Dimension("write concern", "mongo_commands", "write_concern"),
)
TABLES = tuple(dict.fromkeys(one.table for one in _DIMENSIONS))

# Operations take unlike times by nature: others than those of the chosen exchanges say nothing, unless it is asked for
# all.
_CHOSEN = """
    with judged as (
        select *, coalesce(({where}), false) as chosen from exchanges),
    alike as (
        select * from judged where {same} (protocol, coalesce(operation, '')) in (
            select (protocol, coalesce(operation, '')) from judged where chosen)
    )"""
_COUNTS = "{chosen} select count(*) filter (chosen) as m, count(*) as n from alike"
_VALUES = """{chosen},
    told as (select distinct {key} as exchange_id, {expr} as value from {table}),
    valued as (select exchange_id, value, chosen from alike join told using (exchange_id))
    select value::varchar as value, count(*) filter (chosen) as m, count(*) as n, count(*) over () as values,
           bit_xor(hash(exchange_id)) as exchanges
    from valued where value is not null group by value order by m desc, value limit {most}"""


class Common(NamedTuple):
    """What was found. chosen, rest: exchanges. values: how many were looked at. rows: see `common_of`."""

    chosen: int
    rest: int
    values: int
    rows: list[dict[str, Any]]


def common_of(source: Source, where: str, *, all_operations: bool = False) -> Common:
    """dimension, value, chosen and of_chosen, rest and of_rest (exchanges with it and all that have the dimension),
    share, share_of_rest, chance (a bound), exchanges (equal where the same exchanges have both values): what explains
    most of the chosen ones first.

    where: SQL over `exchanges`. all_operations: compare with exchanges of all operations, not of the same ones alone.
    Raises QueryError for a condition that is none.
    """
    same = "true or" if all_operations else ""
    chosen = _CHOSEN.format(where=where, same=same)
    told = rows(source, _COUNTS.format(chosen=chosen))[0]
    made, values = [], 0
    there = {table for table in TABLES if any_rows(source, [table])} if 0 < told["m"] < told["n"] else set()
    for one in (one for one in _DIMENSIONS if one.table in there):
        found = rows(source, _VALUES.format(chosen=chosen, most=_MOST_VALUES, **one._asdict()))
        values += found[0]["values"] if found else 0
        made += [_row(one, row, told) for row in found]
    standing = [row for row in made if _stands_out(row, values)]
    for row in standing:
        row["chance"] = min(1.0, row["chance"] * values)
    standing.sort(key=_most_first)
    return Common(told["m"], told["n"] - told["m"], values, _once(standing))


def _row(one: _Dimension, row: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Shares are of all exchanges, whether the dimension says something of them or not."""
    rest, all_rest = row["n"] - row["m"], told["n"] - told["m"]
    return {
        "dimension": one.name, "value": row["value"], "chosen": row["m"], "of_chosen": told["m"], "rest": rest,
        "of_rest": all_rest, "share": row["m"] / told["m"], "share_of_rest": rest / all_rest,
        "chance": _chance(row["m"], row["n"], told["m"] / told["n"]), "exchanges": row["exchanges"],
    }  # fmt: skip


def _chance(m: int, n: int, part: float) -> float:
    """A bound on how likely at least `m` of `n` exchanges are chosen ones, if `part` of all are."""
    share = m / n
    if share <= part:
        return 1.0
    apart = share * log(share / part) + ((1 - share) * log((1 - share) / (1 - part)) if share < 1 else 0.0)
    return exp(-n * apart)


def _stands_out(row: Mapping[str, Any], values: int) -> bool:
    return bool(row["share"] > row["share_of_rest"] and row["chance"] * values < MOST_CHANCE)


def _most_first(row: Mapping[str, Any]) -> tuple[float, float, str, str]:
    return row["share_of_rest"] - row["share"], row["chance"], row["dimension"], row["value"]


def _once(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A value that two tables tell of stands once, by what explains more."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for row in found:
        key = row["dimension"], row["value"]
        if key not in seen:
            seen.add(key)
            kept.append(row)
    return kept

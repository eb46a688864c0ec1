"""Kafka's groups, topics, brokers and clients, each seen in a few ways. In: a view and what to choose; out: a SELECT.

A view is a SELECT over the selected rows and the columns that people are shown of it. `over_time` views have bins of
one width, whole multiples of it since 1970, with the bin's start as `ts`.
"""

from __future__ import annotations

from typing import NamedTuple

from analyser.context.kafka_lag import lag_query
from analyser.registry.queries import UNAWAITED_MS, literal
from reports.questions.groups import MEMBERS
from reports.questions.kafka_topics import (
    API_VERSIONS,
    BROKERS,
    CLIENTS,
    LEADER_CHANGES,
    PARTITIONS_OF_TOPICS,
    TOPICS,
)

OVER_TIME = "over-time"


class Shown(NamedTuple):
    """A column for people: its name in the SELECT, its heading, and how its values are written.

    kind: text, number (as it is), count (with separators), ms, or time.
    """

    name: str
    heading: str
    kind: str = "text"


class KafkaView(NamedTuple):
    """One way to see something.

    tables: read for it. sql: a SELECT; `{width}` stands for a bin's ns, `{until}` for a
    SQL boolean over `at_ns`, which is false for answers later than the time asked for. order: of its rows.
    heading: for people, columns whose values stand over the rows that share them, with a text to put them in.
    """

    tables: tuple[str, ...]
    sql: str
    order: str
    shown: tuple[Shown, ...]
    heading: tuple[str, tuple[str, ...]] = ("", ())


_GROUP_TABLES = ("kafka_offset_commits", "kafka_fetch_partitions", "kafka_list_offsets")
_PLACE = (Shown("topic", "TOPIC"), Shown("partition", "PART", "number"))
_OFFSETS = (
    Shown("committed_offset", "COMMITTED", "number"),
    Shown("log_end_offset", "LOG END", "number"),
    Shown("lag", "LAG", "number"),
)
_COMMITTER = (
    Shown("client_id", "LAST COMMITTER"),
    Shown("client_address", "ADDRESS"),
    Shown("generation", "GENERATION", "number"),
)
_GROUP = ("group {}", ("group_id",))
_TOPIC = ("{}", ("topic",))
_COMMITS = (
    Shown("accepted", "COMMITS", "count"),
    Shown("refused", "REFUSED", "count"),
    Shown("committers", "BY", "count"),
)

_STORED = f"""
    select cluster_id, group_id, topic, partition, committed_offset, log_end_offset, lag, client_id, client_address,
           member_id, generation, owner_member_id, accepted, refused, committers,
           make_timestamp_ns(sent_ns)::timestamptz_ns as ts_commit
    from ({lag_query("0", commits="{until}", ends="{until}")})"""
_MEMBERS = f"""
    select cluster_id, group_id, member_id, group_instance_id, client_id, client_address, first_generation,
           last_generation, committed_partitions, make_timestamp_ns(first_ns)::timestamptz_ns as ts_first,
           make_timestamp_ns(last_ns)::timestamptz_ns as ts_last
    from ({MEMBERS})"""
_LAG = f"""
    select make_timestamp_ns(bin)::timestamptz_ns as ts, cluster_id, group_id, topic, partition, committed_offset,
           log_end_offset, lag, client_id, client_address, member_id, generation, accepted, refused, committers,
           lowest_offset, highest_offset
    from ({lag_query("at_ns // {width} * {width}", commits="(accepted or refused) and {until}", ends="{until}")})"""

_MOVED = """
    with moved as (
        select epoch_ns(ts) // {width} * {width} as bin, cluster_id, coalesce(topic, topic_id) as topic,
               records_count as records_written, batch_bytes as bytes_written, null as records_read, null as bytes_read,
               coalesce(error_code, 0) <> 0 as failed
        from kafka_produce_batches
        union all
        select epoch_ns(ts) // {width} * {width}, cluster_id, coalesce(topic, topic_id), null, null, records_count,
               records_bytes, coalesce(error_code, 0) <> 0
        from kafka_fetch_partitions where coalesce(replica_id, -1) < 0)
    select make_timestamp_ns(bin)::timestamptz_ns as ts, cluster_id, topic,
           sum(records_written)::bigint as records_written, sum(bytes_written)::bigint as bytes_written,
           sum(records_read)::bigint as records_read, sum(bytes_read)::bigint as bytes_read,
           count(*) filter (failed) as errors
    from moved where topic is not null group by all"""

_ENDPOINTS = f"""
    select cluster_id, server_address, server_port, count(distinct flow_id) as connections,
           count(distinct struct_pack(a := client_address, c := client_id)) as clients, count(*) as exchanges,
           count(*) filter (status = 'error') as errors, count(*) filter (status = 'unanswered') as unanswered,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms,
           min(ts) as ts_first, max(ts) as ts_last
    from exchanges where protocol = 'kafka' group by all"""
_REQUESTS = f"""
    select make_timestamp_ns(epoch_ns(ts) // {{{{width}}}} * {{{{width}}}})::timestamptz_ns as ts, cluster_id, {{who}},
           count(distinct flow_id) as connections, count(*) as exchanges, count(*) filter (status = 'error') as errors,
           count(*) filter (status = 'unanswered') as unanswered,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms
    from exchanges where protocol = 'kafka' group by all"""

_TIME = (Shown("ts", "TIME", "time"),)
_TRAFFIC = (
    Shown("connections", "CONNECTIONS", "count"),
    Shown("exchanges", "EXCHANGES", "count"),
    Shown("errors", "ERRORS", "count"),
    Shown("unanswered", "NO ANSWER", "count"),
    Shown("median_ms", "MEDIAN MS", "ms"),
    Shown("p99_ms", "P99 MS", "ms"),
)
_BYTES = (
    Shown("records_written", "WRITTEN", "count"),
    Shown("bytes_written", "BYTES IN", "count"),
    Shown("records_read", "READ", "count"),
    Shown("bytes_read", "BYTES OUT", "count"),
)
_ERRORS = (Shown("errors", "ERRORS", "count"),)
_CLIENT = (Shown("client_id", "CLIENT ID"), Shown("client_address", "ADDRESS"))
_ENDPOINT = (Shown("server_address", "SERVER"), Shown("server_port", "PORT", "number"))

_GROUPS = {
    "": KafkaView(
        _GROUP_TABLES, _STORED, "cluster_id, group_id, topic, partition", (*_PLACE, *_OFFSETS, *_COMMITS, *_COMMITTER),
        _GROUP,
    ),
    "members": KafkaView(
        ("kafka_offset_commits", "kafka_group_events"), _MEMBERS, "cluster_id, group_id, ts_first, member_id",
        (
            Shown("member_id", "MEMBER ID"), *_CLIENT, Shown("first_generation", "FIRST GEN", "number"),
            Shown("last_generation", "LAST GEN", "number"), Shown("committed_partitions", "COMMITS", "count"),
            Shown("group_instance_id", "STATIC NAME"),
        ),
        _GROUP,
    ),
    OVER_TIME: KafkaView(
        _GROUP_TABLES, _LAG, "cluster_id, group_id, topic, partition, ts",
        (*_TIME, *_OFFSETS, *_COMMITS, *_COMMITTER[:2]), ("group {}, {}-{}", ("group_id", "topic", "partition")),
    ),
}  # fmt: skip
_TOPICS = {
    "": KafkaView(
        (
            "kafka_partitions",
            "kafka_produce_batches",
            "kafka_fetch_partitions",
            "kafka_offset_commits",
        ),
        TOPICS, "bytes_written desc nulls last, bytes_read desc nulls last, cluster_id, topic",
        (
            Shown("topic", "TOPIC"), Shown("partitions", "PARTS", "count"),
            Shown("under_replicated", "UNDER-REPLICATED", "count"), *_BYTES, Shown("writers", "WRITERS", "count"),
            Shown("readers", "READERS", "count"), Shown("groups", "GROUPS", "count"), *_ERRORS,
        ),
    ),
    "partitions": KafkaView(
        ("kafka_partitions", "kafka_produce_batches", "kafka_fetch_partitions"),
        PARTITIONS_OF_TOPICS, "cluster_id, topic, partition",
        (
            Shown("partition", "PART", "number"), Shown("leader_id", "LEADER", "number"),
            Shown("leader_epoch", "EPOCH", "number"), Shown("replicas", "REPLICAS"), Shown("isr", "IN SYNC"),
            Shown("log_start", "LOG START", "number"), Shown("log_end", "LOG END", "number"),
            Shown("records_written", "WRITTEN", "count"), Shown("records_read", "READ", "count"),
        ),
        _TOPIC,
    ),
    OVER_TIME: KafkaView(
        ("kafka_produce_batches", "kafka_fetch_partitions"), _MOVED, "cluster_id, topic, ts",
        (*_TIME, *_BYTES, *_ERRORS), _TOPIC,
    ),
}  # fmt: skip
_BROKERS = {
    "": KafkaView(
        ("kafka_brokers", "kafka_partitions"), BROKERS, "cluster_id, node_id",
        (
            Shown("node_id", "BROKER", "number"), Shown("host", "HOST"), Shown("port", "PORT", "number"),
            Shown("rack", "RACK"), Shown("was_controller", "CONTROLLER"), Shown("was_fenced", "FENCED"),
            Shown("led", "LEADS", "count"), Shown("endpoints", "ENDPOINTS", "count"), Shown("cluster_id", "CLUSTER"),
        ),
    ),
    "endpoints": KafkaView(
        ("exchanges",), _ENDPOINTS, "server_address, server_port, cluster_id",
        (*_ENDPOINT, Shown("clients", "CLIENTS", "count"), *_TRAFFIC, Shown("cluster_id", "CLUSTER")),
    ),
    "changes": KafkaView(
        ("kafka_partitions",), LEADER_CHANGES, "ts, cluster_id, topic, partition",
        (
            *_TIME, Shown("topic", "TOPIC"), Shown("partition", "PART", "number"),
            Shown("leader_before", "LEADER BEFORE", "number"), Shown("leader_id", "LEADER", "number"),
            Shown("leader_epoch", "EPOCH", "number"), Shown("isr_before", "IN SYNC BEFORE"), Shown("isr", "IN SYNC"),
        ),
    ),
    OVER_TIME: KafkaView(
        ("exchanges",), _REQUESTS.format(who="server_address, server_port"),
        "server_address, server_port, cluster_id, ts",
        (*_TIME, *_TRAFFIC), ("{} port {}", ("server_address", "server_port")),
    ),
}  # fmt: skip
_CLIENTS = {
    "": KafkaView(
        ("exchanges", "kafka_api_versions"), CLIENTS, "exchanges desc, client_id, client_address",
        (
            *_CLIENT,
            Shown("software_name", "LIBRARY"), Shown("software_version", "VERSION"), *_TRAFFIC,
        ),
    ),
    "versions": KafkaView(
        ("exchanges",), API_VERSIONS, "operation, try_cast(version as integer)",
        (
            Shown("operation", "API"), Shown("version", "VERSION", "number"), Shown("exchanges", "EXCHANGES", "count"),
            Shown("clients", "CLIENTS", "count"), *_ERRORS,
        ),
    ),
    OVER_TIME: KafkaView(
        ("exchanges",), _REQUESTS.format(who="client_id, client_address"), "client_id, client_address, cluster_id, ts",
        (*_TIME, *_TRAFFIC), ("{} at {}", ("client_id", "client_address")),
    ),
}  # fmt: skip

VIEWS = {"groups": _GROUPS, "topics": _TOPICS, "brokers": _BROKERS, "clients": _CLIENTS}


def view_sql(
    view: KafkaView,
    *,
    column: str = "",
    names: tuple[str, ...] = (),
    until_ns: int | None = None,
    width_ns: int = 1,
    limit: int | None = None,
) -> str:
    """A SELECT. names: only rows whose `column` is one of these. until_ns: what later answers told is left out."""
    until = "true" if until_ns is None else f"at_ns <= {int(until_ns)}"
    query = view.sql.replace("{until}", until).replace("{width}", str(int(width_ns)))
    where = f" where {column} in ({', '.join(literal(name) for name in names)})" if names else ""
    count = "" if limit is None else f" limit {int(limit)}"
    return f"select * from ({query}){where} order by {view.order}{count}"

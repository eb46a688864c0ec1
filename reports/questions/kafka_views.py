"""Kafka's groups, topics and brokers, and clients of all protocols. In: a view and what to choose; out: a SELECT.

A view is a SELECT over the selected rows and the columns that people are shown of it. `over_time` views have bins of
one width, whole multiples of it since 1970, with the bin's start as `ts`.
"""

from __future__ import annotations

from typing import NamedTuple

from analyser.context.kafka_lag import LAG_TABLES, lag_query
from analyser.context.log_ends import END_TABLES
from analyser.registry.queries import UNAWAITED_MS, literal
from reports.questions.columns import PAGE, TEXT, Column, shown_as
from reports.questions.failures import IS_UNANSWERED
from reports.questions.group_history import REBALANCES, START_UP
from reports.questions.group_members import MEMBER_TABLES, MEMBERS_AT
from reports.questions.group_owners import PARTITION_TABLES, PARTITIONS_OF_GROUPS, at_time
from reports.questions.group_states import CHANGES, STATE_TABLES, STATES
from reports.questions.kafka_flow_of_data import READ_LATENCIES, TRANSACTIONS
from reports.questions.kafka_share_starts import SHARE_STARTS, SHARE_TABLES
from reports.questions.kafka_topics import (
    API_VERSIONS,
    BROKERS,
    CLIENTS,
    LEADER_CHANGES,
    PARTITIONS_OF_TOPICS,
    TOPICS,
)

OVER_TIME = "over-time"


class KafkaView(NamedTuple):
    """One way to see something.

    tables: read for it. sql: a SELECT; `{width}` stands for a bin's ns, `{until}` for a SQL boolean over `at_ns`, which
    is false for answers later than the time asked for, `{now_ns}` for the time at which ages are told. order: of its
    rows.
    columns: for people. heading: in text, columns whose values stand over the rows that share them, and in what words.
    """

    tables: tuple[str, ...]
    sql: str
    order: str
    columns: tuple[Column, ...]
    heading: tuple[str, tuple[str, ...]] = ("", ())

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the view as text."""
        return shown_as(TEXT, self.columns)

    @property
    def on_page(self) -> tuple[Column, ...]:
        """The columns of the view on a page of the dashboard."""
        return shown_as(PAGE, self.columns)


_TOPIC_COLUMN = Column("topic", "Topic")
_PART = Column("partition", "Partition", "plain", 70, "PART")
_OFFSETS = (
    Column("committed_offset", "Committed", "offset", heading="CURRENT-OFFSET"),
    Column("log_end_offset", "Log end", "offset", heading="LOG-END-OFFSET"),
    Column("lag", "Lag", "offset"),
)
_COMMITTER = (Column("client_id", "Last committer"), Column("client_address", "Address"))
_GROUP = ("group {}", ("group_id",))
_TOPIC = ("{}", ("topic",))
_GROUP_COLUMN = Column("group_id", "Group")
_STATE = (
    Column("state", "State"),
    Column("type", "Type"),
    Column("protocol_type", "Protocol"),
    Column("assignor", "Assignor"),
    Column("generation", "Generation", "plain", 90, "GEN"),
    Column("members", "Members", "offset"),
)
_COMMITS = (
    Column("accepted", "Commits", "count"),
    Column("refused", "Refused", "count"),
    Column("committers", "Committers", "count", heading="BY"),
)

_STORED = f"""
    select cluster_id, group_id, topic, partition, committed_offset, log_end_offset, lag, client_id, client_address,
           member_id, generation, owner_member_id, accepted, refused, committers, ts_commit, ts_log_end, consumer_id,
           consumer_host, consumer_client_id, consumer_instance_id, last_committer, log_end_age_ms, lag_ms
    from ({PARTITIONS_OF_GROUPS})"""
_LAG = f"""
    select make_timestamp_ns(bin)::timestamptz_ns as ts, cluster_id, group_id, topic, partition, committed_offset,
           log_end_offset, lag, client_id, client_address, member_id, generation, accepted, refused, committers,
           lowest_offset, highest_offset, make_timestamp_ns(end_ns)::timestamptz_ns as ts_log_end
    from ({lag_query("{width}", until="{until}", commits="(accepted or refused)")})"""

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
           count(*) filter (status = 'error') as errors, count(*) filter ({IS_UNANSWERED}) as unanswered,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms,
           min(ts) as ts_first, max(ts) as ts_last
    from exchanges where protocol = 'kafka' group by all"""
_REQUESTS = f"""
    select make_timestamp_ns(epoch_ns(ts) // {{{{width}}}} * {{{{width}}}})::timestamptz_ns as ts, cluster_id, {{who}},
           count(distinct flow_id) as connections, count(*) as exchanges, count(*) filter (status = 'error') as errors,
           count(*) filter ({IS_UNANSWERED}) as unanswered,
           quantile_cont({UNAWAITED_MS}, 0.5) as median_ms,
           quantile_cont({UNAWAITED_MS}, 0.99) as p99_ms
    from exchanges where {{where}} group by all"""

_TIME = (Column("ts", "Time", "time"),)
_TRAFFIC = (
    Column("connections", "Connections", "count"),
    Column("exchanges", "Exchanges", "count"),
    Column("errors", "Errors", "count"),
    Column("unanswered", "No answer", "count"),
    Column("median_ms", "Median ms", "ms"),
    Column("p99_ms", "p99 ms", "ms"),
)
_WRITTEN = (
    Column("records_written", "Records written", "count", heading="WRITTEN"),
    Column("bytes_written", "Bytes written", "bytes", heading="BYTES IN"),
)
_READ = (
    Column("records_read", "Records read", "count", heading="READ"),
    Column("bytes_read", "Bytes read", "bytes", heading="BYTES OUT"),
)
_ERRORS = (Column("errors", "Errors", "count"),)
_CLIENT = (Column("client_id", "Client", heading="CLIENT ID"), Column("client_address", "Address"))
_ENDPOINT = (Column("server_address", "Server"), Column("server_port", "Port", "plain"))
_FIRST_AND_LAST = (Column("ts_first", "First", "time", only=PAGE), Column("ts_last", "Last", "time", only=PAGE))
_CLUSTER = Column("cluster_id", "Cluster")

_GROUPS = {
    "": KafkaView(
        PARTITION_TABLES, _STORED, "cluster_id, group_id, topic, partition",
        (
            Column("group_id", "Group", only=TEXT, spare=6), _TOPIC_COLUMN, _PART._replace(heading="PARTITION"),
            *_OFFSETS, Column("consumer_id", "Consumer-id", "known", only=TEXT),
            Column("consumer_host", "Host", "known", only=TEXT, spare=-2),
            Column("consumer_client_id", "Client-id", "known", only=TEXT, spare=-1),
            *(column._replace(spare=place) for column, place in zip(_COMMITS, (4, 5, 1), strict=True)),
            Column("lag_ms", "Lag-time", "span", only=TEXT, spare=2),
            Column("log_end_age_ms", "Log-end-age", "span", only=TEXT, spare=3),
            Column("last_committer", "Last-committer", only=TEXT),
            Column("lag_ms", "Lag ms", "ms", only=PAGE), Column("log_end_age_ms", "Log end's age ms", "ms", only=PAGE),
            *(column._replace(only=PAGE) for column in _COMMITTER), Column("owner", "Owner then", only=PAGE),
            Column("generation", "Generation", "plain", 90, only=PAGE),
        ),
        _GROUP,
    ),
    "state": KafkaView(
        STATE_TABLES, STATES, "cluster_id, group_id",
        (
            _GROUP_COLUMN, *_STATE, Column("leader_id", "Leader", only=PAGE), Column("coordinator", "Coordinator"),
            Column("ts_since", "Since", "time", only=PAGE),
        ),
    ),
    "changes": KafkaView(
        STATE_TABLES, CHANGES, "cluster_id, group_id, ts",
        (*_TIME, Column("lasted_ms", "Lasted ms", "ms"), *_STATE, Column("leader_id", "Leader")),
        _GROUP,
    ),
    "members": KafkaView(
        MEMBER_TABLES, MEMBERS_AT, "cluster_id, group_id, ts_ended is not null, ts_first, member_id",
        (
            Column("member_id", "Member", "text", "large", "MEMBER ID"), *_CLIENT,
            Column("group_instance_id", "Static id", heading="STATIC NAME"),
            Column("first_generation", "First generation", "plain", heading="FIRST GEN", spare=2),
            Column("last_generation", "Last generation", "plain", heading="LAST GEN", spare=1),
            Column("committed_partitions", "Partitions committed", "count", heading="COMMITS"),
            Column("foreign", "For others", "count", only=PAGE), Column("ended", "Ended"),
            Column("topics", "Topics"), Column("assigned", "Partitions", "count", heading="HAS"),
            Column("assignment", "Assignment"),
        ),
        _GROUP,
    ),
    "rebalances": KafkaView(
        ("kafka_rebalances",), REBALANCES, "cluster_id, group_id, ts, generation",
        (
            *_TIME, Column("generations", "Generation", heading="GENERATION"),
            Column("members", "Members", spare=2),
            Column("set_off_by", "Set off by"), Column("waited_for_whom", "Waited for"),
            Column("waited_ms", "Waited ms", "ms"), Column("partitions_moved", "Moved", "count"),
            Column("duration_ms", "Took ms", "ms", spare=1),
            Column("longest_pause_ms", "Longest pause ms", "ms", heading="PAUSE MS"),
        ),
        _GROUP,
    ),
    "start-up": KafkaView(
        ("exchanges", "flows", "kafka_group_events", "kafka_offset_commits", "kafka_share_acknowledges"), START_UP,
        "cluster_id, group_id, ts, client_id, client_address",
        (
            *_TIME, *_CLIENT, Column("member_ids", "Member ids", "count"),
            Column("way", "Way (ms)"), Column("stopped_after", "Stopped after"), Column("failing", "Failing"),
            Column("errors", "Errors", "count"),
        ),
        _GROUP,
    ),
    "share-offsets": KafkaView(
        SHARE_TABLES, SHARE_STARTS, "cluster_id, group_id, topic, partition",
        (
            _TOPIC_COLUMN, _PART._replace(heading="PARTITION"), Column("leader_epoch", "Leader-epoch", "plain"),
            Column("start_offset", "Start-offset", "offset"), Column("lag", "Lag", "offset"),
            Column("told_by", "Told by"), Column("ts_told", "Told", "time"),
        ),
        _GROUP,
    ),
    OVER_TIME: KafkaView(
        LAG_TABLES, _LAG, "cluster_id, group_id, topic, partition, ts",
        (*_TIME, *_OFFSETS, *_COMMITS, *_COMMITTER), ("group {}, {}-{}", ("group_id", "topic", "partition")),
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
            _TOPIC_COLUMN, Column("partitions", "Partitions", "count", heading="PARTS"),
            Column("replicas", "Replicas", "count", only=PAGE), Column("under_replicated", "Under-replicated", "count"),
            *_WRITTEN, *_READ, Column("writers", "Writers", "count"), Column("readers", "Readers", "count"),
            Column("groups", "Groups", "count"), *_ERRORS,
        ),
    ),
    "partitions": KafkaView(
        END_TABLES,
        PARTITIONS_OF_TOPICS, "cluster_id, topic, partition",
        (
            _PART, Column("leader_id", "Leader", "plain"),
            Column("leader_epoch", "Leader epoch", "plain", heading="EPOCH"),
            Column("leader_epochs", "Epochs seen", "count", only=PAGE), Column("replicas", "Replicas"),
            Column("isr", "In sync"), Column("log_start", "Log start", "offset"),
            Column("log_end", "Log end", "offset"),
            _WRITTEN[0], Column("bytes_written", "Bytes written", "bytes", only=PAGE), _READ[0],
            Column("ts_deleted", "Deleted", "time"),
        ),
        _TOPIC,
    ),
    "latency": KafkaView(
        ("kafka_produce_batches", "kafka_fetch_partitions"), READ_LATENCIES,
        "cluster_id, topic, p99_ms desc nulls last, group_id, client_id",
        (
            Column("group_id", "Group"), Column("client_id", "Client", heading="CLIENT ID"),
            Column("batches", "Batches", "count"), Column("records", "Records", "count"),
            Column("median_ms", "Median ms", "ms"), Column("p99_ms", "p99 ms", "ms"),
            Column("most_ms", "Most ms", "ms", heading="MOST MS"), Column("unread", "Unread", "count"),
        ),
        _TOPIC,
    ),
    OVER_TIME: KafkaView(
        ("kafka_produce_batches", "kafka_fetch_partitions"), _MOVED, "cluster_id, topic, ts",
        (*_TIME, *_WRITTEN, *_READ, *_ERRORS), _TOPIC,
    ),
}  # fmt: skip
_BROKERS = {
    "": KafkaView(
        ("kafka_brokers", "kafka_partitions"), BROKERS, "cluster_id, node_id",
        (
            Column("node_id", "Broker", "plain"), Column("host", "Host"), Column("port", "Port", "plain"),
            Column("rack", "Rack"), Column("was_controller", "Named controller", "flag", heading="CONTROLLER"),
            Column("was_fenced", "Fenced", "flag"), Column("led", "Partitions led", "count", heading="LEADS"),
            Column("endpoints", "Endpoints told", "count", heading="ENDPOINTS"),
            Column("ts_first", "First told", "time", only=PAGE), Column("ts_last", "Last told", "time", only=PAGE),
            _CLUSTER,
        ),
    ),
    "endpoints": KafkaView(
        ("exchanges", "flows"), _ENDPOINTS, "server_address, server_port, cluster_id",
        (*_ENDPOINT, Column("clients", "Clients", "count"), *_TRAFFIC, _CLUSTER),
    ),
    "changes": KafkaView(
        ("kafka_partitions",), LEADER_CHANGES, "ts, cluster_id, topic, partition",
        (
            *_TIME, _TOPIC_COLUMN, _PART, Column("leader_before", "Leader before", "plain"),
            Column("leader_id", "Leader", "plain"), Column("leader_epoch", "Epoch", "plain"),
            Column("isr_before", "In sync before"), Column("isr", "In sync"),
        ),
    ),
    OVER_TIME: KafkaView(
        ("exchanges", "flows"), _REQUESTS.format(who="server_address, server_port", where="protocol = 'kafka'"),
        "server_address, server_port, cluster_id, ts",
        (*_TIME, *_TRAFFIC), ("{} port {}", ("server_address", "server_port")),
    ),
}  # fmt: skip
_CLIENTS = {
    "": KafkaView(
        ("exchanges", "flows", "kafka_api_versions", "mongo_commands", "mqtt_connections"), CLIENTS,
        "exchanges desc, client_id, client_address, protocol",
        (
            *_CLIENT, Column("protocol", "Protocol", only=TEXT, spare=1), Column("software_name", "Library"),
            Column("software_version", "Version"), *_TRAFFIC,
            *_FIRST_AND_LAST,
        ),
    ),
    "versions": KafkaView(
        ("exchanges",), API_VERSIONS, "operation, try_cast(version as integer)",
        (
            Column("operation", "API"), Column("version", "Version used", "figure", heading="VERSION"),
            Column("exchanges", "Exchanges", "count"), Column("clients", "Clients", "count"), *_ERRORS,
        ),
    ),
    "transactions": KafkaView(
        ("kafka_transaction_spans",), TRANSACTIONS,
        "cluster_id, transactional_id, client_id, client_address, ts, producer_id, producer_epoch",
        (
            *_TIME, Column("producer_id", "Producer", "plain"), Column("producer_epoch", "Epoch", "plain"),
            Column("outcome", "Outcome"), Column("open_ms", "Open ms", "ms"),
            Column("partitions_count", "Partitions", "count", heading="PARTS"),
            Column("records_count", "Records", "count"), Column("group_id", "Group"),
        ),
        ("{}: {} at {}", ("transactional_id", "client_id", "client_address")),
    ),
    OVER_TIME: KafkaView(
        ("exchanges", "flows"), _REQUESTS.format(who="client_id, client_address, protocol", where="true"),
        "client_id, client_address, protocol, cluster_id, ts",
        (*_TIME, *_TRAFFIC), ("{} at {}", ("client_id", "client_address")),
    ),
}  # fmt: skip

# What stands over partitions of groups, by the name of the value, as kafka-consumer-groups has it.
PARTITION_HEADINGS = {column.name: column.capitals for column in _GROUPS[""].shown}
VIEWS = {"groups": _GROUPS, "topics": _TOPICS, "brokers": _BROKERS, "clients": _CLIENTS}


def view_sql(
    view: KafkaView,
    *,
    column: str = "",
    names: tuple[str, ...] = (),
    until_ns: int | None = None,
    now_ns: int | None = None,
    width_ns: int = 1,
    limit: int | None = None,
) -> str:
    """A SELECT. names: only rows whose `column` is one of these. until_ns: what later answers told is left out.

    now_ns: ages are told at this time, or at the end of the capture where that is earlier.
    """
    until = "true" if until_ns is None else f"at_ns <= {int(until_ns)}"
    query = at_time(view.sql, now_ns).replace("{until}", until).replace("{width}", str(int(width_ns)))
    where = f" where {column} in ({', '.join(literal(name) for name in names)})" if names else ""
    count = "" if limit is None else f" limit {int(limit)}"
    return f"select * from ({query}){where} order by {view.order}{count}"

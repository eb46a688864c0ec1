"""Views of Kafka's topics and brokers and of clients of all protocols, and by name all views. See `kafka_view`."""

from __future__ import annotations

from wirewitness.analyser.tables.queries import UNAWAITED_MS
from wirewitness.reports.base.questions.columns import PAGE, TEXT, Column
from wirewitness.reports.base.questions.failures import IS_UNANSWERED
from wirewitness.reports.base.questions.workloads import OWNER
from wirewitness.reports.protocols.kafka.questions.group_views import GROUPS
from wirewitness.reports.protocols.kafka.questions.topics import (
    API_VERSIONS,
    BROKERS,
    CLIENTS,
    LEADER_CHANGES,
    PARTITION_TABLES,
    PARTITIONS_OF_TOPICS,
    TOPICS,
)
from wirewitness.reports.protocols.kafka.questions.view import CLIENT, OVER_TIME, PART, TIME, TOPIC_COLUMN, KafkaView

# What producers do as transactions, and how long records take to their readers. In: nothing. Out: SQL of views.
#
# A batch is read when a reader gets an answer that leads behind its last record; the time counts from the request
# that wrote it to that answer. Readers are groups, without one clients.

TRANSACTIONS = """
    select ts, cluster_id, transactional_id, client_id, client_address, producer_id, producer_epoch, outcome, ended_by,
           round((epoch_ns(coalesce(ts_ended, observed_until)) - epoch_ns(ts)) / 1e6, 6) as open_ms,
           partitions_count, batches_count, records_count, group_id, partitions, ts_started, ts_last, ts_ended,
           ended_client_id, ended_client_address, transaction_timeout_ms, end_attempts, end_error_code, exchange_id
    from kafka_transaction_spans"""

READ_LATENCIES = """
    with written as (
        select coalesce(cluster_id, '') as cluster, coalesce(topic, topic_id, '') as topic, partition, last_offset,
               records_count, epoch_ns(ts) as written_ns
        from kafka_produce_batches where error_code = 0 and last_offset >= 0),
    reads as (
        select coalesce(cluster_id, '') as cluster, coalesce(topic, topic_id, '') as topic, partition,
               coalesce(group_id, '') as group_id, case when group_id is null then client_id end as client_id,
               next_offset, min(epoch_ns(coalesce(ts_response, ts))) as read_ns
        from kafka_fetch_partitions where coalesce(replica_id, -1) < 0 and error_code = 0 and next_offset is not null
        group by all),
    readers as (
        select cluster, topic, partition, group_id, client_id, max(next_offset) as reached from reads group by all),
    asked as (
        select w.*, r.group_id, coalesce(r.client_id, '') as reader, r.reached
        from written w join readers r using (cluster, topic, partition)),
    met as (
        select a.*, (n.read_ns - a.written_ns) / 1e6 as ms
        from asked a asof left join (select * replace (coalesce(client_id, '') as client_id) from reads) n
            on a.cluster = n.cluster and a.topic = n.topic and a.partition = n.partition and a.group_id = n.group_id
            and a.reader = n.client_id and a.last_offset < n.next_offset)
    select nullif(cluster, '') as cluster_id, nullif(topic, '') as topic, nullif(group_id, '') as group_id,
           nullif(reader, '') as client_id, count(*) filter (ms >= 0) as batches,
           sum(records_count) filter (ms >= 0)::bigint as records,
           quantile_cont(ms, 0.5) filter (ms >= 0) as median_ms, quantile_cont(ms, 0.99) filter (ms >= 0) as p99_ms,
           max(ms) filter (ms >= 0) as most_ms,
           coalesce(sum(records_count) filter (last_offset >= reached), 0)::bigint as unread
    from met group by all"""


_TOPIC = ("{}", ("topic",))
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

_TRAFFIC = (
    Column("connections", "Connections", "count"),
    Column("exchanges", "Exchanges", "count"),
    Column("errors", "Errors", "count"),
    Column("unanswered", "No response", "count"),
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
_ENDPOINT = (Column("server_address", "Server"), Column("server_port", "Server port", "plain", heading="PORT"))
_FIRST_AND_LAST = (Column("ts_first", "First", "time", only=PAGE), Column("ts_last", "Last", "time", only=PAGE))
_CLUSTER = Column("cluster_id", "Cluster")

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
            TOPIC_COLUMN, Column("partitions", "Partitions", "count", heading="PARTS"),
            Column("replicas", "Replicas", "count", only=PAGE), Column("under_replicated", "Under-replicated", "count"),
            *_WRITTEN, *_READ, Column("writers", "Writers", "count"), Column("readers", "Readers", "count"),
            Column("groups", "Groups", "count"), *_ERRORS,
        ),
    ),
    "partitions": KafkaView(
        PARTITION_TABLES,
        PARTITIONS_OF_TOPICS, "cluster_id, topic, partition",
        (
            PART, Column("leader_id", "Leader", "plain"),
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
        (*TIME, *_WRITTEN, *_READ, *_ERRORS), _TOPIC,
    ),
}  # fmt: skip
_BROKERS = {
    "": KafkaView(
        ("kafka_brokers", "kafka_partitions"), BROKERS, "cluster_id, node_id",
        (
            Column("node_id", "Broker", "plain"), Column("host", "Host"), Column("port", "Port", "plain"),
            Column("rack", "Rack"), Column("was_controller", "Named controller", "flag", heading="CONTROLLER"),
            Column("was_fenced", "Fenced", "flag"), Column("led", "Partitions led", "count", heading="LEADS"),
            Column("endpoints", "Advertised endpoints", "count", heading="ENDPOINTS"),
            Column("ts_first", "First reported", "time", only=PAGE),
            Column("ts_last", "Last reported", "time", only=PAGE),
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
            *TIME, TOPIC_COLUMN, PART, Column("leader_before", "Leader before", "plain"),
            Column("leader_id", "Leader", "plain"), Column("leader_epoch", "Epoch", "plain"),
            Column("isr_before", "In sync before"), Column("isr", "In sync"),
        ),
    ),
    OVER_TIME: KafkaView(
        ("exchanges", "flows"), _REQUESTS.format(who="server_address, server_port", where="protocol = 'kafka'"),
        "server_address, server_port, cluster_id, ts",
        (*TIME, *_TRAFFIC), ("{} port {}", ("server_address", "server_port")),
    ),
}  # fmt: skip
_CLIENTS = {
    "": KafkaView(
        ("exchanges", "flows", "kafka_api_versions", "mongo_commands", "mqtt_connections"), CLIENTS,
        "exchanges desc, client_id, client_address, protocol",
        (
            *CLIENT, Column("protocol", "Protocol", only=TEXT, spare=1), Column("software_name", "Library"),
            Column("software_version", "Version", spare=2), OWNER, *_TRAFFIC,
            *_FIRST_AND_LAST,
        ),
    ),
    "versions": KafkaView(
        ("exchanges",), API_VERSIONS, "operation, try_cast(version as integer)",
        (
            Column("operation", "API"), Column("version", "Version", "figure"),
            Column("exchanges", "Exchanges", "count"), Column("clients", "Clients", "count"), *_ERRORS,
        ),
    ),
    "transactions": KafkaView(
        ("kafka_transaction_spans",), TRANSACTIONS,
        "cluster_id, transactional_id, client_id, client_address, ts, producer_id, producer_epoch",
        (
            *TIME, Column("producer_id", "Producer", "plain"), Column("producer_epoch", "Epoch", "plain"),
            Column("outcome", "Outcome"), Column("open_ms", "Open ms", "ms"),
            Column("partitions_count", "Partitions", "count", heading="PARTS"),
            Column("records_count", "Records", "count"), Column("group_id", "Group"),
        ),
        ("{}: {} at {}", ("transactional_id", "client_id", "client_address")),
    ),
    OVER_TIME: KafkaView(
        ("exchanges", "flows"), _REQUESTS.format(who="client_id, client_address, protocol", where="true"),
        "client_id, client_address, protocol, cluster_id, ts",
        (*TIME, *_TRAFFIC), ("{} at {}", ("client_id", "client_address")),
    ),
}  # fmt: skip

VIEWS = {"groups": GROUPS, "topics": _TOPICS, "brokers": _BROKERS, "clients": _CLIENTS}

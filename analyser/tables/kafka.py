"""Tables of Kafka."""

from __future__ import annotations

from dataclasses import replace

from wirewitness.analyser.tables.kafka_connections import CLIENT_REQUESTS, CONNECTIONS, LEADERS, REFUSALS, TRUNCATIONS
from wirewitness.analyser.tables.kafka_group_facts import KAFKA_GROUP_TABLES
from wirewitness.analyser.tables.kafka_groups import READING_RUNS, SHARE_TABLES, STORED_OFFSETS_TABLE
from wirewitness.analyser.tables.kafka_offsets import KAFKA_OFFSET_TABLES
from wirewitness.analyser.tables.kafka_producers import KAFKA_PRODUCER_TABLES
from wirewitness.analyser.tables.model import Column, Table, columns_of
from wirewitness.analyser.tables.owners import CLIENT_BESIDE
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_ID,
    CLIENT_PORT,
    CLUSTER,
    ERROR_NAME,
    EXCHANGE_ID,
    FLOW_ID,
    PLACE,
    SERVER_ADDRESS,
    SERVER_PORT,
    ts_column,
)
from wirewitness.dissectors.kafka.rows.change_fields import ADMIN_CHANGES, AUTHENTICATIONS, TRANSACTIONS
from wirewitness.dissectors.kafka.rows.cluster_fields import API_VERSIONS, BROKERS, PARTITIONS
from wirewitness.dissectors.kafka.rows.data_fields import (
    FETCH_PARTITIONS,
    LEADER_EPOCHS,
    LIST_OFFSETS,
    PRODUCE_BATCHES,
    RECORDS,
)
from wirewitness.dissectors.kafka.rows.group_fields import ASSIGNMENTS, GROUP_EVENTS, OFFSET_COMMITS, OFFSET_FETCHES
from wirewitness.dissectors.kafka.rows.log_fields import REQUEST_TIMES

_OFFSET_COMMITS = Table(
    "kafka_offset_commits",
    "one row per partition of an OffsetCommit or TxnOffsetCommit",
    columns_of(
        OFFSET_COMMITS,
        {
            "": (EXCHANGE_ID,),
            "api": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS, CLIENT_PORT, *CLIENT_BESIDE),
            "error_code": (
                ERROR_NAME,
                Column("owner_member_id", "string", "member the partition was assigned to at that time", "context"),
                Column("ownership_confidence", "string", "high from assignments, low from who fetches", "context"),
                Column("log_end_offset", "int64", "end of the log, as responses had reported it by then", "context"),
                Column(
                    "client_gap_ts",
                    "time",
                    "latest gap before that time in a flow of this address",
                    "context",
                    unit="UTC",
                ),
                *PLACE,
            ),
        },
    ),
    ("ts", "file", "request_packet", "exchange_id", "topic", "partition"),
    "kafka",
    topics_of="exchange_id",
)

_OFFSET_FETCHES = Table(
    "kafka_offset_fetches",
    "one row per partition in the response to an OffsetFetch",
    columns_of(
        OFFSET_FETCHES,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS,),
            "error_code": (ERROR_NAME, *PLACE),
        },
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_FETCH_PARTITIONS = Table(
    "kafka_fetch_partitions",
    "one row per partition of a Fetch request or response (fetch sessions resolved, KIP-227)",
    columns_of(
        FETCH_PARTITIONS,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (
                CLIENT_ADDRESS,
                Column("group_id", "string", "group of this client, from its group requests", "context"),
            ),
            "error_code": (ERROR_NAME, *PLACE),
        },
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
    topics_of="exchange_id",
)

_PRODUCE_BATCHES = Table(
    "kafka_produce_batches",
    "one row per record batch of a Produce",
    columns_of(
        PRODUCE_BATCHES,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS,),
            "error_code": (ERROR_NAME, "error_message", *PLACE),
        },
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
    topics_of="exchange_id",
)

_RECORDS = Table(
    "kafka_records",
    "one row per record in a Produce, a Fetch response or a log segment; one without offset where a batch could not be "
    "read on",
    columns_of(
        RECORDS,
        {
            "": (replace(EXCHANGE_ID, nullable=True),),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS,),
            "partition": (
                Column("offset", "int64", "offset in the partition; of a Produce from its response, null without one"),
                Column("timestamp", "time", "time of the record, ms on the wire", unit="UTC"),
            ),
            "timestamp_type": (
                Column("key", "string", "key, as key_encoding says; null unless payload is asked for"),
                Column(
                    "key_encoding", "string", "utf8, or hex where it is no UTF-8; utf8_cut, hex_cut: the first MiB only"
                ),
                Column("value", "string", "value, as value_encoding says; null unless payload is asked for"),
                Column("value_encoding", "string", "as key_encoding"),
                Column(
                    "headers",
                    "string",
                    "JSON list of [name, value, encoding]; null unless payload is asked for",
                    json=True,
                ),
                Column(
                    "decoded",
                    "string",
                    "JSON: what a control record or one of __consumer_offsets, __transaction_state, "
                    "__share_group_state says; null unless payload is asked for",
                    "derived",
                ),
                Column("key_bytes", "int64", "size of the key; null for a null key", unit="bytes"),
                Column("value_bytes", "int64", "size of the value; null for a null value", unit="bytes"),
                Column("headers_count", "int64", "headers of the record"),
            ),
            "producer_epoch": (Column("sequence", "int64", "sequence of the record; null without idempotence"),),
            "error": (replace(FLOW_ID, nullable=True, meaning=f"{FLOW_ID.meaning}; null of a log segment"),),
        },
    ),
    ("ts", "exchange_id"),
    "kafka",
    on_request=True,
    lists=(
        "offset",
        "timestamp",
        "key",
        "key_encoding",
        "value",
        "value_encoding",
        "headers",
        "decoded",
        "key_bytes",
        "value_bytes",
        "headers_count",
        "sequence",
    ),
)

_GROUP_EVENTS = Table(
    "kafka_group_events",
    "one row per member and group request or response: who joined, led, synced, left, was fenced",
    columns_of(
        GROUP_EVENTS,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS, CLIENT_PORT, *CLIENT_BESIDE),
            "error_code": (ERROR_NAME, "error_message", *PLACE),
        },
    ),
    ("ts", "exchange_id", "member_id"),
    "kafka",
    lasting=True,
)

_ASSIGNMENTS = Table(
    "kafka_assignments",
    "one row per partition given to a member",
    columns_of(ASSIGNMENTS, {"": (EXCHANGE_ID,), "ts": (CLUSTER,), "source": (FLOW_ID,)}),
    ("ts", "exchange_id", "member_id", "topic", "partition"),
    "kafka",
    lasting=True,
)

_BROKERS = Table(
    "kafka_brokers",
    "brokers and coordinators advertised to clients",
    columns_of(
        BROKERS,
        {
            "": (EXCHANGE_ID,),
            "ts": (CLUSTER,),
            "is_fenced": ("client_id", CLIENT_ADDRESS, SERVER_ADDRESS, SERVER_PORT, *PLACE),
        },
    ),
    ("ts", "exchange_id", "node_id"),
    "kafka",
    lasting=True,
)

_PARTITIONS = Table(
    "kafka_partitions",
    "partitions as Metadata and DescribeTopicPartitions show them, a row when something changed on its connection",
    columns_of(
        PARTITIONS,
        {
            "": (EXCHANGE_ID,),
            "ts": (CLUSTER,),
            "source": ("error_code", ERROR_NAME, "client_id", CLIENT_ADDRESS, *PLACE),
        },
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
    lasting=True,
)

_LIST_OFFSETS = Table(
    "kafka_list_offsets",
    "one row per partition of a ListOffsets",
    columns_of(
        LIST_OFFSETS,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS,),
            "isolation_level": ("offset",),
            "leader_epoch": ("error_code", ERROR_NAME, *PLACE),
        },
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_LEADER_EPOCHS = Table(
    "kafka_leader_epochs",
    "one row per partition of an OffsetForLeaderEpoch: where the log of a leader epoch ends (KIP-101, KIP-320)",
    columns_of(
        LEADER_EPOCHS,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS,),
            "error_code": (ERROR_NAME, *PLACE),
        },
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

_TRANSACTIONS = Table(
    "kafka_transactions",
    "one row per event of a transaction or of an idempotent producer's start",
    columns_of(
        TRANSACTIONS,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
            "error_code": (ERROR_NAME, *PLACE),
        },
    ),
    ("ts", "exchange_id", "transactional_id", "producer_id"),
    "kafka",
)

_API_VERSIONS = Table(
    "kafka_api_versions",
    "one row per connection and API that the broker offers or the client used",
    columns_of(
        API_VERSIONS,
        {
            "": (
                Column(
                    "exchange_id",
                    "string",
                    "the ApiVersions exchange; without one, the first use of the API",
                    "derived",
                ),
            ),
            "ts": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS, CLIENT_PORT, SERVER_ADDRESS, SERVER_PORT),
            "used_version_max": (FLOW_ID,),
        },
    ),
    ("ts", "exchange_id", "api_key"),
    "kafka",
    lasting=True,
)

_ADMIN_CHANGES = Table(
    "kafka_admin_changes",
    "one row per topic, setting, right, quota, user, group or broker that somebody asked to change",
    columns_of(
        ADMIN_CHANGES,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
            "error_code": (ERROR_NAME,),
            "error_message": PLACE,
        },
    ),
    ("ts", "exchange_id", "resource_type", "resource_name"),
    "kafka",
)

_AUTHENTICATIONS = Table(
    "kafka_authentications",
    "one row per SASL authentication of a connection",
    columns_of(
        AUTHENTICATIONS,
        {
            "": (Column("exchange_id", "string", "its last exchange (exchanges.exchange_id)", "derived"),),
            "ts_response": (CLUSTER,),
            "client_id": (CLIENT_ADDRESS, CLIENT_PORT, SERVER_ADDRESS, SERVER_PORT),
            "error_code": (ERROR_NAME,),
            "error_message": (FLOW_ID,),
        },
    ),
    ("ts", "exchange_id"),
    "kafka",
)

_REQUEST_TIMES = Table(
    "kafka_request_times",
    "one row per line of a broker's request log: who asked, and where the broker spent the time",
    columns_of(
        REQUEST_TIMES,
        {
            "": (EXCHANGE_ID,),
            "ts_response": (CLUSTER, FLOW_ID, Column("file", "string", "file of the log", "derived", nullable=False)),
            "client_id": (CLIENT_ADDRESS, CLIENT_PORT, SERVER_ADDRESS, SERVER_PORT),
        },
    ),
    ("ts", "file", "line"),
    "kafka",
    on_request=True,
)

KAFKA_TABLES = (
    _OFFSET_COMMITS,
    _OFFSET_FETCHES,
    _FETCH_PARTITIONS,
    _PRODUCE_BATCHES,
    _RECORDS,
    _GROUP_EVENTS,
    _ASSIGNMENTS,
    *SHARE_TABLES,
    _BROKERS,
    _PARTITIONS,
    _LIST_OFFSETS,
    _LEADER_EPOCHS,
    _TRANSACTIONS,
    _API_VERSIONS,
    _ADMIN_CHANGES,
    _AUTHENTICATIONS,
    _REQUEST_TIMES,
    STORED_OFFSETS_TABLE,
    READING_RUNS,
    *KAFKA_PRODUCER_TABLES,
    *KAFKA_GROUP_TABLES,
    *KAFKA_OFFSET_TABLES,
    CONNECTIONS,
    LEADERS,
    TRUNCATIONS,
    REFUSALS,
    CLIENT_REQUESTS,
)

_LAG_MINUTES = Table(
    "kafka_lag_minutes",
    "one row per minute, group and partition in which an offset was committed or reported, or the log's end was seen",
    (
        ts_column("begin of the minute", "derived"),
        CLUSTER,
        Column("group_id", "string", "consumer group"),
        Column("topic", "string", "topic name, else its id"),
        Column("partition", "int64", "partition index", nullable=False),
        Column("committed_offset", "int64", "the offset that was stored at the minute's end", nullable=False),
        Column(
            "ts_commit", "time", "time of the commit's response; null where only an OffsetFetch reported it", unit="UTC"
        ),
        Column("log_end_offset", "int64", "the last log end seen until the minute's end"),
        Column("lag", "int64", "log end minus committed offset, 0 where a commit is ahead of the last log end seen"),
        Column("member_id", "string", "member that committed last"),
        CLIENT_ID,
        CLIENT_ADDRESS,
        Column("generation", "int64", "generation of that commit"),
        Column("commits", "int64", "accepted commits within the minute", nullable=False),
        Column("rejected", "int64", "commits refused with an error within the minute", nullable=False),
        Column(
            "committers", "int64", "clients (address, client id, member id) of the accepted commits", nullable=False
        ),
        Column("lowest_offset", "int64", "the lowest offset committed within the minute; null without a commit"),
        Column("highest_offset", "int64", "the highest offset committed within the minute"),
    ),
    ("ts", "cluster_id", "group_id", "topic", "partition"),
    "kafka",
)

# Tables that only datasets have.
KAFKA_DATASET_TABLES = (_LAG_MINUTES,)

"""Views of Kafka groups: partitions, states, members, rebalances, share offsets. See `kafka_view`."""

from __future__ import annotations

from wirewitness.analyser.kafka.facts.lag import LAG_TABLES, lag_query
from wirewitness.reports.base.questions.columns import PAGE, TEXT, Column
from wirewitness.reports.base.questions.workloads import OWNER
from wirewitness.reports.protocols.kafka.questions.group_history import REBALANCES, START_UP
from wirewitness.reports.protocols.kafka.questions.group_members import MEMBER_TABLES, MEMBERS_AT
from wirewitness.reports.protocols.kafka.questions.group_owners import PARTITION_TABLES, PARTITIONS_OF_GROUPS
from wirewitness.reports.protocols.kafka.questions.group_restart import RESTART, RESTART_TABLES
from wirewitness.reports.protocols.kafka.questions.group_states import CHANGES, STATE_TABLES, STATES
from wirewitness.reports.protocols.kafka.questions.share_starts import SHARE_STARTS, SHARE_TABLES
from wirewitness.reports.protocols.kafka.questions.view import CLIENT, OVER_TIME, PART, TIME, TOPIC_COLUMN, KafkaView

_OFFSETS = (
    Column("committed_offset", "Committed", "offset", heading="CURRENT-OFFSET"),
    Column("log_end_offset", "Log end", "offset", heading="LOG-END-OFFSET"),
    Column("lag", "Lag", "offset"),
)
_COMMITTER = (Column("client_id", "Last committer"), Column("client_address", "Address"))
_GROUP = ("group {}", ("group_id",))
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

GROUPS = {
    "": KafkaView(
        PARTITION_TABLES, _STORED, "cluster_id, group_id, topic, partition",
        (
            Column("group_id", "Group", only=TEXT, spare=6), TOPIC_COLUMN, PART._replace(heading="PARTITION"),
            *_OFFSETS, Column("consumer_id", "Consumer-id", "known", only=TEXT),
            Column("consumer_host", "Host", "known", only=TEXT, spare=-2),
            Column("consumer_client_id", "Client-id", "known", only=TEXT, spare=-1),
            *(column._replace(spare=place) for column, place in zip(_COMMITS, (4, 5, 1), strict=True)),
            Column("lag_ms", "Lag-time", "span", only=TEXT, spare=2),
            Column("log_end_age_ms", "Log-end-age", "span", only=TEXT, spare=3),
            Column("last_committer", "Last-committer", only=TEXT),
            Column("lag_ms", "Lag time", "span", only=PAGE),
            Column("log_end_age_ms", "Log end's age", "span", only=PAGE),
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
        (
            *TIME, Column("lasted_ms", "Lasted ms", "ms", only=TEXT), Column("lasted_ms", "Lasted", "span", only=PAGE),
            *_STATE, Column("leader_id", "Leader"),
        ),
        _GROUP,
    ),
    "members": KafkaView(
        MEMBER_TABLES, MEMBERS_AT, "cluster_id, group_id, ts_ended is not null, ts_first, member_id",
        (
            Column("member_id", "Member", "text", "large", "MEMBER ID"), *CLIENT, OWNER,
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
            *TIME, Column("generations", "Generation", heading="GENERATION"),
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
            *TIME, *CLIENT, Column("member_ids", "Member ids", "count"),
            Column("way", "Way (ms)"), Column("stopped_after", "Stopped after"), Column("failing", "Failing"),
            Column("errors", "Errors", "count"),
        ),
        _GROUP,
    ),
    "share-offsets": KafkaView(
        SHARE_TABLES, SHARE_STARTS, "cluster_id, group_id, topic, partition",
        (
            TOPIC_COLUMN, PART._replace(heading="PARTITION"), Column("leader_epoch", "Leader-epoch", "plain"),
            Column("start_offset", "Start-offset", "offset"), Column("lag", "Lag", "offset"),
            Column("told_by", "Told by"), Column("ts_told", "Told", "time"),
        ),
        _GROUP,
    ),
    "restart": KafkaView(
        RESTART_TABLES, RESTART, "cluster_id, group_id, topic, partition, reset",
        (
            TOPIC_COLUMN, PART._replace(heading="PARTITION"),
            Column("consumer_client_id", "Consumer", "known", heading="CLIENT-ID"),
            Column("consumer_host", "Host", "known", spare=2),
            Column("starts_by", "Starts by", heading="STARTS-BY"), Column("reset", "Reset"),
            Column("start_offset", "Start-offset", "offset", heading="STARTS-AT"),
            Column("read_offset", "Read to", "offset", heading="READ-TO"),
            Column("again_offsets", "Again", "offset"), Column("again_bytes", "Bytes", "bytes", spare=1),
            Column("skipped_offsets", "Skipped", "offset"),
            Column("again_first_key", "First key", only=TEXT), Column("again_last_key", "Last key", only=TEXT),
        ),
        _GROUP,
    ),
    OVER_TIME: KafkaView(
        LAG_TABLES, _LAG, "cluster_id, group_id, topic, partition, ts",
        (*TIME, *_OFFSETS, *_COMMITS, *_COMMITTER), ("group {}, {}-{}", ("group_id", "topic", "partition")),
    ),
}  # fmt: skip

# What stands over partitions of groups, by the name of the value, as kafka-consumer-groups has it.
PARTITION_HEADINGS = {column.name: column.capitals for column in GROUPS[""].shown}

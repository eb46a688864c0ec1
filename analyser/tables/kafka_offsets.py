"""Tables of offsets that facts make: topics and their incarnations, starts and ends of logs, stored offsets, lag.

`log_ends.py`, `committed.py` and `lag.py` of `analyser/kafka/facts` say what these words mean.
"""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.shared import CLUSTER, ts_column

_INCARNATION = Column(
    "incarnation",
    "int64",
    "of the topic (kafka_topics.incarnation): 1, and one more each time that it was deleted or made anew",
    "context",
    nullable=False,
)
_TOPIC = Column("topic", "string", "topic name, else its id", "context")
_PARTITION = Column("partition", "int64", "partition index", "context", nullable=False)


def _time(name: str, meaning: str) -> Column:
    return Column(name, "time", meaning, "context", unit="UTC")


def _number(name: str, meaning: str) -> Column:
    return Column(name, "int64", meaning, "context")


def _flag(name: str, meaning: str) -> Column:
    return Column(name, "bool", meaning, "context")


def _ms(name: str, meaning: str) -> Column:
    return Column(name, "float64", meaning, "context", unit="ms")


KAFKA_OFFSET_TABLES = (
    Table(
        "kafka_topics",
        "one row per incarnation of a topic: an id that its name had, or a deletion behind which no id was reported",
        (
            ts_column("time of the first response that had the id, or of the deletion", "context"),
            CLUSTER,
            Column("topic", "string", "topic name", "context", nullable=False),
            _INCARNATION,
            Column("topic_id", "string", "topic id; null where none was reported since the deletion", "context"),
            Column(
                "named_by",
                "string",
                "Metadata, DescribeTopicPartitions or CreateTopics: what reported the id first",
                "context",
            ),
            _time("ts_from", "since when it has the name; null for longer than the capture shows"),
            _time("ts_until", "until when: deleted, or another id was reported; null while neither is seen"),
            Column(
                "started_by",
                "string",
                "DeleteTopics (the name was free since then), or what reported another id; null for the first",
                "context",
            ),
        ),
        ("ts", "cluster_id", "topic", "incarnation"),
        "kafka",
    ),
    Table(
        "kafka_log_ends",
        "one row per step of a partition's log: from its response on the log ends or starts elsewhere, until the next "
        "row; and the first response of each minute",
        (
            ts_column("time of the response", "context"),
            CLUSTER,
            _TOPIC,
            _PARTITION,
            _INCARNATION,
            _number("log_end_offset", "the greatest end that responses reported in the ten seconds up to this one"),
            _number("log_start_offset", "the greatest start that responses reported so far"),
            _time("ts_last", "time of the last response about the end before the next row; null without one"),
            Column(
                "source",
                "string",
                "what the response is of: Fetch, ListOffsets, Produce (acks=-1), transaction marker (asked for by "
                "EndTxn or WriteTxnMarkers), DeleteRecords",
                "context",
                nullable=False,
            ),
        ),
        ("ts", "cluster_id", "topic", "partition"),
        "kafka",
    ),
    Table(
        "kafka_committed",
        "one row per change of the stored offset of a group's partition: accepted commits, deletions, and what an "
        "OffsetFetch got that no commit in the capture stored; in the broker's order",
        (
            ts_column("time of the response, since when it counts", "context"),
            _time("ts_sent", "time of the request"),
            CLUSTER,
            Column("group_id", "string", "consumer group", "context"),
            _TOPIC,
            _PARTITION,
            _INCARNATION,
            Column("step", "int64", "number of the row in its group's partition, from 1", "context", nullable=False),
            Column(
                "kind",
                "string",
                "commit, transaction (TxnOffsetCommit), below 0 (a commit of an offset below 0, which deletes), "
                "OffsetFetch (a commit that the capture lacks), OffsetDelete, DeleteGroups, DeleteTopics",
                "context",
                nullable=False,
            ),
            _number("committed_offset", "the offset that is stored since; null: none"),
            _number("offset_below_0", "of a commit of an offset below 0: that"),
            _flag("near_below_0", "of a commit: it, the one before it or the one behind it has an offset below 0"),
            _number("step_back", "of a commit: records below the offset that stood just before; 0 for none"),
            _number("below_highest", "of a commit: records below the highest stored since the last deletion"),
            _number(
                "below_commit",
                "of a commit: records below the accepted commit before it in this incarnation, whatever came in "
                "between; 0 for none, null where both were open at one time on two connections: either may be the last",
            ),
            _flag("near_step_back", "of a commit: it, the one before it or the one behind it is below the one before"),
            _number("own_number", "of a commit: its number among those of its committer (member id, else client)"),
            _number("own_commits", "of a commit: how many its committer has there"),
            _number("own_before", "of a commit: the offset that its committer committed before"),
            _flag(
                "near_other",
                "of a commit: it, or the one behind it, is by another committer than the one before; single commits "
                "without member id are left out; null: no",
            ),
            _number(
                "own_generation_before", "where near_other: the generation in which its committer committed before"
            ),
            _ms("usual_gap_ms", "where near_other: median time between two commits of one committer of the partition"),
            _number(
                "ahead_offset",
                "of a commit of an offset that its committer has more than five times: a higher one, by another since "
                "the first time, its own since the last, or what its client fetches meanwhile; null: none, or it "
                "turned back, or neither among the first and last 12 nor the furthest",
            ),
            _number("ahead_step", "step of the commit of that; null: it was fetched"),
            _number("same_commits", "where ahead_offset: how often its committer has this offset"),
            _number("same_returns", "how often something was ahead of it when it committed this offset again"),
            _number("same_overtaken", "in how many of these a commit was"),
            _flag("near_repeat", "it has ahead_offset, is ahead of such one, or the first or last with that offset"),
            _flag("fetches_seen", "of a commit: its client's fetches of the partition are in the capture"),
            _number(
                "read_from",
                "of a commit with below_commit: the lowest offset that its client fetched since the commit before it, "
                "or its own, if that is not above; null where it fetched, or was told, nothing as low (no seek)",
            ),
            _time("ts_failed", "of a commit below an earlier one: when its client sent the same without success"),
            Column("failed_error_code", "int64", "error of that; null where it was not answered", "context"),
            Column("failed_exchange_id", "string", "the commit that failed", "context"),
            _number("failed_request_packet", "packet of its request"),
            _flag("read_since_highest", "where ts_failed: as read_from, since the highest commit before; null: no"),
            _flag("sent_again_over", "of a commit: a lower one with ts_failed came behind, of which it is the highest"),
            _number("own_highest_soon", "where ts_failed: the highest offset that its client committed within 5 s"),
            _number("log_end_offset", "of a commit: the log end known then (kafka_offset_commits)"),
            _number(
                "next_log_end",
                "of a commit above it: the high watermark of the next Fetch, and of those within a second; null: none",
            ),
            Column("member_id", "string", "member that committed", "context"),
            Column("client_id", "string", "client id of who committed", "context"),
            Column("client_address", "string", "its IP address", "context"),
            _number("generation", "generation or member epoch of the commit"),
            Column("owner_member_id", "string", "member that had the partition then", "context"),
            Column("ownership_confidence", "string", "as in kafka_offset_commits", "context"),
            _time("client_gap_ts", "last loss of bytes of its client before it; null: none"),
            Column("exchange_id", "string", "the commit, or the OffsetFetch", "context"),
            Column("flow_id", "string", "connection of the commit", "context"),
            Column("file", "string", "file of the commit", "context"),
            _number("request_packet", "packet of its request"),
        ),
        ("ts", "cluster_id", "group_id", "topic", "partition", "step"),
        "kafka",
    ),
    Table(
        "kafka_lag",
        "one row per offset that was stored for a group's partition: its lag when it was stored and just before the "
        "next change",
        (
            ts_column("since when it is stored", "context"),
            CLUSTER,
            Column("group_id", "string", "consumer group", "context"),
            _TOPIC,
            _PARTITION,
            _INCARNATION,
            Column("step", "int64", "step of kafka_committed", "context", nullable=False),
            _time("ts_until", "until when: the next change, or another incarnation of the topic; null while neither"),
            _number("committed_offset", "the offset"),
            _number("log_end_offset", "the log end at ts; null where none was reported by then"),
            _number(
                "lag",
                "records from the offset, or the log start above it, to that log end; 0 where it is ahead",
            ),
            _ms("time_lag_ms", "at ts: since the log end passed the offset; 0 without lag, null where not known"),
            _number("last_log_end_offset", "the last log end before ts_until, or of all"),
            _number("last_lag", "lag at that log end"),
            _ms("last_time_lag_ms", "time lag at ts_until, or at the last response about the log end"),
        ),
        ("ts", "cluster_id", "group_id", "topic", "partition", "step"),
        "kafka",
        on_request=True,
    ),
)

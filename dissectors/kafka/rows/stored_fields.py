"""Fields of what brokers keep in `__consumer_offsets`."""

from __future__ import annotations

from wirewitness.dissectors.core.fields import Field, Fields, ts
from wirewitness.dissectors.kafka.rows.common_fields import GROUP_ID

TABLE = "kafka_stored_offsets"

# line: the file of the segment, packed.
STORED_OFFSETS = Fields(
    ts("time of the record, by the clock of the group's coordinator"),
    GROUP_ID,
    Field("topic", "string", "topic name"),
    Field("partition", "int64", "partition index", nullable=False),
    Field("committed_offset", "int64", "next offset the group will read; null for a tombstone"),
    Field("leader_epoch", "int64", "leader epoch of the last record; -1 unknown, null in old versions"),
    Field("metadata", "string", "text the client attached"),
    Field("commit_ts", "time", "commit timestamp, as the coordinator set it", unit="UTC"),
    Field("expire_ts", "time", "when it expires, where the client had said so (version 1)", unit="UTC"),
    Field("tombstone", "bool", "the offset was deleted: expired, or removed by somebody", nullable=False),
    Field("transaction", "string", "committed, aborted, or open where its end is not in the file; null without one"),
    Field("producer_id", "int64", "of the transaction; null without one"),
    Field("topic_id", "string", "topic id, where the broker stores it (version 4)"),
    Field("log_partition", "int64", "partition of __consumer_offsets"),
    Field("log_offset", "int64", "offset of the record in it", nullable=False),
    Field("line"),
)

"""Tables of Kafka's groups: where members read, share groups, stored offsets. See `kafka_group_facts.py` as well.

Facts make the rows of `kafka_fetch_ranges` (`analyser/kafka/facts/fetch_stage.py`); the others come from messages and
log segments.
"""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table, columns_of
from wirewitness.analyser.tables.shared import (
    CLIENT_ADDRESS,
    CLIENT_PORT,
    CLUSTER,
    ERROR_NAME,
    EXCHANGE_ID,
    FLOW_ID,
    PLACE,
    number,
    text,
    time,
    ts_column,
)
from wirewitness.dissectors.core.fields import Fields
from wirewitness.dissectors.kafka.rows.share_fields import SHARE_ACKNOWLEDGES, SHARE_FETCHES, SHARE_OFFSETS
from wirewitness.dissectors.kafka.rows.stored_fields import STORED_OFFSETS

# The table of where clients of groups began to read.


READING_RUNS = Table(
    "kafka_fetch_ranges",
    "one row per run of reading: a client of a group fetches a partition, each time where its last response led to",
    (
        ts_column("time of the run's first fetch that was not refused", "context"),
        time("ts_last", "time of its last one", nullable=False),
        text("exchange_id", "exchange of the first"),
        CLUSTER,
        text("group_id", "group of the client, from its group requests"),
        text("topic", "topic name, else its id"),
        text("topic_id", "topic id, where the request has one"),
        number("partition", "partition index", nullable=False),
        text("client_id", "client id of the reader"),
        text("client_address", "IP address of the reader"),
        text("member_id", "member that the client was last, else first after it, by its group requests"),
        number("first_offset", "offset of the first fetch; null when its session began before the capture"),
        number("next_offset", "offset after the last batch that the run was given, else the one asked for"),
        number("fetches", "fetches of the run that name the partition or whose response has it", nullable=False),
        number("records_count", "records that it was given"),
        number("log_start_offset", "oldest offset still there at its begin"),
        number("log_end_offset", "highest end of the log that was reported to it"),
        Column(
            "started_by",
            "string",
            "first (of the reader in the capture), offset (not the one that its last response led to), topic id "
            "(another one), connection (another one)",
            "context",
            nullable=False,
        ),
        time("ts_before", "time of the reader's last fetch of the partition before"),
        number("fetch_offset_before", "offset of that fetch"),
        number("next_offset_before", "offset that it led to; null when its response is missing"),
        number("group_offset_before", "highest offset that fetches of the whole group had led to"),
        time("ts_stored", "when the group's offset was stored, or reported first; up to the begin or its OffsetFetch"),
        number("stored_offset", "the offset stored then, by a consumer and not by a tool"),
        text("stored_client_id", "client id of who stored it; null when only a response reports it"),
        text("stored_client_address", "its IP address"),
        text("stored_member_id", "its member id"),
        text("stored_exchange_id", "its commit"),
        time("ts_change", "when somebody changed the group, the topic or the offsets after that, and before the run"),
        text("change", "reset, offsets deleted, group deleted, topic deleted, records deleted, partitions added"),
        number("change_offset", "the offset that it was reset to, or up to which records were deleted"),
        text("change_client_id", "client id of who did it"),
        text("change_client_address", "its IP address"),
        text("change_exchange_id", "its exchange"),
        time("ts_answered", "time of the reader's last OffsetFetch of the partition since its last fetch"),
        number("answered_offset", "what it got; -1 when none is stored"),
        time("ts_out_of_range", "time of a fetch since then that was refused with OFFSET_OUT_OF_RANGE (1)"),
        number("out_of_range_offset", "its offset"),
        text(
            "out_of_range_reported_by",
            "the reader's ListOffsets, OffsetFetch or OffsetForLeaderEpoch since its last fetch that returned that "
            "offset; null: none did",
        ),
        time("ts_epoch_end", "time of the reader's last OffsetForLeaderEpoch of the partition since its last fetch"),
        number(
            "epoch_end_offset",
            "the log's end of the epoch that it had read, by its response; below next_offset_before the log was "
            "truncated (KIP-320)",
        ),
        time("ts_listed", "time of the reader's ListOffsets since then that returned the run's first offset"),
        Column(
            "listed_timestamp", "int64", "what it asked: -1 latest, -2 earliest, else Unix ms", "context", unit="ms"
        ),
        text(
            "jump_cause",
            "why it began elsewhere than its group had stored: reset, offsets deleted, group deleted, records deleted, "
            "partitions added, records expired, log cut, truncated, offset gone, never stored, asked beyond, older "
            "offset, time, seek; null: it did not, or that is not known",
        ),
        number("expected_offset", "of such a begin: where the group should have gone on"),
        number("records_skipped", "from there, or from where the group had read to, up to the first fetch"),
        number("records_again", "from the first fetch up to there"),
        text(
            "own_move",
            "how it began elsewhere by itself, no answer having led there: forward (above where its last response led "
            "to), refused (so far above that the log has no such offset), back (below the stored offset), ahead "
            "(within what it had fetched, above what it had stored itself); null: it did not, or that is not known",
        ),
        number("own_move_records", "between both, without those that the group had read by then; null for refused"),
        number("last_log_end_offset", "the last known end of the log (kafka_log_ends)"),
        time("ts_last_log_end", "when a response reported on it last"),
        number("earlier_log_end_offset", "the end of the log that was known ten seconds before that"),
        Column(
            "transactional", "bool", "transactions write to the partition; null when no producer is seen", "context"
        ),
        time("client_gap_ts", "latest gap before the begin in a flow of this address"),
        time("ts_last_gap", "latest gap in a flow of this address in the whole capture"),
        FLOW_ID,
        text("file", "file of the first fetch"),
        number("request_packet", "its packet"),
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)


# Tables of Kafka's share groups (KIP-932). Their topics are named by id alone on the wire.


def _table(name: str, meaning: str, fields: Fields) -> Table:
    others = {
        "": (EXCHANGE_ID,),
        "ts_response": (CLUSTER,),
        "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
        "topic_id": (Column("topic", "string", "topic name, where a response named the id", "context"),),
        "error_code": (ERROR_NAME, "error_message", *PLACE),
    }
    return Table(
        name, meaning, columns_of(fields, others), ("ts", "exchange_id", "topic", "partition", "first_offset"), "kafka"
    )


SHARE_TABLES = (
    _table(
        "kafka_share_fetches",
        "one row per range of records that a member of a share group acquired, or partition refused with an error",
        SHARE_FETCHES,
    ),
    _table(
        "kafka_share_acknowledges",
        "one row per range of records that a member of a share group acknowledged, in a ShareAcknowledge or ShareFetch",
        SHARE_ACKNOWLEDGES,
    ),
    Table(
        "kafka_share_offsets",
        "one row per partition of which the start in a share group was asked for, set, or kept by brokers",
        columns_of(
            SHARE_OFFSETS,
            {
                "": (EXCHANGE_ID,),
                "api": (CLUSTER,),
                "client_id": (CLIENT_ADDRESS, CLIENT_PORT),
                "error_code": (ERROR_NAME, "error_message", *PLACE),
            },
        ),
        ("ts", "exchange_id", "topic", "topic_id", "partition"),
        "kafka",
    ),
)


# The table of what brokers keep in `__consumer_offsets`.

STORED_OFFSETS_TABLE = Table(
    "kafka_stored_offsets",
    "one row per offset that a broker stored or deleted, from log segments of __consumer_offsets",
    columns_of(
        STORED_OFFSETS,
        {"log_offset": (Column("file", "string", "file of the segment", "derived", nullable=False),)},
    ),
    ("ts", "log_partition", "log_offset"),
    "kafka",
)

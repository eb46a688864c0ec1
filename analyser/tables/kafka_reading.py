"""The table of where clients of groups began to read."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table
from wirewitness.analyser.tables.shared import CLUSTER, FLOW_ID, ts_column


def _context(name: str, meaning: str) -> Column:
    return Column(name, "string", meaning, "context")


def _number(name: str, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "int64", meaning, "context", nullable=nullable)


def _time(name: str, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name, "time", meaning, "context", unit="UTC", nullable=nullable)


READING_RUNS = Table(
    "kafka_reading_runs",
    "one row per run of reading: a client of a group fetches a partition, each time where its last answer led to",
    (
        ts_column("time of the run's first fetch that was not refused", "context"),
        _time("ts_last", "time of its last one", nullable=False),
        _context("exchange_id", "exchange of the first"),
        CLUSTER,
        _context("group_id", "group of the client, from its group requests"),
        _context("topic", "topic name, else its id"),
        _context("topic_id", "topic id, where the request has one"),
        _number("partition", "partition index", nullable=False),
        _context("client_id", "client id of the reader"),
        _context("client_address", "IP address of the reader"),
        _context("member_id", "member that the client was last, else first after it, by its group requests"),
        _number("first_offset", "offset of the first fetch; null when its session began before the capture"),
        _number("next_offset", "offset after the last batch that the run was given, else the one asked for"),
        _number("fetches", "fetches of the run that name the partition or are answered with it", nullable=False),
        _number("records_count", "records that it was given"),
        _number("log_start_offset", "oldest offset still there at its begin"),
        _number("log_end_offset", "highest end of the log that it was told"),
        Column(
            "began_by",
            "string",
            "first (of the reader in the capture), offset (not the one that its last answer led to), topic id (another "
            "one), connection (another one)",
            "context",
            nullable=False,
        ),
        _time("ts_before", "time of the reader's last fetch of the partition before"),
        _number("fetch_offset_before", "offset of that fetch"),
        _number("next_offset_before", "offset that it led to; null when its answer is missing"),
        _number("group_offset_before", "highest offset that fetches of the whole group had led to"),
        _time("ts_stored", "when the group's offset was stored, or told first; up to the begin or its OffsetFetch"),
        _number("stored_offset", "the offset stored then, by a consumer and not by a tool"),
        _context("stored_client_id", "client id of who stored it; null when only an answer tells of it"),
        _context("stored_client_address", "its IP address"),
        _context("stored_member_id", "its member id"),
        _context("stored_exchange_id", "its commit"),
        _time("ts_change", "when somebody changed the group, the topic or the offsets after that, and before the run"),
        _context("change", "reset, offsets deleted, group deleted, topic deleted, records deleted, partitions added"),
        _number("change_offset", "the offset that it was reset to, or up to which records were deleted"),
        _context("change_client_id", "client id of who did it"),
        _context("change_client_address", "its IP address"),
        _context("change_exchange_id", "its exchange"),
        _time("ts_answered", "time of the reader's last OffsetFetch of the partition since its last fetch"),
        _number("answered_offset", "what it was told; -1 when none is stored"),
        _time("ts_out_of_range", "time of a fetch since then that was refused with OFFSET_OUT_OF_RANGE (1)"),
        _number("out_of_range_offset", "its offset"),
        _time("ts_listed", "time of the reader's ListOffsets since then that told the run's first offset"),
        Column(
            "listed_timestamp", "int64", "what it asked: -1 latest, -2 earliest, else Unix ms", "context", unit="ms"
        ),
        _number("last_log_end_offset", "the log's end that anybody in the capture was told last"),
        _time("ts_last_log_end", "when that was"),
        _number("earlier_log_end_offset", "the log's end that anybody was told 10 to 20 s before that, or longer ago"),
        Column(
            "transactional", "bool", "transactions write to the partition; null when no producer is seen", "context"
        ),
        _time("client_gap_ts", "latest gap before the begin in a flow of this address"),
        _time("ts_last_gap", "latest gap in a flow of this address in the whole capture"),
        FLOW_ID,
        _context("file", "file of the first fetch"),
        _number("request_packet", "its packet"),
    ),
    ("ts", "exchange_id", "topic", "partition"),
    "kafka",
)

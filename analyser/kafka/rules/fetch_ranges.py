"""Runs of reading as rules see them: who began to read a partition where, and what was known then.

In: one partition's frame of `kafka_fetch_ranges`. Out: `Run` values in the order of time, and the words and numbers
about readers that findings share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from wirewitness.analyser.base.times import NS_PER_S, time_text
from wirewitness.analyser.base.words import names_text
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence
from wirewitness.analyser.engine.rules.frame import Frame
from wirewitness.analyser.engine.rules.frame_rows import values
from wirewitness.analyser.kafka.rules.names import MAX_LISTED, partition_names, partition_text, who_numbers, who_text

RUNS = "kafka_fetch_ranges"
RUN_COLUMNS = (
    "ts", "ts_last", "exchange_id", "group_id", "topic", "topic_id", "partition", "client_id", "client_address",
    "member_id", "first_offset", "next_offset", "fetches", "records_count", "log_start_offset", "log_end_offset",
    "started_by", "ts_before", "fetch_offset_before", "next_offset_before", "group_offset_before", "ts_stored",
    "stored_offset", "stored_client_id", "stored_client_address", "stored_member_id", "stored_exchange_id",
    "ts_change", "change", "change_offset", "change_client_id", "change_client_address", "change_exchange_id",
    "ts_answered", "answered_offset", "ts_out_of_range", "out_of_range_offset", "out_of_range_reported_by",
    "ts_epoch_end", "epoch_end_offset", "ts_listed", "listed_timestamp",
    "jump_cause", "expected_offset", "records_skipped", "records_again",
    "last_log_end_offset", "ts_last_log_end", "earlier_log_end_offset", "transactional", "client_gap_ts", "ts_last_gap",
    "file", "request_packet",
)  # fmt: skip
MAX_NAMED = 5
# Partitions that are taken over at one time begin once.
_ONCE_NS = NS_PER_S

# Address and client id.
Client = tuple[str | None, str | None]
# Topic and partition.
Place = tuple[str | None, int]


class FetchRange(NamedTuple):
    """A row of `kafka_fetch_ranges`; times are Unix ns, None is unknown."""

    ts: int
    ts_last: int
    exchange_id: str | None
    group_id: str | None
    topic: str | None
    topic_id: str | None
    partition: int
    client_id: str | None
    client_address: str | None
    member_id: str | None
    first_offset: int | None
    next_offset: int | None
    fetches: int
    records_count: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    started_by: str
    ts_before: int | None
    fetch_offset_before: int | None
    next_offset_before: int | None
    group_offset_before: int | None
    ts_stored: int | None
    stored_offset: int | None
    stored_client_id: str | None
    stored_client_address: str | None
    stored_member_id: str | None
    stored_exchange_id: str | None
    ts_change: int | None
    change: str | None
    change_offset: int | None
    change_client_id: str | None
    change_client_address: str | None
    change_exchange_id: str | None
    ts_answered: int | None
    answered_offset: int | None
    ts_out_of_range: int | None
    out_of_range_offset: int | None
    out_of_range_reported_by: str | None
    ts_epoch_end: int | None
    epoch_end_offset: int | None
    ts_listed: int | None
    listed_timestamp: int | None
    jump_cause: str | None
    expected_offset: int | None
    records_skipped: int | None
    records_again: int | None
    last_log_end_offset: int | None
    ts_last_log_end: int | None
    earlier_log_end_offset: int | None
    transactional: bool | None
    client_gap_ts: int | None
    ts_last_gap: int | None
    file: str | None
    request_packet: int | None

    @property
    def client(self) -> Client:
        """(address, client id)."""
        return self.client_address, self.client_id

    @property
    def place(self) -> Place:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def is_named(self) -> bool:
        """The topic has a name: without it, nothing is known of commits and answers, which go by names."""
        return self.topic is not None and self.topic != self.topic_id

    @property
    def evidence(self) -> Evidence:
        """The first fetch."""
        return Evidence(self.file, self.request_packet, self.exchange_id)


def runs_of(frame: Frame) -> list[FetchRange]:
    """The frame's rows, which are in the order of time."""
    if not len(frame):
        return []
    columns = [values(frame[name]) for name in FetchRange._fields]
    return [*map(FetchRange._make, zip(*columns, strict=True))]


def readers_text(runs: Sequence[FetchRange]) -> str:
    """Who read, each client once with its last member id; `and 3 more` where they are many."""
    last = {run.client: run for run in runs}
    named = [who_text(*client, run.member_id) for client, run in [*last.items()][:MAX_NAMED]]
    more = f" and {len(last) - MAX_NAMED} more" if len(last) > MAX_NAMED else ""
    return ", ".join(named) + more


def reader_numbers(runs: Iterable[FetchRange]) -> list[dict[str, Any]]:
    """`clients` of a finding: each reader once, with its last member id."""
    last = {run.client: run for run in runs}
    return [who_numbers(*client, run.member_id) for client, run in last.items()][:MAX_LISTED]


def times_begun(runs: Sequence[FetchRange]) -> int:
    """How often these began, in the order of time: those of one moment count once."""
    return 1 + sum(later.ts - earlier.ts > _ONCE_NS for earlier, later in pairwise(runs)) if runs else 0


def begin_numbers(runs: Sequence[FetchRange], records: Mapping[str, int]) -> dict[str, Any]:
    """Numbers of a finding about begins of a group, at least one, in the order of time. records: what it cost."""
    return {
        "partitions": names_of(runs),
        "times": times_begun(runs),
        "begins": len(runs),
        **records,
        "ts_first": time_text(runs[0].ts),
        "ts_last": time_text(runs[-1].ts),
        "clients": reader_numbers(runs),
    }


def names_of(runs: Iterable[FetchRange]) -> list[str]:
    """`partitions` of a finding."""
    return partition_names(run.place for run in runs)


def places_of(runs: Iterable[FetchRange]) -> str:
    """The same for a sentence."""
    return names_text(sorted({partition_text(*run.place) for run in runs}))


def proof_of_runs(runs: Sequence[FetchRange], more: Iterable[Evidence] = (), first_ns: int | None = None) -> Proof:
    """The first fetches of these runs as proof; at least one. more: evidence from before; first_ns: its time."""
    times = [run.ts for run in runs]
    return Proof(
        min([*times, *([] if first_ns is None else [first_ns])]), max(times), [*more, *(r.evidence for r in runs)]
    )

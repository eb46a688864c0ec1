"""Offsets as brokers have stored them, from log segments. In: an analysis. Out: a value for each group and partition.

A stored offset that is lower than the one before it in the same folder went back. That is a fact and no fault: an
administrator may have reset it. Offsets of transactions that were aborted, or whose end is not known, do not count; of
the others the order in the log decides, as for the coordinator.
"""

from __future__ import annotations

from dataclasses import dataclass

from wirewitness.reports.base.questions.source import Source, rows

_ANY = "select 1 as one from captures where batches is not null limit 1"
# Copies of a partition that several brokers have are told once where they say the same. What is deleted ends a row of
# offsets: the next one begins anew.
_STORED = """
    with told as (
        select *, regexp_replace(file, '[^/]*$', '') as folder from kafka_stored_offsets
        where transaction is null or transaction = 'committed'
    ), compared as (
        select *, committed_offset < lag(committed_offset) over (
            partition by folder, group_id, topic, partition order by log_offset
        ) as is_back,
        lag(committed_offset) over (partition by folder, group_id, topic, partition order by log_offset) as before
        from told
    ), stood as (
        select group_id, topic, partition, count(*) filter (not tombstone) as stored,
               last(committed_offset order by log_offset) as committed_offset,
               last(epoch_ns(coalesce(commit_ts, ts)) order by log_offset) as last_ns,
               count(*) filter (is_back) as went_back,
               max_by(before, before::hugeint - committed_offset) filter (is_back) as back_from,
               max_by(committed_offset, before::hugeint - committed_offset) filter (is_back) as back_to
        from compared group by folder, group_id, topic, partition
    )
    select distinct * from stood order by went_back desc, group_id, topic, partition, last_ns"""


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """What stands for one group and partition. committed_offset: None where it is deleted. stored: how often one was.

    last_ns: Unix time of the last record. went_back: how often the offset was lower than the one before; back_from,
    back_to: the farthest.
    """

    group_id: str | None
    topic: str | None
    partition: int
    stored: int
    committed_offset: int | None
    last_ns: int
    went_back: int
    back_from: int | None
    back_to: int | None


def stored_offsets(source: Source) -> list[StoredOffset]:
    """Those that went back most often first; empty where no log segment was read."""
    if not rows(source, _ANY):
        return []
    return [StoredOffset(**row) for row in rows(source, _STORED)]

"""Which runs of reading began elsewhere than they were to, and why. In: rows of `kafka_fetch_ranges` that are made so
far. Out: the columns that say so; each follows from the others of its row.

Against the group's offset (`jump_cause`). Only a begin that was seen counts: the reader asked for the group's offset
(OffsetFetch), was refused with OFFSET_OUT_OF_RANGE, or went back to the end of its epoch (OffsetForLeaderEpoch), after
it had read the partition last. Where bytes of its address are missing since then, it may have fetched unseen before:
then records count as skipped only where it was told that offset. A group whose offset is not known from before is
silent, but for a reader that is refused: it was to go on where OffsetFetch or its last answer led. An answer above the
last commit seen tells of a commit that the capture is without, so it counts as stored. A refused offset that an answer
had given to the reader since its last good fetch is none that it chose: the log changed between the two.

By itself (`own_move`). Nothing asked for an offset in between, no bytes of the address are missing anywhere in the
capture (a gap is noticed late, so that its time does not tell whether a fetch is missing in between), and the topic has
a known name, since all that answers tell goes by names.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.facts.columns import columns_of

_PIECE = "piece_of_runs"
# Where the reader was: behind its last answer, else at the fetch that got none.
_WAS_AT = "coalesce(next_offset_before, fetch_offset_before)"
_REFUSED_BY_ITSELF = "out_of_range_reported_by IS NULL AND next_offset_before IS NOT NULL"


def _between(low: str, high: str) -> str:
    """Records from one offset to another, 0 where it is not higher; offsets of a damaged capture may be any numbers."""
    return f"least(greatest({high}::HUGEINT - {low}, 0), {(1 << 63) - 1})::BIGINT"


# The group's offset before somebody changed it; null where it is not known.
_STORED = """
    CASE WHEN answered_offset > stored_offset AND NOT (change = 'reset' AND answered_offset = change_offset) IS TRUE
         THEN answered_offset ELSE stored_offset END"""
# Where a group that had stored nothing, and is told so (-1), should have gone on: where it had read to, or at the begin
# of a new partition.
_EXPECTED = """
    CASE WHEN stored IS NOT NULL THEN stored
         WHEN out_of_range_offset IS NOT NULL AND answered_offset IS DISTINCT FROM -1
         THEN coalesce(answered_offset, next_offset_before)
         WHEN answered_offset = -1 AND listed_timestamp = -1
         THEN coalesce(group_offset_before,
                       CASE WHEN change = 'partitions added' AND log_start_offset >= 0 THEN log_start_offset END) END"""
_CAUSE = f"""
    CASE WHEN truncated THEN 'truncated'
         WHEN out_of_range_offset IS NOT NULL THEN CASE
             WHEN {_REFUSED_BY_ITSELF}
                 AND out_of_range_offset IS DISTINCT FROM stored_offset
                 AND out_of_range_offset IS DISTINCT FROM answered_offset AND out_of_range_offset <> next_offset_before
             THEN 'asked beyond'
             WHEN change = 'records deleted' THEN change
             WHEN out_of_range_offset < CASE WHEN log_start_offset >= 0 THEN log_start_offset
                                             WHEN listed_timestamp = -2 THEN first_offset END
             THEN 'records expired'
             ELSE 'log cut' END
         WHEN change = 'reset' AND change_offset IS NOT DISTINCT FROM answered_offset THEN change
         WHEN stored_offset IS NULL AND group_offset_before IS NULL THEN 'partitions added'
         WHEN stored_offset IS NULL THEN 'never stored'
         WHEN answered_offset = -1 AND change IN ('offsets deleted', 'group deleted') THEN change
         WHEN answered_offset = -1 THEN 'offset gone'
         WHEN answered_offset < expected AND answered_offset = first_offset THEN 'older offset'
         WHEN listed_timestamp >= 0 THEN 'time'
         ELSE 'seek' END"""
_IS_JUMP = """
    first_offset <> expected AND first_offset IS DISTINCT FROM next_offset_before
    AND (answered_offset IS NOT NULL OR ts_out_of_range IS NOT NULL OR truncated)
    AND started_by <> 'topic id' AND change IS DISTINCT FROM 'topic deleted'
    AND NOT (stored_offset IS NULL AND first_offset < expected)
    AND (again > 0 OR skipped > 0 AND (coalesce(ts_last_gap < ts_stored, ts_last_gap IS NULL)
                                       OR first_offset = answered_offset OR ts_listed IS NOT NULL))"""
_OWN_MOVE = f"""
    CASE WHEN started_by <> 'offset' OR first_offset IS NULL OR answered_offset IS NOT NULL OR ts_last_gap IS NOT NULL
             OR topic IS NULL OR topic IS NOT DISTINCT FROM topic_id
         THEN NULL
         WHEN out_of_range_offset IS NOT NULL THEN CASE
             WHEN {_REFUSED_BY_ITSELF}
                 AND out_of_range_offset > next_offset_before
                 AND out_of_range_offset IS DISTINCT FROM stored_offset
                 AND out_of_range_offset IS DISTINCT FROM fetch_offset_before
             THEN 'refused' END
         WHEN first_offset > next_offset_before THEN CASE
             WHEN ts_listed IS NULL AND first_offset > coalesce(group_offset_before, 0) THEN 'forward' END
         WHEN change IS NOT NULL OR ts_epoch_end IS NOT NULL OR ts_listed IS NOT NULL THEN NULL
         WHEN first_offset < stored_offset AND first_offset < fetch_offset_before AND next_offset_before IS NOT NULL
         THEN 'back'
         WHEN first_offset > stored_offset AND first_offset < next_offset_before
             AND client_address = stored_client_address AND client_id IS NOT DISTINCT FROM stored_client_id
         THEN 'ahead' END"""
_JUMPS = f"""
    WITH known AS (
        SELECT *, {_STORED} AS stored,
               coalesce(epoch_end_offset < {_WAS_AT} AND first_offset = epoch_end_offset, false) AS truncated
        FROM {_PIECE}),
    led AS (SELECT *, {_EXPECTED} AS expected, {_OWN_MOVE} AS own_move FROM known),
    moved AS (
        SELECT *, {_between("greatest(expected, coalesce(group_offset_before, 0))", "first_offset")} AS skipped,
               {_between("first_offset", "expected")} AS again
        FROM led),
    jumps AS (SELECT *, coalesce({_IS_JUMP}, false) AS is_jump FROM moved)
    SELECT CASE WHEN is_jump THEN {_CAUSE} END AS jump_cause,
           CASE WHEN is_jump THEN expected END AS expected_offset,
           CASE WHEN is_jump THEN skipped END AS records_skipped,
           CASE WHEN is_jump THEN again END AS records_again,
           own_move,
           CASE own_move
               WHEN 'forward'
               THEN {_between("greatest(next_offset_before, coalesce(group_offset_before, 0))", "first_offset")}
               WHEN 'back' THEN {_between("first_offset", "stored_offset")}
               WHEN 'ahead' THEN {_between("stored_offset", "first_offset")} END AS own_move_records
    FROM jumps"""


def with_jumps(con: duckdb.DuckDBPyConnection, runs: pa.Table) -> pa.Table:
    """The same rows with these columns behind the others."""
    con.register(_PIECE, runs)
    found = columns_of(con, _JUMPS)
    con.unregister(_PIECE)
    for name, column in found.items():
        runs = runs.append_column(name, column)
    return runs

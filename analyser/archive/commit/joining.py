"""Which requests a request log and a capture of a dataset both tell, whichever of them came first.

In: the facts of all flows, and the parts with all messages and exchanges, of this run and of those before. Out: the
pairs, as `analyser/analysis/joined.py` finds them where both are read at once; kept in the state, so that the next run
knows what its parts were made with. All requests of connections that both tell are looked at in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.analysis.build import in_logs
from wirewitness.analyser.analysis.joined import ENDS, NEEDED, Joined, pairs_of, shared_flows
from wirewitness.analyser.archive.commit.finish_stage import FACTS
from wirewitness.analyser.archive.commit.joined_rows import PAIRS
from wirewitness.analyser.archive.dataset.change import Change
from wirewitness.analyser.archive.dataset.part import Part
from wirewitness.analyser.archive.dataset.stage_files import table_at
from wirewitness.analyser.archive.dataset.state_files import kept_table, put_kept
from wirewitness.analyser.archive.dataset.stored_types import stored_rows
from wirewitness.analyser.archive.decode.decode_stage import FLOWS_FILE, shard_name
from wirewitness.analyser.base.storage.exchange_files import is_there, scratch_in
from wirewitness.analyser.base.storage.files import let_reach
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.tables.queries import open_connection

JOINED_FILE, COPIES_FILE = "joined.arrow", "joined-flows.arrow"
COPIES = pa.schema([(FLOW, pa.int64()), ("other", pa.int64())])
_REQUESTS = "direction = 'client_to_server' AND role = 'request'"
_PLACE = "split_part({}, '-', 3)::bigint"


@dataclass(frozen=True, slots=True)
class Joins:
    """before, now: pairs (PAIRS). copies_before, copies: connections of the log of which a capture has every request,
    with the captured ones (COPIES). facts: FLOW and FACTS of all flows among these. remark: for people, None where
    nothing is told twice."""

    before: pa.Table
    now: pa.Table
    copies_before: pa.Table
    copies: pa.Table
    facts: pa.Table
    remark: str | None


def find_joins(
    change: Change, made: Sequence[Part], shards: Iterable[int], logs: frozenset[int], work: FolderPath
) -> Joins | None:
    """What is told twice in the parts that count now and those made in this run; None where nothing is or was."""
    there = {part.table for part in (*change.every_part(), *made)}
    if not logs or not there >= {*NEEDED}:
        return None
    facts = pa.concat_tables(
        table_at(change.state / shard_name(shard) / FLOWS_FILE, [FLOW, *FACTS]) for shard in shards
    )
    before, copies_before = (_kept(change, name, schema) for name, schema in _STATE.items())
    ends = facts.select([FLOW, *ENDS]).append_column("logged", in_logs(facts.column(FLOW), logs))
    shared = shared_flows(ends)
    if not len(shared) and not before.num_rows:
        return None
    places = [change.root, change.staging]
    with scratch_in(work) as scratch, closing(open_connection(scratch, places)) as con:
        let_reach(con, places)
        con.register("shared", pa.table({FLOW: shared}))
        messages, exchanges = (
            con.sql(f"SELECT {columns} FROM {_rows(change, made, name)} SEMI JOIN shared USING ({FLOW}) WHERE {which}")
            .to_arrow_table()
            for name, columns, which in (
                ("messages", _MESSAGES, _REQUESTS), ("exchanges", _EXCHANGES, "contains(exchange_id, '-c-')"),
            )
        )  # fmt: skip
        now = pairs_of(con, ends, messages, exchanges).cast(PAIRS)
    of_logs = messages.column(FLOW).filter(in_logs(messages.column(FLOW), logs)).value_counts().to_pylist()
    requests = {one["values"]: one["counts"] for one in of_logs}
    joined = Joined(now)
    whole = joined.whole(requests)
    copies = pa.table({FLOW: pa.array(whole.keys(), pa.int64()), "other": pa.array(whole.values(), pa.int64())})
    for name, table in ((JOINED_FILE, now), (COPIES_FILE, copies)):
        put_kept(change.state / name, table)
    among = pa.chunked_array(
        [*(column for one in (before, now) for name in ("flow", "other_flow") for column in one.column(name).chunks),
         *(column for one in (copies_before, copies) for name in COPIES.names for column in one.column(name).chunks)],
        pa.int64(),
    )  # fmt: skip
    facts = facts.filter(pc.is_in(facts.column(FLOW), among.combine_chunks()))
    return Joins(before, now, copies_before, copies, facts, joined.remark(requests) if joined.requests else None)


_STATE = {JOINED_FILE: PAIRS, COPIES_FILE: COPIES}
_MESSAGES = (
    f"{FLOW}, {_PLACE.format('message_id')} AS stream_offset, epoch_ns(ts) AS ts, operation, version, correlation_id"
)
_EXCHANGES = f"{FLOW}, {_PLACE.format('exchange_id')} AS request_offset, error_code"


def _kept(change: Change, name: str, schema: pa.Schema) -> pa.Table:
    """What the last run left; nothing where it had nothing to join."""
    path = None if change.previous_state is None else change.previous_state / name
    return kept_table(path, schema) if path is not None and is_there(path) else schema.empty_table()


def _rows(change: Change, made: Sequence[Part], table: str) -> str:
    """All rows of a table, those that do not count among them."""
    paths: list[FolderPath] = [change.location(part) for part in change.every_part() if part.table == table]
    paths += [change.staging / part.path for part in made if part.table == table]
    return stored_rows(table, [path.resolve() for path in paths])

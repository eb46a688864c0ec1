"""In which state a group was, from when to when: what the broker would say of it. The rows of `kafka_group_states`.

In: a connection with views of group events, members, owners, commits, admin changes, partitions and gaps.
Out: the view.

A classic group is told by what its members ask and are answered: JoinGroup (PreparingRebalance) and its answer
(CompletingRebalance), SyncGroup (Stable), heartbeats (0: Stable, 27: PreparingRebalance), leaving, a session timeout.
It is Empty when all have gone whom the leader's JoinGroup named, or when a commit without a member was accepted. Groups
whose members have epochs (KIP-848, KIP-932, KIP-1071) are told by those of the members in the capture: one behind the
highest, or partitions given up and not given again: Reconciling; nobody asked since one left: Assigning. Such a group
is Empty when members that had all its partitions have gone. What no packet tells is null.

SQL tells the signs of all groups in their order; `group_state_machine.py` says what follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb
import pyarrow as pa

from wirewitness.analyser.engine.facts.chunk_files import given_or_shown
from wirewitness.analyser.engine.facts.stage import NOTHING, STATES, Held
from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import has_rows, views
from wirewitness.analyser.kafka.facts.group_requests import KEY
from wirewitness.analyser.kafka.facts.group_state_machine import GroupState, Sign
from wirewitness.analyser.kafka.facts.group_state_signs import COVERED, EVENTS, FREED, MEMBERS, SIGNS
from wirewitness.analyser.tables.coded import BATCH_ROWS
from wirewitness.analyser.tables.tables import arrow_schema

Row = dict[str, Any]

TABLE = "kafka_group_states"
_STEPS = {"gs_events": EVENTS, "gs_members": MEMBERS, "gs_freed": FREED, "gs_covered": COVERED}
_SIGNS = f"""
    select cluster, group_id, covered, {", ".join(Sign._fields)} from ({SIGNS}) left join gs_covered using ({KEY})
    order by {KEY}, order_ns, rank, member_id, sign"""
_OF_GROUPS = ("kafka_group_events", "kafka_offset_commits", "kafka_admin_changes")


def add_states(con: duckdb.DuckDBPyConnection, held: Held = NOTHING) -> Held:
    """Give the rows back where somebody holds them, else make the view; nothing happens where nobody asks for groups.
    Call it once."""
    if not views(con) >= {*STATES.reads} or not any(has_rows(con, table) for table in _OF_GROUPS):
        return NOTHING
    with steps_made(con, _STEPS, _SIGNS):
        pieces = _pieces(con)
        return given_or_shown(con, TABLE, pieces if TABLE in held else iter([*pieces]), held)


def _pieces(con: duckdb.DuckDBPyConnection) -> Iterator[pa.Table]:
    rows: list[Row] = []
    for (cluster, group_id), told in groupby(_signs(con), itemgetter(0, 1)):
        rows += _rows_of_group(cluster or None, group_id, told)
        if len(rows) >= BATCH_ROWS:
            yield pa.Table.from_pylist(rows, arrow_schema(TABLE))
            rows = []
    if rows:
        yield pa.Table.from_pylist(rows, arrow_schema(TABLE))


def _signs(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str, bool | None, Sign]]:
    """Cluster, group, whether all its partitions are in the capture, and the sign; sorted."""
    for batch in con.sql(_SIGNS).to_arrow_reader(BATCH_ROWS):
        clusters, groups, covered, *columns = (column.to_pylist() for column in batch.columns)
        yield from zip(clusters, groups, covered, map(Sign, *columns), strict=True)


def _rows_of_group(cluster: str | None, group_id: str, told: Iterator[tuple[str, str, bool | None, Sign]]) -> list[Row]:
    """A row of the table for each time in which the state is the same."""
    rows: list[Row] = []
    group, last = None, None
    for order_ns, at_once in groupby(told, lambda one: one[3].order_ns):
        changed = False
        for _, _, covered, sign in at_once:
            group = group or GroupState(covered)
            changed = group.take(sign) or changed
        assert group is not None
        if not changed or (state := group.state()) == last:
            continue
        if rows:
            rows[-1]["ts_end"] = order_ns
        last = state
        rows.append(
            {
                "cluster_id": cluster, "group_id": group_id, "ts": order_ns, "ts_end": None, **state._asdict(),
                "protocol_type": group.protocol_type, "assignor": group.assignor,
            }
        )  # fmt: skip
    return rows

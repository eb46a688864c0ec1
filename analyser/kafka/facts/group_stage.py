"""The context of Kafka's groups: members and rebalances.

In: a connection with views of the Kafka tables and of `flows` and `expert_infos`. Out: the views `kafka_members` and
`kafka_rebalances`. All of it is SQL (`group_members.py`, `group_rebalances.py`): memory is DuckDB's limit, and it may
spill. Sources: KIP-62, KIP-345 (static members), KIP-394 (member ids), KIP-429 (cooperative), KIP-848; Kafka's
GroupMetadataManager for when a JoinGroup is answered.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import GROUPS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import steps_made
from wirewitness.analyser.engine.facts.topics import views
from wirewitness.analyser.kafka.facts.group_members import MEMBER_ROWS, MEMBER_STEPS
from wirewitness.analyser.kafka.facts.group_rebalances import REBALANCE_ROWS, REBALANCE_STEPS
from wirewitness.analyser.kafka.facts.idle_side import SIDE_STEPS
from wirewitness.analyser.tables.queries import name_list
from wirewitness.analyser.tables.tables import TABLES

_STEPS = {**MEMBER_STEPS, **SIDE_STEPS, **REBALANCE_STEPS}
_ROWS = {"kafka_members": MEMBER_ROWS, "kafka_rebalances": REBALANCE_ROWS}


def add_members_and_rebalances(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make both views; nothing happens where there are no group requests. Call it once."""
    there = views(con)
    if not there >= {*GROUPS.reads}:
        return NOTHING
    if not con.sql("SELECT EXISTS (FROM kafka_group_events WHERE event <> 'describe')").fetchall()[0][0]:
        return NOTHING
    rows = {name: query for name, query in _ROWS.items() if name in there}
    with steps_made(con, _STEPS, "; ".join(rows.values())):
        for name, query in rows.items():
            con.execute(f"CREATE TEMP TABLE made_{name} AS {query}")
    for name in rows:
        con.execute(f"DROP VIEW IF EXISTS {name}")
        con.execute(f"CREATE TEMP VIEW {name} AS SELECT {name_list(TABLES[name].column_names())} FROM made_{name}")
    return NOTHING

"""What clients of MongoDB do, and what comes of it: four tables over the commands of all connections.

In: a connection with views of `mongo_commands` and `mongo_transactions`. Out: the views `mongo_client_commands`,
`mongo_trends`, `mongo_conflicts`, `mongo_overwritten`.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import MONGO_USE, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import make_wanted_tables
from wirewitness.analyser.mongo.facts.client_commands import CLIENT_COMMANDS
from wirewitness.analyser.mongo.facts.conflicts import CONFLICTS, OVERWRITTEN
from wirewitness.analyser.mongo.facts.trends import TRENDS

_MADE = {
    "mongo_client_commands": CLIENT_COMMANDS,
    "mongo_trends": TRENDS,
    "mongo_conflicts": CONFLICTS,
    "mongo_overwritten": OVERWRITTEN,
}


def add_mongo_use(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; tables that they are made of may be missing. Call it once."""
    make_wanted_tables(con, _MADE, MONGO_USE.reads)
    return NOTHING

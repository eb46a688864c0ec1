"""The stages of the context: which tables are made, or get columns, from other rows of the capture.

In: nothing. Out: STAGES, one line for each stage; `analyser/analysis/capture_tables.py` runs a stage when one of its
tables is asked for, `analyser/archive/aggregate/context.py` for a whole dataset. A stage replaces the views of the
tables that it makes; without rows of dissectors they are empty. What a stage does is imported when it runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from wirewitness.analyser.engine.facts.shards import Dealer
from wirewitness.analyser.engine.facts.stage import (
    ABORTED_READS,
    CLIENT_REQUESTS,
    COMMITTED,
    CONNECTIONS,
    CURSORS,
    DELIVERIES,
    ENDS,
    GAPS,
    GROUPS,
    LAG,
    LEADERS,
    LOG_ENDS,
    MONGO_USE,
    MQTT_CLIENTS,
    NOTHING,
    OFFSETS,
    OWNERS,
    PAUSES,
    PRODUCERS,
    READING,
    REFUSED,
    ROUNDS,
    SILENCES,
    STATES,
    TOPIC_WRITERS,
    TOPICS,
    VALUES_TWICE,
    Held,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Stage(NamedTuple):
    """One stage: its tables, see `StageTables`, and what makes them: a function of a module below `analyser`.

    Any of the tables may be missing. in_shares: several processes can make it.
    """

    makes: tuple[str, ...]
    reads: tuple[str, ...]
    uses: tuple[str, ...]
    new: tuple[str, ...]
    module: str
    function: str
    in_shards: bool = False

    def run(self, con: DuckDBPyConnection, held: Held = NOTHING, dealer: Dealer | None = None) -> Held:
        """Replace or create the views of `makes`, but for those that are given back, whose views the caller makes.

        held: tables of `makes` whose views the caller makes, with their rows; of those that are new, the file for their
        rows, should there be many. Those that are not new are given back with the same rows in the same order. dealer:
        of shards to several processes.
        """
        make = getattr(import_module(f"wirewitness.analyser.{self.module}"), self.function)
        made: Held = make(con, held, dealer) if self.in_shards else make(con, held)
        return made


STAGES = (
    Stage(*GAPS, "engine.facts.gaps", "add_gaps"),
    Stage(*TOPICS, "kafka.facts.log_ends", "add_topics"),
    Stage(*LOG_ENDS, "kafka.facts.log_ends", "add_log_ends"),
    Stage(*OWNERS, "kafka.facts.ownership", "add_owners"),
    Stage(*OFFSETS, "kafka.facts.enrich", "enrich", in_shards=True),
    Stage(*COMMITTED, "kafka.facts.committed", "add_committed"),
    Stage(*LAG, "kafka.facts.lag", "add_lag"),
    Stage(*READING, "kafka.facts.fetch_stage", "add_fetch_ranges", in_shards=True),
    Stage(*GROUPS, "kafka.facts.group_stage", "add_members_and_rebalances"),
    Stage(*STATES, "kafka.facts.group_states", "add_states"),
    Stage(*PRODUCERS, "kafka.facts.producers_stage", "add_producers"),
    Stage(*ROUNDS, "kafka.facts.value_rounds", "add_rounds"),
    Stage(*VALUES_TWICE, "kafka.facts.values_twice", "add_values_twice"),
    Stage(*TOPIC_WRITERS, "kafka.facts.topic_writers", "add_topic_writers"),
    Stage(*ABORTED_READS, "kafka.facts.aborted_reads", "add_aborted_reads"),
    Stage(*CONNECTIONS, "kafka.facts.connections_stage", "add_connections"),
    Stage(*LEADERS, "kafka.facts.leaders", "add_leaders"),
    Stage(*REFUSED, "kafka.facts.refusals", "add_refusals"),
    Stage(*PAUSES, "kafka.facts.member_pauses", "add_pauses"),
    Stage(*SILENCES, "kafka.facts.client_silences", "add_silences"),
    Stage(*CLIENT_REQUESTS, "kafka.facts.client_requests", "add_client_requests"),
    Stage(*DELIVERIES, "mqtt.facts.stage", "add_deliveries"),
    Stage(*MQTT_CLIENTS, "mqtt.facts.clients_stage", "add_clients"),
    Stage(*CURSORS, "mongo.facts.stage", "add_mongo_facts"),
    Stage(*MONGO_USE, "mongo.facts.use", "add_mongo_use"),
    Stage(*ENDS, "network.facts.connection_ends", "add_ends"),
)
STAGE_OF = {table: stage for stage in STAGES for table in stage.makes}


def is_made_later(table: str, stage: Stage) -> bool:
    """Does a stage read the rows of this table as they are before a later stage adds columns to them?"""
    return table in STAGE_OF and STAGES.index(STAGE_OF[table]) > STAGES.index(stage)

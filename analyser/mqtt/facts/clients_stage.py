"""What MQTT's clients do over time: wills, filters, messages that come back, subscriptions without effect.

In: a connection with views of MQTT's tables. Out: the views of the tables in MADE; each is made in a file of its own.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import MQTT_CLIENTS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.mqtt.facts import (
    dropped_filters,
    publisher_habits,
    repeated_subscribes,
    server_pauses,
    topic_growth,
    topic_rounds,
    wills,
)

MADE = {
    "mqtt_wills": Made(wills.ASKS, wills.STEPS, wills.ROWS),
    "mqtt_dropped_filters": Made(dropped_filters.ASKS, dropped_filters.STEPS, dropped_filters.ROWS),
    "mqtt_topic_rounds": Made(topic_rounds.ASKS, topic_rounds.STEPS, topic_rounds.ROWS),
    "mqtt_client_subscribes": Made(repeated_subscribes.ASKS, repeated_subscribes.STEPS, repeated_subscribes.ROWS),
    "mqtt_server_pauses": Made(server_pauses.ASKS, server_pauses.STEPS, server_pauses.ROWS),
    "mqtt_publisher_habits": Made(publisher_habits.ASKS, publisher_habits.STEPS, publisher_habits.ROWS),
    "mqtt_names_used": Made(topic_growth.NAMES_ASKS, topic_growth.NAMES_STEPS, topic_growth.NAMES_ROWS),
    "mqtt_topic_writers": Made(topic_growth.WRITERS_ASKS, topic_growth.WRITERS_STEPS, topic_growth.WRITERS_ROWS),
}


def add_clients(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; tables that they are made of may be missing. Call it once."""
    make_wanted_tables(con, MADE, MQTT_CLIENTS.reads)
    return NOTHING

"""What MQTT's clients do over time: wills, filters, messages that come back, subscriptions without effect.

In: a connection with views of MQTT's tables. Out: the views of the tables in MADE; each is made in a file of its own.
"""

from __future__ import annotations

import duckdb

from wirewitness.analyser.engine.facts.stage import MQTT_CLIENTS, NOTHING, Held
from wirewitness.analyser.engine.facts.steps import Made, make_wanted_tables
from wirewitness.analyser.mqtt.facts import (
    answers,
    dropped_filters,
    early_resends,
    group_absences,
    kept_filters,
    late_subscribes,
    lone_publishers,
    lone_subscribers,
    publisher_contents,
    publisher_habits,
    repeated_subscribes,
    repeated_transfers,
    retained_back,
    server_pauses,
    sparkplug_births,
    topic_growth,
    topic_rounds,
    twin_publishers,
    wills,
    workers,
)

MADE = {
    "mqtt_wills": Made(wills.ASKS, wills.STEPS, wills.ROWS),
    "mqtt_dropped_filters": Made(dropped_filters.ASKS, dropped_filters.STEPS, dropped_filters.ROWS, of="drop_found"),
    "mqtt_topic_rounds": Made(topic_rounds.ASKS, topic_rounds.STEPS, topic_rounds.ROWS),
    "mqtt_client_subscribes": Made(repeated_subscribes.ASKS, repeated_subscribes.STEPS, repeated_subscribes.ROWS),
    "mqtt_server_pauses": Made(server_pauses.ASKS, server_pauses.STEPS, server_pauses.ROWS),
    "mqtt_publisher_habits": Made(
        publisher_habits.ASKS, publisher_habits.STEPS, publisher_habits.ROWS, of="habit_rows"
    ),
    "mqtt_names_used": Made(topic_growth.NAMES_ASKS, topic_growth.NAMES_STEPS, topic_growth.NAMES_ROWS),
    "mqtt_topic_writers": Made(topic_growth.WRITERS_ASKS, topic_growth.WRITERS_STEPS, topic_growth.WRITERS_ROWS),
    "mqtt_workers": Made(workers.ASKS, workers.STEPS, workers.ROWS),
    "mqtt_twin_publishers": Made(twin_publishers.ASKS, twin_publishers.STEPS, twin_publishers.ROWS),
    "mqtt_publisher_contents": Made(
        publisher_contents.ASKS, publisher_contents.STEPS, publisher_contents.ROWS, of="content_rows"
    ),
    "mqtt_group_absences": Made(group_absences.ASKS, group_absences.STEPS, group_absences.ROWS),
    "mqtt_lone_subscribers": Made(lone_subscribers.ASKS, lone_subscribers.STEPS, lone_subscribers.ROWS),
    "mqtt_retained_back": Made(retained_back.ASKS, retained_back.STEPS, retained_back.ROWS),
    "mqtt_early_resends": Made(early_resends.ASKS, early_resends.STEPS, early_resends.ROWS),
    "mqtt_kept_filters": Made(kept_filters.ASKS, kept_filters.STEPS, kept_filters.ROWS, of="kept_now"),
    "mqtt_late_subscribes": Made(late_subscribes.ASKS, late_subscribes.STEPS, late_subscribes.ROWS, of="late_asked"),
    "mqtt_answers": Made(answers.ASKS, answers.STEPS, answers.ROWS),
    "mqtt_repeated_transfers": Made(
        repeated_transfers.ASKS, repeated_transfers.STEPS, repeated_transfers.ROWS, of="transfer_rows"
    ),
    "mqtt_lone_publishers": Made(
        lone_publishers.ASKS, lone_publishers.STEPS, lone_publishers.ROWS, of="unheard_messages"
    ),
    "mqtt_births": Made(sparkplug_births.ASKS, sparkplug_births.STEPS, sparkplug_births.ROWS),
}


def add_clients(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; tables that they are made of may be missing. Call it once."""
    make_wanted_tables(con, MADE, MQTT_CLIENTS.reads)
    return NOTHING

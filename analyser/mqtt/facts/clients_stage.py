"""What MQTT's clients do over time: wills, filters, messages that come back, subscriptions without effect.

In: a connection with views of MQTT's tables. Out: the views of the tables in MADE; each is made in a file of its own.
"""

from __future__ import annotations

from types import ModuleType

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


def _made(facts: ModuleType, of: str) -> Made:
    return Made(facts.ASKS, facts.STEPS, facts.ROWS, of=of)


MADE = {
    "mqtt_wills": _made(wills, "will_fired"),
    "mqtt_dropped_filters": _made(dropped_filters, "drop_found"),
    "mqtt_topic_rounds": _made(topic_rounds, "round_copies round_values"),
    "mqtt_client_subscribes": _made(repeated_subscribes, "asked_packets"),
    "mqtt_server_pauses": _made(server_pauses, "pause_asked pause_lengths pause_waiting"),
    "mqtt_publisher_habits": _made(publisher_habits, "often_sent habit_rows"),
    "mqtt_names_used": Made(
        topic_growth.NAMES_ASKS, topic_growth.NAMES_STEPS, topic_growth.NAMES_ROWS, of="name_clients"
    ),
    "mqtt_topic_writers": Made(
        topic_growth.WRITERS_ASKS, topic_growth.WRITERS_STEPS, topic_growth.WRITERS_ROWS, of="writer_clients"
    ),
    "mqtt_workers": _made(workers, "worker_got"),
    "mqtt_twin_publishers": _made(twin_publishers, "twin_sent twin_shared twin_pairs"),
    "mqtt_publisher_contents": _made(publisher_contents, "often_sent content_rows"),
    "mqtt_group_absences": _made(group_absences, "absent_spans absent_times absent_messages"),
    "mqtt_lone_subscribers": _made(lone_subscribers, "lone_servers lone_filters lone_elsewhere"),
    "mqtt_retained_back": _made(retained_back, "back_topics back_sent back_found"),
    "mqtt_early_resends": _made(early_resends, "early_sent early_flows"),
    "mqtt_kept_filters": _made(kept_filters, "kept_now kept_old kept_got"),
    "mqtt_late_subscribes": _made(late_subscribes, "late_asked late_sent late_missed"),
    "mqtt_answers": _made(answers, "answer_told answer_pairs answer_requests answer_counts"),
    "mqtt_repeated_transfers": _made(repeated_transfers, "transfer_rows"),
    "mqtt_lone_publishers": _made(
        lone_publishers, "unheard_messages unheard_filters unheard_pairs unheard_got unheard_rows"
    ),
    "mqtt_births": _made(sparkplug_births, "birth_steps"),
}


def add_clients(con: duckdb.DuckDBPyConnection, _: Held = NOTHING) -> Held:
    """Make the views; tables that they are made of may be missing. Call it once."""
    make_wanted_tables(con, MADE, MQTT_CLIENTS.reads)
    return NOTHING

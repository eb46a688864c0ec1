"""Scenarios as plain rows: what happens, and exactly which findings must come of it.

`FIRES` has at least one scenario per rule that gives this code and no other, `NEAR_MISSES` at least one per
rule that looks alike and stays silent (no finding above the severity named), `FAULTS` the ways in which stored
offsets go wrong in practice, with all codes that they give.
"""

from tests.analyser.engine.rules.scenarios.faults import FAULTS
from tests.analyser.engine.rules.scenarios.fires import FIRES as OTHER_FIRES
from tests.analyser.engine.rules.scenarios.kafka_changes import CHANGES_FIRES, CHANGES_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_connections import CONNECTION_FIRES, CONNECTION_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_contents import CONTENT_FIRES, CONTENT_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_ends import ENDS_FIRES, ENDS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_groups import KAFKA_GROUPS_FIRES, KAFKA_GROUPS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_lag import KAFKA_LAG_FIRES, KAFKA_LAG_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_missing import KAFKA_MISSING_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_moves import MOVES_FIRES, MOVES_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_offsets import KAFKA_OFFSETS_FIRES
from tests.analyser.engine.rules.scenarios.kafka_offsets_near_misses import KAFKA_OFFSETS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_producers import PRODUCER_FIRES, PRODUCER_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_silence import SILENCE_FIRES, SILENCE_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_slow import SLOW_FIRES, SLOW_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_static import STATIC_FIRES, STATIC_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_topics import TOPIC_FIRES, TOPIC_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_traffic import KAFKA_TRAFFIC_FIRES, KAFKA_TRAFFIC_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_transactions import TRANSACTION_FIRES, TRANSACTION_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_use import KAFKA_USE_FIRES, KAFKA_USE_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.kafka_waits import WAIT_FIRES, WAIT_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mongo import MONGO_FIRES, MONGO_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mongo_limits import MONGO_LIMITS_FIRES, MONGO_LIMITS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mongo_queues import QUEUES_FIRES, QUEUES_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mongo_sets import SETS_FIRES, SETS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mongo_transactions import TRANSACTIONS_FIRES, TRANSACTIONS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mongo_use import MONGO_USE_FIRES, MONGO_USE_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mqtt import MQTT_FIRES, MQTT_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mqtt_clients import MQTT_CLIENTS_FIRES, MQTT_CLIENTS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mqtt_likes import MQTT_LIKES_FIRES, MQTT_LIKES_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mqtt_sessions import MQTT_SESSIONS_FIRES, MQTT_SESSIONS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mqtt_topics import MQTT_TOPICS_FIRES, MQTT_TOPICS_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mqtt_waiting import MQTT_WAITING_FIRES, MQTT_WAITING_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.mqtt_work import MQTT_WORK_FIRES, MQTT_WORK_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.near_misses import NEAR_MISSES as OTHER_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.net import NET_FIRES, NET_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.scenario import Scenario
from tests.analyser.engine.rules.scenarios.tcp import TCP_FIRES, TCP_NEAR_MISSES
from tests.analyser.engine.rules.scenarios.tls import TLS_FIRES, TLS_NEAR_MISSES

FIRES: list[Scenario] = [
    *OTHER_FIRES,
    *KAFKA_USE_FIRES,
    *STATIC_FIRES,
    *MOVES_FIRES,
    *CHANGES_FIRES,
    *CONNECTION_FIRES,
    *ENDS_FIRES,
    *KAFKA_GROUPS_FIRES,
    *PRODUCER_FIRES,
    *KAFKA_LAG_FIRES,
    *KAFKA_OFFSETS_FIRES,
    *KAFKA_TRAFFIC_FIRES,
    *SILENCE_FIRES,
    *SLOW_FIRES,
    *TOPIC_FIRES,
    *CONTENT_FIRES,
    *TRANSACTION_FIRES,
    *WAIT_FIRES,
    *TCP_FIRES,
    *TLS_FIRES,
    *NET_FIRES,
    *MQTT_FIRES,
    *MQTT_LIKES_FIRES,
    *MQTT_SESSIONS_FIRES,
    *MQTT_TOPICS_FIRES,
    *MQTT_WAITING_FIRES,
    *MQTT_CLIENTS_FIRES,
    *MQTT_WORK_FIRES,
    *MONGO_FIRES,
    *MONGO_USE_FIRES,
    *MONGO_LIMITS_FIRES,
    *QUEUES_FIRES,
    *SETS_FIRES,
    *TRANSACTIONS_FIRES,
]
NEAR_MISSES: list[Scenario] = [
    *OTHER_NEAR_MISSES,
    *KAFKA_USE_NEAR_MISSES,
    *STATIC_NEAR_MISSES,
    *MOVES_NEAR_MISSES,
    *CHANGES_NEAR_MISSES,
    *CONNECTION_NEAR_MISSES,
    *ENDS_NEAR_MISSES,
    *KAFKA_GROUPS_NEAR_MISSES,
    *PRODUCER_NEAR_MISSES,
    *KAFKA_LAG_NEAR_MISSES,
    *KAFKA_OFFSETS_NEAR_MISSES,
    *KAFKA_MISSING_NEAR_MISSES,
    *KAFKA_TRAFFIC_NEAR_MISSES,
    *SILENCE_NEAR_MISSES,
    *SLOW_NEAR_MISSES,
    *TOPIC_NEAR_MISSES,
    *CONTENT_NEAR_MISSES,
    *TRANSACTION_NEAR_MISSES,
    *WAIT_NEAR_MISSES,
    *TCP_NEAR_MISSES,
    *TLS_NEAR_MISSES,
    *NET_NEAR_MISSES,
    *MQTT_NEAR_MISSES,
    *MQTT_LIKES_NEAR_MISSES,
    *MQTT_SESSIONS_NEAR_MISSES,
    *MQTT_TOPICS_NEAR_MISSES,
    *MQTT_WAITING_NEAR_MISSES,
    *MQTT_CLIENTS_NEAR_MISSES,
    *MQTT_WORK_NEAR_MISSES,
    *MONGO_NEAR_MISSES,
    *MONGO_USE_NEAR_MISSES,
    *MONGO_LIMITS_NEAR_MISSES,
    *QUEUES_NEAR_MISSES,
    *SETS_NEAR_MISSES,
    *TRANSACTIONS_NEAR_MISSES,
]

__all__ = ["FAULTS", "FIRES", "NEAR_MISSES", "Scenario"]

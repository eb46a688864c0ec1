"""The stages of the context: which tables are made, or get columns, from other rows of the capture.

In: nothing. Out: STAGES, one line for each stage; `analyser/tables/capture_tables.py` runs a stage when one of its
tables is asked for, `analyser/archive/derive/context.py` for a whole dataset. A stage replaces the views of the tables
that it makes; without rows of dissectors they are empty.
"""

from __future__ import annotations

from analyser.context.connections_stage import CONNECTIONS_STAGE
from analyser.context.group_stage import GROUP_STAGE
from analyser.context.kafka_stage import KAFKA_STAGE
from analyser.context.mongo_stage import MONGO_STAGE
from analyser.context.mqtt_stage import MQTT_STAGE
from analyser.context.producers_stage import PRODUCERS_STAGE
from analyser.context.reading_stage import READING_STAGE

STAGES = (
    KAFKA_STAGE,
    READING_STAGE,
    GROUP_STAGE,
    PRODUCERS_STAGE,
    CONNECTIONS_STAGE,
    MQTT_STAGE,
    MONGO_STAGE,
)
STAGE_OF = {table: stage for stage in STAGES for table in stage.makes}

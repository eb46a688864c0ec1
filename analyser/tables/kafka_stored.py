"""The table of what brokers keep in `__consumer_offsets`."""

from __future__ import annotations

from wirewitness.analyser.tables.model import Column, Table, columns_of
from wirewitness.dissectors.kafka.rows.stored_fields import STORED_OFFSETS

STORED_OFFSETS_TABLE = Table(
    "kafka_stored_offsets",
    "one row per offset that a broker stored or deleted, from log segments of __consumer_offsets",
    columns_of(
        STORED_OFFSETS,
        {"log_offset": (Column("file", "string", "file of the segment", "derived", nullable=False),)},
    ),
    ("ts", "log_partition", "log_offset"),
    "kafka",
)

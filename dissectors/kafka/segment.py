"""The line by which Kafka's log segments enter the table of contents."""

from __future__ import annotations

from wirewitness.dissectors.core.segment_reader import SegmentReader
from wirewitness.dissectors.kafka.rows.stored_rows import KafkaPartition

READER = SegmentReader(KafkaPartition)

"""The line by which Kafka enters the table of contents."""

from __future__ import annotations

from dissectors.core.protocol import Dissector
from dissectors.kafka.conversation import conversation
from dissectors.kafka.error_codes import ERROR_NAMES
from dissectors.kafka.framing import framer, probe
from dissectors.kafka.inspect import inspect, may_hide
from dissectors.kafka.rows.fields import KAFKA_ROWS

KAFKA = Dissector(
    name="kafka",
    title="Kafka",
    colour="#2f7fc1",
    letters="KAF",
    ports=(9092, 9093, 9094, 9095, 19092, 29092),
    probe=probe,
    framer=framer,
    conversation=conversation,
    rows=KAFKA_ROWS,
    error_names=ERROR_NAMES,
    inspect=inspect,
    may_hide=may_hide,
    receive_buffer="receive.buffer.bytes or socket.receive.buffer.bytes",
)

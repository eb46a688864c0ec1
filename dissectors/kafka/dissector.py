"""The line by which Kafka enters the table of contents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dissectors.core.inspect import Asked, Inspected
from dissectors.core.limits import Limits
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Conversation, Dissector, Sink
from dissectors.kafka.error_codes import ERROR_NAMES
from dissectors.kafka.framing import framer, opens, probe
from dissectors.kafka.rows.fields import KAFKA_ROWS

if TYPE_CHECKING:
    from dissectors.core.columns.streams import Streams, WholeRead


def _conversation(limits: Limits, options: DecodeOptions) -> Conversation:
    from dissectors.kafka.conversation import KafkaConversation

    return KafkaConversation(limits, options)


def _whole(streams: Streams, limits: Limits, options: DecodeOptions, out: Sink) -> WholeRead:
    from dissectors.kafka.columns.whole import read_whole
    from dissectors.kafka.conversation import KafkaConversation
    from dissectors.kafka.rows.record_rows import payload_columns

    payload = payload_columns(options)
    return read_whole(streams, limits, payload, partial(KafkaConversation, limits, options), out)


def _inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    from dissectors.kafka.inspect import inspect

    return inspect(data, asked, options)


def _may_hide(asked: Asked) -> bool:
    from dissectors.kafka.inspect import may_hide

    return may_hide(asked)


KAFKA = Dissector(
    name="kafka",
    title="Kafka",
    colour="#2f7fc1",
    letters="KAF",
    ports=(9092, 9093, 9094, 9095, 19092, 29092),
    probe=probe,
    framer=framer,
    conversation=_conversation,
    rows=KAFKA_ROWS,
    error_names=ERROR_NAMES,
    inspect=_inspect,
    opens=opens,
    whole=_whole,
    may_hide=_may_hide,
    receive_buffer="receive.buffer.bytes or socket.receive.buffer.bytes",
)

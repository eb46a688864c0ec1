"""The line by which Kafka enters the table of contents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.inspect import Asked, Inspected
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Decoder, Dissector, Sink
from wirewitness.dissectors.kafka.error_codes import ERROR_NAMES
from wirewitness.dissectors.kafka.framing import framer, opens, probe
from wirewitness.dissectors.kafka.rows.fields import KAFKA_ROWS

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.streams import Streams, WholeRead


def _decoder(limits: Limits, options: DecodeOptions) -> Decoder:
    from wirewitness.dissectors.kafka.decoder import KafkaDecoder

    return KafkaDecoder(limits, options)


def _whole(streams: Streams, limits: Limits, options: DecodeOptions, out: Sink) -> WholeRead:
    from wirewitness.dissectors.kafka.decoder import KafkaDecoder
    from wirewitness.dissectors.kafka.lockstep.complete_connections import read_whole
    from wirewitness.dissectors.kafka.rows.record_rows import payload_columns

    payload = payload_columns(options)
    return read_whole(streams, limits, payload, partial(KafkaDecoder, limits, options), out)


def _inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    from wirewitness.dissectors.kafka.inspect import inspect

    return inspect(data, asked, options)


def _may_hide(asked: Asked) -> bool:
    from wirewitness.dissectors.kafka.inspect import may_hide

    return may_hide(asked)


def _read_files() -> None:
    from wirewitness.dissectors.kafka.schema.definitions import read_all

    read_all()


# What a client that leaves does not wait for: long polls, and questions that change nothing at the broker.
LEFT_OPEN = frozenset({
    "ApiVersions", "ConsumerGroupHeartbeat", "DescribeCluster", "DescribeConfigs", "DescribeGroups", "Fetch",
    "FindCoordinator", "Heartbeat", "JoinGroup", "ListGroups", "ListOffsets", "Metadata", "OffsetFetch",
    "OffsetForLeaderEpoch", "ShareFetch", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "SyncGroup",
})  # fmt: skip

KAFKA = Dissector(
    name="kafka",
    title="Kafka",
    colour="#2f7fc1",
    letters="KAF",
    ports=(9092, 9093, 9094, 9095, 19092, 29092),
    server_names=("confluent.cloud",),
    probe=probe,
    framer=framer,
    decoder=_decoder,
    rows=KAFKA_ROWS,
    error_names=ERROR_NAMES,
    inspect=_inspect,
    opens=opens,
    whole=_whole,
    may_hide=_may_hide,
    read_files=_read_files,
    left_open=LEFT_OPEN,
    receive_buffer="receive.buffer.bytes or socket.receive.buffer.bytes",
)

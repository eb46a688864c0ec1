"""The levels that are fuzzed, from capture files to whole commands: the table of contents of this folder.

In: nothing. Out: `LEVELS`, by name: what is done with an input, which inputs to start from, how one is changed with
knowledge of its structure, how it is made large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from random import Random
from typing import Literal, NamedTuple

from tests.fuzz import (
    carried,
    checks,
    commands,
    content,
    folders,
    kafka_fields,
    layers,
    mongo_fields,
    mqtt_fields,
    names,
    rings,
    segments,
)
from tests.fuzz.mutate import Mutator, broken, broken_talk, repeated
from tests.fuzz.pieces import MAX_INPUT_BYTES, Spoken, conversation_seeds, message_seeds, packets
from tests.support.packets import pcap

SOME = 300


class Level(NamedTuple):
    """check raises for an input that shows a fault. seeds: to start from. change: an input to another one.

    size: bytes of capture that an input stands for. grown: an input made many times as large; None where size is no
    matter of this level. weight: its part of the time. floor_s: processor time that any input may take.
    """

    check: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    change: Mutator
    size: Callable[[bytes], int]
    grown: Callable[[bytes, Random, int], bytes] | None
    weight: float = 1.0
    floor_s: float = 2.0


_Framed, _Bare = Callable[[bytes], bytes], Callable[[bytes], bytes | None]


def _sized(
    order: Literal["big", "little"], more: int
) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes | None]]:
    """Frames with four bytes of length in front; more: what the length counts beside the body."""

    def framed(body: bytes) -> bytes:
        return (len(body) + more).to_bytes(4, order) + body

    def bare(payload: bytes) -> bytes | None:
        return payload[4:] if len(payload) >= 4 and framed(payload[4:]) == payload else None

    return framed, bare


_KAFKA_SAMPLES = ("kafka_healthy", "kafka_stale_commit", "kafka_admin")
_MONGO_SAMPLES = ("mongo_healthy", "mongo_shapes_and_errors", "mongo_compressed")
_MQTT_SAMPLES = ("mqtt_healthy", "mqtt_v5_features", "mqtt_faults", "mqtt_qos2_stuck")
_KAFKA_FIELDS = (kafka_fields.ASKED, kafka_fields.talk, kafka_fields.message)
_MONGO_FIELDS = (mongo_fields.ASKED, mongo_fields.talk, mongo_fields.message)
_MQTT_FIELDS = (mqtt_fields.ASKED, mqtt_fields.talk, mqtt_fields.message)
KAFKA = Spoken("kafka", 9092, _KAFKA_SAMPLES, *_sized("big", 0), *_KAFKA_FIELDS)
MONGO = Spoken("mongo", 27017, _MONGO_SAMPLES, *_sized("little", 4), *_MONGO_FIELDS)
MQTT = Spoken("mqtt", 1883, _MQTT_SAMPLES, mqtt_fields.framed, mqtt_fields.bare, *_MQTT_FIELDS)
SPOKEN = [KAFKA, MONGO, MQTT]


def _capture_bytes(spoken: Spoken, data: bytes) -> int:
    return 24 + sum(16 + len(one.data) for one in packets(spoken, data))


def _of_protocol(spoken: Spoken) -> dict[str, Level]:
    """The levels that every protocol has."""
    seeds = cache(lambda: list(conversation_seeds(spoken)))
    change = broken_talk(spoken, seeds)
    size = partial(_capture_bytes, spoken)

    def changed_message(data: bytes, dice: Random) -> bytes:
        if dice.random() < 0.5:
            place, made = spoken.message(dice)
            return place.to_bytes(2, "big") + made
        return data[:2] + broken(data[2:], dice)

    name, streams, whole = spoken.protocol, partial(checks.check_streams, spoken), checks.check_decoder
    messages = partial(checks.check_message, spoken)
    return {
        f"{name}-streams": Level(streams, lambda: iter(seeds()), change, size, repeated, 2.0),
        f"{name}-packets": Level(partial(whole, spoken), lambda: iter(seeds()), change, size, repeated),
        f"{name}-messages": _level(messages, lambda: message_seeds(spoken), changed_message, weight=0.7),
    }


def check_decoders(data: bytes) -> None:
    """Two bytes choose a Kafka message, the rest is its body: the fast decoder and the slow reader must agree."""
    from tests.dissectors.kafka.schema.test_walk import check_equal
    from tests.support.kafka_encode import MESSAGES

    message = MESSAGES[int.from_bytes(data[:2], "big") % len(MESSAGES)]
    check_equal(message, data, min(2, len(data)), len(data))


def decoder_seeds() -> Iterator[bytes]:
    """Valid bodies of every message, as far as they are short enough."""
    from tests.support.kafka_encode import MESSAGES, message

    for number, one in enumerate(MESSAGES):
        body = message(*one, Random(number))[0]
        if len(body) <= MAX_INPUT_BYTES - 2:
            yield number.to_bytes(2, "big") + body


def _changed_body(data: bytes, dice: Random) -> bytes:
    from tests.support.kafka_encode import MESSAGES

    if dice.random() < 0.5:
        number = dice.randrange(len(MESSAGES))
        return number.to_bytes(2, "big") + kafka_fields.body(*MESSAGES[number], dice)
    return data[:2] + broken(data[2:], dice)


def check_document(data: bytes) -> None:
    """DATA as BSON, for the fast reader of fields, the tree that `show` makes, and pymongo: all agree."""
    import bson
    from bson.codec_options import CodecOptions, DatetimeConversion

    from wirewitness.dissectors.mongo.bson_fields import document, whole_fields
    from wirewitness.dissectors.mongo.bson_tree import DocumentWalker

    found = document(data, 0, len(data))
    walked = DocumentWalker(data, lambda _: None, 100_000, payload=True).walk(0, len(data))
    if walked.error is None and walked.pos == len(data):
        assert whole_fields(data, 0, len(data)) is not None
    try:
        true = bson.decode(data, CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS))
    except (bson.InvalidBSON, RecursionError):
        return
    assert (found.error, found.end) == (None, len(data))
    assert {key.decode() for key in found.fields} == set(true)
    assert (walked.error, walked.pos) == (None, len(data))


def document_seeds() -> Iterator[bytes]:
    """The bodies of the lab's commands and replies."""
    body_at = 2 + 16 + 4 + 1  # the choice, a message header, flags, the kind of the first section
    yield from (seed[body_at:] for seed in message_seeds(MONGO) if len(seed) > body_at)


def _changed_document(data: bytes, dice: Random) -> bytes:
    return mongo_fields.document(dice) if dice.random() < 0.5 else broken(data, dice)


def capture_seeds() -> Iterator[bytes]:
    """Captures of every format, link layer, tunnel and of fragments."""
    from tests.analyser.capture.test_damage import CAPTURES
    from tests.analyser.capture.test_fragments import four, six
    from tests.analyser.capture.test_layers import LINKS
    from tests.analyser.capture.test_packet_workloads import NAMING
    from tests.analyser.capture.test_tshark import BYTES
    from tests.analyser.capture.test_tunnels import TUNNELS
    from tests.support.packets import Captured

    yield from CAPTURES.values()
    yield from BYTES.values()
    yield from NAMING
    yield pcap([Captured(n, frame) for n, frame in enumerate([*four(), *six()])])
    yield from (pcap([Captured(0, frame)], link_type=kind) for kind, frame, _ in LINKS.values())
    yield from (pcap([Captured(0, frame)]) for frame, _ in TUNNELS.values())


def _made(make: Callable[[Random], bytes], number: int = SOME) -> Callable[[], Iterator[bytes]]:
    """So many made-up inputs, always the same."""
    return lambda: (make(Random(seed)) for seed in range(number))


def _of_segments(data: bytes) -> int:
    return 24 + sum(16 + len(one.data) for one in segments.packets(data))


def _level(
    check: Callable[[bytes], None],
    seeds: Callable[[], Iterator[bytes]],
    change: Mutator,
    *,
    size: Callable[[bytes], int] = len,
    weight: float = 1.0,
    floor_s: float = 2.0,
) -> Level:
    return Level(check, seeds, change, size, None, weight, floor_s)


def _check_segments(data: bytes) -> None:
    checks.check_packets(segments.packets(data))


def _whole_seeds() -> Iterator[bytes]:
    return (commands.made(SPOKEN, Random(number))[2:] for number in range(40))


def _changed_whole(data: bytes, dice: Random) -> bytes:
    return commands.change(SPOKEN, b"\0\0" + data, dice)[2:]


_SEGMENT_SEEDS = _made(lambda dice: segments.change(b"", dice), 60)
_COMMAND_SEEDS = _made(partial(commands.made, SPOKEN), 40)
_BARE_MQTT = MQTT._replace(framed=bytes)

LEVELS: dict[str, Level] = {
    "capture": _level(checks.check_capture, capture_seeds, layers.change, weight=2.0),
    "segments": _level(_check_segments, _SEGMENT_SEEDS, segments.change, size=_of_segments, weight=2.0),
    **{name: level for spoken in SPOKEN for name, level in _of_protocol(spoken).items()},
    "kafka-decoders": _level(check_decoders, decoder_seeds, _changed_body, weight=0.7),
    "mongo-documents": _level(check_document, document_seeds, _changed_document, weight=0.7),
    "websocket": Level(
        partial(checks.check_streams, _BARE_MQTT),
        _made(carried.connection),
        carried.change,
        partial(_capture_bytes, MQTT),
        repeated,
    ),
    "compressed": _level(content.check_compressed, _made(content.compressed), content.change_compressed, weight=0.5),
    "blobs": _level(content.check_blob, _made(content.blob), content.change_blob, weight=0.5),
    "names": _level(names.check, names.seeds, names.change, weight=0.5),
    "whole-way": _level(checks.check_whole_way, _whole_seeds, _changed_whole, weight=1.5, floor_s=5.0),
    "datasets": _level(folders.DATASETS.check, folders.DATASETS.seeds, folders.DATASETS.change, floor_s=5.0),
    "caches": _level(folders.CACHES.check, folders.CACHES.seeds, folders.CACHES.change, weight=0.7, floor_s=5.0),
    "live-folders": _level(folders.SHARED.check, folders.SHARED.seeds, folders.SHARED.change, weight=0.7, floor_s=5.0),
    "rings": _level(rings.check, _made(rings.made, 40), rings.change, weight=0.7, floor_s=5.0),
    "commands": _level(commands.check, _COMMAND_SEEDS, partial(commands.change, SPOKEN), weight=2.0, floor_s=5.0),
}

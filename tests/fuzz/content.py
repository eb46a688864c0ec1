"""What lies inside messages: compressed data, and the blobs of groups, internal topics and authentication.

In: bytes of which the first choose what they are taken for. Out: AssertionError where a promise is broken: nothing but
DecodeError is raised, nothing is larger than its limit.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random

import cramjam
import lz4.frame
import zstandard

from tests.fuzz import kafka_fields
from tests.fuzz.mutate import broken
from tests.support.kafka_encode import record_part
from wirewitness.dissectors.core import decompression, secrets
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka import sasl_tokens
from wirewitness.dissectors.kafka.blobs import consumer, member_blobs
from wirewitness.dissectors.kafka.records import compression, internal_topics
from wirewitness.dissectors.kafka.records.internal_topics import told_record
from wirewitness.dissectors.kafka.schema import definitions as schema

LIMITS = [1, 100, 4096, 1 << 20]
CODECS: list[Callable[[bytes, int], decompression.Decompressed]] = [
    lambda data, limit: compression.decompress("gzip", data, limit),
    lambda data, limit: compression.decompress("snappy", data, limit),
    lambda data, limit: compression.decompress("lz4", data, limit),
    lambda data, limit: compression.decompress("zstd", data, limit),
    decompression.zlib_block,
    decompression.snappy_block,
    decompression.zstd_block,
]


def check_compressed(data: bytes) -> None:
    """Codec, limit, compressed bytes."""
    codec, most = CODECS[data[0] % len(CODECS)] if data else CODECS[0], LIMITS[data[1] % len(LIMITS)] if data[1:] else 1
    found = codec(data[2:], most)
    assert len(found.data) <= most
    assert not found.limited or found.error


def compressed(dice: Random) -> bytes:
    """Content compressed, then broken."""
    content = dice.choice([b"", b"x", b"abc" * 50, bytes(5000), dice.randbytes(200), b"x" * 100_000])
    xerial = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    block = bytes(cramjam.snappy.compress_raw(content))
    made = [
        gzip.compress(content, mtime=0),
        dice.choice([block, xerial + len(block).to_bytes(4, "big") + block]),
        lz4.frame.compress(
            content,
            store_size=dice.random() < 0.5,
            block_linked=dice.random() < 0.5,
            content_checksum=dice.random() < 0.5,
        ),
        zstandard.ZstdCompressor(write_content_size=dice.random() < 0.5).compress(content),
        zlib.compress(content),
        block,
        zstandard.ZstdCompressor().compress(content),
    ]
    place = dice.randrange(len(made))
    data = made[place] * dice.choice([1, 1, 1, 2, 30])
    return bytes([place, dice.randrange(len(LIMITS))]) + (broken(data, dice) if dice.random() < 0.8 else data)


@cache
def _readers() -> list[Callable[[bytes], object]]:
    names = ("range", "sticky", "cooperative-sticky", "stream", "compatible", None)
    kinds = ("consumer", "connect", "sr", None)
    return [
        member_blobs.worker_state,
        member_blobs.worker_assignment,
        consumer.subscription,
        consumer.assignment,
        lambda blob: consumer.sticky_user_data(blob, cooperative=True),
        lambda blob: consumer.sticky_user_data(blob, cooperative=False),
        member_blobs.streams_subscription,
        member_blobs.streams_assignment,
        *(lambda blob, k=kind, n=name: member_blobs.told_subscription(k, n, blob) for kind in kinds for name in names),
        *(lambda blob, k=kind, n=name: member_blobs.told_assignment(k, n, blob) for kind in kinds for name in names),
        *(
            lambda blob, t=topic: told_record(internal_topics.internal_record(t, *_halves(blob)))
            for topic in internal_topics.TOPICS
        ),
        lambda blob: told_record(internal_topics.control_record(*_halves(blob))),
        *(
            lambda blob, m=mechanism: sasl_tokens.who(m, blob)
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", None)
        ),
        sasl_tokens.mechanism_of,
        lambda blob: sasl_tokens.gssapi_token(blob, 0, len(blob)),
        lambda blob: secrets.masked(blob.decode("utf-8", "replace")),
        lambda blob: secrets.masked(blob.decode("utf-8", "replace"), is_name=True),
    ]


def _halves(blob: bytes) -> tuple[bytes, bytes | None]:
    """A key and a value: one byte says how long the key is; a value of nothing is none."""
    size = blob[0] if blob else 0
    value = blob[1 + size :]
    return blob[1 : 1 + size], value or None


def check_blob(data: bytes) -> None:
    """A reader, and what it reads."""
    readers = _readers()
    with suppress(DecodeError):
        readers[data[0] % len(readers) if data else 0](data[1:])


def blob(dice: Random) -> bytes:
    """A blob that members or internal topics have, then broken."""
    if dice.random() < 0.5:
        made = dice.choice(kafka_fields.blobs())
    else:
        folder = dice.choice(["consumer_offsets", "transaction_state", "share_group_state", "control", "streams"])
        record = dice.choice(list(schema.records(folder).values()))
        version = dice.randint(record.versions.first, record.versions.last or 0)
        key = record.key.to_bytes(2, "big") + record_part(record, None, dice)[0]
        value = version.to_bytes(2, "big") + record_part(record, version, dice)[0]
        made = bytes([len(key) & 0xFF]) + key + value
    return bytes([dice.randrange(len(_readers()))]) + (broken(made, dice) if dice.random() < 0.8 else made)


def change_compressed(data: bytes, dice: Random) -> bytes:
    """Made anew or broken."""
    return compressed(dice) if dice.random() < 0.5 else broken(data, dice)


def change_blob(data: bytes, dice: Random) -> bytes:
    """Made anew or broken."""
    return blob(dice) if dice.random() < 0.5 else broken(data, dice)

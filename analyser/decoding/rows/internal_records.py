"""The column `decoded` of `kafka_records`: what records of Kafka's own topics and control records say.

In: raw rows, one for a run of records of a batch, with keys and values as text, and the names of their topics. Out: an
Arrow array of lists, one JSON text or null for each record. Only rows that are of such a topic become Python objects.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.records.internal_topics import TOPICS, control_record, internal_record, told_record

_WHOLE = ("utf8", "hex")
_TOPICS = pa.array(list(TOPICS), pa.string())


def decoded(raw: pa.RecordBatch, topics: pa.Array) -> pa.Array:
    """The column for the raw rows, `topics` being the topic of each; all null where no payload was kept."""
    control = pc.is_valid(raw.column("control"))
    of_kafka = pc.or_(control, pc.is_in(topics, _TOPICS))
    keys = raw.column("key")
    sizes = pc.list_value_length(keys).to_pylist()
    texts: list[str | None] = []
    for row, (wanted, size) in enumerate(zip(of_kafka.to_pylist(), sizes, strict=True)):
        if not wanted:
            texts += [None] * size
            continue
        topic = None if control[row].as_py() else topics[row].as_py()
        texts += [_told(topic, key, value) for key, value in _records(raw, row)]
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + size)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(texts, pa.string()))


def _records(raw: pa.RecordBatch, row: int) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Key and value of each record of a raw row, as the bytes they were."""
    names = ("key", "key_encoding", "value", "value_encoding", "value_bytes")
    for key, key_encoding, value, value_encoding, size in zip(
        *(raw.column(name)[row].as_py() for name in names), strict=True
    ):
        whole = size is None or value_encoding in _WHOLE  # else there is a value, but it was not kept or was cut
        yield (_bytes(key, key_encoding) if whole else None), _bytes(value, value_encoding)


def _bytes(text: str | None, encoding: str | None) -> bytes | None:
    """None for a null, and for one that was cut."""
    if text is None or encoding not in _WHOLE:
        return None
    return text.encode() if encoding == "utf8" else bytes.fromhex(text)


def _told(topic: str | None, key: bytes | None, value: bytes | None) -> str | None:
    if key is None:
        return None
    try:
        return told_record(control_record(key, value) if topic is None else internal_record(topic, key, value))
    except DecodeError:
        return None

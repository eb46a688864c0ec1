"""Texts of many messages as Python strings, each different one made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from wirewitness.dissectors.core.blocks import Coded
from wirewitness.dissectors.core.lockstep.column_ops import coded
from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.blob import Blob
from wirewitness.dissectors.kafka.lockstep.read import Column, Columns, Texts
from wirewitness.dissectors.kafka.schema.primitives import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NO_TOPIC_ID,
    text,
    uuid_text,
)

# (name, topic id as text), as `rows.group_rows.topic_key` gives them.
TopicKey = tuple[str | None, str | None]


class _Words(dict[bytes, str]):
    """Bytes to their text, as the decoder of single messages gives it."""

    def __missing__(self, raw: bytes) -> str:
        made = self[raw] = text(raw)
        return made


class _TopicIds(dict[bytes, TopicKey]):
    """The bytes of a topic id to the key that it alone makes."""

    def __missing__(self, raw: bytes) -> TopicKey:
        name = METADATA_TOPIC if raw == METADATA_TOPIC_ID else None
        made = self[raw] = (name, None if raw == NO_TOPIC_ID else uuid_text(raw))
        return made


class Strings:
    """The texts of one blob."""

    __slots__ = ("_data", "_ids", "_words")

    def __init__(self, blob: Blob) -> None:
        self._data = blob.data
        self._words = _Words()
        self._ids = _TopicIds()

    def of(self, column: Column) -> list[Any]:
        """The texts of a column, None for null."""
        assert isinstance(column, Texts)
        data, words = self._data, self._words
        found: list[Any] = [words[data[start:end]] for start, end in zip(*column.bounds(), strict=True)]
        for row in np.flatnonzero(column.size < 0).tolist():
            found[row] = None
        return found

    def coded(self, column: Column) -> Coded:
        """The same as a column of rows."""
        return coded(self.of(column))

    def at(self, start: Ints, size: Ints) -> list[Any]:
        """The texts at these places; a size below 0 is null."""
        return self.of(Texts(start, size))

    def topic_keys(self, topics: Columns) -> list[TopicKey]:
        """The key of each topic struct, by the name or the id that it carries."""
        name = next((topics[field] for field in ("name", "topic", "topic_name") if field in topics), None)
        names = None if name is None else [one or None for one in self.of(name)]
        raw = topics.get("topic_id")
        if raw is None:
            return [(one, None) for one in names or ()]
        assert isinstance(raw, np.ndarray)
        ids = [self._ids[one] for one in raw_bytes(raw)]
        if names is None:
            return ids
        return [(key[0] or one, key[1]) for one, key in zip(names, ids, strict=True)]


def raw_bytes(column: npt.NDArray[Any]) -> list[bytes]:
    """The values of a uuid column, 16 bytes each."""
    data = column.tobytes()
    return [data[start : start + 16] for start in range(0, len(data), 16)]

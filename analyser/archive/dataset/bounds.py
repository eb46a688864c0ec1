"""How much a manifest and the files of a state may hold. Whoever reads more than the memory of any machine that made it
reads what somebody laid there.

In: a file. Out: the bounds, each far above what runs leave (a hundred thousand open connections in one shard, or a
capture for each minute of a year), and JSON that keeps to them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from wirewitness.analyser.base.storage.folders import FolderPath, bytes_at

_MIB = 1 << 20


class Text(NamedTuple):
    """Of a file of JSON. bytes: of the file. values: about how many it may have, lists and objects among them."""

    bytes: int
    values: int


class Rows(NamedTuple):
    """Of a file of rows. bytes: of the file. rows: how many it may have. held: bytes in memory that no file goes
    beyond; ratio, slack: nor beyond so many times its own size and so many bytes more."""

    bytes: int
    rows: int
    held: int
    ratio: int = 100
    slack: int = 16 * _MIB

    def held_by(self, size: int) -> int:
        """What a file of this size may hold in memory."""
        return min(self.held, self.slack + size * self.ratio)


# Entries and rows take up to some hundred bytes in memory each.
MANIFEST = Text(512 * _MIB, 16_000_000)
COMMON = Text(512 * _MIB, 16_000_000)
HOURS = Text(64 * _MIB, 2_000_000)
STATE = Rows(4096 * _MIB, 100_000_000, 8192 * _MIB)
# Lists and values in the rows of what is known of open connections: in all, and so many beyond one for some bytes. As
# runs write them, each takes two and a half.
STATE_VALUES, STATE_VALUES_SLACK, BYTES_OF_VALUE = 400_000_000, 4_000_000, 2
# Rows of a checkpoint of a table's log, a file of the table each: delta-rs writes 76 bytes for one, packed some 15.
CHECKPOINT_SLACK, BYTES_OF_FILE = 50_000, 8
# Rows of tables that a report has as a whole, in objects: a capture takes 1.4 kB there, a finding 14 kB.
WHOLE = ("captures", "findings")
WHOLE_SLACK, BYTES_OF_WHOLE = 10_000, 8
# What hours come down to, which DuckDB reads within its own memory.
SUMMARY_ROWS = 1_000_000_000


def state_values(size: int) -> int:
    """How many lists and values rows of so many bytes may have."""
    return min(STATE_VALUES, STATE_VALUES_SLACK + size // BYTES_OF_VALUE)


def checkpoint_rows(size: int) -> int:
    """How many rows a checkpoint of so many bytes may have."""
    return CHECKPOINT_SLACK + size // BYTES_OF_FILE


def whole_rows(size: int) -> int:
    """How many rows a table of WHOLE may have whose files have so many bytes."""
    return WHOLE_SLACK + size // BYTES_OF_WHOLE


def json_at(path: FolderPath, most: Text) -> Any:
    """The JSON of a file. OSError; ValueError, where it holds too much, too; RecursionError."""
    return json.loads(within(bytes_at(path, most.bytes), most).decode())


def within(data: bytes, most: Text) -> bytes:
    """The data. ValueError where they are too much to be read again."""
    if len(data) > most.bytes:
        raise ValueError(f"it has more than {most.bytes:,} bytes")
    if sum(map(data.count, (b",", b"[", b"{"))) > most.values:
        raise ValueError(f"it holds more than {most.values:,} values")
    return data

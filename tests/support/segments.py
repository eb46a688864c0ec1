"""Log segments made up: batches as a broker writes them one behind the other.

In: batches of `record_batches`. Out: bytes of a file; records of `__consumer_offsets` are written by hand, so that no
decoder is asked.
"""

from __future__ import annotations

import struct
from pathlib import Path

from tests.support.record_batches import Sent, batch

START_MS = 1_795_000_000_000


def at_offset(data: bytes, offset: int) -> bytes:
    """A batch of format 2 with the base offset that the broker gives it; its checksum does not cover that."""
    return struct.pack(">q", offset) + data[8:]


def segment(*batches: tuple[int, bytes]) -> bytes:
    """Batches with their base offsets."""
    return b"".join(at_offset(data, offset) for offset, data in batches)


def write_segment(folder: Path, partition: str, data: bytes, first: int = 0) -> Path:
    """The file of a partition `TOPIC-N` below a folder."""
    path = folder / partition / f"{first:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def numbered(count: int, codec: str = "none", first: int = 0) -> bytes:
    """A batch of records k0: v0v0v0..., k1: v1v1v1..., long enough that compressing pays."""
    sent = [Sent(START_MS + n, b"k%d" % n, b"v%d" % n * 20, [("n", b"%d" % n)]) for n in range(first, first + count)]
    return batch(sent, codec)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def commit_key(group: str, topic: str, partition: int) -> bytes:
    """OffsetCommitKey, version 1."""
    return b"\0\1" + _string(group) + _string(topic) + struct.pack(">i", partition)


def commit_value(offset: int, version: int = 3, epoch: int = 5, metadata: str = "", ms: int = START_MS) -> bytes:
    """OffsetCommitValue, versions 0 to 3."""
    body = struct.pack(">hq", version, offset) + (struct.pack(">i", epoch) if version >= 3 else b"")
    body += _string(metadata) + struct.pack(">q", ms)
    return body + (struct.pack(">q", ms + 1000) if version == 1 else b"")


def commits(
    *offsets: int | None, group: str = "g", topic: str = "t", partition: int = 0, ms: int = START_MS, producer: int = -1
) -> bytes:
    """A batch that stores one offset after the other; None deletes it. producer: of a transaction."""
    key = commit_key(group, topic, partition)
    sent = [
        Sent(ms + n, key, None if offset is None else commit_value(offset, ms=ms + n))
        for n, offset in enumerate(offsets)
    ]
    if producer < 0:
        return batch(sent)
    return batch(sent, transactional=True, producer=(producer, 0, 0))


def end_of_transaction(producer: int, *, commit: bool) -> bytes:
    """The control batch that ends a transaction."""
    import crc32c

    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0)
    made = bytearray(batch([Sent(START_MS, key, value)], transactional=True, producer=(producer, 0, 0)))
    made[22] |= 32  # control
    made[17:21] = struct.pack(">I", crc32c.crc32c(bytes(made[21:])))
    return bytes(made)

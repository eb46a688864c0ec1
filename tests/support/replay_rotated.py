"""Rotated captures of two capture points: many connections with small messages, and one that has half of all bytes; or
of one, with ordinary traffic.

In: a folder, the bytes wanted, the number of files of each point. Out: captures named as `tcpdump -C` names them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from tests.support.replay import SAMPLE_NAMES, SAMPLES, START_NS, Replayed, client_at, small_clients
from tests.support.replay_bulk import bulk_clients
from tests.support.replay_ordinary import ordinary_clients
from tests.support.replay_wire import Client, PcapWriter, write_connections

MANY, HOT, ORDINARY = "many.pcap", "hot.pcap", "ordinary.pcap"
MANY_FLOWS = 2_000
_RECORD_BYTES, _HEADER_BYTES = 16, 24
_BUFFER_BYTES = 1 << 20


class Rotated(io.RawIOBase):
    """What `PcapWriter` writes, as files that follow each other: a new one begins between two records."""

    def __init__(self, first: Path, file_bytes: int) -> None:
        self.paths: list[Path] = []
        self._first, self._file_bytes, self._written = first, file_bytes, 0
        self._head = b""
        self._next()

    def write(self, data: Any) -> int:
        """The pcap header, then in turn the head of a record and its packet."""
        if not self._head:
            self._head = bytes(data)
            assert len(self._head) == _HEADER_BYTES
        elif len(data) == _RECORD_BYTES and self._written >= self._file_bytes:
            self._file.close()
            self._next()
            self._file.write(self._head)
        self._written += len(data)
        return self._file.write(data)

    def close(self) -> None:
        """The last file is whole."""
        if not self.closed:
            self._file.close()
        super().close()

    def _next(self) -> None:
        suffix = str(len(self.paths)) if self.paths else ""
        self.paths.append(self._first.with_name(self._first.name + suffix))
        self._file = self.paths[-1].open("wb", buffering=_BUFFER_BYTES)
        self._written = 0


def replay_rotated(
    folder: Path, size_bytes: int, files: int, many_flows: int = MANY_FLOWS, samples: Path = SAMPLES
) -> Replayed:
    """Write captures of at least `size_bytes` in all, half of them one connection's, in `files` files for each half."""
    found = [samples / name for name in SAMPLE_NAMES if (samples / name).exists()]
    points = {
        MANY: small_clients(found, many_flows),
        HOT: [client_at(many_flows, bulk_clients(found, 1)[0])],
    }
    return _write(folder, points, size_bytes, files)


def replay_rotated_ordinary(folder: Path, size_bytes: int, files: int, samples: Path = SAMPLES) -> Replayed:
    """Write captures of at least `size_bytes` in all of what `replay_ordinary.py` makes, in `files` files."""
    return _write(folder, {ORDINARY: ordinary_clients(samples, client_at)}, size_bytes, files)


def _write(folder: Path, points: Mapping[str, list[Client]], size_bytes: int, files: int) -> Replayed:
    folder.mkdir(parents=True, exist_ok=True)
    each = size_bytes // len(points)
    done = []
    for name, clients in points.items():
        with Rotated(folder / name, each // files) as out:
            writer, exchanges = write_connections(clients, cast(Any, out), START_NS, _enough(each))
        done.append((writer, exchanges))
    writers = [writer for writer, _ in done]
    return Replayed(
        sum(one.packets for one in writers),
        sum(path.stat().st_size for path in folder.iterdir()),
        sum(exchanges for _, exchanges in done),
        sum(map(len, points.values())),
        sum(one.whole_requests for one in writers),
        sum(one.whole_responses for one in writers),
    )


def _enough(size_bytes: int) -> Callable[[PcapWriter], bool]:
    return lambda writer: writer.size_bytes >= size_bytes

"""Reading with several processes. In: sources. Out: what one process would have given, put together.

Every process reads all the bytes (the page cache shares them) and decodes its own share of the flows; this process
takes share 0. The others (`analyser/reading/helpers.py`) leave their rows in files of the analysis's temporary folder.
"""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from analyser.capture import Source
from analyser.options import ReadOptions
from analyser.reading.pipeline import Decoded
from analyser.reading.share import Share
from analyser.rows.handed_over import HandedOver
from analyser.rows.timeorder import FLOW


class ShareFailed(RuntimeError):
    """A process that read a share ended without a result: a fault of ours, or the system stopped it."""


@dataclass(frozen=True, slots=True)
class ShareJob:
    """What a process is told: the sources, the tables wanted, its share, and the folder for its rows."""

    sources: tuple[Source, ...]
    wanted: tuple[str, ...]
    options: ReadOptions
    share: Share
    folder: Path


@dataclass(frozen=True, slots=True)
class ShareResult:
    """What it leaves: rows of each table, the file with the flows (None without any), or the trace of its failure."""

    tables: dict[str, HandedOver]
    flows: Path | None
    failure: str = ""


class SharedReading:
    """The work of `children`, which take all shares but the first."""

    def __init__(self, children: Sequence[subprocess.Popen[bytes]]) -> None:
        self._children = children

    def start(self, sources: Sequence[Source], wanted: Sequence[str], options: ReadOptions, folder: Path) -> None:
        """Give every process its job; their rows will be in folders below FOLDER."""
        # Read-only views cannot be sent.
        plain = replace(options, decode_as=dict(options.decode_as), topic_ids=dict(options.topic_ids))
        for number, child in enumerate(self._children, 1):
            share = Share(number, len(self._children) + 1)
            job = ShareJob(tuple(sources), tuple(wanted), plain, share, folder / f"share-{number}")
            job.folder.mkdir()
            with suppress(BrokenPipeError):  # it died; `collect` says so
                _pipe(child.stdin).write(pickle.dumps(job))
                _pipe(child.stdin).flush()

    def collect(self, decoded: Decoded) -> None:
        """Wait for the other shares and add their flows and rows. Raises ShareFailed."""
        from pyarrow import feather

        flows = [decoded.flows_table()]
        for child in self._children:
            result = _result(child)
            for name, rows in result.tables.items():
                decoded.store.tables[name].adopt(rows)
            if result.flows is not None:
                flows.append(feather.read_table(result.flows))
        decoded.flow_facts = pa.concat_tables(flows).sort_by(FLOW)


def _result(child: subprocess.Popen[bytes]) -> ShareResult:
    try:
        result = cast(ShareResult, pickle.load(_pipe(child.stdout)))
    except (EOFError, pickle.UnpicklingError):
        raise ShareFailed(f"a process that read a part of the flows ended with status {child.wait()}") from None
    if result.failure:
        raise ShareFailed(f"a process that read a part of the flows failed: {result.failure}")
    return result


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ShareFailed("a process has no pipe")
    return stream

"""Reading with several processes. In: sources. Out: what one process would have given, put together.

Every process reads all the bytes (the page cache shares them) and decodes its own share of the flows; this process
takes share 0. The others leave their rows in files of the analysis's temporary folder. They are programs of their
own, not forks: nothing of this process's threads, locks or open files goes along, and a caller's main module is not
run again.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, cast

import pyarrow as pa
from pyarrow import feather

from analyser.capture import Source
from analyser.options import ReadOptions
from analyser.pipeline import Decoded
from analyser.share import Share
from analyser.store import HandedOver
from analyser.timeorder import FLOW

CHILD = "from analyser.share_process import main; main()"


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
    """The processes of all shares but the first; leaving the `with` block ends them, whatever happened."""

    def __init__(self, sources: Sequence[Source], wanted: Sequence[str], options: ReadOptions, folder: Path) -> None:
        plain = replace(options, decode_as=dict(options.decode_as))  # a read-only view cannot be sent
        shares = [Share(number, options.processes) for number in range(1, options.processes)]
        self._jobs = [
            ShareJob(tuple(sources), tuple(wanted), plain, share, folder / f"share-{share.number}") for share in shares
        ]
        self.children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SharedReading:
        try:
            for job in self._jobs:
                job.folder.mkdir()
                child = subprocess.Popen(
                    [sys.executable, "-P", "-c", CHILD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    process_group=0,  # Ctrl-C is for this process, which ends the others
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)},
                )
                self.children.append(child)
                _pipe(child.stdin).write(pickle.dumps(job))
                _pipe(child.stdin).flush()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def collect(self, decoded: Decoded) -> None:
        """Wait for the other shares and add their flows and rows. Raises ShareFailed."""
        flows = [decoded.flows_table()]
        for child in self.children:
            result = _result(child)
            for name, rows in result.tables.items():
                decoded.store.tables[name].adopt(rows)
            if result.flows is not None:
                flows.append(feather.read_table(result.flows))
        decoded.flow_facts = pa.concat_tables(flows).sort_by(FLOW)

    def _end(self) -> None:
        for child in self.children:
            child.kill()
        for child in self.children:
            _pipe(child.stdin).close()
            _pipe(child.stdout).close()
            child.wait()


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

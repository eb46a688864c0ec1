"""A helper decodes one shard of the flows. In: a job and parcels of segments on standard input. Out: rows in files; on
standard output that parcels are done, and the result.
"""

from __future__ import annotations

import pickle
import traceback
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pyarrow import feather

from wirewitness.analyser.base.collector import collector_paused
from wirewitness.analyser.base.faults import CODE, told
from wirewitness.analyser.capture.model import Remark
from wirewitness.analyser.capture.packing import TEXT, TOO_MUCH
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.run.child import Done, NewKeys, NextFile, NoMore, ShardJob, ShardResult, Unpacked
from wirewitness.analyser.decoding.run.decoded import Decoded
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.shared_memory import Area
from wirewitness.analyser.decoding.run.work_items import Parcel, unpacked
from wirewitness.dissectors.registry import dissectors


def serve(messages: IO[bytes], told: IO[bytes]) -> ShardJob | None:
    """Do the job that comes first among the messages; None where nobody waits for it any more."""
    with suppress(EOFError, BrokenPipeError):  # interrupted
        job: ShardJob = pickle.load(messages)
        _tell(told, _result(job, messages, told))
        return job
    return None


def _result(job: ShardJob, messages: IO[bytes], told: IO[bytes]) -> ShardResult:
    try:
        with collector_paused():
            return ShardReader(job).read(messages, told)
    except (EOFError, BrokenPipeError):
        raise
    except Exception as error:
        return ShardResult({}, None, failure=f"{type(error).__name__}: {error}\n{traceback.format_exc()}")


def _tell(told: IO[bytes], what: Done | ShardResult) -> None:
    pickle.dump(what, told)
    told.flush()


class ShardReader:
    """Decodes what it is handed; its rows and flows are in the job's folder afterwards."""

    def __init__(self, job: ShardJob) -> None:
        self._folder = job.folder
        self._areas = [*map(Area, job.areas)]
        self._store = RawStore(job.folder)
        self._pipeline = Pipeline(dissectors(job.options.enable), job.wanted, job.options, store=self._store)
        self._file = 0
        self._gave_up = False
        self._remarks: list[tuple[int, Remark]] = []

    def read(self, messages: IO[bytes], told: IO[bytes]) -> ShardResult:
        """Take messages until no more parcels come. EOFError when the process that sends them is gone."""
        while not isinstance(message := pickle.load(messages), NoMore):
            self._take(message)
            if isinstance(message, Parcel):
                _tell(told, Done())
        self._note_too_much()
        self._pipeline.advance(message.now_ns)
        self._pipeline.end()
        decoded = self._pipeline.decoded()
        flows = _write_flows(decoded, self._folder)
        return ShardResult(self._store.hand_over(), flows, tuple(self._remarks), dict(decoded.faults))

    def _take(self, message: Any) -> None:
        if isinstance(message, NextFile):
            self._note_too_much()
            self._file, self._gave_up = message.number, False
            self._pipeline.next_file(*message)
            return
        if isinstance(message, NewKeys):
            self._pipeline.merge_keys(message.entries)
            return
        if isinstance(message, Unpacked):
            self._pipeline.unpacked(message.packed_bytes)
            return
        own = unpacked(self._areas[message.area].view(message.end), message, self._pipeline.endpoints)
        if self._gave_up or not len(own.batch):
            return
        try:
            self._pipeline.feed(own.batch, own.clock)
        except Exception as error:  # as in a process that reads alone
            self._gave_up = True
            rest = f"what follows packet {int(own.batch.packet[0]) - 1} is not read of some connections"
            text = told(error, "what reads captures", rest)
            self._remarks.append((self._file, Remark("error", CODE, text, None, 0)))

    def _note_too_much(self) -> None:
        if self._pipeline.has_too_much:
            self._remarks.append((self._file, Remark("warn", TOO_MUCH, TEXT, None, 0)))


def _write_flows(decoded: Decoded, folder: Path) -> Path | None:
    flows = decoded.flows_table()
    if not flows.num_rows:
        return None
    path = folder / "flows.arrow"
    feather.write_feather(flows, path)
    return path

"""Connections that are read again with keys: rows and state are those of a run that had the keys at once."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import SAMPLES
from tests.support.rotated import rotated
from tests.support.tls_twin import TLS_12, TLS_13, Sides, twin
from tests.support.wire import packets_of
from wirewitness.analyser.analysis.evidence.identity import content_key
from wirewitness.analyser.archive.dataset.manifest import InputFile
from wirewitness.analyser.archive.decode.decode_stage import (
    OPEN_ROWS,
    RESULT_FILE,
    SETTLED_ROWS,
    DecodeJob,
    ShardFolder,
    decode_shard,
    rows_of_flows,
    shard_name,
)
from wirewitness.analyser.archive.decode.packets import RangeJob, range_chunks
from wirewitness.analyser.archive.decode.read_again import Again
from wirewitness.analyser.archive.decode.unlocked import find_unlocked
from wirewitness.analyser.archive.ingest.ranges import Range
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import Source, open_captures
from wirewitness.analyser.decoding.rows.rows_file import HandedOver, batches_of
from wirewitness.analyser.decoding.run.keys import Keys
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.carriers.tls.keylog import KeyRing
from wirewitness.dissectors.core.model import split_packet

SHARD = 0
NO_KEYS = ReadOptions()
FEW = b"CLIENT_HANDSHAKE_TRAFFIC_SECRET"
Rows = Counter[str]


def decoded(
    state: Path, captures: Sequence[Source], numbers: Sequence[int], read: ReadOptions, before: Path | None,
    again: Again | None = None,
) -> None:  # fmt: skip
    """One run over the captures with these numbers, whose state goes to `state`."""
    paths = {number: captures[number].path or Path() for number in numbers}
    job = DecodeJob(state, paths, tuple(TABLES), read, before, again=again)
    parts = [RangeJob(number, captures[number], Range(0, 0, path.stat().st_size), 1) for number, path in paths.items()]
    chunks = sorted((chunk for part in parts for chunk in range_chunks(part)), key=lambda chunk: chunk[:4])
    state.mkdir()
    decode_shard(job, SHARD, chunks, state / shard_name(SHARD))


def left_in(state: Path) -> ShardFolder:
    left: ShardFolder = pickle.loads((state / shard_name(SHARD) / RESULT_FILE).read_bytes())
    return left


def rows_in(state: Path, where: str) -> Rows:
    """The rows that a run settled, or those that were open, of the connections that count."""
    left = left_in(state)
    tables = left.settled if where == SETTLED_ROWS else left.open
    only = left.again if where == SETTLED_ROWS else None

    def rows(table: str, handed: HandedOver) -> list[str]:
        at = state / shard_name(SHARD) / where / handed.path.name
        batches = rows_of_flows(batches_of(handed, at), only)
        return [f"{table} {row}" for batch in batches for row in batch.to_pylist()]

    return Counter(row for table, handed in tables.items() for row in rows(table, handed))


def all_rows(state: Path) -> Rows:
    return rows_in(state, SETTLED_ROWS) + rows_in(state, OPEN_ROWS)


def inputs_of(captures: Sequence[Source]) -> list[InputFile]:
    found = []
    for source in captures:
        path = source.path or Path()
        assert isinstance(path, Path)
        packets = packets_of(path)
        times = [packet.ts_ns for packet in packets]
        told = source.name, content_key(path), path.stat().st_size, len(packets), min(times), max(times)
        found.append(InputFile(*told, "read", None, "000001"))
    return found


class Case:
    """A sample inside TLS in some files, and its keys."""

    def __init__(self, folder: Path, name: str, version: object, files: int) -> None:
        sides = Sides(version)  # type: ignore[arg-type]
        packets, _ = twin(packets_of(SAMPLES / f"{name}.pcapng"), sides)
        self.captures = open_captures(rotated(packets, folder / "captures", files))
        self.inputs = inputs_of(self.captures)
        self.folder, self.keylog = folder, folder / "keys.log"
        self.keylog.write_bytes(sides.keylog)
        self.read = ReadOptions(keylogs=(str(self.keylog),))

    @property
    def ring(self) -> KeyRing:
        """What the key log has now."""
        return Keys(self.read.keylogs).ring

    def run(self, name: str, first: int, until: int, read: ReadOptions, before: str | None = None) -> Path:
        state = self.folder / name
        decoded(state, self.captures, range(first, until), read, None if before is None else self.folder / before)
        return state

    def run_again(self, name: str, before: str, taken: int) -> Path:
        """With the keys, what they open of the captures that were taken so far."""
        unlocked = find_unlocked(self.ring, self.folder / before, [SHARD], self.inputs[:taken])
        assert unlocked is not None
        numbers = [file.number for file in unlocked.plan.files]
        decoded(self.folder / name, self.captures, numbers, self.read, self.folder / before, unlocked.again)
        return self.folder / name


@pytest.mark.parametrize(
    ("name", "version", "files"),
    [("mongo_healthy", TLS_13, 1), ("mongo_healthy", TLS_12, 7), ("kafka_sasl", TLS_13, 5), ("mqtt_faults", TLS_12, 4)],
)
def test_rows_and_state_are_those_of_a_run_with_keys(name: str, version: object, files: int, tmp_path: Path) -> None:
    case, half = Case(tmp_path, name, version, files), (files + 1) // 2
    case.run("locked", 0, half, NO_KEYS)
    opened, at_once = case.run_again("opened", "locked", half), case.run("at-once", 0, half, case.read)
    both = [all_rows(state) for state in (opened, at_once)]
    assert both[0] == both[1]
    assert sum(row.startswith("messages ") for row in both[0]) > 10
    assert find_unlocked(case.ring, opened, [SHARD], case.inputs[:half]) is None
    # What was open goes on.
    rest = [case.run(f"{before}-rest", half, files, case.read, before) for before in ("opened", "at-once")]
    ends = [all_rows(state) for state in rest]
    assert ends[0] == ends[1]


def test_only_captures_with_packets_of_the_connections_are_read_again(tmp_path: Path) -> None:
    case = Case(tmp_path, "mongo_healthy", TLS_13, 9)
    state = case.run("locked", 0, 9, NO_KEYS)
    lines = [line for line in case.keylog.read_bytes().splitlines() if not line.startswith(b"#")]
    last = lines[-1].split()[1]
    case.keylog.write_bytes(b"\n".join(line for line in lines if last in line) + b"\n")
    unlocked = find_unlocked(case.ring, state, [SHARD], case.inputs)
    assert unlocked is not None
    ((first, behind),) = unlocked.again.flows[SHARD].items()
    assert [file.number for file in unlocked.plan.files] == [
        *range(split_packet(first)[0], split_packet(behind)[0] + 1)
    ]
    assert len(unlocked.plan.files) < 9


def test_keys_of_others_open_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path, "mongo_healthy", TLS_13, 2)
    state = case.run("locked", 0, 2, NO_KEYS)
    case.keylog.write_bytes(Sides(TLS_13).keylog + b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n")
    assert find_unlocked(case.ring, state, [SHARD], case.inputs) is None


def test_a_part_of_the_keys_is_tried_once(tmp_path: Path) -> None:
    """Until the log has others, too."""
    case = Case(tmp_path, "mongo_healthy", TLS_13, 3)
    case.run("locked", 0, 3, NO_KEYS)
    whole = case.keylog.read_bytes()
    case.keylog.write_bytes(b"\n".join(line for line in whole.splitlines() if FEW in line) + b"\n")
    tried = case.run_again("tried", "locked", 3)
    assert find_unlocked(case.ring, tried, [SHARD], case.inputs) is None
    case.keylog.write_bytes(whole)
    assert all_rows(case.run_again("opened", "tried", 3)) == all_rows(case.run("at-once", 0, 3, case.read))


def test_a_capture_that_is_gone_or_another_one_leaves_its_connections_as_they_are(tmp_path: Path) -> None:
    case = Case(tmp_path, "mongo_healthy", TLS_13, 3)
    state = case.run("locked", 0, 3, NO_KEYS)
    path = case.captures[1].path
    assert isinstance(path, Path)
    content = path.read_bytes()
    for now in (None, content[: len(content) // 2]):
        path.unlink(missing_ok=True)
        if now is not None:
            path.write_bytes(now)
        unlocked = find_unlocked(case.ring, state, [SHARD], case.inputs)
        assert unlocked is not None
        assert [text.startswith(f"{path} is not there as it was taken in") for text in unlocked.missing] == [True]
        spans = [(split_packet(one)[0], split_packet(last)[0]) for one, last in unlocked.again.flows[SHARD].items()]
        assert not any(first <= 1 <= last for first, last in spans)
        assert {number for first, last in spans for number in range(first, last + 1)} == {
            file.number for file in unlocked.plan.files
        }


def test_nothing_that_is_kept_is_a_secret(tmp_path: Path) -> None:
    case = Case(tmp_path, "mongo_healthy", TLS_13, 3)
    case.run("locked", 0, 2, NO_KEYS)
    opened = case.run_again("opened", "locked", 2)
    written = b"".join(path.read_bytes() for path in opened.rglob("*") if path.is_file())
    for line in case.keylog.read_bytes().splitlines():
        if not line.startswith(b"#"):
            assert line.split()[2] not in written
            assert bytes.fromhex(line.split()[2].decode()) not in written

"""Several processes give the tables that one gives; what goes wrong in one of them is told, and none is left over."""

from __future__ import annotations

import os
import random
import struct
import threading
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.replay import replay
from tests.support.shares import RUNS_THE_REST, pairs, proves_more, smallest
from wirewitness.analyser.capture import CaptureStats, EndpointTable, read_batches
from wirewitness.analyser.capture.sources import Source
from wirewitness.analyser.decoding.run.child import Child
from wirewitness.analyser.decoding.run.decode import SharedReading
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.decoding.run.shard import Shard, ShardFailed, ShardFilter
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.registry import PROTOCOLS

CAPTURE = SAMPLES / "kafka_admin.pcapng"


# Findings are made of tables only, equal ones of equal tables.
ALL_BUT_FINDINGS = tuple(name for name in TABLES if name != "findings")


@cache
def rows(path: Path, processes: int, names: tuple[str, ...] = ALL_BUT_FINDINGS) -> dict[str, pa.Table]:
    with wirewitness.read(path, options=wirewitness.ReadOptions(processes=processes), tables=names) as analysis:
        return {name: analysis.arrow(name) for name in analysis.tables()}


# How many processes read which sample. How flows are shared and put together again is no matter of the protocol; of
# these samples every table has rows.
SHARED = [
    *[("kafka_stale_commit", 2), ("kafka_stale_commit", 3), ("kafka_sasl", 2), ("kafka_share_streams", 2)],
    *[("mqtt_faults", 2), ("mqtt_faults", 3), ("mqtt_websocket", 2), ("mongo_compressed", 2), ("mongo_compressed", 3)],
]
SAMPLE_NAMES = sorted({name for name, _ in SHARED})


@pytest.mark.parametrize(("sample", "processes"), pairs(SHARED, [(sample, 2) for sample in smallest(SAMPLE_NAMES)]))
def test_samples_give_the_same_tables(sample: str, processes: int) -> None:
    path = SAMPLES / f"{sample}.pcapng"
    assert rows(path, 1)["messages"].num_rows
    shared = rows(path, processes)
    assert shared.keys() == rows(path, 1).keys()
    for name, expected in rows(path, 1).items():
        assert shared[name].equals(expected), name


@pytest.mark.exhaustive
def test_the_samples_fill_every_table() -> None:
    filled = {
        name for sample in SAMPLE_NAMES for name, held in rows(SAMPLES / f"{sample}.pcapng", 1).items() if held.num_rows
    }
    # What stages of the context make anew, they make of the whole in one process, which also reads brokers' files.
    made_by_one = {
        "kafka_request_times",
        "kafka_stored_offsets",
        "stands_out",
        *(name for name, one in STAGE_OF.items() if name in one.new),
    }
    assert filled >= {*ALL_BUT_FINDINGS} - made_by_one


@proves_more
def test_a_lossy_capture_gives_the_same_tables(tmp_path: Path) -> None:
    whole, lossy = tmp_path / "whole.pcap", tmp_path / "lossy.pcap"
    replay(whole, "small", 20_000, 0, 40)
    lossy.write_bytes(without_some(whole.read_bytes(), 0.02))
    one = rows(lossy, 1, ("messages", "exchanges", "flows", "expert_infos", "kafka_offset_commits"))
    assert sum(one["flows"]["gap_bytes"].to_pylist())
    for processes in (2, 3) if RUNS_THE_REST else (2,):
        shared = rows(lossy, processes, tuple(one))
        for name, expected in one.items():
            assert shared[name].equals(expected), f"{name} with {processes} processes"


def without_some(capture: bytes, probability: float) -> bytes:
    """A little-endian pcap file without some of its packets."""
    chosen = random.Random(11)
    kept, position = [capture[:24]], 24
    while position < len(capture):
        (captured,) = struct.unpack_from("<I", capture, position + 8)
        end = position + 16 + captured
        if chosen.random() >= probability:
            kept.append(capture[position:end])
        position = end
    return b"".join(kept)


@pytest.mark.parametrize("of", [1, 2, 3, 5])
def test_every_segment_falls_to_one_shard_and_a_connection_to_the_same(of: int) -> None:
    endpoints = EndpointTable()
    filters = [ShardFilter(Shard(number, of), endpoints) for number in range(of)]
    path = SAMPLES / "kafka_healthy.pcapng"
    shard_of: dict[int, int] = {}
    for batch in read_batches(Source(str(path), path), endpoints, CaptureStats(str(path))):
        taken = [own.batch for one in filters for own in one.take(batch)]
        assert sorted(np.concatenate([part.packet for part in taken]).tolist()) == batch.packet.tolist()
        for number, part in enumerate(taken):
            for pair in set(part.pair.tolist()):
                assert shard_of.setdefault(pair, number) == number
    assert set(shard_of.values()) == set(range(of))


def test_a_pipe_is_shared_out(tmp_path: Path) -> None:
    """It can be read once only, and one process does."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = CAPTURE.read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    with wirewitness.read(pipe, options=wirewitness.ReadOptions(processes=2), tables=["flows"]) as analysis:
        assert not analysis.remarks
        found, expected = (table.drop_columns("file") for table in (analysis.arrow("flows"), rows(CAPTURE, 1)["flows"]))
    assert found.equals(expected)


def test_a_capture_without_flows(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    assert rows(path, 2, ("messages", "flows"))["flows"].num_rows == 0


def test_a_process_that_dies_is_told(tmp_path: Path) -> None:
    with Helpers(1) as helpers:
        others = SharedReading([*map(Child, helpers.children)], helpers.areas)
        others.start(["messages"], wirewitness.ReadOptions(), tmp_path)
        (child,) = helpers.children
        child.kill()
        with pytest.raises(ShardFailed, match="ended with status -9"):
            run(others)
    assert child.poll() is not None


def test_a_process_that_died_before_its_job_is_told(tmp_path: Path) -> None:
    with Helpers(1) as helpers:
        (child,) = helpers.children
        child.kill()
        child.wait()
        others = SharedReading([*map(Child, helpers.children)], helpers.areas)
        others.start(["messages"], wirewitness.ReadOptions(), tmp_path)
        with pytest.raises(ShardFailed, match="ended with status -9"):
            run(others)


def test_a_process_that_fails_says_why(tmp_path: Path) -> None:
    with Helpers(1) as helpers:
        others = SharedReading([*map(Child, helpers.children)], helpers.areas)
        others.start(["messages"], wirewitness.ReadOptions(enable=("nonsense",)), tmp_path)
        with pytest.raises(ShardFailed, match=r"(?s)failed: .*nonsense"):
            run(others)


def run(others: SharedReading) -> None:
    """Read a capture with others: as soon as memory is needed that a dead one held, or in the end it is told."""
    limits = Limits()
    dealing = partial(others.dealing, limits.capture)
    decoded = Pipeline(PROTOCOLS, ["messages"], wirewitness.ReadOptions(), limits, dealing).run([Source("it", CAPTURE)])
    others.collect(decoded)


def test_no_process_is_left_over_when_there_is_no_work() -> None:
    with Helpers(2) as helpers:
        assert [child.poll() for child in helpers.children] == [None, None]
    assert [child.returncode for child in helpers.children] == [-9, -9]

"""Real captures, damaged: what is still all there decodes to the same rows, and nothing is made up."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest

from analyser.analysis import Analysis
from analyser.options import ReadOptions
from dissectors.registry import PROTOCOLS
from tests.conftest import SAMPLES
from tests.support.packets import Captured
from tests.support.wire import decode, duplicated, packets_of, reordered, thinned

TABLES = (
    "flows", "messages", "exchanges", "expert_infos", "kafka_brokers", "kafka_partitions", "kafka_offset_commits",
    "kafka_fetch_partitions", "kafka_group_events", "kafka_assignments", "kafka_list_offsets", "kafka_offset_fetches",
    "kafka_produce_batches",
)  # fmt: skip
SAMPLE_NAMES = ("kafka_stale_commit", "kafka_fenced_commit", "kafka_healthy")
# Where a packet stands in the file changes with every displaced packet; what it says does not.
PLACE = (
    "file", "packet", "packet_first", "packet_last", "request_file", "request_packet", "response_packet", "ts",
    "ts_response", "ts_first", "ts_last", "latency_ms", "first_packet", "handshake_ms",
)  # fmt: skip
COUNTERS = (
    "packets", "retransmitted_segments", "retransmitted_bytes", "out_of_order_segments", "duplicate_packets",
)  # fmt: skip
# Remarks on how packets came, not on what they say.
ABOUT_PACKETS = ("copy", "retransmission")


@cache
def sample(name: str) -> tuple[Captured, ...]:
    return tuple(packets_of(SAMPLES / f"{name}.pcapng"))


def tables_of(packets: list[Captured] | tuple[Captured, ...], block_bytes: int = 16 << 20) -> dict[str, pd.DataFrame]:
    decoded = decode(packets, TABLES, block_bytes=block_bytes)
    with Analysis(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
        return {name: analysis.table(name) for name in TABLES}


@cache
def clean(name: str) -> dict[str, pd.DataFrame]:
    return tables_of(sample(name))


def content(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    """Rows without their place in the file, counters, and remarks on how packets came, sorted."""
    if "group" in frame.columns:
        frame = frame[~frame["code"].isin(ABOUT_PACKETS)]
    kept = frame.drop(columns=[column for column in (*PLACE, *COUNTERS) if column in frame.columns])
    return sorted(tuple(map(str, row)) for row in kept.itertuples(index=False))


@pytest.mark.parametrize("block_bytes", [3_000, 70_000, 400_000])
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_tables_do_not_depend_on_block_size(name: str, block_bytes: int) -> None:
    got = tables_of(sample(name), block_bytes)
    for table, frame in clean(name).items():
        pd.testing.assert_frame_equal(got[table], frame, obj=table)


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_displaced_and_doubled_packets_change_nothing(name: str) -> None:
    got = tables_of(duplicated(reordered(sample(name), seed=7), seed=8))
    differing = [table for table, frame in clean(name).items() if content(got[table]) != content(frame)]
    # Correlation across displaced packets is part of the promise; only the order of times may differ.
    assert differing == []


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_after_loss_what_is_there_is_read_and_nothing_made_up(name: str, seed: int) -> None:
    whole = clean(name)["messages"]
    lossy = tables_of(thinned(sample(name), seed, share=0.01))
    got = lossy["messages"]
    place = ["flow_id", "direction", "stream_offset", "length_bytes", "correlation_id"]
    frames = set(got[got["complete"]][place].itertuples(index=False, name=None))
    true_frames = set(whole[place].itertuples(index=False, name=None))
    assert frames <= true_frames
    decoded = got[got["complete"] & got["error"].isna()]
    full = [*place, "operation", "version", "client_id", "summary"]
    assert set(map(str, decoded[full].itertuples(index=False))) <= set(map(str, whole[full].itertuples(index=False)))
    present = {frame for frame in true_frames if not _lost(frame, _gaps(lossy))}
    assert len(present) < len(true_frames)
    assert len(frames & present) >= 0.95 * len(present)


def _gaps(tables: dict[str, pd.DataFrame]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """(flow, side) -> missing stream bytes as (first, last)."""
    infos = tables["expert_infos"]
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in infos[infos["code"] == "gap"].itertuples():
        first, last = map(int, row.span.split("-"))
        found.setdefault((row.flow_id, row.direction), []).append((first, last))
    return found


def _lost(frame: tuple[str, str, int, int, int], gaps: dict[tuple[str, str], list[tuple[int, int]]]) -> bool:
    flow, direction, offset, length, _ = frame
    return any(first < offset + length and offset <= last for first, last in gaps.get((flow, direction), ()))

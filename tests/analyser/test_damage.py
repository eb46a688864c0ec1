"""Real captures, damaged: what is still all there decodes to the same rows, and nothing is made up."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
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


def _cut(packets: tuple[Captured, ...], snaplen: int) -> list[Captured]:
    """The packets as a capture with this snap length has them."""
    return [Captured(packet.ts_ns, packet.data[:snaplen], packet.wire) for packet in packets]


def _cut_later(packets: tuple[Captured, ...]) -> list[Captured]:
    """Cut at 96 bytes, but for the first packets of each connection, which tell its protocol."""
    seen: Counter[frozenset[bytes]] = Counter()
    found = []
    for packet in packets:
        connection = frozenset((packet.data[26:30] + packet.data[34:36], packet.data[30:34] + packet.data[36:38]))
        seen[connection] += 1
        found += [packet] if seen[connection] < 9 else _cut((packet,), 96)
    return found


DAMAGES: dict[str, Callable[[tuple[Captured, ...]], list[Captured]]] = {
    "1 % lost": lambda packets: thinned(packets, 1, share=0.01),
    "1 % lost, other ones": lambda packets: thinned(packets, 2, share=0.01),
    "5 % lost": lambda packets: thinned(packets, 3, share=0.05),
    "cut at 96": lambda packets: _cut(packets, 96),
    "cut at 96 later on": _cut_later,
    "cut at 200": lambda packets: _cut(packets, 200),
    "lost, doubled and displaced": lambda packets: duplicated(reordered(thinned(packets, 4, 0.01), 5), 6),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_what_is_there_is_read_and_nothing_made_up(
    name: str, damage: Callable[[tuple[Captured, ...]], list[Captured]]
) -> None:
    whole = clean(name)["messages"]
    lossy = tables_of(damage(sample(name)))
    got = lossy["messages"]
    place = ["flow_id", "direction", "stream_offset", "length_bytes", "correlation_id"]
    frames = set(got[got["complete"]][place].itertuples(index=False, name=None))
    true_frames = set(whole[place].itertuples(index=False, name=None))
    assert frames <= true_frames
    decoded = got[got["complete"] & got["error"].isna()]
    full = [*place, "operation", "version", "client_id", "summary"]
    assert set(map(str, decoded[full].itertuples(index=False))) <= set(map(str, whole[full].itertuples(index=False)))
    gaps = _gaps(lossy)
    # Gaps of a flow whose protocol nothing tells any more are not remarked; a snap length may cut every request.
    flows = lossy["flows"]
    told = set(flows[flows["protocol"].notna()]["flow_id"])
    present = {frame for frame in true_frames if frame[0] in told and not _lost(frame, gaps)}
    assert len(present) < len(true_frames)
    assert len(frames & present) >= 0.95 * len(present)


def _gaps(tables: dict[str, pd.DataFrame]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """(flow, side) -> missing stream bytes as (first, last), rising."""
    infos = tables["expert_infos"]
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in infos[infos["code"] == "gap"].itertuples():
        first, last = map(int, row.span.split("-"))
        found.setdefault((row.flow_id, row.direction), []).append((first, last))
    return {key: sorted(gaps) for key, gaps in found.items()}


def _lost(frame: tuple[str, str, int, int, int], gaps: dict[tuple[str, str], list[tuple[int, int]]]) -> bool:
    flow, direction, offset, length, _ = frame
    held = gaps.get((flow, direction), [])
    before = bisect_left(held, (offset + length, 0)) - 1
    return before >= 0 and held[before][1] >= offset


SAYS = ["src_address", "src_port", "operation", "version", "correlation_id", "client_id", "length_bytes", "summary"]


def _said(frame: pd.DataFrame) -> Counter[str]:
    """What whole and decoded messages say, wherever their streams start: offsets and flow ids depend on that."""
    decoded = frame[frame["complete"] & frame["error"].isna()]
    return Counter(map(str, decoded[SAYS].itertuples(index=False)))


@pytest.mark.parametrize("start", [7, 50, 333, 1500, 2222])
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_a_capture_that_starts_in_the_middle(name: str, start: int) -> None:
    packets = sample(name)[start:]
    if not packets:
        pytest.skip(f"{name} has less than {start} packets")
    whole = clean(name)["messages"]
    later = whole[whole["packet_first"] > start]
    got = tables_of(packets)["messages"]
    assert _said(got) <= _said(whole)
    requests, found = (_said(frame[frame["role"] == "request"]) for frame in (later, got))
    assert (requests & found).total() >= 0.95 * requests.total()


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_one_side_only(name: str, side: str) -> None:
    """Requests alone decode; responses alone are counted and framed, never guessed."""
    server = (9092).to_bytes(2)
    at = slice(36, 38) if side == "client" else slice(34, 36)
    packets = [packet for packet in sample(name) if packet.data[at] == server]
    whole = clean(name)["messages"]
    got = tables_of(packets)["messages"]
    if side == "client":
        requests = _said(whole[whole["role"] == "request"])
        assert _said(got) <= requests
        assert _said(got).total() >= 0.95 * requests.total()
    else:
        assert not (got["role"] == "request").any()
        assert set(got["correlation_id"].dropna()) <= set(whole["correlation_id"].dropna())


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_a_cut_inside_a_frame_hides_no_other_frame(name: str) -> None:
    """The frame in hand said how long it is, so the next one is found although nothing of it decodes."""
    assert len(tables_of(_cut_later(sample(name)))["messages"]) == len(clean(name)["messages"])

"""One connection captured at two points: decoded once, and the way between the points measured."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest

from tests.conftest import SAMPLES
from tests.support.packets import Captured
from tests.support.two_points import HOP_NS, OFFSET_NS, SERVER_PORT, at_two_points
from tests.support.wire import decode, packets_of, thinned
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.registry import PROTOCOLS

TABLES = (
    "captures", "flows", "messages", "exchanges", "expert_infos", "kafka_brokers", "kafka_partitions",
    "kafka_offset_commits", "kafka_fetch_partitions", "kafka_group_events", "kafka_assignments", "kafka_list_offsets",
    "kafka_offset_fetches", "findings",
)  # fmt: skip


@cache
def sample() -> tuple[Captured, ...]:
    return tuple(packets_of(SAMPLES / "kafka_fenced_commit.pcapng"))


def tables_of(packets: list[Captured], block_bytes: int = 1 << 20) -> dict[str, pd.DataFrame]:
    with analysis_of(
        decode(packets, TABLES, block_bytes=block_bytes), TABLES, ReadOptions(), PROTOCOLS.values()
    ) as found:
        return {name: found.table(name) for name in TABLES}


def content(frame: pd.DataFrame) -> list[tuple[str, ...]]:
    places = ["request_packet", "response_packet", "packet", "packet_first", "packet_last"]
    kept = frame.drop(columns=[name for name in places if name in frame.columns])
    return sorted(tuple(map(str, row)) for row in kept.itertuples(index=False))


@pytest.mark.parametrize("block_bytes", [50_000, 1 << 20])
def test_the_connection_is_told_once_and_the_way_is_measured(block_bytes: int) -> None:
    clean = tables_of(list(sample()))
    got = tables_of(at_two_points(list(sample()), list(sample())), block_bytes)
    flows = got["flows"]
    again = flows[flows["duplicate_of"].notna()]
    assert len(again) == len(clean["flows"]) == len(flows) / 2
    assert set(again["encapsulation"]) == {"vlan 7"}
    assert set(again["duplicate_of"]) == set(clean["flows"]["flow_id"])
    assert again["hop_latency_ms"].tolist() == pytest.approx([HOP_NS / 1e6] * len(again), abs=0.001)
    assert again["clock_offset_ms"].tolist() == pytest.approx([OFFSET_NS / 1e6] * len(again), abs=0.001)
    for name in ("messages", "exchanges", "kafka_offset_commits", "kafka_group_events"):
        assert content(got[name]) == content(clean[name]), name
    codes = set(got["findings"]["code"])
    assert codes == set(clean["findings"]["code"]) | {"CAP108"}


def test_the_point_that_saw_more_is_decoded() -> None:
    lossy = thinned(sample(), seed=3, share=0.02, keep_first=20)
    clean = tables_of(list(sample()))
    got = tables_of(at_two_points(lossy, list(sample())))
    flows = got["flows"]
    kept = flows[flows["duplicate_of"].isna() & flows["protocol"].notna()]
    assert kept["gap_bytes"].sum() == 0
    assert len(got["messages"]) == len(clean["messages"])
    assert "CAP101" not in set(got["findings"]["code"])


def test_connections_of_two_networks_with_equal_addresses_stay_two() -> None:
    """Other sequence numbers behind the tag: another connection."""
    other = []
    for packet in sample():
        data = bytearray(packet.data)
        to_server = packet.data[36:38] == SERVER_PORT
        for at, shift in ((38, 77_777 if to_server else 99_999), (42, 99_999 if to_server else 77_777)):
            data[at : at + 4] = ((int.from_bytes(data[at : at + 4]) + shift) & 0xFFFFFFFF).to_bytes(4)
        other.append(packet._replace(data=bytes(data)))
    got = tables_of(at_two_points(list(sample()), other))
    assert got["flows"]["duplicate_of"].isna().all()
    assert len(got["messages"]) == 2 * len(tables_of(list(sample()))["messages"])

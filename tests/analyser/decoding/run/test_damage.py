"""Real captures, damaged: what is still all there decodes to the same rows, and nothing is made up."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from tests.conftest import SAMPLES
from tests.support.packets import Captured
from tests.support.present import Place, whole_messages
from tests.support.shares import pairs, share, smallest, turns
from tests.support.wire import decode, duplicated, lossy, packets_of, reordered, resegmented
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.inputs import analysis_of
from wirewitness.dissectors.registry import PROTOCOLS

TABLES = (
    "flows", "messages", "exchanges", "expert_infos", "kafka_brokers", "kafka_partitions", "kafka_offset_commits",
    "kafka_fetch_partitions", "kafka_group_events", "kafka_assignments", "kafka_list_offsets", "kafka_offset_fetches",
    "kafka_produce_batches",
)  # fmt: skip
PLACED = ("flows", "messages")
SAMPLE_NAMES = ("kafka_stale_commit", "kafka_fenced_commit", "kafka_healthy")
# Where a packet stands in the file changes with every displaced packet; what it says does not.
PLACE = (
    "file", "packet", "packet_first", "packet_last", "request_file", "request_packet", "response_packet", "ts",
    "ts_response", "ts_first", "ts_last", "latency_ms", "first_packet", "handshake_ms",
)  # fmt: skip
COUNTERS = (
    "packets", "retransmitted_segments", "retransmitted_bytes", "out_of_order_segments", "duplicate_packets",
    "spurious_retransmissions",
)  # fmt: skip
# Remarks on how packets came, not on what they say.
ABOUT_PACKETS = ("copy", "retransmission")


@cache
def sample(name: str) -> tuple[Captured, ...]:
    return tuple(packets_of(SAMPLES / f"{name}.pcapng"))


def tables_of(packets: list[Captured] | tuple[Captured, ...]) -> dict[str, pd.DataFrame]:
    decoded = decode(packets, TABLES)
    with analysis_of(decoded, TABLES, ReadOptions(), PROTOCOLS.values()) as analysis:
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


@pytest.mark.parametrize("name", share(SAMPLE_NAMES, smallest(SAMPLE_NAMES)))
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
    "1 % lost": lambda packets: lossy(packets, 1, 0.01),
    "5 % lost": lambda packets: lossy(packets, 3, 0.05),
    "20 % lost": lambda packets: lossy(packets, 4, 0.2),
    "1 % lost of small segments": lambda packets: lossy(resegmented(packets, 90), 5, 0.01),
    "5 % lost of small segments": lambda packets: lossy(resegmented(packets, 90), 6, 0.05),
    "cut at 96": lambda packets: _cut(packets, 96),
    "cut at 96 later on": _cut_later,
    "cut at 200": lambda packets: _cut(packets, 200),
    "lost, doubled and displaced": lambda packets: duplicated(reordered(lossy(packets, 7, 0.01), 8), 9),
}
SHORT = ("kafka_fenced_commit", "kafka_sasl", "kafka_old_clients", "kafka_admin")
LONG = ("kafka_stale_commit", "kafka_healthy")
# Long captures meet the damages that leave something to find again; each takes seconds.
LONG_DAMAGES = ("1 % lost", "5 % lost of small segments", "cut at 200", "lost, doubled and displaced")
DAMAGED = [(name, damage) for name in SHORT for damage in DAMAGES] + [
    (name, damage) for name in LONG for damage in LONG_DAMAGES
]
IDS = ["operation", "version", "correlation_id", "client_id", "length_bytes", "summary"]


class Known(NamedTuple):
    """A message of the clean capture. request: the place of the one that it answers, None for a request.

    decoded: what it says, None where even the clean capture does not tell.
    """

    length_bytes: int
    request: Place | None
    decoded: str | None


def _placed(tables: dict[str, pd.DataFrame]) -> list[tuple[Place, Any]]:
    """Messages with their places: sequence numbers, since ids and offsets depend on where a stream is seen to begin."""
    firsts = tables["flows"].set_index("flow_id")[["client_first_seq", "server_first_seq"]]
    rows = tables["messages"].join(firsts, on="flow_id")
    found = []
    for row in rows.itertuples():
        first = row.client_first_seq if row.role == "request" else row.server_first_seq
        seq = (int(first) + int(row.stream_offset)) & 0xFFFFFFFF
        found.append((Place(row.src_address, row.src_port, row.dst_address, row.dst_port, seq), row))
    return found


def _says(row: Any) -> str | None:
    return None if pd.notna(row.error) or not row.complete else str([getattr(row, name) for name in IDS])


@cache
def known(name: str) -> dict[Place, Known]:
    """The messages of the clean capture by place."""
    asked: dict[tuple[str, str], Place] = {}
    found = {}
    for place, row in sorted(_placed(clean(name)), key=lambda entry: int(entry[1].packet_last)):
        key = (row.flow_id, str(row.correlation_id))
        if row.role == "request":
            asked[key] = place
        found[place] = Known(int(row.length_bytes), None if row.role == "request" else asked.get(key), _says(row))
    return found


@pytest.mark.parametrize(("name", "damage"), pairs(DAMAGED, turns(SHORT, DAMAGES)))
def test_what_is_there_is_read_and_nothing_made_up(name: str, damage: str) -> None:
    """Of all connections, told or not: what is all there is found from the packets that are left, not from our gaps."""
    truth = known(name)
    left = DAMAGES[damage](sample(name))
    with analysis_of(decode(left, PLACED), PLACED, ReadOptions(), PROTOCOLS.values()) as analysis:
        got = _placed({table: analysis.table(table) for table in PLACED})
    frames = {(place, int(row.length_bytes)) for place, row in got if row.complete}
    assert frames <= {(place, message.length_bytes) for place, message in truth.items()}
    decoded = {place: said for place, row in got if (said := _says(row)) is not None}
    assert {place: said for place, said in decoded.items() if truth[place].decoded != said} == {}
    there = whole_messages(left, {place: message.length_bytes for place, message in truth.items()})
    assert len(there) < len(truth)
    # A response whose request is not there is a frame; nothing tells how to decode it.
    readable = {
        place
        for place in there
        if truth[place].decoded is not None and (truth[place].request is None or truth[place].request in there)
    }
    assert len(readable & decoded.keys()) >= 0.95 * len(readable)


SAYS = ["src_address", "src_port", "operation", "version", "correlation_id", "client_id", "length_bytes", "summary"]


def _said(frame: pd.DataFrame) -> Counter[str]:
    """What whole and decoded messages say, wherever their streams start: offsets and flow ids depend on that."""
    decoded = frame[frame["complete"] & frame["error"].isna()]
    return Counter(map(str, decoded[SAYS].itertuples(index=False)))


PACKETS = {
    Path(one["file"]).stem: one["packets"] for one in tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())["sample"]
}

STARTS = [(name, start) for name in SAMPLE_NAMES for start in (7, 50, 333, 1500, 2222) if start < PACKETS[name]]


@pytest.mark.parametrize(
    ("name", "start"),
    pairs(STARTS, [one for one in STARTS if one[0] in smallest(SAMPLE_NAMES)]),
)
def test_a_capture_that_starts_in_the_middle(name: str, start: int) -> None:
    packets = sample(name)[start:]
    whole = clean(name)["messages"]
    later = whole[whole["packet_first"] > start]
    got = tables_of(packets)["messages"]
    assert _said(got) <= _said(whole)
    requests, found = (_said(frame[frame["role"] == "request"]) for frame in (later, got))
    assert (requests & found).total() >= 0.95 * requests.total()


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("name", share(SAMPLE_NAMES, smallest(SAMPLE_NAMES)))
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


@pytest.mark.parametrize("name", share(SAMPLE_NAMES, smallest(SAMPLE_NAMES)))
def test_a_cut_inside_a_frame_hides_no_other_frame(name: str) -> None:
    """The frame in hand said how long it is, so the next one is found although nothing of it decodes."""
    assert len(tables_of(_cut_later(sample(name)))["messages"]) == len(clean(name)["messages"])

"""The generated captures of the bench are what they claim to be, as tshark sees them."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path

import pytest

import wirewitness
from tests.bench.programs import TSHARK_FIELDS, Found, count_tshark, tshark_ordinary
from tests.support.replay import SAMPLES, Replayed, replay
from tests.support.replay_mqtt import write_publishes, write_short
from tests.support.replay_real import REAL, packets_in, repeated
from tests.support.shares import every, share

DECODE = ("-d", "tcp.port==9092,kafka", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
PROFILES = ("small", "bulk", "flows", "tunnelled", "hot_group", "groups")
WRONG = (
    "_ws.malformed || kafka.unsupported_api_version || kafka.request_missing || tcp.checksum.status == 0"
    " || ip.checksum.status == 0 || tcp.analysis.flags || frame.time_delta < 0"
)

# tshark 4.0 takes the length of what a group's protocol says for two bytes: reports/report/tshark/kafka.py.
MISREAD = ("JoinGroup v4", "SyncGroup v2")


@pytest.fixture(scope="module", params=share(PROFILES, every(2, PROFILES)))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Replayed]:
    """A capture of each profile and what the generator says about it."""
    path = tmp_path_factory.mktemp("replay") / f"{request.param}.pcap"
    return path, replay(path, request.param, packets=5000, flows=400 if request.param in ("flows", "groups") else 6)


def test_mqtt_messages_are_as_told(tshark: str, tmp_path: Path) -> None:
    path = tmp_path / "mqtt.pcap"
    told = write_publishes(path, 1000, flows=6)
    assert path.stat().st_size == told.size_bytes
    assert rows(tshark, path, "-Y", "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0") == []
    types = [kind for (kinds,) in rows(tshark, path, "-T", "fields", "-e", "mqtt.msgtype") for kind in kinds.split(",")]
    assert (len([kind for kind in types if kind]), types.count("3")) == (told.requests + told.responses, told.exchanges)
    assert told.exchanges >= 1000


@pytest.mark.parametrize("protocol", ["mqtt", "mongo"])
def test_short_connections_are_as_told(tshark: str, tmp_path: Path, protocol: str) -> None:
    path, of_each = tmp_path / "short.pcap", {"mqtt": 8, "mongo": 4}[protocol]
    told = write_short(path, 40) if protocol == "mqtt" else replay(path, "mongo_flows", flows=40)
    assert path.stat().st_size == told.size_bytes
    assert rows(tshark, path, "-Y", "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0") == []
    with wirewitness.read(path, tables=["exchanges", "flows"]) as analysis:
        flows, exchanges = analysis.table("flows"), analysis.table("exchanges")
    assert len(flows) == told.flows == 40
    assert ({*flows["handshake"]}, {*flows["closed_by"]}) == ({"complete"}, {"client"})
    assert exchanges["protocol"].value_counts().to_dict() == {protocol: 40 * of_each}
    assert {*exchanges["status"]} <= {"ok", "error", "one_way"}


def test_ordinary_traffic_has_one_incident(tshark: str, tmp_path: Path) -> None:
    path, text = tmp_path / "ordinary.pcap", tmp_path / "fields.tsv"
    told = replay(path, "ordinary", packets=20_000)
    program = tshark_ordinary(path, text, TSHARK_FIELDS)
    text.write_bytes(subprocess.run(program.command, capture_output=True, check=True).stdout)
    assert program.found() == (told.exchanges, told.exchanges)
    with wirewitness.read(path, tables=["findings", "flows"]) as analysis:
        assert {*analysis.arrow("flows").column("protocol").to_pylist()} == {"kafka", "mongo", "mqtt"}
        found = [one for one in analysis.arrow("findings").to_pylist() if one["severity"] == "critical"]
    assert {"KAF101", "KAF103"} <= {one["code"] for one in found}
    assert {json.loads(one["numbers"])["group"] for one in found} <= {"payments-ledger", "orders-billing"}


def rows(tshark: str, path: Path, *arguments: str) -> list[list[str]]:
    """tshark's columns for every packet."""
    done = subprocess.run([tshark, "-r", str(path), *DECODE, *arguments], capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_nothing_is_wrong_with_any_packet(tshark: str, made: tuple[Path, Replayed]) -> None:
    path, _ = made
    assert [row for row in rows(tshark, path, "-Y", WRONG) if not any(one in row[0] for one in MISREAD)] == []


def test_sizes_are_as_told(tshark: str, made: tuple[Path, Replayed]) -> None:
    path, told = made
    streams = [int(stream) for (stream,) in rows(tshark, path, "-T", "fields", "-e", "tcp.stream")]
    assert (len(streams), len(set(streams))) == (told.packets, told.flows)
    assert path.stat().st_size == told.size_bytes
    assert told.packets >= 5000


def test_every_request_is_answered(tshark: str, made: tuple[Path, Replayed], tmp_path: Path) -> None:
    path, told = made
    fields = list(TSHARK_FIELDS)
    given = [argument for name in fields for argument in ("-e", name)]
    text = tmp_path / "fields.tsv"
    text.write_text("\n".join("\t".join(row) for row in rows(tshark, path, "-T", "fields", *given)))
    assert count_tshark(text, fields) == Found(told.exchanges, told.exchanges)


def test_correlation_ids_rise_on_every_connection(tshark: str, made: tuple[Path, Replayed]) -> None:
    path, _ = made
    for port, name in (("tcp.dstport", "requests"), ("tcp.srcport", "responses")):
        by_stream: dict[str, list[int]] = {}
        for stream, ids in rows(
            tshark, path, "-Y", f"kafka && {port} == 9092",
            "-T", "fields", "-e", "tcp.stream", "-e", "kafka.correlation_id",
        ):  # fmt: skip
            by_stream.setdefault(stream, []).extend(int(number) for number in ids.split(","))
        assert by_stream, name
        assert all(later == earlier + 1 for ids in by_stream.values() for earlier, later in pairwise(ids)), name


def test_a_hundredth_of_the_packets_is_lost(tshark: str, tmp_path: Path) -> None:
    path = tmp_path / "lossy.pcap"
    told = replay(path, "lossy", packets=20_000, flows=6)
    last: dict[str, int] = {}
    lost = 0
    for way, number in rows(tshark, path, "-T", "fields", "-e", "tcp.port", "-e", "ip.id"):
        # A sender numbers its packets one by one, modulo 65,536.
        here = int(number, 16)
        lost += (here - last.get(way, here - 1) - 1) % 65_536
        last[way] = here
    assert 0.007 < lost / told.packets < 0.013
    assert 0.98 < told.requests / told.exchanges < 1
    assert 0.98 < told.responses / told.exchanges < 1


def test_a_message_is_whole_when_none_of_its_packets_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "lossy.pcap"
    told = replay(path, "lossy", packets=5000, flows=6)
    seen = set(whole_messages(path.read_bytes()))
    assert len(seen) == told.requests + told.responses


def whole_messages(capture: bytes) -> Iterator[tuple[bytes, int]]:
    """Ports and place in the stream of every message whose packets follow each other; each starts a packet."""
    at, open_messages = 24, dict[bytes, tuple[int, int, int]]()
    while at < len(capture):
        (size,) = struct.unpack_from("<I", capture, at + 8)
        packet = capture[at + 16 : at + 16 + size]
        at += 16 + size
        way, (seq,), payload = packet[26:38], struct.unpack_from(">I", packet, 38), packet[66:]
        start, following, end = open_messages.pop(way, (0, 0, 0))
        if payload and not (start and following == seq):
            start, end = seq, seq + 4 + int.from_bytes(payload[:4], "big")
        if payload and seq + len(payload) < end < seq + 8192:
            open_messages[way] = start, seq + len(payload), end
        elif payload and seq + len(payload) == end:
            yield way, start


@pytest.mark.parametrize("profile", REAL)
def test_real_traffic_comes_again_from_other_addresses(profile: str) -> None:
    samples = SAMPLES
    captures = [packets_in(path) for pattern in REAL[profile] for path in sorted(samples.glob(pattern))][:3]
    every = sum(map(len, captures))
    packets = [*islice(repeated(captures, 10**18), 2 * every)]
    times = [ts_ns for ts_ns, _ in packets]
    assert times == sorted(times)
    once, again = packets[:every], packets[every:]
    first, second = ({data[26:34] for _, data in some if data[12:14] == b"\x08\0"} for some in (once, again))
    assert len(first) == len(second)
    assert first.isdisjoint(second)
    assert sorted(len(data) for _, data in once) == sorted(len(data) for _, data in again)


def test_half_open_connections_are_one_packet_each(tshark: str, tmp_path: Path) -> None:
    path = tmp_path / "half_open.pcap"
    told = replay(path, "half_open", flows=3000)
    found = rows(tshark, path, "-Y", "tcp.flags == 2 && tcp.checksum.status == 1", "-T", "fields", "-e", "tcp.stream")
    assert (len({stream for (stream,) in found}), told.packets, told.exchanges) == (3000, 3000, 0)

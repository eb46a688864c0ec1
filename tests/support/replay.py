"""Captures of any size from the bytes of lab captures.

    python -m tests.support.replay --profile small --packets 1000000 --out small.pcap
    python -m tests.support.replay --profile bulk --megabytes 500 --out bulk.pcap

`small`: the lab's exchanges of small messages (commits, heartbeats, small fetches ...), byte for byte but for the
correlation ids, in the lab's order on each connection and in the lab's mix. `bulk`: see replay_bulk.py.
`flows`: small messages on many connections of four exchanges each, some tens of them open at a time. --ended-by says
how connections end.
`lossy`: small, but the capture misses 1 % of the packets, taken at random. `tunnelled`: small, each packet in VXLAN.
`mongo`, `mongo_compressed`: see replay_mongo.py; `mongo_flows`: connections of a hello and three commands;
`mongo_lossy`: connections that say hello once, with losses as `lossy`.
`hot_group`: one consumer group; `groups`: a group of one member for every two connections, which end after 25
exchanges; see replay_groups.py.
`ordinary`: traffic as people have it, with one incident in it; see replay_ordinary.py.
`real_kafka`, `real_mongo`, `real_mqtt`: lab captures as they are, laid over each other; see replay_real.py.
`half_open`: SYN packets without an answer, one for each flow.
Only versions that tshark 4.0 decodes too are taken, but for the incident of `ordinary` and real traffic: both programs
of a comparison have to decode the bodies.
Standard output gets one JSON line, see Replayed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

from tests.support.lab_exchanges import Exchange, lab_connections
from tests.support.replay_bulk import bulk_clients
from tests.support.replay_groups import group_clients
from tests.support.replay_mongo import SAMPLE_NAMES as MONGO_SAMPLE_NAMES
from tests.support.replay_mongo import mongo_clients, short_mongo_clients, steady_mongo_clients
from tests.support.replay_ordinary import ordinary_clients
from tests.support.replay_real import REAL, write_real
from tests.support.replay_wire import Change, Client, Ending, PcapWriter, losses, write_connections, write_half_open

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pcaps"
START_NS = 1_790_000_000_000_000_000
SMALL_BYTES = 4096
# A connection of a few requests, repeated without end, would change the mix.
SCRIPT_EXCHANGES = 10
# Connections of one profile, and what each of the short ones says.
FLOWS = {
    "small": 64,
    "bulk": 16,
    "flows": 50_000,
    "lossy": 64,
    "tunnelled": 64,
    "mongo": 64,
    "mongo_compressed": 64,
    "mongo_flows": 25_000,
    "mongo_lossy": 64,
    "hot_group": 16,
    "groups": 20_000,
    "ordinary": 0,
    "half_open": 1_000_000,
    **dict.fromkeys(REAL, 0),
}
# Sized by FLOWS alone.
SHORT = frozenset({"flows", "groups", "mongo_flows"})
MONGO_CLIENTS = {"mongo_flows": short_mongo_clients, "mongo_lossy": steady_mongo_clients}
FLOW_EXCHANGES = 4
GROUP_EXCHANGES = 25
CLIENT_PORTS = 25_000
VXLAN_PORT, VXLAN_NUMBER = 4789, 770
# The lab captures that are replayed, as far as they are there.
SAMPLE_NAMES = ("kafka_stale_commit.pcapng", "kafka_healthy.pcapng")
# Highest version by API key that tshark 4.0 decodes to the end, requests and responses.
TSHARK_VERSIONS = {0: 8, 1: 11, 2: 5, 3: 9, 8: 8, 9: 7, 10: 3, 12: 4}


class Replayed(NamedTuple):
    """What a generated capture holds; requests and responses are those of which no byte is missing."""

    packets: int
    size_bytes: int
    exchanges: int
    flows: int
    requests: int
    responses: int


def small_scripts(samples: Iterable[Path]) -> list[list[Exchange]]:
    """The usable exchanges of each lab connection that has enough of them."""
    scripts = []
    for sample in samples:
        for connection in lab_connections(sample):
            usable = [
                exchange
                for exchange in connection
                if exchange.api_version <= TSHARK_VERSIONS.get(exchange.api_key, -1)
                and max(len(exchange.request), len(exchange.response)) <= SMALL_BYTES
            ]
            if len(usable) >= SCRIPT_EXCHANGES:
                scripts.append(usable)
    return scripts


def small_clients(samples: Iterable[Path], flows: int) -> list[Client]:
    """FLOWS connections; a lab connection is copied as often as its share of all exchanges asks for."""
    scripts = small_scripts(samples)
    shares = list(itertools.accumulate(len(script) for script in scripts))
    clients = []
    for index in range(flows):
        wanted = (index + 0.5) * shares[-1] / flows
        script = scripts[next(number for number, end in enumerate(shares) if end > wanted)]
        start = index * 31 % len(script)
        clients.append(client_at(index, itertools.cycle(script[start:] + script[:start])))
    return clients


def short_clients(samples: Iterable[Path], flows: int) -> list[Client]:
    """FLOWS connections of a few exchanges, from anywhere in the lab's connections."""
    scripts = small_scripts(samples)
    clients = []
    for index in range(flows):
        script = scripts[index % len(scripts)]
        start = index // len(scripts) * FLOW_EXCHANGES % (len(script) - FLOW_EXCHANGES)
        clients.append(client_at(index, script[start : start + FLOW_EXCHANGES]))
    return clients


def client_at(index: int, exchanges: Iterable[Exchange]) -> Client:
    """The connection number INDEX: eight client hosts in each of several networks, a port of its own."""
    network, place = divmod(index, CLIENT_PORTS)
    return Client(bytes((10, 77, network, 11 + place % 8)), 40000 + place, iter(exchanges))


def replay(
    out: Path,
    profile: str,
    packets: int = 0,
    size_bytes: int = 0,
    flows: int | None = None,
    samples: Path = SAMPLES,
    ended_by: Ending = "fins",
) -> Replayed:
    """Write a capture of at least PACKETS packets and SIZE_BYTES bytes; see the module's docstring.

    Those of SHORT and `half_open` are sized by FLOWS alone, real traffic by PACKETS. What exchanges real traffic has
    nobody counted.
    """
    count = flows or FLOWS[profile]
    with out.open("wb", buffering=1 << 20) as file:
        if profile == "half_open":
            writer, exchanges = write_half_open(file, START_NS, count), 0
        elif profile in REAL:
            writer, exchanges = write_real(PcapWriter(file), profile, samples, START_NS, packets), 0
        else:
            clients, change = _clients(profile, count, samples), _change(profile)
            clients = [replace(client, ended_by=ended_by) for client in clients]
            enough = _limit(packets, size_bytes) if profile not in SHORT else lambda _: False
            writer, exchanges = write_connections(clients, file, START_NS, enough, change)
            count = len(clients)
    whole = writer.whole_requests, writer.whole_responses
    return Replayed(writer.packets, writer.size_bytes, exchanges, count, *whole)


def _clients(profile: str, count: int, samples: Path) -> list[Client]:
    if profile in MONGO_SAMPLE_NAMES:
        make = MONGO_CLIENTS.get(profile, mongo_clients)
        return make([samples / name for name in MONGO_SAMPLE_NAMES[profile]], count, client_at)
    if profile == "ordinary":
        return ordinary_clients(samples, client_at)
    if profile == "hot_group":
        return group_clients(1, count // 2)
    if profile == "groups":
        clients = group_clients(count // 2, 1)
        return [replace(one, exchanges=itertools.islice(one.exchanges, GROUP_EXCHANGES)) for one in clients]
    found = [samples / name for name in SAMPLE_NAMES if (samples / name).exists()]
    if profile == "bulk":
        return [client_at(index, exchanges) for index, exchanges in enumerate(bulk_clients(found, count))]
    return short_clients(found, count) if profile == "flows" else small_clients(found, count)


def _change(profile: str) -> Change | None:
    if profile in ("lossy", "mongo_lossy"):
        return losses()
    return _in_vxlan if profile == "tunnelled" else None


def _in_vxlan(frame: bytes) -> bytes:
    """The frame as one virtual switch sends it to another; UDP over IPv4 may go without a checksum."""
    length = 36 + len(frame)
    checksum = -(0x4500 + length + 0x4000 + 0x4011 + 2 * 0x0A4E + 1 + 2) % 0xFFFF
    outer = struct.pack(
        ">6s6sH BBHHHBBHII HHHH II",
        b"\x02\x78\0\0\0\2", b"\x02\x78\0\0\0\1", 0x0800,
        0x45, 0, length, 0, 0x4000, 64, 17, checksum, 0x0A4E0001, 0x0A4E0002,
        50_000, VXLAN_PORT, length - 20, 0,
        0x08000000, VXLAN_NUMBER << 8,
    )  # fmt: skip
    return outer + frame


def _limit(packets: int, size_bytes: int) -> Callable[[PcapWriter], bool]:
    return lambda writer: writer.packets >= packets and writer.size_bytes >= size_bytes


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="write a capture that replays lab bytes")
    parser.add_argument("--profile", choices=tuple(FLOWS), required=True)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--packets", type=int, default=0)
    size.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--flows", type=int)
    parser.add_argument("--ended-by", choices=get_args(Ending), default="fins", help="how connections end (fins)")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    done = replay(
        args.out, args.profile, args.packets, int(args.megabytes * 1_000_000), args.flows, ended_by=args.ended_by
    )
    print(json.dumps(done._asdict()))


if __name__ == "__main__":
    main()

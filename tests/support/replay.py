"""Captures of any size from the bytes of lab captures.

    python -m tests.support.replay --profile small --packets 1000000 --out small.pcap
    python -m tests.support.replay --profile bulk --megabytes 500 --out bulk.pcap

`small`: the lab's exchanges of small messages (commits, heartbeats, small fetches ...), byte for byte but for the
correlation ids, in the lab's order on each connection and in the lab's mix. `bulk`: see replay_bulk.py.
Only versions that tshark 4.0 decodes too are taken: both programs of a comparison have to decode the bodies.
Standard output gets one JSON line: packets, bytes, exchanges, flows.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.support.lab_exchanges import Exchange, lab_connections
from tests.support.replay_bulk import bulk_clients
from tests.support.replay_wire import Client, PcapWriter, write_connections

SAMPLES = Path(__file__).resolve().parents[2] / "sample_pcaps"
START_NS = 1_790_000_000_000_000_000
SMALL_BYTES = 4096
# A connection of a few requests, repeated without end, would change the mix.
SCRIPT_EXCHANGES = 10
# The lab captures that are replayed, as far as they are there.
SAMPLE_NAMES = ("kafka_stale_commit.pcapng", "kafka_healthy.pcapng")
# Highest version by API key that tshark 4.0 decodes to the end, requests and responses.
TSHARK_VERSIONS = {0: 8, 1: 11, 2: 5, 3: 9, 8: 8, 9: 7, 10: 3, 12: 4}


class Replayed(NamedTuple):
    """What a generated capture holds."""

    packets: int
    size_bytes: int
    exchanges: int
    flows: int


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


def client_at(index: int, exchanges: Iterable[Exchange]) -> Client:
    """The connection number INDEX: eight client hosts, a port of its own."""
    return Client(bytes((10, 77, 0, 11 + index % 8)), 40000 + index, iter(exchanges))


def replay(
    out: Path, profile: str, packets: int = 0, size_bytes: int = 0, flows: int | None = None, samples: Path = SAMPLES
) -> Replayed:
    """Write a capture of at least PACKETS packets and SIZE_BYTES bytes; see the module's docstring."""
    found = [samples / name for name in SAMPLE_NAMES if (samples / name).exists()]
    count = flows or (64 if profile == "small" else 16)
    if profile == "small":
        clients = small_clients(found, count)
    else:
        clients = [client_at(index, exchanges) for index, exchanges in enumerate(bulk_clients(found, count))]
    with out.open("wb", buffering=1 << 20) as file:
        writer, exchanges = write_connections(clients, file, START_NS, _limit(packets, size_bytes))
    return Replayed(writer.packets, writer.size_bytes, exchanges, len(clients))


def _limit(packets: int, size_bytes: int) -> Callable[[PcapWriter], bool]:
    return lambda writer: writer.packets >= packets and writer.size_bytes >= size_bytes


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="write a capture that replays lab bytes")
    parser.add_argument("--profile", choices=("small", "bulk"), required=True)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--packets", type=int, default=0)
    size.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--flows", type=int)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    done = replay(args.out, args.profile, args.packets, int(args.megabytes * 1_000_000), args.flows)
    print(json.dumps(done._asdict()))


if __name__ == "__main__":
    main()

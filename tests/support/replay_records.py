"""Captures of many small records in one codec: what decoding records costs, in this project and in others.

    python -m tests.support.replay_records --codec lz4 --megabytes 40 --out records.pcap

Produce 8 and Fetch 11 as in replay_bulk.py, but batches of 200 records of about 100 bytes that look like an
application's JSON, written by kafka-python. Standard output gets one JSON line: packets, bytes, exchanges, records.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

from tests.support.record_batches import CODEC_NUMBERS, Sent, batch
from tests.support.replay import START_NS, client_at
from tests.support.replay_bulk import fetch_exchanges, produce_exchanges
from tests.support.replay_wire import write_connections

RECORDS_PER_BATCH = 200
DIFFERENT_BATCHES = 16
FLOWS = 8


def order_batches(codec: str, records: int = RECORDS_PER_BATCH) -> list[tuple[bytes, int]]:
    """Batches of orders, and the number of records in each."""
    chance = random.Random(7)
    return [(batch(list(_orders(chance, records)), codec), records) for _ in range(DIFFERENT_BATCHES)]


def _orders(chance: random.Random, count: int) -> Iterator[Sent]:
    for index in range(count):
        order = {"order": chance.randrange(10**9), "customer": chance.randrange(10**6), "amount": chance.random()}
        value = json.dumps({**order, "state": "paid", "note": "left at the door"}).encode()
        yield Sent(1_790_000_000_000 + index, f"customer-{order['customer']}".encode(), value)


def write_records(out: Path, codec: str, size_bytes: int) -> tuple[int, int, int]:
    """Packets, bytes and exchanges written."""
    batches = order_batches(codec)
    scripts = [(produce_exchanges if n % 2 == 0 else fetch_exchanges)(b"shop", batches) for n in range(FLOWS)]
    clients = [client_at(index, script) for index, script in enumerate(scripts)]
    with out.open("wb", buffering=1 << 20) as file:
        writer, exchanges = write_connections(clients, file, START_NS, lambda made: made.size_bytes >= size_bytes)
    return writer.packets, writer.size_bytes, exchanges


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="write a capture of many small records")
    parser.add_argument("--codec", choices=tuple(CODEC_NUMBERS), required=True)
    parser.add_argument("--megabytes", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    packets, size_bytes, exchanges = write_records(args.out, args.codec, int(args.megabytes * 1_000_000))
    print(json.dumps({"packets": packets, "size_bytes": size_bytes, "exchanges": exchanges}))


if __name__ == "__main__":
    main()

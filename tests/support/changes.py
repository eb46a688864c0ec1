"""Small changes of a dataset, which tests kill and let others come between.

In: a folder or an address. Out: rows and inputs of changes, and two changes that follow each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from tests.support.rows import arrow_from_rows
from wirewitness.analyser.archive.dataset.dataset import Change, InputFile, write_parts
from wirewitness.analyser.base.storage.exchange_files import put_bytes
from wirewitness.analyser.tables.tables import arrow_schema

HOUR_NS = 3_600_000_000_000
# Ids of the exchanges after the first change, and after both.
OLD, NEW = ["f-c-1", "f-c-2", "f-c-3"], ["f-c-1", "f-c-2", "f-c-3", "f-c-4", "f-c-5"]


def batch(numbers: Iterable[int]) -> pa.RecordBatch:
    rows = [
        {"exchange_id": f"f-c-{n}", "flow_id": "f", "protocol": "kafka", "ts": n * HOUR_NS, "status": "ok"}
        for n in numbers
    ]
    return arrow_from_rows("exchanges", rows).to_batches()[0]


def taken(name: str, run: str) -> InputFile:
    return InputFile(name, f"key of {name}", 100, 10, 0, HOUR_NS, "read", None, run)


def first(root: str | Path) -> None:
    with Change.begin(root) as change:
        change.add(*write_parts("exchanges", [batch([1, 2])], change.staging, f"{change.run}-0"))
        change.add(*write_parts("exchanges", [batch([3])], change.staging, f"{change.run}-1", provisional=True))
        put_bytes(change.state / "share-0", b"one")
        change.commit([taken("a.pcap", change.run)], {"shares": 64})


def second(root: str | Path) -> None:
    """Drops what was provisional, brings it anew with more."""
    with Change.begin(root) as change:
        change.remove(*(part for part in change.parts() if part.provisional))
        change.add(*write_parts("exchanges", [batch([3, 4, 5])], change.staging, f"{change.run}-0"))
        change.add(*write_parts("messages", [_message()], change.staging, f"{change.run}-0"))
        put_bytes(change.state / "share-0", b"two")
        change.commit([taken("b.pcap", change.run)])


def _message() -> pa.RecordBatch:
    row = {"message_id": "m", "flow_id": "f", "ts": HOUR_NS, "direction": "client_to_server"}
    nothing = {field.name: {pa.int64(): 0, pa.bool_(): False}.get(field.type, "") for field in arrow_schema("messages")
               if not field.nullable}  # fmt: skip
    return arrow_from_rows("messages", [nothing | row]).to_batches()[0]


def large(root: str | Path) -> None:
    """Brings one part that no store takes in one upload."""
    rows = [
        {"exchange_id": "f-c-4", "flow_id": "f", "protocol": "kafka", "ts": 4 * HOUR_NS, "status": "ok",
         "client_id": os.urandom(1 << 16).hex()}
        for _ in range(200)
    ]  # fmt: skip
    with Change.begin(root) as change:
        batches = arrow_from_rows("exchanges", rows).to_batches()
        change.add(*write_parts("exchanges", batches, change.staging, f"{change.run}-0"))
        put_bytes(change.state / "share-0", b"large")
        change.commit([taken("c.pcap", change.run)])

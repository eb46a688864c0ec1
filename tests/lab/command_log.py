"""What drivers say of their commands: their own monitoring, which our decode is compared with.

In: the clients' output of a run (JSON lines, or the Node driver's log that mongosh writes), or a stored log. Out:
CommandRecords in the order of each client's output. A request id is unique among the commands of one client address.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab import driver_log
from tests.lab.processes import read_events

CARD_SUFFIX = ".client"  # beside the output of each client: its address
# Their first value is a text, but names no collection.
WITHOUT_COLLECTION = {"configureFailPoint", "getParameter"}


class CommandRecord(NamedTuple):
    """One command as its driver tells it; None is what the driver does not tell."""

    client: str
    address: str
    request_id: int  # 0: a reply that came unasked (moreToCome), so that nothing was sent
    command: str
    database: str
    answered: bool  # as far as the driver waited for it: never with w: 0, whose success drivers only suppose
    ok: bool | None = None
    code: int | None = None  # of an answer with ok: 0
    collection: str | None = None
    n: int | None = None
    n_modified: int | None = None
    write_errors: list[int] = []  # codes
    cursor_id: int | None = None
    returned: int | None = None  # documents of firstBatch or nextBatch
    lsid: str | None = None  # hexadecimal
    txn_number: int | None = None
    duration_us: int | None = None
    acknowledged: bool = True  # False: sent with w: 0
    error: str | None = None  # the driver's name of a failure


def write_card(directory: Path, name: str, address: str) -> None:
    """Note where a client runs."""
    (directory / f"{name}{CARD_SUFFIX}").write_text(json.dumps({"client": name, "address": address}))


def cards(directory: Path) -> tuple[Path, ...]:
    """Return the notes of all clients of a run."""
    return tuple(sorted(directory.glob(f"*{CARD_SUFFIX}")))


def load_all(paths: Iterable[Path]) -> list[CommandRecord]:
    """Return the records of clients' cards or of stored logs."""
    return [record for path in paths for record in (of_client(path) if path.suffix == CARD_SUFFIX else load(path))]


def of_client(card: Path) -> list[CommandRecord]:
    """Return what one client of a run has printed."""
    known = json.loads(card.read_text())
    events = [event for event in read_events(card.with_suffix(".out")) if event.get("event") == "command"]
    return [
        record_of({**known, **event}) for event in [*events, *driver_log.commands(card.with_suffix(".err").read_text())]
    ]


def record_of(event: dict[str, Any]) -> CommandRecord:
    """Return the record of a client's JSON object; other names than the record's are left out."""
    known = {name: event[name] for name in CommandRecord._fields if name in event}
    if isinstance(known.get("cursor_id"), str):  # JavaScript's numbers do not hold 64 bits
        known["cursor_id"] = int(known["cursor_id"])
    if known["command"] in WITHOUT_COLLECTION:
        known["collection"] = None
    if not known.get("acknowledged", True):
        known |= {"answered": False, "ok": None}
    return CommandRecord(**known)


def save(records: Iterable[CommandRecord], path: Path) -> None:
    """Store records as gzipped JSON lines, without what is not known; equal records give equal bytes."""
    defaults = CommandRecord._field_defaults
    lines = [
        json.dumps({name: value for name, value in record._asdict().items() if value != defaults.get(name, ...)})
        for record in records
    ]
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def load(path: Path) -> list[CommandRecord]:
    """Return the records of a stored log."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return [record_of(json.loads(line)) for line in lines]

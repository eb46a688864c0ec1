"""Mosquitto's log as records: what the broker says it received and sent, packet by packet.

In: the lines of a log with `log_type all`, or a .jsonl.gz of LogEntries. Out: LogEntry values in the log's order; the
broker has one thread, so for each connection and direction that is the order on the wire.

What the log does not show (2.0): packet identifiers of SUBSCRIBE, UNSUBSCRIBE and their answers, properties, payloads,
the client id of a refused CONNECT, a DISCONNECT that the broker sends, a packet it takes for malformed. A message above
the client's maximum packet size is logged as sent although it is not. An accepted CONNECT is the line "New client
connected"; where the client gave no id, the one that it was assigned stands there. Topics behind an alias are shown
resolved. Which connection a client id means is told by the CONNECT before.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

LISTS = ("SUBSCRIBE", "UNSUBSCRIBE")
_WHO = r"(?P<client_id>.*)"
_PEER = r"(?P<host>[\d.]+):(?P<port>\d+)"
_PUBLISH = (
    r"\(d(?P<dup>\d), q(?P<qos>\d), r(?P<retain>\d), m(?P<mid>\d+), '(?P<topic>.*)', "
    r"\.\.\. \((?P<size>\d+) bytes\)\)"
)
_ACK = r"(?P<packet>PUBACK|PUBREC|PUBREL|PUBCOMP)"
_BARE = r"(?P<packet>SUBSCRIBE|UNSUBSCRIBE|SUBACK|UNSUBACK|PINGREQ|PINGRESP|DISCONNECT|AUTH)"
_CONNECTED = rf"New client connected from {_PEER} as {_WHO} \(p(?P<level>\d), c(?P<clean>\d), k(?P<keep_alive_s>\d+)"
# One line of each kind: direction, kind (None: the group `packet`), pattern of the whole text.
PATTERNS = tuple(
    (direction, kind, re.compile(pattern))
    for direction, kind, pattern in (
        ("received", "CONNECT", _CONNECTED + r"(?:, u'(?P<user>.*)')?\)\."),
        ("sent", "CONNACK", rf"Sending CONNACK to {_WHO} \((?P<session_present>\d), (?P<code>\d+)\)"),
        ("received", "PUBLISH", rf"(?P<verdict>Received|Denied) PUBLISH from {_WHO} {_PUBLISH}"),
        ("received", "PUBLISH", rf"(?P<verdict>Dropped) too large PUBLISH from {_WHO} {_PUBLISH}"),
        ("sent", "PUBLISH", rf"Sending PUBLISH to {_WHO} {_PUBLISH}"),
        ("received", None, rf"Received {_ACK} from {_WHO} \(Mid: (?P<mid>\d+)(?:, RC:(?P<code>\d+))?\)"),
        ("sent", None, rf"Sending {_ACK} to {_WHO} \(m(?P<mid>\d+)(?:, rc(?P<code>\d+))?\)"),
        ("received", None, rf"Received {_BARE} from {_WHO}"),
        ("sent", None, rf"Sending {_BARE} to {_WHO}"),
        ("event", "opened", rf"New connection from {_PEER} on port (?P<listener>\d+)\."),
        ("event", "taken over", rf"Client {_WHO} already connected, closing old connection\."),
        ("event", "silent", rf"Client {_WHO} has exceeded timeout, disconnecting\."),
        ("event", "closed", rf"Client {_WHO} closed its connection\."),
        ("event", "disconnected", rf"Client {_WHO} disconnected(?:, | due to |: )?(?P<reason>.*)\."),
    )
)  # fmt: skip
_WILL = re.compile(r"Will message specified \((\d+) bytes\) \(r(\d), q(\d)\)\.")
_FILTER = re.compile(r"\t(?P<filter>.*?)(?: \(QoS (?P<qos>\d)\))?")
_NUMBERS = {"dup", "qos", "retain", "mid", "size", "code", "level", "clean", "keep_alive_s", "session_present",
            "listener"}  # fmt: skip


class Endpoint(NamedTuple):
    """A client's end of its connection."""

    host: str
    port: int


class LogEntry(NamedTuple):
    """One packet, or something else that happened to a connection."""

    logged_s: int  # Unix time of the line
    direction: str  # "received" and "sent" as the broker sees it; "event" where no packet is meant
    kind: str  # PUBLISH ...; of events: opened, taken over, silent, closed, disconnected
    client_id: str | None  # None where the line does not name it
    client: Endpoint | None  # None where it is not known which connection is meant
    fields: dict[str, Any]  # what the line tells; numbers as int; a SUBSCRIBE has `filters` of [name, QoS, granted]


class _Reader:
    """Reads line by line and remembers which connection a client id means."""

    def __init__(self) -> None:
        self._current: dict[str, Endpoint] = {}
        self._pending: list[Endpoint] = []  # connections from which no CONNECT was accepted yet
        self._connect: LogEntry | None = None
        self._listing: LogEntry | None = None

    def read(self, line: str) -> LogEntry | None:
        """Return the entry that a line begins, None where it belongs to one before or is of another kind."""
        time_text, _, text = line.rstrip("\n").partition(": ")
        if self._continues(text) or not time_text.isdigit():
            return None
        for direction, kind, pattern in PATTERNS:
            found = pattern.fullmatch(text)
            if found is not None:
                return self._entry(int(time_text), direction, kind, found)
        return None

    def _entry(self, logged_s: int, direction: str, kind: str | None, found: re.Match[str]) -> LogEntry:
        told = {name: value for name, value in found.groupdict().items() if value is not None}
        kind = kind or told.pop("packet")
        client_id = told.pop("client_id", None)
        peer = Endpoint(told.pop("host"), int(told.pop("port"))) if "host" in told else None
        fields = {name: int(value) if name in _NUMBERS else value for name, value in told.items()}
        if peer is None:
            client_id, peer = self._who(client_id)
        entry = LogEntry(logged_s, direction, kind, client_id, peer, fields)
        self._remember(entry)
        return entry

    def _who(self, named: str | None) -> tuple[str | None, Endpoint | None]:
        """Client id and connection of a name in a line; before an accepted CONNECT that is an address or nothing."""
        if named in self._current:
            return named, self._current[named]
        alone = self._pending[0] if len(self._pending) == 1 else None
        return None, alone

    def _remember(self, entry: LogEntry) -> None:
        if entry.kind == "opened" and entry.client is not None:
            self._pending.append(entry.client)
        elif entry.kind == "CONNECT" and entry.client_id is not None and entry.client is not None:
            self._current[entry.client_id] = entry.client
            self._connect = entry
        if entry.kind in LISTS:
            entry.fields["filters"] = []
            self._listing = entry
        elif entry.kind in ("SUBACK", "UNSUBACK"):
            self._listing = None
        if entry.kind in ("CONNECT", "closed", "disconnected") and entry.client in self._pending:
            self._pending.remove(entry.client)

    def _continues(self, text: str) -> bool:
        """Take a line that belongs to the last CONNECT, SUBSCRIBE or UNSUBSCRIBE."""
        will = _WILL.fullmatch(text)
        if will is not None and self._connect is not None:
            size, retain, qos = map(int, will.groups())
            self._connect.fields["will"] = {"size": size, "retain": retain, "qos": qos}
            return True
        listed = _FILTER.fullmatch(text)
        connect = self._connect
        if listed is not None and self._listing is None and connect is not None and "will" in connect.fields:
            connect.fields["will"]["topic"] = listed["filter"]
            return True
        if self._listing is None:
            return False
        filters = self._listing.fields["filters"]
        if listed is not None:
            filters.append([listed["filter"], None if listed["qos"] is None else int(listed["qos"]), None])
            return True
        if filters and self._listing.kind == "SUBSCRIBE":
            granted = re.fullmatch(rf"{re.escape(self._listing.client_id or '')} (\d) (.*)", text)
            if granted is not None and granted[2] == filters[-1][0]:
                filters[-1][2] = int(granted[1])
                return True
        return False


def read_log(lines: Iterable[str]) -> Iterator[LogEntry]:
    """Yield the entries of a log; an entry is complete when the next one is asked for."""
    reader = _Reader()
    for line in lines:
        entry = reader.read(line)
        if entry is not None:
            yield entry


def load(path: Path) -> list[LogEntry]:
    """Read a log file, or a .jsonl.gz that save() wrote."""
    if path.suffix != ".gz":
        with path.open(encoding="utf-8", errors="replace") as lines:
            return list(read_log(lines))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_entry_from_json(json.loads(line)) for line in lines]


def save(entries: Iterable[LogEntry], path: Path) -> None:
    """Write entries as gzipped JSON lines without a time stamp in the gzip header (equal entries, equal bytes)."""
    text = "".join(json.dumps(entry._asdict(), separators=(",", ":")) + "\n" for entry in entries)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def packets(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """Return the packets among the entries."""
    return [entry for entry in entries if entry.direction != "event"]


def _entry_from_json(fields: dict[str, Any]) -> LogEntry:
    client = fields.pop("client")
    return LogEntry(**fields, client=None if client is None else Endpoint(*client))

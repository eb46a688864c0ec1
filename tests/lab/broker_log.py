"""The broker's own request log as records: what the broker says it was asked and what it answered.

In: the lines that logger `kafka.request.logger` writes at DEBUG, one per request, or a .jsonl.gz of LogRecords.
Out: LogRecord values in the log's order. The broker logs a request when its answer has been sent; on one connection
the broker works on one request at a time, so the order within a connection is that of the wire.

What the log does not show: the records of a Produce request and of a Fetch response; `recordsSizeInBytes` stands in
their place. A request that is not answered (acks=0) has no response. A Fetch response lists what was sent: inside a
fetch session partitions without news are left out, as on the wire. A request whose connection was closed before its
answer was ready is not logged at all. A request that a broker forwards to the controller crosses the wire inside an
Envelope; the controller logs the inner request in its place (`forwarded`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

MARK = " Completed request:"


class Endpoint(NamedTuple):
    """One end of a TCP connection."""

    host: str
    port: int


class LogRecord(NamedTuple):
    """One request and its response as the broker logged them."""

    logged_ms: int  # Unix time in ms when the line was written
    api_key: int
    api_name: str  # as the broker writes it, OFFSET_COMMIT
    version: int
    correlation_id: int
    client_id: str | None
    request: dict[str, Any]  # field names in the broker's camel case
    response: dict[str, Any] | None  # None where nothing was answered (acks=0)
    server: Endpoint
    client: Endpoint
    latency_ms: float  # from the request's arrival to the sent response
    forwarded: bool = False  # what an Envelope held


def endpoint(text: str) -> Endpoint:
    """Read "10.0.0.1:9092"."""
    host, _, port = text.rpartition(":")
    return Endpoint(host, int(port))


def record_from_line(line: str) -> LogRecord | None:
    """Read one log line; None: a line of another kind."""
    time_text, mark, body = line.partition(MARK)
    if not mark:
        return None
    entry = json.loads(body)
    header = entry["requestHeader"]
    server, client, *_ = entry["connection"].split("-")
    response = entry.get("response")
    return LogRecord(
        int(time_text),
        header["requestApiKey"],
        header["requestApiKeyName"],
        header["requestApiVersion"],
        header["correlationId"],
        header.get("clientId"),
        entry["request"],
        response if isinstance(response, dict) else None,
        endpoint(server),
        endpoint(client),
        entry["totalTimeMs"],
        bool(entry.get("isForwarded")),
    )


def read_request_log(lines: Iterable[str], on_wire: bool = False) -> Iterator[LogRecord]:
    """Yield the records of a request log; with ON_WIRE only what came from another host.

    A broker also asks itself (transaction markers, its own controller): that never crosses the captured interface.
    """
    for line in lines:
        record = record_from_line(line)
        if record is not None and not (on_wire and record.client.host == record.server.host):
            yield record


def load(path: Path, on_wire: bool = False) -> list[LogRecord]:
    """Read a request log file, or a .jsonl.gz that save() wrote."""
    if path.suffix != ".gz":
        with path.open(encoding="utf-8") as lines:
            return list(read_request_log(lines, on_wire))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_record_from_json(json.loads(line)) for line in lines]


def load_all(paths: Iterable[Path], on_wire: bool = False) -> list[LogRecord]:
    """Read the request logs of several brokers into one list, by time."""
    return sorted((one for path in paths for one in load(path, on_wire)), key=lambda record: record.logged_ms)


def save(records: Iterable[LogRecord], path: Path) -> None:
    """Write records as gzipped JSON lines without a time stamp in the gzip header (equal records, equal bytes)."""
    text = "".join(json.dumps(record._asdict(), separators=(",", ":")) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def _record_from_json(fields: dict[str, Any]) -> LogRecord:
    fields["server"] = Endpoint(*fields["server"])
    fields["client"] = Endpoint(*fields["client"])
    return LogRecord(**fields)

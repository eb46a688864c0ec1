"""Request logs to raw rows and rows of `flows`: lines instead of packets.

In: the lines of a log, and what reads them. Out: rows in the store; connections, which the lines name, among the flows.
A connection goes on from one file to the next. What a log does not know of a connection is null in `flows`.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from wirewitness.analyser.base.faults import CODE, PLEASE, caught
from wirewitness.analyser.base.words import count
from wirewitness.analyser.capture import CaptureStats, RequestLog
from wirewitness.analyser.capture.packing import Packing
from wirewitness.analyser.capture.request_log import LogLine
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.run.flow_records import FlowRecords
from wirewitness.analyser.decoding.run.log_losses import LogLosses, Missing, Moments
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.log_reader import LogError, LoggedDecoder, LoggedExchange, LogReader, Moment
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Row, packet_of
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import expert_row

IDENTIFIED_BY = "request log"
_FAULT = f"of which not all is told, by a fault of wirewitness itself; {PLEASE}"
_OTHERS_MISS = "requests may be missing here: other connections of the log lack some, and nothing numbers these"
# Rows are packed after so much text.
_PACKED_BYTES = 16 << 20
_LEAST_PACKED_ROWS = 1000
# Logs tell times in ms: what is logged at 5 ms happened before 6 ms.
_RESOLUTION_NS = 1_000_000


@dataclass(slots=True)
class _Connection:
    """One connection, named by its first line.

    client, server: address and port. missing: requests that its log lacks, None while nothing numbers them. moments: of
    one whose requests are not all numbered for sure.
    """

    first_line: int
    flow_id: str
    client: tuple[str, int]
    server: tuple[str, int]
    decoder: LoggedDecoder
    ts_first_ns: int
    ts_last_ns: int
    missing: int | None = None
    moments: Moments | None = field(default_factory=Moments)


class Listener(Protocol):
    """Is told of the connections of logs, each by its first line."""

    def began(self, first_line: int, protocol: str, row: Callable[[], dict[str, Any]]) -> None:
        """Its rows are about to come. row: makes its row of `flows`, as far as the log tells it by now."""

    def ended(self, first_line: int) -> None:
        """No rows of it follow."""


class LogReading:
    """Reads one log after the other. reader: protocol, and what reads its lines."""

    def __init__(
        self,
        reader: tuple[str, LogReader],
        limits: Limits,
        options: DecodeOptions,
        out: Sink,
        store: RawStore,
        records: FlowRecords,
        packing: Packing,
        listener: Listener | None = None,
    ) -> None:
        self._protocol, self._reader = reader
        self._packing = packing
        self._listener = listener
        self._limits, self._options = limits, options
        self._out, self._store, self._records = out, store, records
        self._open: OrderedDict[str, _Connection] = OrderedDict()
        self._losses = LogLosses(limits.max_logged_connections)
        self._marked: int | None = None

    def suspended(self) -> Any:
        """What `resume` goes on from, where another one had read the logs so far; between two of them."""
        return self._open, self._losses

    def resume(self, suspended: Any, records: FlowRecords) -> None:
        """Go on where another one was. records: get the connections from now on."""
        self._open, self._losses = suspended
        self._records = records

    def change_store(self, store: RawStore) -> None:
        """Rows that follow go to another store; between two logs."""
        self._store = store

    def read(self, log: RequestLog, stats: CaptureStats, file_index: int) -> Iterator[int]:
        """Make the rows of a log; the bytes read so far, whenever all lines that have come are in the store."""
        packed = 0
        for lines in log.pieces():
            self._read_piece(log, lines, stats, file_index)
            self._mark(None)
            if stats.captured_bytes - packed >= _PACKED_BYTES:
                packed = stats.captured_bytes
                self._store.pack(_LEAST_PACKED_ROWS)
            yield stats.captured_bytes
        log.end({**self._reader.meanings, CODE: _FAULT})
        yield stats.captured_bytes

    def _read_piece(self, log: RequestLog, lines: Iterator[LogLine], stats: CaptureStats, file_index: int) -> None:
        packing = self._packing.if_open
        if packing is not None and packing.is_over:
            return
        for number, ts_ns, text, is_cut in lines:
            try:
                exchange = self._reader.read(text)
            except LogError as error:
                log.count(error.code)
                continue
            for code in exchange.odd:
                log.count(code)
            try:
                self._add(exchange, packet_of(file_index, number), (ts_ns, is_cut), stats)
            except Exception as error:  # of our own: some rows of this line are not there
                caught(error)
                log.count(CODE)
            if packing is not None and not packing.took(len(text), 1):
                return

    def end(self) -> None:
        """No log follows: end all connections."""
        while self._open:
            self._end(self._open.popitem(last=False)[1])
        self._mark(None)

    def _add(self, exchange: LoggedExchange, line: int, logged: tuple[int, bool], stats: CaptureStats) -> None:
        """logged: when, and whether that time is cut to the second."""
        logged_ns, is_cut = logged
        known = self._open.get(exchange.connection)
        if known is None:
            known = self._begin(exchange, line, logged_ns)
        else:
            self._open.move_to_end(exchange.connection)
        before_ns = known.ts_last_ns if line != known.first_line else None
        moment = _moment(exchange, line, logged_ns, before_ns, is_cut=is_cut)
        if line == known.first_line:
            known.ts_first_ns = moment.ts_ns
        known.ts_last_ns = max(known.ts_last_ns, moment.ts_response_ns)
        first, last = stats.ts_first_ns, stats.ts_last_ns
        stats.ts_first_ns = moment.ts_ns if first is None else min(first, moment.ts_ns)
        stats.ts_last_ns = moment.ts_response_ns if last is None else max(last, moment.ts_response_ns)
        self._mark(known.first_line)
        self._count(known, exchange, moment)
        known.decoder.add(exchange, moment, self._out)
        self._out.relieve()

    def _count(self, known: _Connection, exchange: LoggedExchange, moment: Moment) -> None:
        """Say what is missing before a request, as far as its number tells."""
        told = exchange.numbered
        if told is not None and told.sure:
            known.missing = known.missing or 0
            if told.all_of_it:
                known.moments = None
        if known.moments is not None:
            known.moments.add(moment)
        missing = None if told is None else self._losses.missing(told, moment)
        if missing is None:
            return
        if missing.sure:
            known.missing = (known.missing or 0) + missing.requests
        self._out.expert(_gap_row(moment.line, moment.ts_ns, "warn" if missing.sure else "note", _gap_text(missing)))

    def _begin(self, exchange: LoggedExchange, line: int, logged_ns: int) -> _Connection:
        if len(self._open) >= self._limits.max_logged_connections:
            self._end(self._open.popitem(last=False)[1])
        name = f"{IDENTIFIED_BY}|{exchange.connection}|{exchange.asked}"
        flow_id = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        decoder = self._reader.decoder(self._limits, self._options)
        found = _Connection(line, flow_id, exchange.client, exchange.server, decoder, logged_ns, logged_ns)
        self._open[exchange.connection] = found
        if self._listener is not None:
            self._listener.began(line, self._protocol, partial(self._flow, found))
        return found

    def _end(self, known: _Connection) -> None:
        self._mark(known.first_line)
        known.decoder.finish(self._out)
        for ts_ns, line in () if known.moments is None else self._losses.among(known.moments):
            self._out.expert(_gap_row(line, ts_ns, "note", _OTHERS_MISS))
        self._records.add_logged(known.first_line, self._flow(known))
        if self._listener is not None:
            self._listener.ended(known.first_line)

    def _flow(self, known: _Connection) -> dict[str, Any]:
        return {
            "flow_id": known.flow_id,
            "protocol": self._protocol,
            "identified_by": IDENTIFIED_BY,
            "client_address": known.client[0],
            "client_port": known.client[1],
            "server_address": known.server[0],
            "server_port": known.server[1],
            "ts_first": known.ts_first_ns,
            "ts_last": known.ts_last_ns,
            "handshake_seen": False,
            "missing_requests": known.missing,
        }

    def _mark(self, first_line: int | None) -> None:
        """Rows from now on are of the connection with this first line; None: of nobody yet."""
        if first_line == self._marked:
            return
        if self._marked is not None:
            self._store.mark(self._marked)
        self._marked = first_line
        if first_line is not None:
            self._out.drain = partial(self._store.drain, first_line)
            self._out.take = None


def _gap_row(line: int, ts_ns: int, severity: str, text: str) -> Row:
    return expert_row(direction=CLIENT_TO_SERVER, packet=line, ts=ts_ns, remark=(severity, "log", "gap", text))


def _gap_text(missing: Missing) -> str:
    are = "is" if missing.requests == 1 else "are"
    if missing.sure:
        return f"{count(missing.requests, 'request')} before this one {are} not in the log"
    return f"{count(missing.requests, 'request')} before this one may be missing from the log"


def _moment(exchange: LoggedExchange, line: int, logged_ns: int, before_ns: int | None, *, is_cut: bool) -> Moment:
    """When a request was read and its answer sent. before_ns: when the answer before it on its connection was sent.

    The broker reads the next request of a connection once it has answered the one before it, but the log's times are
    cut to ms. Where that would put the request before that answer, both its times are later by less than one ms. Where
    they are cut to seconds, the time of the answer keeps the order of the log, and the request came after that answer.
    """
    ts_ns = logged_ns - exchange.duration_ns
    if is_cut:
        return Moment(line, ts_ns if before_ns is None else max(ts_ns, min(before_ns, logged_ns)), logged_ns)
    late_ns = 0 if before_ns is None else max(0, min(before_ns - ts_ns, _RESOLUTION_NS - 1))
    return Moment(line, ts_ns + late_ns, logged_ns + late_ns)

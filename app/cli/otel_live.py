"""`wirewitness otel -i IFACE`: exchanges of a running capture as spans. In: interfaces; out: spans as they complete.

Spans need rows of other tables than their exchange's, so they are made where the analysis of the last minutes is asked,
once a second or less often. An endpoint that is slow or away costs spans, which are counted, never the capture.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from wirewitness.app.shared.failure import complain
from wirewitness.reports.base.otel.exchanges import batches_of
from wirewitness.reports.base.otel.export import ExportError, json_lines, send
from wirewitness.reports.base.otel.spans import spans

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.live.session import Session

# Answers that wait for the endpoint, each with the exchanges of a second or more.
_WAITING = 60
# Exchanges that wait to be asked for.
_MOST_IDS = 500_000

Take = Callable[[list[pa.RecordBatch]], None]


class SpanOutput:
    """What `live` shows its news to: it hands on each exchange once, with what other tables say of it."""

    wants_exchanges = True

    def __init__(self, take: Take) -> None:
        self._take = take
        self._ids: list[pa.Array] = []
        self._before = 0  # pieces of ids that are not waited for any more
        self._answered: Any = None
        self.left_out = 0

    def view(self, analysis: Analysis) -> tuple[int, list[pa.RecordBatch]]:
        """Of the exchanges that came since the last answer: how many pieces of ids there were, and their rows."""
        return self._before + len(self._ids), list(batches_of(analysis, self._ids))

    def show(self, session: Session) -> None:
        """Note what is new; hand on what was answered."""
        for line in session.lines:
            complain(line)
        if session.view is not None and session.view is not self._answered:
            self._answered = session.view
            pieces, rows = session.view
            del self._ids[: max(pieces - self._before, 0)]
            self._before = max(pieces, self._before)
            self._take(rows)
        self._ids += [batch.column("exchange_id") for batch in session.pipeline.fresh if batch.num_rows]
        while sum(map(len, self._ids)) > _MOST_IDS:
            self.left_out += len(self._ids.pop(0))
            self._before += 1

    def finish(self, analysis: Analysis) -> None:
        """The exchanges that nobody was asked for yet."""
        self._take(self.view(analysis)[1])
        if self.left_out:
            complain(f"{self.left_out:,} exchanges are in no span: the analysis lagged too much")


class Sender:
    """Sends spans to an endpoint in a thread of its own, in a program of its own (`otel_sender.py`)."""

    def __init__(self, source: Resource, url: str) -> None:
        self._source, self._url = source, url
        self._queue: queue.Queue[list[pa.RecordBatch] | None] = queue.Queue(_WAITING)
        self._closing = False
        self._broke: Exception | None = None
        self.sent = self.lost = 0
        self.error: ExportError | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def take(self, rows: list[pa.RecordBatch]) -> None:
        """Send them some time; they are lost when too much waits."""
        try:
            self._queue.put_nowait(rows)
        except queue.Full:
            self.lost += _count(rows)

    def close(self) -> None:
        """Wait until all is sent, or until the endpoint fails once more: then what still waits is lost."""
        self._closing = True
        self._queue.put(None)
        self._thread.join()
        if self._broke is not None:
            raise self._broke

    def _work(self) -> None:
        given_up = False
        while (rows := self._queue.get()) is not None:
            if given_up:
                self.lost += _count(rows)
                continue
            try:
                self.sent += send(spans(rows, self._source), self._url)
            except ExportError as error:
                self.sent += error.sent
                self.lost += _count(rows) - error.sent
                if self.error is None or str(self.error) != str(error):
                    complain(str(error))
                self.error = error
                given_up = self._closing
            except Exception as error:  # our own fault: `close` raises it
                self.lost += _count(rows)
                self._broke, given_up = error, True


def line_writer(source: Resource, write: Callable[[bytes], object], flush: Callable[[], None]) -> Take:
    """Writes spans as lines of OTLP JSON."""

    def take(rows: list[pa.RecordBatch]) -> None:
        for line in json_lines(spans(rows, source)):
            write(line)
        flush()

    return take


def _count(rows: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in rows)

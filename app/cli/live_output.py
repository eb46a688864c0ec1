"""What a live analysis shows. In: the session a few times a second; out: a screen, lines of text, or JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from wirewitness.app.cli.output import Write, colour_wanted, flush_output, result_sink
from wirewitness.app.shared.failure import complain, say

if TYPE_CHECKING:
    from rich.live import Live

    from wirewitness.analyser.analysis.analysis import Analysis
    from wirewitness.analyser.live.findings_seen import News
    from wirewitness.analyser.live.session import Session

_FINDINGS_SHOWN = 50
_LINES_SHOWN = 3
_STATE_EVERY_S = 1.0
_DROPS = ("kernel_drops", "backlog_drops")
_STATE_OF_EVENT = {"new": "", "confirmed": "confirmed: ", "withdrawn": "withdrawn: "}


class Output(Protocol):
    """What the command needs of an output."""

    wants_exchanges: bool

    def view(self, analysis: Analysis) -> Any:
        """What is to be shown of the last minutes; asked in a copy of the process."""

    def show(self, session: Session) -> None:
        """Show what changed."""


class Shown(Output, Protocol):
    """What `wirewitness live` needs besides."""

    def doing(self, line: str) -> None:
        """Say what is still done before the end; asked from another thread."""


@contextmanager
def output_for(form: str, title: str, *, quiet: bool) -> Iterator[Shown]:
    """The output of a format: a screen only on a terminal."""
    if form == "jsonl":
        with result_sink(None) as write:
            yield JsonLines(write)
        return
    if not sys.stdout.isatty():
        yield TextLines(quiet)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(no_color=not colour_wanted(None), highlight=False)
    with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:
        screen = Screen(live, title)
        yield screen
    for line in screen.lines:
        say(line)


class Screen:
    """The newest state on the whole terminal."""

    wants_exchanges = False

    def __init__(self, live: Live, title: str) -> None:
        self._live, self._title = live, title
        self._news: deque[News] = deque(maxlen=_FINDINGS_SHOWN)
        self.lines: deque[str] = deque(maxlen=_LINES_SHOWN)

    def view(self, analysis: Analysis) -> Any:
        from wirewitness.reports.protocols.kafka.questions.groups import groups

        return groups(analysis) if "kafka_offset_commits" in analysis.tables() else []

    def show(self, session: Session) -> None:
        from wirewitness.app.cli.live_screen import screen

        self._news.extend(session.news)
        self.lines.extend(session.lines)
        size = self._live.console.size
        shown = screen(session, self._title, list(self._news), list(self.lines), size.width, size.height)
        self._live.update(shown, refresh=True)

    def doing(self, line: str) -> None:
        if self._live.is_started:
            from rich.text import Text

            self._live.update(Text(line, style="bold"), refresh=True)
        else:
            complain(line)


class TextLines:
    """Findings as lines where no terminal is; on standard error, since the report follows on standard output."""

    wants_exchanges = False

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def view(self, analysis: Analysis) -> Any:
        return None

    def show(self, session: Session) -> None:
        _say_lines(session)
        for news in [] if self._quiet else session.news:
            row = news.finding
            maybe = " (provisional)" if row["provisional"] else ""
            say(f"{_STATE_OF_EVENT[news.what]}{row['severity']} {row['code']}{maybe}: {row['sentence']}")

    def doing(self, line: str) -> None:
        complain(line)


class JsonLines:
    """One object for each exchange and each change of a finding, and now and then one on how capturing goes."""

    wants_exchanges = True

    def __init__(self, write: Write) -> None:
        self._write = write
        self._state: dict[str, Any] = {}
        self._state_s = 0.0

    def view(self, analysis: Analysis) -> Any:
        return None

    def show(self, session: Session) -> None:
        _say_lines(session)
        pieces = [
            *_exchange_lines(session),
            *(_finding_line(news) for news in session.news),
            *self._state_lines(session),
        ]
        for piece in pieces:
            self._write(piece)
        if pieces:
            flush_output()

    def doing(self, line: str) -> None:
        complain(line)

    def _state_lines(self, session: Session) -> Iterator[bytes]:
        """What changed of capturing, once a second at most; drops at once."""
        told, now = _state(session), time.monotonic()
        dropped = any(told[name] != self._state.get(name, 0) for name in _DROPS)
        if told != self._state and (dropped or session.is_read or now >= self._state_s + _STATE_EVERY_S):
            from wirewitness.analyser.base.words import json_text

            self._state, self._state_s = told, now
            yield json_text({"type": "state", **told}).encode() + b"\n"


def _state(session: Session) -> dict[str, Any]:
    """How capturing goes, as the screen says it; None where somebody else captures. behind_ms: how old the newest
    packet is that was read, while more are waiting."""
    state, pipeline = session.state, session.pipeline
    captures = state.packets is not None
    behind_ns = time.time_ns() - (pipeline.now_ns or time.time_ns()) if state.backlog_bytes else 0
    return {
        "packets_read": pipeline.packets, "lines_read": pipeline.lines, "packets_captured": state.packets,
        "kernel_drops": state.kernel_drops or 0 if captures else None,
        "backlog_drops": state.backlog_drops or 0 if captures else None,
        "backlog_bytes": state.backlog_bytes or 0 if captures else None,
        "behind_ms": max(behind_ns // 1_000_000, 0) if captures else None,
        "findings": len(session.findings.rows()),
    }  # fmt: skip


def _say_lines(session: Session) -> None:
    for line in session.lines:
        complain(line)


def _exchange_lines(session: Session) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from wirewitness.reports.base.formats.rows import join_lines, json_rows, slices

    protocols = session.pipeline.shown_protocols
    for batch in slices(session.pipeline.fresh):
        if protocols:
            batch = batch.filter(pc.is_in(batch.column("protocol"), pa.array(protocols)))
        if batch.num_rows:
            rows = json_rows("exchanges", batch, batch.schema.names)
            typed = pc.binary_join_element_wise('{"type":"exchange",', pc.utf8_slice_codeunits(rows, 1), "")
            yield join_lines(typed) + b"\n"


def _finding_line(news: News) -> bytes:
    from wirewitness.analyser.base.words import json_text
    from wirewitness.reports.base.formats.values import time_text

    row = dict(news.finding)
    for name in ("ts_first", "ts_last"):
        row[name] = None if row[name] is None else time_text(row[name])
    for name in ("evidence", "numbers"):
        row[name] = json.loads(row[name])
    told = {"type": "finding", "event": news.what, **row}
    return json_text(told).encode() + b"\n"

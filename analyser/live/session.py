"""A running analysis: packets in, findings as they appear, and the analysis of it all when it stops.

In: sources whose streams call `step` while they wait. Out: what changed, shown to a listener a few times a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from analyser import context, detectors  # noqa: F401  imported here, or every copy would do it anew
from analyser.analysis import Analysis
from analyser.capture import Source
from analyser.capture_tables import CaptureTables
from analyser.live.copies import Copy, CopyFailed
from analyser.live.feed import CaptureState
from analyser.live.known import KnownFindings, News
from analyser.live.pipeline import LivePipeline
from analyser.live.rolling import Kept
from analyser.options import Progress, ReadOptions
from analyser.reading import needed_tables
from analyser.tables import arrow_schema
from dissectors.registry import dissectors

ENDED = "all packets are read; putting the results together"
SHOW_EVERY_S = 0.5
ASK_EVERY_S = 1.0
# A question may take so much of the time; the rest is for packets.
_ASKING_PART = 1 / 3
FORGET_EVERY_S = 30.0


class Window(NamedTuple):
    """What a copy answers. findings: rows of the table, times in ns; view: what the listener's own question gave;
    clusters: flow id -> cluster id; broken: rules that failed."""

    findings: list[dict[str, Any]]
    cut_ns: int | None
    view: Any
    clusters: dict[str, str]
    broken: list[str]


View = Callable[[Analysis], Any]


class Session:
    """One live analysis. `news` are findings that changed since the listener saw it last; `view` the newest answer.

    waits_for_capture: the time begins when the capturing program says that it captures.
    """

    def __init__(
        self,
        tables: Iterable[str],
        options: ReadOptions,
        kept: Kept,
        view: View,
        show: Callable[[Session], None],
        stop: Callable[[bool], None],
        duration_s: float | None = None,
    ) -> None:
        """view: asked in the copy, of an analysis of the last minutes. show: called a few times a second. stop: makes
        the sources end, with True at once, with False when what was captured is read. duration_s: stop by itself after
        this time."""
        known = dissectors(options.enable)
        self._options = options
        self.pipeline = LivePipeline(known, needed_tables(tables), options, kept)
        self.state = CaptureState()
        self.findings = KnownFindings()
        self.news: list[News] = []
        self.view: Any = None
        self.lines: list[str] = []
        self.stopping = False
        self.waits_for_capture = False
        self.began_s = time.monotonic()
        self.answer_s: float | None = None
        self._view, self._show, self._stop = view, show, stop
        self._duration_s = duration_s
        self._copy: Copy[Window] | None = None
        self._show_s = self._forget_s = 0.0
        self._ask_s = self.began_s + ASK_EVERY_S
        self._asked_packets = 0

    def run(self, sources: Iterable[Source]) -> Analysis:
        """Read until the sources end; the analysis of what is still there, with all findings since the start."""
        try:
            self.pipeline.run(sources, self._progress)
        finally:
            if self._copy is not None:
                self._copy.close()
                self._copy = None
        self.pipeline.tick(time.monotonic())
        if self.pipeline.packets:
            self._say(ENDED)
        self._tell()
        tables = self.pipeline.tables()
        analysis = Analysis(tables, self._options)
        self._conclude(tables, analysis)
        return analysis

    def stop(self, at_once: bool = False) -> None:
        """Make the sources end; packets that were captured are still read, unless it has to be at once."""
        if at_once or not self.stopping:
            self.stopping = True
            self._stop(at_once)

    def step(self) -> None:
        """Whatever is due: called after every batch of packets, and while none come."""
        now = time.monotonic()
        if self.state.packets is None and self.waits_for_capture:
            self.began_s = now
        if self._duration_s is not None and now >= self.began_s + self._duration_s:
            self.stop()
        if self._copy is not None:
            self._take_answer(self._copy)
        if now < self._show_s:
            return
        self._show_s = now + SHOW_EVERY_S
        self.pipeline.tick(now)
        if self._copy is None and not self.stopping:
            if now >= self._forget_s:
                self._forget_s = now + FORGET_EVERY_S
                self.pipeline.forget()
            if now >= self._ask_s and self.pipeline.packets != self._asked_packets:
                self._ask()
        self._tell()

    def _progress(self, _: Progress) -> None:
        self.step()

    def _question(self, analysis: Analysis, cut_ns: int | None) -> Window:
        found = finding_rows(analysis)
        clusters = _clusters(analysis) if self.pipeline.keep_fresh else {}
        return Window(found, cut_ns, self._view(analysis), clusters, broken_rules(analysis))

    def _ask(self) -> None:
        self._asked_packets = self.pipeline.packets
        try:
            self._copy = self.pipeline.ask(self._question)
        except CopyFailed as failure:
            self._put_off(failure)

    def _put_off(self, failure: CopyFailed) -> None:
        self._say(f"findings could not be looked for: {str(failure).splitlines()[0]}")
        self._copy, self._ask_s = None, time.monotonic() + FORGET_EVERY_S

    def _take_answer(self, copy: Copy[Window]) -> None:
        try:
            answered = copy.answer()
        except CopyFailed as failure:
            self._put_off(failure)
            return
        if answered is None:
            return
        window: Window = answered.value
        self._copy, self.answer_s = None, answered.seconds
        self._ask_s = time.monotonic() + max(ASK_EVERY_S, answered.seconds * (1 / _ASKING_PART - 1))
        self.news += self.findings.take(window.findings, window.cut_ns)
        self.view = window.view
        self.pipeline.clusters = window.clusters
        for line in window.broken:
            self._say(line)
        self._show_s = 0.0

    def _conclude(self, tables: CaptureTables, analysis: Analysis) -> None:
        """The findings of all that is there; those whose rows have left stay as they were told."""
        cut_ns = self.pipeline.rolling.cut_ns
        rows = finding_rows(analysis)
        self.news += self.findings.take(rows, cut_ns)
        self._tell()
        if cut_ns is not None and "findings" in analysis.tables():
            tables.replace_findings(_findings_table(self.findings.rows()))

    def _tell(self) -> None:
        for line in self.state.lines:
            self._say(line)
        self.state.lines.clear()
        self._show(self)
        self.news.clear()
        self.lines.clear()
        self.pipeline.fresh.clear()

    def _say(self, line: str) -> None:
        if line not in self.lines:
            self.lines.append(line)


def finding_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """The findings of an analysis, times as ns; none where nobody asked for any."""
    if "findings" not in analysis.tables():
        return []
    table = analysis.arrow("findings")
    for name in ("ts_first", "ts_last"):
        table = table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _clusters(analysis: Analysis) -> dict[str, str]:
    found = analysis.sql("SELECT DISTINCT flow_id, cluster_id FROM exchanges WHERE cluster_id IS NOT NULL")
    return dict(zip(found.column("flow_id").to_pylist(), found.column("cluster_id").to_pylist(), strict=True))


def broken_rules(analysis: Analysis) -> list[str]:
    """A line for each rule that failed."""
    return [f"detector {failure.code} broke: {failure.error!r}" for failure in analysis.failures]


def _findings_table(rows: list[dict[str, Any]]) -> pa.Table:
    schema = arrow_schema("findings")
    ordered = sorted(rows, key=lambda row: (row["code"], row["subject"], row["finding_id"]))
    return pa.Table.from_pylist(ordered, schema)

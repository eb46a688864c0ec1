"""A running analysis: packets in, findings as they appear, and the analysis of it all when it stops.

In: sources whose streams call `step` while they wait. Out: what changed, shown to a listener a few times a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.analysis.capture_tables import CaptureTables
from wirewitness.analyser.analysis.needed import needed_tables
from wirewitness.analyser.base.options import Progress, ReadOptions
from wirewitness.analyser.capture import Source
from wirewitness.analyser.engine.rules.findings import stories_table, table_rows
from wirewitness.analyser.live.feed import CaptureState
from wirewitness.analyser.live.findings_seen import MOST_KNOWN, KnownFindings, News
from wirewitness.analyser.live.forks import Answered, Copy, CopyFailed
from wirewitness.analyser.live.pipeline import LivePipeline
from wirewitness.analyser.live.retention import Kept
from wirewitness.dissectors.registry import dissectors

# Which window is asked about when. In: how long answers took. Out: what to ask next.
#
# There are two windows. The near one is as large as can be answered in about a second, so that findings are told soon
# however much is in memory. The far one holds the minutes that some rules want; it is asked less often, and only once
# the near one does not hold everything any more.

_AGE_NS = 600 * 1_000_000_000
# Rows of a table that a far question may look at: an answer should not take longer than some seconds.
FAR = Kept(age_ns=_AGE_NS, rows=200_000)
FIRST_ROWS, LEAST_ROWS = 30_000, 8_000
# Processor time that a near answer should take; that of questions without rows is about half of it.
NEAR_CPU_S = 1.0
NEAR_EVERY_S, FAR_EVERY_S = 0.5, 5.0
# A question may take so much of the time; the rest is for packets.
_NEAR_PART, _FAR_PART = 1 / 2, 1 / 3
_FAR_NICE = 3
_STEP = 2.0


class Window(NamedTuple):
    """What a copy answers. findings: rows of the table, times in ns; cut_ns: no row from before this time or of it was
    looked at, None where all were; until_ns: the time of the newest packet. has_view: view and clusters are there.

    view: what the listener's own question gave; clusters: flow id -> cluster id; broken: lines about rules
    that failed, and about other faults of our own.
    """

    findings: list[dict[str, Any]]
    cut_ns: int | None
    until_ns: int | None
    has_view: bool
    view: Any
    clusters: dict[str, str]
    broken: list[str]


class AskedWindow:
    """One of the windows. kept: how much is asked about; nice: how much others go before; copy: who is answering, None
    when nobody is."""

    def __init__(
        self, kept: Kept, every_s: float, part: float, due_s: float, *, nice: int = 0, cpu_s: float | None = None
    ) -> None:
        """part: how much of the time answers may take; cpu_s: what one should cost, None where `kept` stays."""
        self.kept, self.nice = kept, nice
        self.copy: Copy[Window] | None = None
        self.due_s = due_s
        self.packets = 0
        self._every_s, self._part, self._cpu_s = every_s, part, cpu_s

    def is_due(self, now_s: float, packets: int) -> bool:
        """Whether to ask now; not before packets have come since it was asked."""
        return self.copy is None and now_s >= self.due_s and packets != self.packets

    def failed(self, due_s: float) -> None:
        """Nobody answered: ask again at that time, also when no packets have come since."""
        self.copy, self.packets, self.due_s = None, -1, due_s

    def answered(self, answer: Answered, now_s: float) -> None:
        """Take note of an answer."""
        self.copy = None
        self.due_s = now_s + max(self._every_s, answer.seconds * (1 / self._part - 1))
        if self._cpu_s is not None:
            step = min(max(self._cpu_s / max(answer.cpu_s, 1e-3), 1 / _STEP), _STEP)
            if step < 1 or answer.value.cut_ns is not None:  # what holds everything need not grow
                rows = min(max(int(self.kept.rows * step), LEAST_ROWS), FAR.rows)
                self.kept = self.kept._replace(rows=rows)


def near(now_s: float) -> AskedWindow:
    """The near window."""
    return AskedWindow(FAR._replace(rows=FIRST_ROWS), NEAR_EVERY_S, _NEAR_PART, now_s + NEAR_EVERY_S, cpu_s=NEAR_CPU_S)


def far(now_s: float) -> AskedWindow:
    """The far window."""
    return AskedWindow(FAR, FAR_EVERY_S, _FAR_PART, now_s + FAR_EVERY_S, nice=_FAR_NICE)


ENDED = "everything is read; putting the results together"
SHOW_EVERY_S = 0.5
FORGET_EVERY_S = 30.0
_MOST_FAULTS_SAID = 100

View = Callable[[Analysis], Any]


class Session:
    """One live analysis. `news` are findings that changed since the listener saw it last; `view` the newest answer.

    is_read: all packets are, and what they say is put together. waits_for_capture: the time begins when the capturing
    program says that it captures.
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
        ends: Callable[[], None] = lambda: None,
    ) -> None:
        """view: asked in the copy, of an analysis of the last minutes. show: called a few times a second. stop: makes
        the sources end, with True at once, with False when what was captured is read. duration_s: stop by itself after
        this time. ends: called when it is to end, and when all is read: from then on no copy of the process is made."""
        tables = tuple(tables)
        known = dissectors(options.enable)
        self._options = options
        self.pipeline = LivePipeline(known, needed_tables(tables), options, kept)
        self.state = CaptureState()
        self.findings = KnownFindings()
        self.news: list[News] = []
        self.view: Any = None
        self.lines: list[str] = []
        self.stopping = self.is_read = False
        self.waits_for_capture = False
        self.began_s = time.monotonic()
        self.answer_s: float | None = None
        self._view, self._show, self._stop, self._ends = view, show, stop, ends
        self._duration_s = duration_s
        self._show_s = self._forget_s = 0.0
        self._far = far(self.began_s)
        # Without findings there is only the listener's question, which wants all that is there.
        self._near = near(self.began_s) if "findings" in tables else self._far
        self._is_full_told = False
        self._faults_said: set[str] = set()
        self._is_far_needed = self._near is self._far

    def run(self, sources: Iterable[Source]) -> Analysis:
        """Read until the sources end; the analysis of what is still there, with all findings since the start."""
        try:
            self.pipeline.run(sources, self._progress)
        finally:
            for asked in (self._near, self._far):
                if asked.copy is not None:
                    asked.copy.close()
                    asked.copy = None
        self.is_read = True
        self._ends()
        self.pipeline.tick(time.monotonic())
        if self.pipeline.progress:
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
            self._ends()

    def step(self) -> None:
        """Whatever is due: called after every batch of packets, and while none come."""
        now = time.monotonic()
        if self.state.packets is None and self.waits_for_capture:
            self.began_s = now
        if self._duration_s is not None and now >= self.began_s + self._duration_s:
            self.stop()
        self._take_answer(self._near)
        self._take_answer(self._far)
        if not self.stopping:
            self._forget_or_ask(now)
        if now < self._show_s:
            return
        self._show_s = now + SHOW_EVERY_S
        self.pipeline.tick(now)
        self._tell()

    def _progress(self, _: Progress) -> None:
        self.step()

    def _forget_or_ask(self, now: float) -> None:
        """Rows leave while nobody answers, since files leave with them; the far question would hold that up longest."""
        forgets = now >= self._forget_s
        if forgets and self._near.copy is None and self._far.copy is None:
            self._forget_s = now + FORGET_EVERY_S
            self.pipeline.forget()
            forgets = False
        packets = self.pipeline.progress
        if self._is_far_needed and not forgets and self._far.is_due(now, packets):
            self._ask(self._far)
        if self._near.is_due(now, packets) and (not forgets or self._far.copy is not None):
            self._ask(self._near)

    def _ask(self, asked: AskedWindow) -> None:
        asked.packets = self.pipeline.progress
        is_far = asked is self._far

        def question(analysis: Analysis, cut_ns: int | None) -> Window:
            whole = is_far or cut_ns is None
            found = finding_rows(analysis)
            clusters = _clusters(analysis) if whole and self.pipeline.keep_fresh else {}
            view = self._view(analysis) if whole else None
            broken = [*broken_rules(analysis), *analysis.faults]
            return Window(found, cut_ns, self.pipeline.now_ns, whole, view, clusters, broken)

        try:
            asked.copy = self.pipeline.ask(question, asked.kept, asked.nice)
        except CopyFailed as failure:
            self._put_off(asked, failure)

    def _put_off(self, asked: AskedWindow, failure: CopyFailed) -> None:
        self._say(f"findings could not be looked for: {str(failure).splitlines()[0]}")
        asked.failed(time.monotonic() + FORGET_EVERY_S)

    def _take_answer(self, asked: AskedWindow) -> None:
        if asked.copy is None:
            return
        try:
            answered = asked.copy.answer()
        except CopyFailed as failure:
            self._put_off(asked, failure)
            return
        if answered is None:
            return
        window: Window = answered.value
        self.answer_s = answered.seconds
        asked.answered(answered, time.monotonic())
        self._is_far_needed |= not window.has_view
        self.news += self.findings.take(window.findings, window.cut_ns, window.until_ns, is_near=not window.has_view)
        if self.findings.is_full and not self._is_full_told:
            self._is_full_told = True
            self._say(f"{MOST_KNOWN:,} findings are known; more are not told")
        if window.has_view:
            self.view, self.pipeline.clusters = window.view, window.clusters
        self._say_faults(window.broken)
        self._show_s = 0.0

    def _conclude(self, tables: CaptureTables, analysis: Analysis) -> None:
        """The findings of all that is there; those whose rows have left stay as they were told."""
        cut_ns = self.pipeline.rolling.cut_ns
        rows = finding_rows(analysis)
        self.news += self.findings.take(rows, cut_ns, self.pipeline.now_ns)
        self._tell()
        if cut_ns is not None and "findings" in analysis.tables():
            tables.replace_findings(stories_table(self.findings.rows()))

    def _tell(self) -> None:
        for line in self.state.lines:
            self._say(line)
        self.state.lines.clear()
        self._say_faults(self.pipeline.result.faults)
        self._show(self)
        self.news.clear()
        self.lines.clear()
        self.pipeline.fresh.clear()

    def _say_faults(self, lines: Iterable[str]) -> None:
        """Each once; at the end all are said once more, with how often they came up."""
        for line in lines:
            if line not in self._faults_said and len(self._faults_said) < _MOST_FAULTS_SAID:
                self._faults_said.add(line)
                self._say(line)

    def _say(self, line: str) -> None:
        if line not in self.lines:
            self.lines.append(line)


def finding_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """The findings of an analysis, times as ns; none where nobody asked for any.

    The worst comes last, since of what is told at once the last is the newest, which a screen shows on top.
    """
    return table_rows(analysis.arrow("findings"))[::-1] if "findings" in analysis.tables() else []


def _clusters(analysis: Analysis) -> dict[str, str]:
    found = analysis.sql("SELECT DISTINCT flow_id, cluster_id FROM exchanges WHERE cluster_id IS NOT NULL")
    return dict(zip(found.column("flow_id").to_pylist(), found.column("cluster_id").to_pylist(), strict=True))


def broken_rules(analysis: Analysis) -> list[str]:
    """A line for each rule that failed, or that a limit ended."""
    return [
        f"detector {failure.code} broke: {failure.error!r}"
        if failure.is_own_fault
        else f"detector {failure.code} did not look at everything: {failure.error}"
        for failure in analysis.failures
    ]

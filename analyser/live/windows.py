"""Which window is asked about when. In: how long answers took. Out: what to ask next.

There are two windows. The near one is as large as can be answered in about a second, so that findings are told soon
however much is in memory. The far one holds the minutes that some rules want; it is asked less often, and only once the
near one does not hold everything any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wirewitness.analyser.live.forks import Answered, Copy
from wirewitness.analyser.live.retention import Kept

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

    view: what the listener's own question gave; clusters: flow id -> cluster id; broken: rules that failed.
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

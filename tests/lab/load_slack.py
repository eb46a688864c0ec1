"""How long what the broker knows takes to its network card, at any time of a capture.

In: an analysis. Out: times around a question. A request that is answered at once says it: what it changes happens
between its packet and that of its answer, so that no change is further away from its packets than such a request
takes. Requests that wait (Fetch, JoinGroup, SyncGroup) say nothing of it; the changes at their answers take the same
way as the answers of others about then.
"""

from __future__ import annotations

from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.reports.base.questions.source import rows

LEAST_NS = 50_000_000
ABOUT_NS = 500_000_000
_AT_ONCE = """
    select epoch_ns(ts) as begin, epoch_ns(ts_response) as done from exchanges where ts_response is not null
    and operation in ('Produce', 'OffsetCommit', 'TxnOffsetCommit', 'AddOffsetsToTxn', 'AddPartitionsToTxn', 'EndTxn',
                      'Heartbeat', 'ConsumerGroupHeartbeat', 'LeaveGroup', 'OffsetDelete', 'DeleteGroups',
                      'DeleteTopics')"""


class Slack:
    """How far from the packets the broker's own time may lie."""

    def __init__(self, analysis: Analysis) -> None:
        self._answers = [(row["begin"], row["done"]) for row in rows(analysis, _AT_ONCE)]

    def _ns(self, begin: int, end: int) -> int:
        """The longest answer about then, and some milliseconds at least."""
        return max(
            (done - asked for asked, done in self._answers if asked <= end + ABOUT_NS and done >= begin - ABOUT_NS),
            default=0,
        )

    def around(self, begin: int, end: int) -> tuple[int, int]:
        """A question's begin and end, farther apart by the slack on each side."""
        slack = max(LEAST_NS, self._ns(begin, end))
        return begin - slack, end + slack

    def earlier(self, when: int) -> int:
        """A time before `when` by the slack."""
        return self.around(when, when)[0]

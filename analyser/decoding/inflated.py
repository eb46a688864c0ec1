"""What a connection inside compression may become: as many messages and rows as its size in the clear may give.

In: how many bytes of it were captured, and what became of them. Out: is it within the limit? Bytes have limits of their
own where they are inflated; but in megabytes of the smallest messages these cost most, and kilobytes hold them.
"""

from __future__ import annotations

from collections.abc import Iterable

from wirewitness.analyser.base.faults import of_limit
from wirewitness.analyser.decoding.stream_portions import Items, size_of
from wirewitness.analyser.tcp.chunks import Run
from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, CORE_ROWS, SERVER_TO_CLIENT
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import expert_row

_TEXT = "what is compressed holds far more messages than its size tells; the rest of the connection is not decoded"
_REMARK = ("warn", "limit", "compressed_rows", _TEXT)
_SENTENCE = of_limit(_TEXT)


class InflatedRows:
    """One connection's share, and what all of a run have beyond it."""

    __slots__ = ("_limits", "_usual")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._usual = 0

    def came(self, items: Items) -> None:
        """These were captured."""
        self._usual += self._limits.usual_rows_per_compressed_byte * size_of(items)

    def gave(self, count: int) -> bool:
        """So many messages and rows came of it. Is that within the limit?"""
        beyond = max(count - self._usual, 0)
        self._usual -= count - beyond
        slack = self._limits.decompression_slack_rows
        within = beyond <= slack.left
        slack.spend(beyond)
        return within


class CountedRows(Sink):
    """Rows of all tables of a protocol, whichever somebody asked for: so what is too much does not depend on that.

    Those that are wanted go on to `out`, from which nobody else may take rows meanwhile. given: how many there were.
    """

    __slots__ = ("_gone", "_out")

    def __init__(self, tables: Iterable[str], out: Sink) -> None:
        super().__init__([*{**dict.fromkeys(CORE_ROWS), **dict.fromkeys(tables), **out.tables()}])
        self._rows.update(out.tables())
        self._out = out
        self._gone = 0
        self.later, self.faults = out.later, out.faults
        self.drain, self.take = self._leave, self._take

    @property
    def given(self) -> int:
        return self._gone + sum(map(len, self._rows.values()))

    def _leave(self, table: str) -> None:
        rows = self._rows[table]
        self._gone += len(rows)
        if table in self._out.wanted:
            self._out.drain(table)
        else:
            rows.clear()
        self._gone -= len(rows)

    def _take(self, table: str, block: Block, first: int, until: int) -> None:
        rows = self._rows[table]
        self._gone += until - first + len(rows)
        self._out.block(table, block, first, until)
        self._gone -= len(rows)


def refuse(items: Items, client_is_low: bool, out: Sink) -> None:
    """Tell where it is not: at the packet that brought the last of these."""
    runs = [(item.segments.order[-1], from_low, item.segments) for from_low, item in items if isinstance(item, Run)]
    if not runs:
        return out.fault(_SENTENCE, expert_row(direction=None, packet=None, ts=None, remark=_REMARK))
    _, from_low, segments = max(runs)
    direction = CLIENT_TO_SERVER if from_low == client_is_low else SERVER_TO_CLIENT
    place = expert_row(direction=direction, packet=segments.packets[-1], ts=segments.ts_ns[-1], remark=_REMARK)
    return out.fault(_SENTENCE, place)

"""What a flow keeps of its waits while it is open.

In: rows and full windows that `analyser/tcp/waits.py` finds. Out: the rows since the last call.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wirewitness.analyser.tcp.wait_signs import Full
from wirewitness.dissectors.core.model import Row


@dataclass(slots=True)
class FullWindow:
    """A window that is full, for `cells` instants up to `next_cell`.

    sent_from, sent_to: where the stream was at first and at last, in unwrapped sequence numbers.
    """

    first: Full
    last: Full
    sent_from: int
    sent_to: int
    window_least: int
    window_most: int
    cells: int = 0
    next_cell: int = 0


@dataclass(slots=True)
class Waits:
    """What a flow has waited for so far, `count` times.

    full: by sender, the pair's high endpoint first, a window that is full now.
    A row's first value says whether the low endpoint waited, until it is known which one is the client.
    """

    rows: list[Row] = field(default_factory=list)
    count: int = 0
    full: list[FullWindow | None] = field(default_factory=lambda: [None, None])

    def take(self) -> list[Row]:
        """The rows since the last call."""
        rows, self.rows = self.rows, []
        return rows

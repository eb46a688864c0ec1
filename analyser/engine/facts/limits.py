"""How many rows a table of the context may have that are a product of others, the same for all, and how that is noted.

In: the table that reached it, by the frame that makes tables (`steps.py`). Out: its name, for whoever runs the stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Rules hold about one KiB of each.
MOST_PRODUCT_ROWS = 100_000

_REACHED: ContextVar[list[str] | None] = ContextVar("tables_at_the_limit", default=None)


def reached(table: str) -> None:
    """A table has the first MOST_PRODUCT_ROWS of its rows, and lacks the others. Outside `noting` nobody is told."""
    noted = _REACHED.get()
    if noted is not None:
        noted.append(table)


@contextmanager
def noting(tables: list[str]) -> Iterator[None]:
    """Tables that reach the limit in the block are appended to `tables`."""
    token = _REACHED.set(tables)
    try:
        yield
    finally:
        _REACHED.reset(token)

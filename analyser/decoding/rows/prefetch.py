"""Items made by a thread while those before them are used. In: an iterator. Out: the same items.

Arrow and Parquet let other threads run while they work, so two cores are at work where one makes rows and the other
writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, each made while the one before it is used. What making them raises is raised here, in its turn;
    who stops early waits for the one that is being made."""
    from concurrent.futures import ThreadPoolExecutor

    nothing = object()
    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(next, items, nothing)
        while (item := made.result()) is not nothing:
            made = thread.submit(next, items, nothing)
            yield item  # type: ignore[misc]

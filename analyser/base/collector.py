"""Python's search for cycles of objects, paused. In: a block. Out: it runs without that search."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """What makes millions of values and no cycles spends a quarter of its time, or half, on searching for them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

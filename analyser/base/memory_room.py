"""Memory that what strangers ask for may take beyond what the process has. In: bytes. Out: a block that has no more.

DuckDB's own limit is for what it sorts, joins and groups: a function that makes one long text takes what it likes.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

_SIZES = Path("/proc/self/statm")
_lock = Lock()
# The limits before the blocks that are open now, once for each.
_before: list[tuple[int, int]] = []


@contextmanager
def room_for(extra_bytes: int) -> Iterator[None]:
    """Address space for so many bytes more, of all threads together; without a limit where the system tells no size.

    Whoever needs more in here gets MemoryError, or DuckDB's error. Blocks of several threads end with the last one.
    """
    if not _SIZES.exists():
        yield
        return
    with _lock:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if not _before:
            pages = int(_SIZES.read_text().split()[0])
            wanted = pages * resource.getpagesize() + extra_bytes
            known = [one for one in (soft, hard, wanted) if one != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_AS, (min(known), hard))
        _before.append(_before[0] if _before else (soft, hard))
    try:
        yield
    finally:
        with _lock:
            last = _before.pop()
            if not _before:
                resource.setrlimit(resource.RLIMIT_AS, last)

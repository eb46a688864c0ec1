"""pyarrow without pandas, for a program that does not need it.

At its first array pyarrow imports pandas, to know a Series when it is given one: 0.25 s and 45 MiB for each process.
In: nothing. Out: a pyarrow that takes no Series for one until something asks it for pandas objects (`to_pandas`), which
imports pandas as usual; nor can it give times of nanoseconds as Python values until then. A setting of the whole
process, so that only a program that does neither may use it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _NoPandas(MetaPathFinder):
    """As long as it stands in sys.meta_path, pandas is not there."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Raises ModuleNotFoundError for pandas; others look for all else."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is imported later", name=name)


def import_pandas_later() -> None:
    """Let pyarrow look for pandas now and not find it; nothing happens where pandas is imported already."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)

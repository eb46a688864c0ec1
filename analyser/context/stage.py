"""What a stage of the context is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import duckdb


class Stage(NamedTuple):
    """One stage.

    makes: its tables. reads: tables that it needs besides; their rows are decoded too. uses: tables that it reads only
    where somebody wants them anyway. run: replaces or creates the views of `makes`; any of the tables may be missing.
    new: those of `makes` that have no rows before; the others get columns, and keep what else stands in their rows.
    """

    makes: tuple[str, ...]
    reads: tuple[str, ...]
    uses: tuple[str, ...]
    run: Callable[[duckdb.DuckDBPyConnection], None]
    new: tuple[str, ...] = ()

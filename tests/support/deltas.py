"""A table of a dataset as another program finds it: through delta-rs alone, at its last version or at a pinned one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable


def delta_rows(root: Path, table: str, version: int | None = None) -> pa.Table:
    """The rows as they lie there, in any order."""
    return DeltaTable(str(root / table), version=version).to_pyarrow_table()


def pinned_rows(root: Path, table: str) -> pa.Table:
    """The rows of the version that the manifest names, without our reader of it."""
    pins = json.loads((root / "wirewitness.json").read_text())["tables"]
    return delta_rows(root, table, pins[table]["version"])

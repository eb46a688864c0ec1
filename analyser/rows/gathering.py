"""The tables whose raw rows are gathered into arrays by code of their own, because a row stands for many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from analyser.rows import record_arrays
from analyser.rows.store import Gather


class Gathered(NamedTuple):
    """fields: names of the arrays; rows: makes them."""

    fields: tuple[str, ...]
    rows: Gather


GATHERED: Mapping[str, Gathered] = {record_arrays.TABLE: Gathered(record_arrays.FIELDS, record_arrays.gathered)}

"""What raw tables are made of: the Arrow type of each kind of field, and how rows that stand for many become arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.dissectors.core.blocks import Block
from wirewitness.dissectors.core.model import Row

RAW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "bool": pa.bool_(),
    "float64": pa.float64(),
    "int64_list": pa.list_(pa.int64()),
    "time_list": pa.list_(pa.int64()),
    "string_list": pa.list_(pa.string()),
    "time": pa.int64(),
}


Ints = npt.NDArray[np.int64]
# Rows as a dissector gives them -> arrays of the table's fields, and for each of their rows the index of its origin.
Gather = Callable[[Sequence[Row]], tuple[list[pa.Array], Ints]]
# The same of these rows of a block. Raises what `arrays_of` does.
GatherOfBlock = Callable[[Block, Ints], tuple[list[pa.Array], Ints]]


class Gathered(NamedTuple):
    """How a table whose raw rows stand for many each becomes arrays. fields: their names; rows, block: make them."""

    fields: tuple[str, ...]
    rows: Gather
    block: GatherOfBlock

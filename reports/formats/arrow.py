"""Arrow's compute functions and columns, typed loosely.

The stubs' overloads leave out calls that Arrow documents, such as plain strings among the arguments of
`binary_join_element_wise`. In one place here the types are given up; docstrings say what the columns hold.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute

compute: Any = pyarrow.compute
# pyarrow.Array, of strings where nothing else is said.
ArrowColumn: TypeAlias = Any

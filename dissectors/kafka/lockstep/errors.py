"""The first error code of each of many responses: columns in, codes out, looked for as in `rows/errors_in.py`."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Ints
from wirewitness.dissectors.kafka.lockstep.read import Columns, Lists
from wirewitness.dissectors.kafka.schema import definitions as schema


class _Codes(NamedTuple):
    """Where the codes of a struct stand: in its own fields, and inside arrays of it."""

    own: tuple[str, ...]
    inside: tuple[tuple[str, _Codes], ...]


@lru_cache(maxsize=1024)
def _codes(api_key: int, version: int) -> _Codes:
    api = schema.api(api_key)
    return _Codes((), ()) if api is None else _in_struct(api.response, version)


def _in_struct(fields: tuple[schema.Field, ...], version: int) -> _Codes:
    present = [field for field in fields if field.versions.has(version) and field.tag is None]
    own = [f.name for f in present if f.name.endswith("error_code") and f.type == "int16" and not f.array]
    inside = [(f.name, _in_struct(f.fields, version)) for f in present if f.fields]
    return _Codes(tuple(own), tuple((name, codes) for name, codes in inside if codes.own or codes.inside))


def first_errors(api_key: int, version: int, response: Columns, count: int) -> Ints:
    """The first code that is not 0 of each of `count` responses, else 0."""
    return _first(_codes(api_key, version), response, count)


def _first(codes: _Codes, columns: Columns, count: int) -> Ints:
    found = np.zeros(count, np.int64)
    for name in codes.own:
        column = columns[name]
        assert isinstance(column, np.ndarray)
        found = np.where(found == 0, column.astype(np.int64), found)
    for name, inner in codes.inside:
        lists = columns[name]
        assert isinstance(lists, Lists)
        owners = lists.owners
        inside = _first(inner, lists.of, len(owners))
        at = np.flatnonzero(inside)
        rows, first = np.unique(owners[at], return_index=True)
        found[rows] = np.where(found[rows] == 0, inside[at[first]], found[rows])
    return found

"""Values of many documents as numbers, by the rules of `bson_fields.py`. In: values of one type. Out: arrays."""

from __future__ import annotations

import numpy as np

from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.mongo.bson_fields import BOOL, DOUBLE, INT32, INT64, count_elements
from wirewitness.dissectors.mongo.lockstep.buffer import Buffer
from wirewitness.dissectors.mongo.lockstep.layouts import Values


def integers(buffer: Buffer, values: Values) -> tuple[Ints, Flags]:
    """As `integer` gives them, and which there are."""
    at, there = values.start, np.ones(len(values.start), bool)
    if values.kind == INT32:
        return buffer.int32(at), there
    if values.kind == INT64:
        return buffer.int64(at), there
    if values.kind == DOUBLE:
        found = buffer.double(at)
        there = np.abs(found) < 2.0**63
        return np.where(there, found, 0.0).astype(np.int64), there
    return np.zeros(len(at), np.int64), ~there


def booleans(buffer: Buffer, values: Values) -> tuple[Flags, Flags]:
    """As `boolean` gives them, and which there are."""
    if values.kind == BOOL:
        return buffer.octet(values.start) != 0, np.ones(len(values.start), bool)
    found, there = integers(buffer, values)
    return found != 0, there


def elements(buffer: Buffer, arrays: Values) -> Ints:
    """As `count_elements` counts them."""
    bounds = zip(arrays.start.tolist(), arrays.end.tolist(), strict=True)
    return np.array([count_elements(buffer.data, (arrays.kind, *bound)) for bound in bounds], np.int64)

"""Rows of kafka_api_versions of connections in which nobody asked for the broker's versions: which ones were used.

In: the exchanges of many connections, all of each. Out: for each connection a row of each API, as
`rows/version_rows.py` makes them of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from wirewitness.dissectors.core.blocks import Block, Coded, Numbers, Same
from wirewitness.dissectors.core.lockstep.frames import Flags, Ints
from wirewitness.dissectors.kafka.lockstep.groups import Group
from wirewitness.dissectors.kafka.schema.api_keys import api_name


def version_rows(groups: Sequence[Group], own: Flags) -> tuple[Block, Ints]:
    """The rows of the connections that are `own`, and the connection of each, rising."""
    chosen = [np.flatnonzero(own[group.connection]) for group in groups]
    connection, at, offset, ts_ns = (
        np.concatenate([column[rows] for column, rows in zip(columns, chosen, strict=True)])
        for columns in (
            [group.connection for group in groups],
            [group.requests.at for group in groups],
            [group.requests.offset for group in groups],
            [group.requests.ts_ns for group in groups],
        )
    )
    counts = [len(rows) for rows in chosen]
    key = np.repeat([group.api_key for group in groups], counts)
    version = np.repeat([group.version for group in groups], counts)
    begins = accumulate((len(group.client_ids.values) for group in groups), initial=0)
    client_ids = np.concatenate(
        [begin + group.client_ids.codes[rows] for begin, group, rows in zip(begins, groups, chosen, strict=False)]
    )
    order = np.lexsort((at, key, connection))
    connection, key, version = connection[order], key[order], version[order]
    begins_row = np.ones(len(order), bool)
    begins_row[1:] = (connection[1:] != connection[:-1]) | (key[1:] != key[:-1])
    first = np.flatnonzero(begins_row)
    if not len(first):
        return Block([], 0), first
    keys, codes = np.unique(key[first], return_inverse=True)
    used = order[first]
    columns = (
        Numbers(offset[used]),
        Same(None),
        Numbers(ts_ns[used]),
        Same(None),
        Coded(client_ids[used], [name for group in groups for name in group.client_ids.values]),
        Same(None),
        Same(None),
        Numbers(key[first]),
        Coded(codes, [api_name(one) for one in keys.tolist()]),
        Same(None),
        Same(None),
        Numbers(np.minimum.reduceat(version, first)),
        Numbers(np.maximum.reduceat(version, first)),
    )
    return Block(columns, len(first)), connection[first]

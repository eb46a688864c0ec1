"""Identities that captures name, for this run and later ones. In: what the captures of a run saw, and what a state
keeps of
earlier ones: a connection may go on in the next capture. Out: the same together, in the new state.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from wirewitness.analyser.archive.dataset.state_files import kept_table, put_kept
from wirewitness.analyser.base.storage.exchange_files import is_there
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.capture import CaptureStats
from wirewitness.analyser.capture.workloads.seen import MAX_SEEN, End, IdentitiesSeen, Seen
from wirewitness.analyser.capture.workloads.workload import Identity

IDENTITIES_FILE = "owners.arrow"
_NUMBERS = ("port", "peer_port", "pid", "first_ns", "last_ns")
_NAMES = (*End._fields, *Identity._fields, "first_ns", "last_ns")
_SCHEMA = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _NAMES])


def keep_identities(state: FolderPath, previous: FolderPath | None, captures: Iterable[CaptureStats]) -> None:
    """Write what is known now; of too much the latest. Nothing is written where nothing is known. DatasetError."""
    seen = IdentitiesSeen() if previous is None else kept_identities(previous)
    for stats in captures:
        seen.merge(stats.identities)
    rows = sorted(seen, key=lambda one: one.last_ns)[-MAX_SEEN:]
    if rows:
        columns = zip(*((*one.end, *one.identity, one.first_ns, one.last_ns) for one in rows), strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        put_kept(state / IDENTITIES_FILE, pa.Table.from_arrays(arrays, schema=_SCHEMA))


def kept_identities(state: FolderPath) -> IdentitiesSeen:
    """What a state keeps. DatasetError for anything else."""
    seen = IdentitiesSeen()
    path = state / IDENTITIES_FILE
    if is_there(path):
        for row in zip(*(column.to_pylist() for column in kept_table(path, _SCHEMA, MAX_SEEN).columns), strict=True):
            ends, identities = len(End._fields), len(Identity._fields)
            one = Seen(End(*row[:ends]), Identity(*row[ends : ends + identities]), *row[-2:])
            seen.add(*one)
    return seen

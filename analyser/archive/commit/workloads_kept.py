"""Owners that captures name, for this run and later ones. In: what the captures of a run saw, and what a state keeps of
earlier ones: a connection may go on in the next capture. Out: the same together, in the new state.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from wirewitness.analyser.archive.dataset.state_files import kept_table, put_kept
from wirewitness.analyser.base.storage.exchange_files import is_there
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.capture import CaptureStats
from wirewitness.analyser.capture.workloads.seen import MAX_SEEN, End, OwnersSeen, Seen
from wirewitness.analyser.capture.workloads.workload import Owner

OWNERS_FILE = "owners.arrow"
_NUMBERS = ("port", "peer_port", "pid", "first_ns", "last_ns")
_NAMES = (*End._fields, *Owner._fields, "first_ns", "last_ns")
_SCHEMA = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _NAMES])


def keep_owners(state: FolderPath, previous: FolderPath | None, captures: Iterable[CaptureStats]) -> None:
    """Write what is known now; of too much the latest. Nothing is written where nothing is known. DatasetError."""
    seen = OwnersSeen() if previous is None else kept_owners(previous)
    for stats in captures:
        seen.merge(stats.owners)
    rows = sorted(seen, key=lambda one: one.last_ns)[-MAX_SEEN:]
    if rows:
        columns = zip(*((*one.end, *one.owner, one.first_ns, one.last_ns) for one in rows), strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        put_kept(state / OWNERS_FILE, pa.Table.from_arrays(arrays, schema=_SCHEMA))


def kept_owners(state: FolderPath) -> OwnersSeen:
    """What a state keeps. DatasetError for anything else."""
    seen = OwnersSeen()
    path = state / OWNERS_FILE
    if is_there(path):
        for row in zip(*(column.to_pylist() for column in kept_table(path, _SCHEMA, MAX_SEEN).columns), strict=True):
            ends, owners = len(End._fields), len(Owner._fields)
            one = Seen(End(*row[:ends]), Owner(*row[ends : ends + owners]), *row[-2:])
            seen.add(*one)
    return seen

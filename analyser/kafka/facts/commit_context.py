"""What a commit gets from other rows, each as of its time. In: the views of `commit_views.py`. Out: columns.

All is done in arrays of numbers, some 150 bytes for each commit and each fetch of their partitions while it lasts.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import Integers, Timeline, taken
from wirewitness.analyser.engine.facts.columns import UNKNOWN, columns_of, integers, number_column, time_column
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.kafka.facts.commit_owners import Owners
from wirewitness.analyser.kafka.facts.commit_rows import Commits, in_lives
from wirewitness.analyser.kafka.facts.commit_views import END_VIEWS
from wirewitness.analyser.kafka.facts.log_end_as_of import KnownLogEnds
from wirewitness.analyser.kafka.facts.log_ends import LOG_ENDS

CONTEXT = ("owner_member_id", "ownership_confidence", "log_end_offset", "client_gap_ts")
_CONFIDENCES = ("high", "low")
_GAPS = "SELECT address, at_ns FROM context_gaps WHERE address IS NOT NULL AND at_ns IS NOT NULL"


def commits_context(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """The columns CONTEXT for rows of `context_base`, with their `row`: a row for each that may get anything.

    Raises TooManyBytes.
    """
    commits = Commits(con)
    ends = _log_ends(con, commits)
    gaps_ns = _gaps(con, commits)
    owners = Owners(con, commits, gaps_ns)
    confidence = pa.array(np.where(owners.told, 0, 1).astype(np.int32), mask=owners.members < 0)
    return pa.table(
        {
            "row": pa.array(commits.rows),
            "owner_member_id": _texts(owners.members, owners.texts),
            "ownership_confidence": pa.DictionaryArray.from_arrays(confidence, pa.array(_CONFIDENCES)),
            "log_end_offset": number_column(ends),
            "client_gap_ts": time_column(gaps_ns),
        }
    )


def _log_ends(con: duckdb.DuckDBPyConnection, commits: Commits) -> Integers:
    """The log end that was known at each commit; UNKNOWN where none was."""
    told = f"""
        SELECT cluster, topic, partition, life, at_ns, log_end FROM ({in_lives(con, f"FROM ({LOG_ENDS})")})
        WHERE partition IS NOT NULL AND at_ns IS NOT NULL AND log_end IS NOT NULL"""
    ends = known_rows(con, f"WITH {END_VIEWS} {told}", {"log": commits.log}, ("at_ns", "log_end"))
    known = KnownLogEnds(integers(ends["log"]), integers(ends["at_ns"]), integers(ends["log_end"]))
    return known.latest(commits.logs, commits.at_ns)


def _gaps(con: duckdb.DuckDBPyConnection, commits: Commits) -> Integers:
    """When the last bytes of the client before each commit were missed; UNKNOWN where none were."""
    if commits.address is None:
        return np.full(len(commits.rows), UNKNOWN)
    gaps = columns_of(con, _GAPS)
    address = Key(gaps, ("address",))
    at_ns = integers(gaps["at_ns"])
    found = Timeline(address.numbers, at_ns).latest(address.of({"address": commits.address}), commits.at_ns)
    return taken(at_ns, found, UNKNOWN)


def _texts(numbers: Integers, texts: pa.Array) -> pa.DictionaryArray:
    """These texts as codes, without those of which there is none; null for numbers below 0."""
    used = np.zeros(len(texts) + 1, np.bool_)
    used[numbers] = True
    used[-1] = False
    codes = np.cumsum(used, dtype=np.int32)[numbers] - 1
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=numbers < 0), pc.take(texts, pa.array(np.flatnonzero(used)))
    )

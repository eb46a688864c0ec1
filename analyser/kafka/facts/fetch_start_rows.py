"""Which fetch a run of reading begins with, and which of its connections began unseen. In: fetches, runs. Out: rows.

Where a reader has several fetches at the time at which a run begins, each column tells the lowest of their values, of
those that are refused, too.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.engine.facts.as_of import NOWHERE, Integers, taken
from wirewitness.analyser.engine.facts.columns import UNKNOWN, booleans, codes, integers
from wirewitness.analyser.engine.facts.gaps import BEGAN_UNSEEN
from wirewitness.analyser.engine.facts.keyed_rows import known_rows
from wirewitness.analyser.engine.facts.keys import Key
from wirewitness.analyser.engine.facts.row_groups import changes
from wirewitness.analyser.kafka.facts.fetch_rows import Fetches
from wirewitness.analyser.kafka.facts.fetch_starts import Begun

UNSEEN_SCHEMA = pa.schema([("address", pa.string()), ("at_ns", pa.int64())])
# Connections that began unseen, and those in a request log of which nothing tells that all their lines are there.
_STARTS = f"""
    SELECT flow_id, max(began_ns) AS began_ns, bool_or(unnumbered) AS unnumbered
    FROM (SELECT flow_id, epoch_ns(ts) AS began_ns, false AS unnumbered FROM read_gaps WHERE {BEGAN_UNSEEN}
          UNION ALL
          SELECT flow_id, NULL, true FROM read_flows
          WHERE identified_by = 'request log' AND missing_requests IS NULL)
    GROUP BY flow_id"""


class Places:
    """The rows of the fetches that runs begin with."""

    def __init__(self, fetches: Fetches, begun: Begun) -> None:
        self._fetches = fetches
        self._rows = fetches.rows[begun.place]
        at_ns = fetches.numbers("at_ns")[fetches.rows]
        other = changes(at_ns) | changes(fetches.reader)
        starts = np.flatnonzero(other)
        ends = np.append(starts[1:], len(at_ns))[: len(starts)]
        at = np.cumsum(other)[begun.place] - 1
        self._among = np.flatnonzero(ends[at] - starts[at] > 1)
        self._starts, self._sizes = starts[at[self._among]], (ends - starts)[at[self._among]]

    def rows(self, name: str) -> Integers:
        """For each run the row of `Fetches.columns` that tells its value of this column."""
        if not len(self._among):
            return self._rows
        ends = np.cumsum(self._sizes)
        within = np.arange(ends[-1]) - np.repeat(ends - self._sizes, self._sizes)
        together = self._fetches.rows[np.repeat(self._starts, self._sizes) + within]
        values = pc.take(self._fetches.columns[name], pa.array(together))
        if pa.types.is_dictionary(values.type):
            values = pc.cast(values, pa.string())
        in_order = pc.sort_indices(pa.table({"value": values}), [("value", "ascending")]).to_numpy()
        ranks = np.empty(len(in_order), np.int64)
        ranks[in_order] = np.arange(len(in_order))
        found = self._rows.copy()
        found[self._among] = together[in_order[np.minimum.reduceat(ranks, ends - self._sizes)]]
        return found


def unseen(con: duckdb.DuckDBPyConnection, fetches: Fetches, begun: Begun, places: Places) -> pa.Table:
    """Address and time of runs on a connection that began unseen, each once.

    That is one which began after the reader's fetch before the run, and without its handshake: a part of the capture is
    missing. Of one in a request log whose requests nothing numbers, some may be.
    """
    flow_ids = fetches.columns["flow_id"]
    known = Key({"flow_id": flow_ids.dictionary}, ("flow_id",))
    flows = known_rows(con, _STARTS, {"flow": known}, ("began_ns", "unnumbered"))
    by_code = np.full(known.count, NOWHERE)
    by_code[integers(flows["flow"])] = np.arange(len(flows["flow"]))
    flow = taken(by_code, codes(flow_ids)[places.rows("flow_id")], NOWHERE)
    later = begun.other_flow & (taken(integers(flows["began_ns"]), flow, UNKNOWN) > begun.before_ns)
    found = np.flatnonzero(later | taken(booleans(flows["unnumbered"]), flow, False))
    address = pc.take(fetches.readers.columns["address"], pa.array(begun.reader[found]))
    rows = pa.table({"address": pc.cast(address, pa.string()), "at_ns": begun.at_ns[found]}, UNSEEN_SCHEMA)
    return rows.group_by(UNSEEN_SCHEMA.names).aggregate([])

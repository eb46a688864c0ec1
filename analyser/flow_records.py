"""Ended flows on their way to the `flows` table, in columns: a flow costs a few hundred bytes here.

In: ended flows, in any order. Out: the registered table, with each flow's first packet in the column FLOW.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from analyser.capture import EndpointTable
from analyser.facts import flow_row
from analyser.flow import Flow
from analyser.tables import arrow_schema
from analyser.timeorder import FLOW

_CHUNK_ROWS = 4096


class FlowRecords:
    """Collects ended flows."""

    def __init__(self, endpoints: EndpointTable) -> None:
        self._endpoints = endpoints
        self._rows: list[dict[str, Any]] = []
        self._first_packets: list[int] = []
        self._batches: list[pa.RecordBatch] = []

    def add(self, flow: Flow) -> None:
        """A flow that has ended; every flow comes once."""
        self._rows.append(flow_row(flow, self._endpoints))
        self._first_packets.append(flow.first_packet)
        if len(self._rows) >= _CHUNK_ROWS:
            self._pack()

    def table(self) -> pa.Table:
        """All flows with their first packet in the column FLOW, sorted by that."""
        self._pack()
        table = pa.Table.from_batches(self._batches, arrow_schema("flows"))
        return table.append_column(FLOW, pa.array(self._first_packets, pa.int64())).sort_by(FLOW)

    def _pack(self) -> None:
        if self._rows:
            self._batches.append(pa.RecordBatch.from_pylist(self._rows, schema=arrow_schema("flows")))
            self._rows.clear()

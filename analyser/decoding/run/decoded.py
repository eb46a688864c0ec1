"""What reading captures gives: raw tables, the flows, and the statistics of every capture.

In: a pipeline that has read. Out: `Decoded`, of which tables are made.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from wirewitness.analyser.capture import CaptureStats, EndpointTable
from wirewitness.analyser.decoding.rows.store import RawStore
from wirewitness.analyser.decoding.run.flow_records import FlowRecords


@dataclass(frozen=True, slots=True)
class UnreadInput:
    """An input that gave nothing, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Decoded:
    """What reading captures gave. flows, endpoints: those of this process; `flows_table` has all.

    remarks: about the reading as a whole, for people. faults: see `Sink`. payload: content was asked for.
    """

    store: RawStore
    endpoints: EndpointTable
    flows: FlowRecords
    captures: list[CaptureStats] = field(default_factory=list)
    unread: list[UnreadInput] = field(default_factory=list)
    flow_facts: pa.Table | None = None
    remarks: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    payload: bool = False

    def flows_table(self) -> pa.Table:
        """The registered columns of all flows and FLOW, sorted by that; made once, when reading is over."""
        if self.flow_facts is None:
            pa.default_memory_pool().release_unused()  # what decoding left behind would stay beside two copies of them
            self.flow_facts = self.flows.table()
            self.flows.let_go()
            pa.default_memory_pool().release_unused()
        return self.flow_facts

    def take_flows(self) -> pa.Table:
        """As `flows_table`, for whoever asks last: they are not held here any more."""
        flows, self.flow_facts = self.flows_table(), None
        return flows

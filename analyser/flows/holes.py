"""Packets of a flow that come while a hole in one of its streams is open, taken together.

In: a flow with segments that wait, and packets that follow. Out: how many of them change nothing but what waits; the
flow after these. The others are taken one by one: those that may fill the hole, or with which it may be given up.
"""

from __future__ import annotations

import numpy as np

from analyser.flows.acks import Said
from analyser.flows.batches import BatchColumns, ReadyRun
from analyser.flows.flow import Flow
from analyser.flows.streams import PATIENCE_NS, PENDING_BYTES
from analyser.flows.stretches import Places, Stretch
from analyser.flows.taking import take_together
from analyser.flows.tcp import MASK
from dissectors.core.limits import Limits

# For fewer packets it does not pay to take them together.
LEAST = 16


def may_wait(flow: Flow, rows: Places, columns: BatchColumns, limits: Limits) -> int:
    """How many of these packets, the first ones, cannot make anybody give up a hole; 0 where there is none."""
    holes = [half for half in flow.halves if half.pending]
    if not holes or flow.closed_ts_ns is not None or any(half.zero_since_ns is not None for half in flow.halves):
        return 0
    left = limits.max_pending_packets - max(half.waited for half in holes)
    patient_until = min(half.waiting_since_ns for half in holes) + PATIENCE_NS
    late = np.flatnonzero(columns.ts_ns[rows[: max(left, 0)]] > patient_until)
    return int(late[0]) if len(late) else min(max(left, 0), len(rows))


def continues_behind(flow: Flow, runs: tuple[ReadyRun, ...], limits: Limits) -> bool:
    """True when every run continues what its side sent last, delivered or waiting, and may be held."""
    for run in runs:
        half = flow.halves[run.from_low]
        if not (half.started and half.sent_until & MASK == run.seq):
            return False
        held = half.pending_bytes + run.size + (run.last - run.first) * PENDING_BYTES
        if half.pending and held > limits.max_pending_bytes:
            return False
    return True


def wait_together(
    flow: Flow,
    stretch: Stretch,
    rows: Places,
    runs: tuple[ReadyRun, ...],
    columns: BatchColumns,
    said: tuple[Said | None, Said | None],
) -> None:
    """Packets, as many as `may_wait` says, for which `continues_behind` holds."""
    holes = [half for half in flow.halves if half.pending]
    take_together(flow, stretch, rows, runs, columns, said)
    for half in holes:
        half.waited += len(rows) - stretch.copies

"""How much of what is going on, and how quick. In: raw rows of `exchanges`. Out: rates and latencies by operation.

Counts since the start and rates of the last seconds; latencies as counts in steps of a fifth, which fade, so that days
cost no more than a minute.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirewitness.analyser.decoding.rows.timeorder import FLOW

RATE_OVER_S = 5.0
# After this time a latency counts half.
FADE_S = 30.0
MOST_OPERATIONS = 500
_OTHERS = "(others)"
# Steps of 2^(1/4), from a microsecond to some hours.
_STEPS_PER_OCTAVE, _STEPS = 4, 140

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Weights = npt.NDArray[np.float64]


class OperationRate(NamedTuple):
    """One operation of a protocol. per_second: exchanges of the last seconds. median_ms, p95_ms: of about the last
    minute, None without answers; max_ms: of all."""

    protocol: str
    operation: str
    per_second: float
    exchanges: int
    errors: int
    unanswered: int
    median_ms: float | None
    p95_ms: float | None
    max_ms: float | None


@dataclass(slots=True)
class _Operation:
    exchanges: int = 0
    errors: int = 0
    unanswered: int = 0
    largest_ns: int = 0
    steps: Weights = field(default_factory=lambda: np.zeros(_STEPS, np.float64))


class Rates:
    """Counts exchanges. protocols: first packet of a flow -> its protocol."""

    def __init__(self, protocols: Mapping[int, str]) -> None:
        self._protocols = protocols
        self._operations: dict[tuple[str, str], _Operation] = {}
        self._lately: deque[tuple[float, dict[tuple[str, str], int]]] = deque()
        self._now: dict[tuple[str, str], int] = {}

    def feed(self, batch: pa.RecordBatch) -> None:
        """Count a batch of raw exchanges."""
        names = pc.dictionary_encode(batch.column("operation"))
        operations = ["?" if name is None else name for name in names.dictionary.to_pylist()]
        codes = pc.fill_null(names.indices, -1).to_numpy()
        flows, flow_codes = np.unique(batch.column(FLOW).to_numpy(), return_inverse=True)
        protocols = [self._protocols.get(flow, "?") for flow in flows.tolist()]
        latency_ns = _latencies(batch)
        failed = pc.fill_null(pc.equal(batch.column("status"), "error"), False).to_numpy(zero_copy_only=False)
        open_ = pc.fill_null(pc.equal(batch.column("status"), "unanswered"), False).to_numpy(zero_copy_only=False)
        kinds = sorted(set(protocols))
        kind_of = np.array([kinds.index(name) for name in protocols])[flow_codes]
        both, places = np.unique(kind_of * (len(operations) + 1) + codes + 1, return_inverse=True)
        for place, code in enumerate(both.tolist()):
            kind, operation = divmod(code, len(operations) + 1)
            key = (kinds[kind], operations[operation - 1] if operation else "?")
            self._add(key, places == place, latency_ns, failed, open_)

    def _add(self, key: tuple[str, str], rows: Flags, latency_ns: Counts, failed: Flags, open_: Flags) -> None:
        if key not in self._operations and len(self._operations) >= MOST_OPERATIONS:
            key = (key[0], _OTHERS)
        counts = self._operations.setdefault(key, _Operation())
        number = int(np.count_nonzero(rows))
        counts.exchanges += number
        counts.errors += int(np.count_nonzero(failed[rows]))
        counts.unanswered += int(np.count_nonzero(open_[rows]))
        self._now[key] = self._now.get(key, 0) + number
        known = latency_ns[rows]
        known = known[known >= 0]
        if len(known):
            counts.largest_ns = max(counts.largest_ns, int(known.max()))
            steps = np.log2(np.maximum(known, 1000) / 1000) * _STEPS_PER_OCTAVE
            counts.steps += np.bincount(np.minimum(steps.astype(np.int64), _STEPS - 1), minlength=_STEPS)

    def tick(self, now_s: float) -> None:
        """What was counted since the last tick belongs to this moment."""
        if self._lately:
            fading = 0.5 ** ((now_s - self._lately[-1][0]) / FADE_S)
            for one in self._operations.values():
                one.steps *= fading
        self._lately.append((now_s, self._now))
        self._now = {}
        while len(self._lately) > 1 and self._lately[1][0] <= now_s - RATE_OVER_S:
            self._lately.popleft()

    def operations(self) -> list[OperationRate]:
        """All operations, the most frequent first; of equal ones in the order of names."""
        over_s = max(self._lately[-1][0] - self._lately[0][0], 1.0) if self._lately else 1.0
        lately: dict[tuple[str, str], int] = {}
        for _, counts in list(self._lately)[1:]:
            for key, number in counts.items():
                lately[key] = lately.get(key, 0) + number
        found = [
            OperationRate(
                *key, lately.get(key, 0) / over_s, one.exchanges, one.errors, one.unanswered,
                _quantile(one, 0.5), _quantile(one, 0.95), one.largest_ns / 1e6 if one.largest_ns else None,
            )
            for key, one in self._operations.items()
        ]  # fmt: skip
        return sorted(found, key=lambda rate: (-rate.per_second, -rate.exchanges, rate.protocol, rate.operation))


def _latencies(batch: pa.RecordBatch) -> Counts:
    """ns from request to response; -1 where there is none to tell."""
    answered = pc.and_(pc.is_valid(batch.column("request_offset")), pc.is_valid(batch.column("response_offset")))
    answered = pc.and_not(answered, pc.fill_null(batch.column("awaitable"), False))
    gap = pc.subtract(batch.column("ts_response"), batch.column("ts"))
    found: Counts = pc.fill_null(pc.if_else(answered, gap, None), -1).to_numpy(zero_copy_only=False)
    return found


def _quantile(one: _Operation, part: float) -> float | None:
    total = float(one.steps.sum())
    if total < 1e-3:
        return None
    step = int(np.searchsorted(np.cumsum(one.steps), part * total))
    return float(min(1e-3 * 2 ** ((step + 0.5) / _STEPS_PER_OCTAVE), one.largest_ns / 1e6))

"""The clock of a capture. In: the times of its packets in capture order. Out: odd steps, in the statistics.

Packets of several interfaces or queues lie a little out of order in every busy capture, so that is only counted; a
remark is made of steps that mean that somebody set the clock.
"""

import numpy as np

from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, Ints, Records, Remark, add_remark

SECOND_NS = 1_000_000_000


class Clock:
    """Compares the time of each packet of one capture with that of the packet before."""

    def __init__(self, limits: CaptureLimits, stats: CaptureStats, last_ns: int | None = None) -> None:
        """last_ns: the time of the packet before the first that comes here; None for none."""
        self._limits, self._stats = limits, stats
        self._last_ns = last_ns
        self._noted = 0

    def watch(self, records: Records) -> None:
        """Note the steps in the records of one block, at least one."""
        before = int(records.ts_ns[0]) if self._last_ns is None else self._last_ns
        steps: Ints = np.diff(records.ts_ns, prepend=before)
        self._last_ns = int(records.ts_ns[-1])
        least = int(steps.min())
        if least < 0:
            backwards = self._stats.time_backwards
            backwards.count += int(np.count_nonzero(steps < 0))
            backwards.largest_ns = max(backwards.largest_ns, -least)
        back_ns, forward_ns = (s * SECOND_NS for s in (self._limits.clock_back_s, self._limits.clock_forward_s))
        if least <= -back_ns or int(steps.max()) >= forward_ns:
            rows = np.flatnonzero((steps <= -back_ns) | (steps >= forward_ns))
            room = max(self._limits.max_clock_remarks - self._noted, 0)
            for row in rows[:room].tolist():
                self._note(records.first_packet + row, int(steps[row]))
            self._stats.beyond_limits["too_many_clock_steps"] += max(len(rows) - room, 0)

    def _note(self, packet: int, step_ns: int) -> None:
        self._noted += 1
        seconds = abs(step_ns) / SECOND_NS
        if step_ns < 0:
            text = f"the time of packet {packet} lies {seconds:.6f} s before that of the packet in front of it"
            remark = Remark("warn", "time_backwards", text, packet, 0)
        else:
            text = f"{seconds:.0f} s pass before packet {packet}: the capture stood still, or its clock was set"
            remark = Remark("note", "time_jump", text, packet, 0)
        add_remark(self._stats, self._limits.max_remarks, remark)

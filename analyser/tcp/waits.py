"""Waits that TCP itself imposes on a flow: the rows of `tcp_waits`.

In: the signs that `analyser/tcp/wait_signs.py` found among a flow's packets, in their order, and the flow's
handshake. Out: rows (WAIT_FIELDS). A row only measures; what is too long or too often is up to the rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from wirewitness.analyser.tcp.flow import Flow, window_shift
from wirewitness.analyser.tcp.flow_waits import FullWindow, Waits
from wirewitness.analyser.tcp.notes import Note
from wirewitness.analyser.tcp.streams import Half
from wirewitness.analyser.tcp.wait_signs import CELL_NS, Full, Signs, Stall
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Row

TABLE = "tcp_waits"
WAIT_FIELDS = (
    "direction", "kind", "packet_first", "packet_last", "ts", "ts_last", "stream_offset", "wait_ms", "answer_ms",
    "sent_bytes", "next_bytes", "window_least_bytes", "window_most_bytes", "segment_limit_bytes",
)  # fmt: skip
# A full window with pauses up to this long is one wait: the sender fills it again a round trip after it opened.
BRIDGE_CELLS = 100_000_000 // CELL_NS
# A shorter one is no wait.
LEAST_CELLS = 100_000_000 // CELL_NS + 1
# The segment size of Ethernet, where the handshake names none.
USUAL_SEGMENT_BYTES = 1460
# Options of a TCP header take this much of a segment at most.
MOST_OPTIONS_BYTES = 40
LARGEST_WINDOW_BYTES = 1 << 30
_NS_PER_MS = 1e6


def watch(flow: Flow, signs: Signs, limits: Limits, before: int | None = None, *, ends: bool = False) -> None:
    """Take the signs that lie before packet `before`, None for all, and of a flow that ends there those that begin
    before it. They leave the list.

    Whoever takes packets one by one calls it before each, so that a stream is as far as it was at the sign.
    """
    count = len(signs)
    if before is not None:
        count = sum(1 for _ in takewhile(lambda sign: (sign.packet if ends else sign.packet_last) < before, signs))
    for sign in signs[:count]:
        if isinstance(sign, Stall):
            _stalled(flow, sign, limits)
        else:
            _filled(flow, sign, limits)
    del signs[:count]


def settle(flow: Flow, limits: Limits) -> None:
    """The flow ends: give the rows of what still goes on."""
    if flow.waits is not None:
        for from_low in (False, True):
            _end(flow, flow.waits, from_low, limits)


def _stalled(flow: Flow, stall: Stall, limits: Limits) -> None:
    half = flow.halves[stall.from_low]
    # Whole segments wait for room in a window, or for the network; Nagle's rule holds small ones back.
    small = (_segment_limit(flow.halves) or USUAL_SEGMENT_BYTES) - MOST_OPTIONS_BYTES
    if not half.started or max(stall.size, stall.next_size) > small or not _in_reach(half, stall.seq):
        return
    row = (
        stall.from_low, "delayed_ack", stall.packet, stall.packet_last, stall.ts_ns, stall.ts_last_ns,
        half.unwrap(stall.seq) - half.base, _ms(stall.acked_ns - stall.ts_ns), _ms(stall.ts_last_ns - stall.acked_ns),
        stall.size, stall.next_size, None, None, _segment_limit(flow.halves),
    )  # fmt: skip
    _add(flow, row, limits)


def _filled(flow: Flow, full: Full, limits: Limits) -> None:
    """The window is full if the scale of the handshake is the one that fits, and no whole segment has room in it."""
    sender = flow.halves[full.from_low]
    limit = _segment_limit(flow.halves) or USUAL_SEGMENT_BYTES
    if window_shift(flow, not full.from_low) != full.shift or full.room >= limit or not sender.started:
        return
    if not _in_reach(sender, full.end_seq):
        return
    waits = _waits(flow)
    going_on = waits.full[full.from_low]
    if going_on is not None and not 0 <= full.first_cell - going_on.next_cell <= BRIDGE_CELLS:
        _end(flow, waits, full.from_low, limits)
        going_on = None
    if going_on is None:
        sent = sender.unwrap(full.end_seq)
        going_on = FullWindow(full, full, sent, sent, full.window, full.window)
        waits.full[full.from_low] = going_on
    going_on.last, going_on.sent_to = full, sender.unwrap(full.end_seq)
    going_on.cells += full.cells
    going_on.next_cell = full.first_cell + full.cells
    going_on.window_least = min(going_on.window_least, full.window)
    going_on.window_most = max(going_on.window_most, full.window)


def _in_reach(half: Half, seq: int) -> bool:
    """Can the stream be there? No window is larger than that (RFC 7323, 2.3); further away it is not known where."""
    return abs(half.unwrap(seq) - half.next_seq) <= LARGEST_WINDOW_BYTES


def _end(flow: Flow, waits: Waits, from_low: bool, limits: Limits) -> None:
    full, waits.full[from_low] = waits.full[from_low], None
    if full is None or full.cells < LEAST_CELLS:
        return
    half, first, last = flow.halves[from_low], full.first, full.last
    sent = max(full.sent_to - full.sent_from, 0)
    row = (
        from_low, "full_window", first.packet, last.packet_last, first.ts_ns, last.ts_last_ns,
        full.sent_from - half.base, _ms(full.cells * CELL_NS), None,
        sent, None, full.window_least, full.window_most, _segment_limit(flow.halves),
    )  # fmt: skip
    _add(flow, row, limits)


def _add(flow: Flow, row: Row, limits: Limits) -> None:
    """Keep a row; say so once when there are too many."""
    waits = _waits(flow)
    waits.count += 1
    if waits.count <= limits.max_tcp_waits:
        waits.rows.append(row)
    elif waits.count == limits.max_tcp_waits + 1:
        text = f"after {limits.max_tcp_waits} waits of this flow no more are kept"
        half = flow.halves[row[0]]
        half.notes = [*(half.notes or ()), Note("tcp_waits", text, row[3], row[5], None, "note", "limit")]


def _waits(flow: Flow) -> Waits:
    if flow.waits is None:
        flow.waits = Waits()
    return flow.waits


def _segment_limit(halves: Iterable[Half]) -> int | None:
    """The largest segment that both sides take, as far as their SYNs say."""
    return min((half.segment_size for half in halves if half.segment_size), default=None)


def _ms(duration_ns: int) -> float:
    return round(duration_ns / _NS_PER_MS, 6)

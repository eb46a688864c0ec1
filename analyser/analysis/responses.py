"""What became of requests: was a response due, did it come too late? Columns of `exchanges`, made once for all readers.

In: raw rows of exchanges, and columns of their flows. Out: `answer_due` and `late`. A response is due when a request
needs one, was sent whole, and the capture would show it. It is not due when the requester left first and does not wait
for such (`Dissector.left_open`). Nothing is known of a request where bytes are missing or the other direction is, of
one that is open when the capture ends and may still be answered, and of a handshake that may go on in the session's
next connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.dissectors.core.protocol import Dissector

# Of `flows`, for these columns.
OF_ENDS = (
    "ts_closed", "observed_until", "closed_by", "reset_by", "gap_bytes", "bytes_to_server", "bytes_to_client",
    "acked_by_client", "acked_by_server", "handshake",
)  # fmt: skip
# A client that leaves soon after it asked did not wait; one that waits for data or news may leave at any time.
LEAVES_WITHIN_S = 5
# What is open for less when the capture ends may still be answered, unless that takes no work (`Dissector.at_once`).
MOST_WAIT_S, AT_ONCE_S = 30, 5

_Bools = npt.NDArray[np.bool_]
# The column of a flow's end, for some rows.
OfFlow = Callable[[str, npt.NDArray[np.intp]], pa.Array]


def answer_due(raw: Mapping[str, pa.Array], of_flow: OfFlow, protocols: Iterable[Dissector]) -> pa.Array:
    """True, false, or null where it is not known. raw: status, operation, awaitable, direction, ts, request_offset and
    request_bytes of the rows; protocols: whose operations these may be."""
    status = raw["status"]
    answered = pc.is_in(status, pa.array(["ok", "error"], status.type))
    told = pc.if_else(answered, True, pc.if_else(pc.equal(status, "one_way"), False, None))
    open_rows = np.flatnonzero(_plain(pc.equal(status, "unanswered"), False))
    if not len(open_rows):
        return told
    known, due = _of_unanswered({name: _taken(column, open_rows) for name, column in raw.items()},
                                lambda name: of_flow(name, open_rows), protocols)  # fmt: skip
    values, mask = _plain(told, False), ~_plain(pc.is_valid(told), False)
    values[open_rows], mask[open_rows] = due, ~known
    return pa.array(values, mask=mask)


def late(raw: Mapping[str, pa.Array], of_flow: OfFlow) -> pa.Array:
    """Did the response come when the requester had closed already, so that nobody read it? Null without a response.

    Who only ends its own stream (half-close) still reads: then its TCP acknowledges the response, and sends no RST.
    raw: ts_response, direction, response_offset and response_bytes of the rows.
    """
    there = _plain(pc.is_valid(raw["ts_response"]), False)
    rows = np.flatnonzero(there)
    closed = of_flow("ts_closed", rows)
    at = _whole(_taken(raw["ts_response"], rows))
    after = _plain(pc.is_valid(closed), False) & (at > _whole(closed))
    found = np.zeros(len(there), bool)
    if after.any():
        rows = rows[after]
        side, (_, _, acked, _) = _sides(_taken(raw["direction"], rows), lambda name: of_flow(name, rows))
        end = _whole(_taken(raw["response_offset"], rows)) + _whole(_taken(raw["response_bytes"], rows))
        by_requester = _same(of_flow("closed_by", rows), side)
        found[rows] = by_requester & (_same(of_flow("reset_by", rows), side) | (end > acked))
    return pa.array(found, mask=~there)


def _of_unanswered(
    raw: Mapping[str, pa.Array], of_flow: Callable[[str], pa.Array], protocols: Iterable[Dissector]
) -> tuple[_Bools, _Bools]:
    """Of requests without a response: is it known whether one was due, and was it?"""
    side, (sent, received, acked, answered_to) = _sides(raw["direction"], of_flow)
    end = _whole(raw["request_offset"]) + _whole(raw["request_bytes"])
    is_whole = (end <= sent) | ~_plain(pc.is_valid(raw["request_bytes"]), False)
    # An ACK of the other side shows that its direction is captured.
    heard = (received > 0) | (answered_to > 0) | _same(of_flow("handshake"), np.full(len(side), "complete"))
    seen = (_whole(of_flow("gap_bytes")) == 0) & heard & (acked <= received)
    closed = of_flow("ts_closed")
    is_closed = _plain(pc.is_valid(closed), False)
    waited_ns = _whole(pc.coalesce(closed, of_flow("observed_until"))) - _whole(raw["ts"])
    waits = _plain(raw["awaitable"], False)
    protocol, operation = of_flow("protocol"), raw["operation"]
    may_leave, goes_on, at_once = (np.zeros(len(side), bool) for _ in range(3))
    for one in protocols:
        own = _plain(pc.equal(protocol, one.name), False)
        may_leave |= own & _plain(pc.is_in(operation, pa.array(sorted(one.left_open), pa.string())), False)
        goes_on |= own & _plain(pc.is_in(operation, pa.array(sorted(one.resumed), pa.string())), False)
        at_once |= own & _plain(pc.is_in(operation, pa.array(sorted(one.at_once), pa.string())), False)
    left = may_leave & _same(of_flow("closed_by"), side)
    left &= waited_ns <= np.where(waits, MOST_WAIT_S, LEAVES_WITHIN_S) * NS_PER_S
    still_open = ~is_closed & (waits | (waited_ns <= np.where(at_once, AT_ONCE_S, MOST_WAIT_S) * NS_PER_S))
    known = np.where(
        is_whole, seen & ~still_open & ~(goes_on & is_closed), is_closed & (_whole(of_flow("gap_bytes")) == 0)
    )
    return known, is_whole & ~left


def _sides(direction: pa.Array, of_flow: Callable[[str], pa.Array]) -> tuple[Any, tuple[Any, Any, Any, Any]]:
    """Who asked, and stream bytes: that it sent, that came back, of these what it ACKed, and what the other ACKed."""
    by_client = _whole(direction) == 0
    to_server, to_client = _whole(of_flow("bytes_to_server")), _whole(of_flow("bytes_to_client"))
    of_client, of_server = _whole(of_flow("acked_by_client")), _whole(of_flow("acked_by_server"))
    first, second = (by_client, ~by_client)
    sent, received = np.where(first, to_server, to_client), np.where(second, to_server, to_client)
    return np.where(by_client, "client", "server"), (
        sent, received, np.where(first, of_client, of_server), np.where(second, of_client, of_server),
    )  # fmt: skip


def _taken(column: pa.Array, rows: npt.NDArray[np.intp]) -> pa.Array:
    return pc.take(column, pa.array(rows))


def _whole(column: pa.Array) -> npt.NDArray[np.int64]:
    """Numbers, or times in ns; 0 for null."""
    return np.asarray(pc.fill_null(pc.cast(column, pa.int64()), 0))


def _plain(column: pa.Array, null: bool) -> _Bools:
    return np.array(pc.fill_null(pc.cast(column, pa.bool_()), null).to_numpy(zero_copy_only=False), bool)


def _same(column: pa.Array, side: Any) -> _Bools:
    return np.asarray(_plain(pc.equal(column, pa.array(side, pa.string())), False))

"""Where the time of an exchange went. In: its times, and the packets around it. Out: parts that add up to it exactly.

What is measured is the time at the place of the capture, from the packet that completes the request to the one that
completes the response. Packets cut it: a copy of the request that was sent again, the confirmation of the request, the
first and the last packet of the response. All is in whole ns; nothing is guessed where a cut is missing: then two parts
are one, and its name says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.analysis.evidence.segments import Segment
from wirewitness.reports.base.why.model import Part

_ACK = 16
_MASK, _HALF = (1 << 32) - 1, 1 << 31
# A confirmation that comes this much sooner than a round trip is one of the copy before.
_TOO_SOON = 0.7
# TCP delays a bare confirmation by no less than this, as far as systems in use do (Linux: TCP_DELACK_MIN).
_DELAYED_ACK_NS = 35_000_000
# RFC 1122, 4.2.3.2: an ACK is delayed by less than 0.5 s.
_NO_DELAYED_ACK_NS = 500_000_000

AGAIN, BEHIND, NETWORK_OUT, NETWORK_BACK = "sent again", "behind another request", "network out", "network back"
DESIGN, UNCLEAR, TRANSFER, WINDOW, CONFIRMATION = (
    "waiting by design", "network or delayed ACK", "transfer", "window full", "waiting for an ACK",
)  # fmt: skip
# No system delays an ACK that long: the way, or the host that should have sent it.
UNHEARD = "network or a host that stood still"


class Wait(NamedTuple):
    """A row of tcp_waits about the response's bytes. kind: full_window or delayed_ack."""

    kind: str
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What the packets around an exchange tell.

    segments: of the flow, from the request on, in their order. from_client: the request went to the server.
    request_packet, first_packet: those that end the request and begin the response (files and numbers in one).
    round_trip_ns: to whoever answers and back, at the place of the capture; None where it is not known. how: what
    tells it.
    """

    segments: tuple[Segment, ...]
    from_client: bool
    request_packet: int
    first_packet: int
    round_trip_ns: int | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The exchange. answerer: `server`, or `client` where the server asked. behind_ns: when the answer to the request
    before it came on its connection, where that was after it was sent. design_ns: how long the request asks the
    answerer to wait at most, in words `design`."""

    sent_ns: int
    answered_ns: int
    answerer: str = "server"
    behind_ns: int | None = None
    design_ns: int | None = None
    design: str = ""
    waits: tuple[Wait, ...] = field(default=())


def split(asked: Asked, seen: Seen | None) -> list[Part]:
    """Parts in the order of time, none of them empty; their sum is answered_ns - sent_ns."""
    parts: list[Part] = []
    end = asked.answered_ns
    cursor = asked.sent_ns
    if asked.behind_ns is not None and asked.behind_ns > cursor:
        until = min(asked.behind_ns, end)
        parts.append(Part(BEHIND, until - cursor, "the response to the request before it came only then"))
        cursor = until
    if seen is None:
        parts += _answering(asked, end - cursor, None)
        return _filled(parts)
    base = _request(seen)
    first_ns = _time_of(seen, seen.first_packet, end)
    first_ns = min(max(first_ns, cursor), end)
    resent_ns, confirmed_ns = _confirmed(seen, base, asked.sent_ns, first_ns)
    if resent_ns is not None and resent_ns > cursor:
        until = min(resent_ns, first_ns)
        parts.append(Part(AGAIN, until - cursor, "the request was lost, and the response is one to a later copy of it"))
        cursor = until
    parts += _before_answer(asked, seen, cursor, first_ns, confirmed_ns)
    parts += _transfer(asked, seen, first_ns, end)
    return _filled(parts)


def _before_answer(asked: Asked, seen: Seen, cursor: int, first_ns: int, confirmed_ns: int | None) -> list[Part]:
    """From the request (its copy that arrived) to the first packet of the response."""
    whole = first_ns - cursor
    trip, how = seen.round_trip_ns, seen.how
    confirmed = None if confirmed_ns is None or confirmed_ns <= cursor else confirmed_ns - cursor
    alone = confirmed is not None and confirmed < whole
    if confirmed is not None and (trip is None or confirmed < trip):
        if trip is None and not alone:
            return _answering(asked, whole, None)
        trip, how = confirmed, "its request was ACKed as soon"
    if trip is None:
        return _answering(asked, whole, None)
    trip = min(trip, whole)
    late = 0
    if alone and confirmed is not None:
        late = min(confirmed, whole) - trip
    if 0 < late < _DELAYED_ACK_NS:
        # No system delays a confirmation by so little: the way there and back took that long this time.
        trip, late, how = trip + late, 0, "its request was ACKed after that long"
    out = trip // 2
    assumed = f"{how}; half of it each way"
    unclear, much = (UNCLEAR, "so much") if late < _NO_DELAYED_ACK_NS else (UNHEARD, "0.5 s or more")
    return [
        Part(NETWORK_OUT, out, assumed, "medium"),
        Part(unclear, late, f"the request was ACKed {much} later than a round trip takes", "low"),
        *_answering(asked, whole - trip - late, trip),
        Part(NETWORK_BACK, trip - out, assumed, "medium"),
    ]


def _answering(asked: Asked, ns: int, trip: int | None) -> list[Part]:
    """The time that whoever answers took; with the network where nothing parts them."""
    name = asked.answerer if trip is not None else f"{asked.answerer} and network"
    how = "what is left" if trip is not None else "no packet separates them"
    if asked.design_ns is None:
        return [Part(name, ns, how)]
    design = min(ns, asked.design_ns)
    return [Part(DESIGN, design, asked.design), Part(name, ns - design, how)]


def _transfer(asked: Asked, seen: Seen, first_ns: int, end: int) -> list[Part]:
    """From the first to the last packet of the response, gap by gap."""
    sums = {TRANSFER: 0, AGAIN: 0, WINDOW: 0, CONFIRMATION: 0}
    data = [
        one for one in seen.segments
        if one.from_client != seen.from_client and one.size and one.packet >= seen.first_packet
    ]  # fmt: skip
    cursor, stream = first_ns, _Stream(data[0].seq if data else 0)
    for one in data:
        at_ns = min(max(one.ts_ns, cursor), end)
        if stream.takes(one):
            sums[AGAIN] += at_ns - cursor
        else:
            _add_gap(sums, asked.waits, cursor, at_ns)
        cursor = at_ns
    sums[TRANSFER] += end - cursor
    return [
        Part(AGAIN, sums[AGAIN], "parts of the response came a second time, or out of their order"),
        Part(WINDOW, sums[WINDOW], "the receiver of the response had no room for more"),
        Part(CONFIRMATION, sums[CONFIRMATION], "the rest of the response waited until its first part was ACKed"),
        Part(TRANSFER, sums[TRANSFER], "from the first to the last packet of the response"),
    ]


class _Stream:
    """Which bytes of a response have come."""

    def __init__(self, origin: int) -> None:
        self._origin, self._whole, self._reached = origin, 0, 0
        self._ahead: list[tuple[int, int]] = []

    def takes(self, one: Segment) -> bool:
        """Whether bytes were missing before this segment, or came before."""
        begin = _after(one.seq, self._origin)
        disordered = self._reached > self._whole or begin < self._reached
        self._reached = max(self._reached, begin + one.size)
        self._ahead.append((begin, begin + one.size))
        self._ahead.sort()
        while self._ahead and self._ahead[0][0] <= self._whole:
            self._whole = max(self._whole, self._ahead.pop(0)[1])
        return disordered


def _add_gap(sums: dict[str, int], waits: Sequence[Wait], first_ns: int, last_ns: int) -> None:
    """A gap between two packets of a response, by the waits that TCP imposed in it."""
    left = last_ns - first_ns
    for wait in waits:
        shared = min(min(last_ns, wait.last_ns) - max(first_ns, wait.first_ns), left)
        if shared > 0:
            sums[WINDOW if wait.kind == "full_window" else CONFIRMATION] += shared
            left -= shared
    sums[TRANSFER] += left


def _request(seen: Seen) -> int | None:
    """The sequence number behind the request, as the packet that ends it says."""
    for one in seen.segments:
        if one.packet == seen.request_packet and one.from_client == seen.from_client:
            return (one.seq + one.size) & _MASK
    return None


def _confirmed(seen: Seen, base: int | None, sent_ns: int, first_ns: int) -> tuple[int | None, int | None]:
    """When the copy of the request that arrived was sent, where it was not the first; when it was confirmed."""
    if base is None:
        return None, None
    copies: list[int] = []
    for one in seen.segments:
        if one.ts_ns < sent_ns or one.packet <= seen.request_packet:
            continue
        if one.ts_ns > first_ns:
            break
        if one.from_client == seen.from_client:
            begin, stop = _after(one.seq, base), _after(one.seq, base) + one.size
            if one.size and begin < 0 <= stop:
                copies.append(one.ts_ns)
        elif one.flags & _ACK and _after(one.ack, base) >= 0:
            return _arrived(copies, one.ts_ns, seen.round_trip_ns), one.ts_ns
    return _arrived(copies, first_ns, seen.round_trip_ns), None


def _arrived(copies: Sequence[int], confirmed_ns: int, trip_ns: int | None) -> int | None:
    """The last copy that the confirmation can be one of."""
    soonest = 0 if trip_ns is None else int(trip_ns * _TOO_SOON)
    fitting = [at_ns for at_ns in copies if confirmed_ns - at_ns >= soonest]
    return fitting[-1] if fitting else None


def _time_of(seen: Seen, packet: int, otherwise: int) -> int:
    return next((one.ts_ns for one in seen.segments if one.packet == packet), otherwise)


def _after(seq: int, base: int) -> int:
    """How far a sequence number is behind another one, with wrap."""
    return ((seq - base + _HALF) & _MASK) - _HALF


def _filled(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if part.ns > 0]

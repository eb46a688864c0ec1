"""Fragments of IP packets put together. In: fragments in capture order. Out: a whole payload when its last part comes.

Sources: RFC 791, RFC 8200; RFC 5722 (overlaps are refused: they are an attack or two packets with one number).
"""

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import NamedTuple

from wirewitness.analyser.capture.limits import CaptureLimits
from wirewitness.analyser.capture.model import CaptureStats, Remark, add_remark

MAX_PAYLOAD_BYTES = 65_535
PIECE_COST_BYTES = 256  # of the objects around a piece


class Fragment(NamedTuple):
    """One fragment: its place in the payload, how many bytes were sent and which were captured. protocol counts in the
    first one only."""

    offset: int
    sent: int
    data: bytes
    more: bool
    protocol: int


class Whole(NamedTuple):
    """A payload put together: what is at its start, its captured bytes up to the first cut, and its true length."""

    protocol: int
    data: bytes
    sent: int


@dataclass(slots=True)
class Datagram:
    """The pieces of one packet so far. have: bytes sent in them; fragments: how many there were, copies included.
    Once it is refused or done, no pieces are kept."""

    first_ns: int
    pieces: dict[int, Fragment] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=list)
    total: int | None = None
    have: int = 0
    fragments: int = 0
    cost_bytes: int = 0
    refused: bool = False
    copies: dict[int, int] | None = None  # of a packet that is done: the hash of the piece at each offset


class Fragments:
    """Unfinished packets of one capture.

    joined: how many fragments went into packets that came out with a later one. Memory is bounded by the limits: the
    oldest packets are given up. Time is that of the capture.
    """

    def __init__(self, limits: CaptureLimits, stats: CaptureStats) -> None:
        self.joined = 0
        self._limits, self._stats = limits, stats
        self._timeout_ns = limits.fragment_timeout_s * 1_000_000_000
        self._datagrams: dict[bytes, Datagram] = {}
        self._cost_bytes = 0
        self._met = False

    @property
    def met(self) -> bool:
        """True once there was a fragment."""
        return self._met

    def add(self, key: bytes, piece: Fragment, ts_ns: int, packet: int) -> Whole | bool:
        """A Whole when the piece completes its packet; else True if it is a copy of a piece that came out in one."""
        self._met = True
        datagram = self._find(key, piece, ts_ns)
        if datagram.copies is not None:
            return True
        if datagram.refused:
            return False
        there = datagram.pieces.get(piece.offset)
        if there is not None and there == piece:
            datagram.fragments += 1
            return False
        trouble = _misfit(datagram, piece)
        if trouble:
            self._refuse(datagram, trouble, packet)
            return False
        self._keep(datagram, piece)
        return self._finish(datagram) if datagram.have == datagram.total else False

    def _find(self, key: bytes, piece: Fragment, ts_ns: int) -> Datagram:
        """The packet this piece belongs to; a new one when the old one is over."""
        datagram = self._datagrams.get(key)
        if datagram is not None:
            over = abs(ts_ns - datagram.first_ns) > self._timeout_ns
            reused = datagram.copies is not None and datagram.copies.get(piece.offset) != hash(piece)
            if not over and not reused:
                return datagram
            self._forget(key)
        self._make_room(ts_ns)
        datagram = self._datagrams[key] = Datagram(ts_ns)
        return datagram

    def _make_room(self, now_ns: int) -> None:
        """Forget the oldest when there is too much. Whether one is too old its own next fragment tells: those of others
        are read in another order within a block."""
        limits, held = self._limits, self._datagrams
        while held and (len(held) >= limits.max_datagrams or self._cost_bytes > limits.max_fragment_bytes):
            oldest = next(iter(held))
            late = abs(now_ns - held[oldest].first_ns) > self._timeout_ns
            if not late and held[oldest].pieces:
                self._stats.beyond_limits["fragments_given_up"] += 1
            self._forget(oldest)

    def _forget(self, key: bytes) -> None:
        self._cost_bytes -= self._datagrams.pop(key).cost_bytes

    def _keep(self, datagram: Datagram, piece: Fragment) -> None:
        datagram.pieces[piece.offset] = piece
        insort(datagram.offsets, piece.offset)
        datagram.have += piece.sent
        datagram.fragments += 1
        if not piece.more:
            datagram.total = piece.offset + piece.sent
        cost = len(piece.data) + PIECE_COST_BYTES
        datagram.cost_bytes += cost
        self._cost_bytes += cost

    def _finish(self, datagram: Datagram) -> Whole:
        pieces = [datagram.pieces[offset] for offset in datagram.offsets]
        known: list[bytes] = []
        for piece in pieces:
            known.append(piece.data)
            if len(piece.data) < piece.sent:  # cut by the snaplen: what follows has no place
                break
        self.joined += datagram.fragments - 1
        datagram.copies = {piece.offset: hash(piece) for piece in pieces}
        self._drop_pieces(datagram, len(pieces))
        return Whole(pieces[0].protocol, b"".join(known), datagram.have)

    def _refuse(self, datagram: Datagram, trouble: str, packet: int) -> None:
        datagram.refused = True
        self._drop_pieces(datagram, 0)
        text = f"the fragment in packet {packet} {trouble}; the fragments of that IP packet are left out"
        add_remark(self._stats, self._limits.max_remarks, Remark("warn", "bad_fragment", text, packet, 0))

    def _drop_pieces(self, datagram: Datagram, kept: int) -> None:
        datagram.pieces, datagram.offsets = {}, []
        cost = kept * PIECE_COST_BYTES
        self._cost_bytes += cost - datagram.cost_bytes
        datagram.cost_bytes = cost


def _misfit(datagram: Datagram, piece: Fragment) -> str:
    """Why the piece cannot belong to the packet, "" when it can."""
    stop = piece.offset + piece.sent
    if stop > MAX_PAYLOAD_BYTES or piece.sent == 0 or (piece.more and piece.sent % 8):
        return f"has an impossible length ({piece.sent} bytes at offset {piece.offset})"
    place = bisect_left(datagram.offsets, piece.offset)
    following = datagram.offsets[place] if place < len(datagram.offsets) else stop
    before = datagram.pieces[datagram.offsets[place - 1]] if place else None
    if following < stop or (before is not None and before.offset + before.sent > piece.offset):
        return f"overlaps another one ({piece.sent} bytes at offset {piece.offset})"
    last = datagram.offsets[-1] if datagram.offsets else 0
    beyond = datagram.total is not None and stop > datagram.total
    if beyond or (not piece.more and (datagram.total is not None or last > piece.offset)):
        return f"gives the packet another end ({stop} bytes)"
    return ""

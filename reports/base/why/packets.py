"""The packets around an exchange, read again. In: an index of the capture and a row of exchanges. Out: a `Seen`.

Where the capture was taken shows in the handshake: how long it took from there to the server and back, and to the
client and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from wirewitness.analyser.base.times import seconds_text
from wirewitness.reports.base.why.latency import Seen

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.evidence.index import Index
    from wirewitness.analyser.analysis.evidence.rows import MessageRow
    from wirewitness.analyser.analysis.evidence.segments import Handshake, Segment

# More packets than this are not looked at one by one.
_MOST_SEGMENTS = 20_000
# So many packets of the capture before the request tell how long confirmations take, where there is no handshake.
_PACKETS_BEFORE = 2_000
_ACK, _SYN = 16, 2
# A side that answers in less than this part of the round trip is where the capture was taken.
_NEAR = 0.2
_BOTH_NEAR_NS = 300_000


class Around(NamedTuple):
    """Packets of an exchange, and a remark on where they were captured."""

    seen: Seen | None
    remark: str


def around(index: Index, exchange: Mapping[str, Any]) -> Around:
    """What packets tell of an exchange; without them, why they do not."""
    from wirewitness.analyser.analysis.evidence.bytes import BytesGone
    from wirewitness.analyser.analysis.evidence.rows import UnknownId, parse_message_id
    from wirewitness.analyser.capture.errors import CaptureError

    try:
        request = index.message(parse_message_id(exchange["request_message_id"]))
        response = index.message(parse_message_id(exchange["response_message_id"]))
        return _around(index, request, response)
    except (UnknownId, BytesGone, CaptureError) as error:
        return Around(None, f"its packets cannot be read again ({error}), so network and server time are not separated")


def _around(index: Index, request: MessageRow, response: MessageRow) -> Around:
    from wirewitness.analyser.analysis.evidence.segments import handshake, segments_between
    from wirewitness.dissectors.core.model import split_packet

    flow = request.flow
    if index.sources[split_packet(request.packet_first)[0]].other_kind is not None:
        return Around(None, "a log has no packets, so network and server time are not separated")
    last = response.packet_last
    shaken = handshake(flow, index.sources, index.places, last)
    first = max(flow.key, min(request.packet_first, request.packet_last) - _PACKETS_BEFORE)
    found = tuple(islice(segments_between(flow, index.sources, index.places, first, last), _MOST_SEGMENTS + 1))
    if len(found) > _MOST_SEGMENTS or not any(one.packet == last for one in found):
        return Around(None, "its packets are too many, or not all there, so network and server time are not separated")
    from_client = request.direction == 0
    trip, how = _round_trip(shaken, found, from_client, request.packet_last)
    own = tuple(one for one in found if one.packet >= request.packet_last)
    seen = Seen(own, from_client, request.packet_last, response.packet_first, trip, how)
    return Around(seen, _place(shaken))


def _round_trip(
    shaken: Handshake | None, segments: Sequence[Segment], from_client: bool, until: int
) -> tuple[int | None, str]:
    if shaken is not None:
        own = shaken.to_server_ns if from_client else shaken.to_client_ns
        if own is not None:
            return own, "the handshake took as long"
    soonest = _soonest(segments, from_client, until)
    return soonest, "" if soonest is None else "confirmations before it took as long, at the least"


def _soonest(segments: Sequence[Segment], from_client: bool, until: int) -> int | None:
    """The least time from a segment of the asking side to its confirmation."""
    waiting: list[tuple[int, int]] = []
    found: int | None = None
    for one in segments:
        if one.packet > until or one.flags & _SYN:
            continue
        if one.from_client == from_client:
            if one.size:
                waiting.append(((one.seq + one.size) & 0xFFFF_FFFF, one.ts_ns))
        elif one.flags & _ACK:
            for end, sent_ns in waiting:
                if end == one.ack:
                    found = one.ts_ns - sent_ns if found is None else min(found, one.ts_ns - sent_ns)
            waiting = [(end, at_ns) for end, at_ns in waiting if ((one.ack - end) & 0xFFFF_FFFF) >= 1 << 31]
    return found


def _place(shaken: Handshake | None) -> str:
    """Where the capture was taken, as the handshake tells."""
    if shaken is None:
        return "where the capture was taken is not known: the handshake is not in it, or was sent again"
    there, back = shaken.to_server_ns, shaken.to_client_ns
    if back is None:
        return f"from where it was captured to the server and back the handshake took {seconds_text(there)}"
    told = (
        f"the handshake took {seconds_text(there)} to the server and back, {seconds_text(back)} to the client and back"
    )
    if there + back < _BOTH_NEAR_NS:
        return f"captured near both: {told}"
    if back <= _NEAR * (there + back):
        return f"captured at the client: {told}"
    if there <= _NEAR * (there + back):
        return f"captured at the server: {told}, which the client waited in addition"
    return f"captured in between: {told}; the latter the client waited in addition"

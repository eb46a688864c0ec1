"""Which protocol does a flow speak, and who is the server? Decided by the bytes; ports are only hints.

In: what a flow's two directions delivered so far. Out: an `Identity`, or None while the bytes do not tell; and at which
bytes to ask, which depends on the packets alone, so that the answer does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from typing import NamedTuple

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.decoding.carriers import Inside
from wirewitness.analyser.decoding.faults import Failed
from wirewitness.analyser.tcp.chunks import Gap, Run
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.dissectors.core.protocol import DECIDES, Dissector

_PORT_BONUS = 25
_USER_BONUS = 1000
# What a port makes credible, or what is likely while nothing tells the client, waits for this many bytes: better
# evidence may follow. What is certain decides at once.
WAIT_BYTES = 4096
CERTAIN = 90
# No probe says more. Where the protocol of the port is surer than that with the port's bonus, others are not asked: in
# the middle of a connection they would search all bytes in vain.
_MOST = 100


class Identity(NamedTuple):
    """The protocol of a flow. by: content, port or user."""

    dissector: Dissector
    client_is_low: bool
    by: str


# Bytes of the high and of the low endpoint.
Sizes = tuple[int, int]
# Is that all that will be looked at?
Enough = Callable[[Sizes], bool]


def enough_of(flow: Flow, limit: int, one_sided: int) -> Enough:
    """A direction has `limit` bytes. Where a connection is joined in the middle, both have been heard by then, or one
    alone said `one_sided` bytes: it may be in a long answer, and the next request tells more.
    """
    begun = all(half.isn is not None for half in flow.halves)

    def enough(sizes: Sizes) -> bool:
        return max(sizes) >= limit and (begun or min(sizes) > 0 or max(sizes) >= one_sided)

    return enough


def identify(
    flow: Flow,
    heads: tuple[bytes, bytes],
    dissectors: Mapping[str, Dissector],
    forced: tuple[str, int] | None,
    ports: tuple[int, int],
    *,
    final: bool,
    failed: Failed,
    inside: Inside | None = None,
) -> Identity | None:
    """The best match over all dissectors and, where no handshake tells the client, over both orientations.

    `heads` and `ports` are those of the high and the low endpoint, `forced` the (protocol, port) the user gave. final:
    nothing better will come. failed: told which dissector raises. inside: the carrier that the heads were taken out of;
    the name that it gives the protocol counts as much as a usual port.
    """
    waited = final or sum(map(len, heads)) >= WAIT_BYTES
    known = flow.client_is_low if inside is None else inside.client_is_low
    decides = DECIDES if waited or known is not None else CERTAIN
    orientations = (True, False) if known is None else (known,)
    whole = from_beginning(flow, heads) if inside is None else inside.opening is not None
    named = inside.opening.inner if inside is not None and inside.opening is not None else None
    best: tuple[int, int, Identity] | None = None
    asked = [
        (dissector, client_is_low, ports[not client_is_low] in dissector.ports or named in dissector.subprotocols)
        for dissector in dissectors.values() if forced is None or dissector.name == forced[0]
        for client_is_low in orientations
    ]  # fmt: skip
    raised: set[str] = set()
    for dissector, client_is_low, hinted in sorted(asked, key=lambda one: not one[2]):
        beaten = forced is None and best is not None and best[0] > _MOST and not hinted
        if beaten or dissector.name in raised:
            continue
        try:
            content = dissector.probe(heads[client_is_low], heads[not client_is_low], whole)
        except Exception as error:  # another protocol may know the bytes
            failed(dissector.name, caught(error))
            raised.add(dissector.name)
            continue
        score = content + (_PORT_BONUS if hinted and content else 0)
        if forced is not None:
            identity = Identity(dissector, client_is_low, "user")
            score += _USER_BONUS + (_USER_BONUS if ports[not client_is_low] == forced[1] else 0)
        elif content >= decides:
            identity = Identity(dissector, client_is_low, "content")
        elif score >= DECIDES and waited:
            identity = Identity(dissector, client_is_low, "port")
        else:
            continue
        if best is None or (score, hinted) > best[:2]:
            best = (score, int(hinted), identity)
    return None if best is None else best[2]


def from_beginning(flow: Flow, heads: tuple[bytes, bytes]) -> bool:
    """Were the streams seen from their first byte on? heads: a side that was silent so far tells nothing."""
    return all(half.isn is not None for half, head in zip(flow.halves, heads, strict=True) if head)


def when_to_ask(
    queued: Sequence[tuple[bool, Run | Gap]], sizes: Sizes, asked_bytes: int, limit: int, enough: Enough
) -> Iterator[Sizes]:
    """How much of both directions there was whenever it is time to ask again, while `queued` came in.

    In the order of the packets: as soon as what can be looked at (`limit` for each direction) has doubled since the
    last time, and when it is enough. sizes: bytes before; asked_bytes: of them those at the last time.
    """
    arrived = merge(*(_arrived(queued, side) for side in (False, True)))
    now = list(sizes)
    for _, from_low, size in arrived:
        now[from_low] += size
        there = sum(min(limit, each) for each in now)
        last = enough((now[0], now[1]))
        if there >= 2 * asked_bytes or last:
            asked_bytes = there
            yield now[0], now[1]
            if last:
                return


def _arrived(queued: Sequence[tuple[bool, Run | Gap]], side: bool) -> Iterator[tuple[int, bool, int]]:
    """The segments of one side: the packet at which each became readable, the side, and its bytes."""
    for from_low, run in queued:
        if from_low == side and isinstance(run, Run):
            for at, order in enumerate(run.segments.order):
                yield order, side, run.end_of(at) - run.segments.positions[at]

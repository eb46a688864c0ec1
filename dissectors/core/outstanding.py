"""Requests of one flow that wait for a response, for protocols whose responses name their request by an id.

In: requests and responses without one, in the order in which they were read. Out: calls to the decoder that owns
the object, at the moment at which something becomes certain: a request stays unanswered, a response has no request, a
response that was read early has its request after all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.unmatched_responses import EARLY_NS, EarlyFrames

# A request that waits, and where the rows of one feed go.
Request = TypeVar("Request")
Out = TypeVar("Out")
Request_contra = TypeVar("Request_contra", contravariant=True)
Out_contra = TypeVar("Out_contra", contravariant=True)


class Pairing(Protocol[Request_contra, Out_contra]):
    """What becomes of requests and responses; a decoder has these methods. `out` is passed on as it was given."""

    def unanswered(self, request: Request_contra, out: Out_contra) -> None:
        """This request waits no longer."""
        ...

    def given_up(self, request: Request_contra, out: Out_contra) -> None:
        """Nobody waits for the response to this request any more, which may come."""
        ...

    def respond(self, frame: Frame, out: Out_contra) -> None:
        """This response was read before its request, which waits now."""
        ...

    def orphan(self, frame: Frame, out: Out_contra) -> None:
        """The request of this response is not in the capture."""
        ...

    def limit(self, frame: Frame, out: Out_contra, code: str) -> None:
        """A limit was reached at this frame."""
        ...


class Outstanding(Generic[Request, Out]):
    """requests: those that wait, by id, the oldest first. heard: was any response captured? Picklable.

    certain: the id of a request whose response was read early for certain, however much later it was sent.
    lost: bytes of the flow are missing from the capture, so a response that does not come may be among them.
    """

    __slots__ = ("_early", "_limits", "_overtaken", "certain", "heard", "lost", "requests")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._early = EarlyFrames(limits)
        self.requests: dict[int, Request] = {}
        self._overtaken: dict[int, Request] = {}
        self.heard = False
        self.lost = False
        self.certain: int | None = None

    @property
    def early(self) -> Mapping[int, Frame]:
        """Responses that were read before their request, by id."""
        return self._early.waiting

    @property
    def overtakes(self) -> bool:
        """May the response come to a request that a newer one overtook?"""
        return bool(self._overtaken) and not self.lost

    @property
    def apart(self) -> list[int]:
        """The ids of responses that were read before their request, and of requests that newer ones overtook."""
        return [*self._early.waiting, *self._overtaken]

    @property
    def early_bytes(self) -> int:
        """Memory of the responses that were read before their request, roughly."""
        return self._early.held_bytes

    def wait(self, key: int, request: Request, frame: Frame, pairing: Pairing[Request, Out], out: Out) -> None:
        """Hold a request, read in this frame; one with the same id goes, and the oldest when there are too many."""
        requests = self.requests
        if key in self._overtaken:
            pairing.unanswered(self._overtaken.pop(key), out)
        if key in requests:
            pairing.unanswered(requests.pop(key), out)
        elif not self.heard and len(requests) >= self._limits.max_unheard:
            pairing.unanswered(requests.pop(next(iter(requests))), out)
            pairing.limit(frame, out, "unheard_requests")
        elif len(requests) >= self._limits.max_outstanding:
            pairing.given_up(requests.pop(next(iter(requests))), out)
            pairing.limit(frame, out, "outstanding_requests")
        requests[key] = request
        if self._early.waiting:
            self._answer_early(key, frame.ts_ns, pairing, out)

    def take_in_order(self, key: int, pairing: Pairing[Request, Out], out: Out) -> None:
        """The response to a request that waits came, where responses should come in the order of the requests.

        Those to older requests are lost where the capture lost bytes: another request may take their id. Else some of
        the older ones, the latest, go on waiting apart: `take_overtaken`.
        """
        requests = self.requests
        while (oldest := next(iter(requests))) != key:
            self._passed(oldest, requests.pop(oldest), pairing, out)
        del requests[key]
        self.heard = True

    def pass_over(self, keys: Sequence[int], pairing: Pairing[Request, Out], out: Out) -> None:
        """A newer request was answered than these, of which some may wait; the oldest first. See `take_in_order`."""
        for key in keys:
            request = self.requests.pop(key, None)
            if request is not None:
                self._passed(key, request, pairing, out)

    def _passed(self, key: int, request: Request, pairing: Pairing[Request, Out], out: Out) -> None:
        """A newer request was answered before this one."""
        if self.lost:
            pairing.unanswered(request, out)
            return
        self._overtaken[key] = request
        if len(self._overtaken) > self._limits.max_early:
            pairing.given_up(self._overtaken.pop(next(iter(self._overtaken))), out)

    def overtaken(self, key: int) -> Request | None:
        """The request with this id, if a newer one was answered before it and no byte was lost."""
        return None if self.lost else self._overtaken.get(key)

    def take_overtaken(self, key: int) -> None:
        """The response to such a request came."""
        del self._overtaken[key]

    def hold_early(self, key: int, frame: Frame, pairing: Pairing[Request, Out], out: Out) -> None:
        """Keep a response without request: a capture may hold it before its request (several receive queues)."""
        older = self._early.take(key)
        if older is not None:
            pairing.orphan(older, out)
        for gone in self._early.hold(key, frame):
            pairing.limit(frame, out, "early_responses")
            pairing.orphan(gone, out)

    def finish(self, pairing: Pairing[Request, Out], out: Out) -> None:
        """The flow ended: nothing that waits is answered any more."""
        self._end(pairing.unanswered, pairing, out)

    def let_go(self, pairing: Pairing[Request, Out], out: Out) -> None:
        """Hold nothing any more, although the flow goes on."""
        self._end(pairing.given_up, pairing, out)

    def _end(self, tell: Callable[[Request, Out], None], pairing: Pairing[Request, Out], out: Out) -> None:
        for frame in self._early.rest():
            pairing.orphan(frame, out)
        for request in (*self._overtaken.values(), *self.requests.values()):
            tell(request, out)
        self.requests, self._overtaken = {}, {}

    def _answer_early(self, key: int, ts_ns: int, pairing: Pairing[Request, Out], out: Out) -> None:
        """The request with this id and time, whose response may have come before it."""
        frame = self._early.take(key)
        if frame is None:
            return
        if key == self.certain or abs(frame.ts_ns - ts_ns) <= EARLY_NS:
            self.certain = None
            pairing.respond(frame, out)
        else:
            pairing.orphan(frame, out)

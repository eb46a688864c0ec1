"""Which requests wait behind frames that are left for later, told by their headers alone.

In: what waited when the first of these frames came, and the frames. Out: what waits when all of them are decoded, so
that a boundary can be judged without decoding them first. Where streams lost bytes an answer ends the wait of all older
requests. Before the first loss that would have to be decided by their bodies, so answers must come in turn.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.outstanding import Outstanding
from wirewitness.dissectors.core.unmatched_responses import EARLY_NS
from wirewitness.dissectors.kafka.first_request import Asked
from wirewitness.dissectors.kafka.headers import MAX_VERSION, request_header
from wirewitness.dissectors.kafka.operation import operation
from wirewitness.dissectors.kafka.output import Output
from wirewitness.dissectors.kafka.rows.api_rows import PRODUCE
from wirewitness.dissectors.kafka.rows.fields import Request
from wirewitness.dissectors.kafka.sasl import SASL_KEYS

_read_correlation_id = struct.Struct(">i").unpack_from


class Ahead:
    """requests: those that wait, by correlation id, the oldest first. heard: was any response read?"""

    __slots__ = ("_early", "_early_bytes", "_limits", "_lost", "_most", "_most_unheard", "_seen", "heard", "requests")

    def __init__(self, outstanding: Outstanding[Request, Output], limits: Limits) -> None:
        self._limits = limits
        self._most = limits.max_outstanding
        self._most_unheard = min(limits.max_outstanding, limits.max_unheard)
        self._lost = False
        # Responses without request: their times and sizes.
        self._early = {key: (frame.ts_ns, frame.size) for key, frame in outstanding.early.items()}
        self._early_bytes = sum(size for _, size in self._early.values())
        self._seen = 0
        self.heard = outstanding.heard
        self.requests = {key: Asked(one.api_key, one.version) for key, one in outstanding.requests.items()}

    def follow(self, frames: Sequence[Frame], *, lost: bool) -> bool:
        """Take those of the frames that are new. False: headers do not tell, so they must be decoded.

        lost: did the connection lose bytes before them?
        """
        fresh, self._seen = frames[self._seen :], len(frames)
        self._lost = lost
        asked, told = self._asked, self._told
        return all(asked(frame) if frame.direction == CLIENT_TO_SERVER else told(frame) for frame in fresh)

    def _asked(self, frame: Frame) -> bool:
        _, _, data, start, end, _, _, _, ts_ns, _ = frame
        try:
            api_key, version, key, _, body = request_header(data, start + 4, end)
        except DecodeError:
            return True
        if version > MAX_VERSION:
            return True
        if api_key in SASL_KEYS or len(self.requests) >= (self._most if self.heard else self._most_unheard):
            return False
        if api_key == PRODUCE and _wants_no_answer(frame, version, body):
            return True
        self.requests.pop(key, None)
        self.requests[key] = Asked(api_key, version)
        if key in self._early and abs(ts_ns - self._not_early(key)) <= EARLY_NS:
            return self._answer(key)
        return True

    def _told(self, frame: Frame) -> bool:
        _, _, data, start, end, _, _, _, ts_ns, _ = frame
        if end - start < 8:
            return -1 not in self.requests
        key: int = _read_correlation_id(data, start + 4)[0]
        if key in self.requests:
            return self._answer(key)
        if key in self._early:
            self._not_early(key)
        self._early[key] = ts_ns, end - start
        self._early_bytes += end - start
        return len(self._early) <= self._limits.max_early and self._early_bytes <= self._limits.max_early_bytes

    def _not_early(self, key: int) -> int:
        """A response is held no longer; its time."""
        ts_ns, size = self._early.pop(key)
        self._early_bytes -= size
        return ts_ns

    def _answer(self, key: int) -> bool:
        """The oldest request is answered, or, where bytes were lost, a newer one."""
        requests = self.requests
        while (oldest := next(iter(requests))) != key:
            if not self._lost:
                return False
            del requests[oldest]
        del requests[key]
        self.heard = True
        return True


def _wants_no_answer(frame: Frame, version: int, body: int) -> bool:
    """Does a Produce ask for no acknowledgement?"""
    decode = operation(PRODUCE, version).request
    if decode is None:
        return False
    try:
        value, _ = decode(frame.data, body, frame.end)
    except DecodeError:
        return False
    return bool(value["acks"] == 0)

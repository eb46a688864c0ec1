"""Which requests wait behind frames that are left for later, told by their headers alone.

In: what waited when the first of these frames came, and the frames. Out: what waits when all of them are decoded, so
that a boundary can be judged without decoding them first. Only for streams that lost bytes: there an answer ends the
wait of all older requests.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from dissectors.core.early import EARLY_NS
from dissectors.core.errors import DecodeError
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, Frame
from dissectors.core.outstanding import Outstanding
from dissectors.kafka.first_request import Asked
from dissectors.kafka.headers import MAX_VERSION, request_header
from dissectors.kafka.operation import operation
from dissectors.kafka.output import Output
from dissectors.kafka.rows.api_rows import PRODUCE
from dissectors.kafka.rows.fields import Request
from dissectors.kafka.sasl import SASL_KEYS

_read_correlation_id = struct.Struct(">i").unpack_from


class Ahead:
    """requests: those that wait, by correlation id, the oldest first. heard: was any response read?"""

    __slots__ = ("_early", "_early_bytes", "_limits", "_seen", "heard", "requests")

    def __init__(self, outstanding: Outstanding[Request, Output], limits: Limits) -> None:
        self._limits = limits
        # Responses without request: their times and sizes.
        self._early = {key: (frame.ts_ns, frame.size) for key, frame in outstanding.early.items()}
        self._early_bytes = sum(size for _, size in self._early.values())
        self._seen = 0
        self.heard = outstanding.heard
        self.requests = {key: Asked(one.api_key, one.version) for key, one in outstanding.requests.items()}

    def follow(self, frames: Sequence[Frame]) -> bool:
        """Take those of the frames that are new. False: headers do not tell, so they must be decoded."""
        fresh, self._seen = frames[self._seen :], len(frames)
        return all(self._asked(frame) if frame.direction == CLIENT_TO_SERVER else self._told(frame) for frame in fresh)

    def _asked(self, frame: Frame) -> bool:
        try:
            api_key, version, key, _, body = request_header(frame.data, frame.start + 4, frame.end)
        except DecodeError:
            return True
        if version > MAX_VERSION:
            return True
        most = (
            self._limits.max_outstanding if self.heard else min(self._limits.max_outstanding, self._limits.max_unheard)
        )
        if api_key in SASL_KEYS or len(self.requests) >= most:
            return False
        if api_key == PRODUCE and _wants_no_answer(frame, version, body):
            return True
        self.requests.pop(key, None)
        self.requests[key] = Asked(api_key, version)
        if key in self._early:
            ts_ns = self._not_early(key)
            if abs(frame.ts_ns - ts_ns) <= EARLY_NS:
                self._answer(key)
        return True

    def _told(self, frame: Frame) -> bool:
        if frame.end - frame.start < 8:
            return -1 not in self.requests
        key: int = _read_correlation_id(frame.data, frame.start + 4)[0]
        if key in self.requests:
            self._answer(key)
            return True
        if key in self._early:
            self._not_early(key)
        self._early[key] = frame.ts_ns, frame.size
        self._early_bytes += frame.size
        return len(self._early) <= self._limits.max_early and self._early_bytes <= self._limits.max_early_bytes

    def _not_early(self, key: int) -> int:
        """A response is held no longer; its time."""
        ts_ns, size = self._early.pop(key)
        self._early_bytes -= size
        return ts_ns

    def _answer(self, key: int) -> None:
        while (oldest := next(iter(self.requests))) != key:
            del self.requests[oldest]
        del self.requests[key]
        self.heard = True


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

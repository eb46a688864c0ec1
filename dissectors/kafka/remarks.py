"""Remarks of one decoder on its frames. In: what is odd about a frame. Out: rows of `expert_infos`."""

from __future__ import annotations

from collections.abc import Mapping

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.remarks import Remark, Remarks, place_of
from wirewitness.dissectors.kafka.operation import Operation

# What is said once for each connection when a limit was reached.
LIMIT_TEXTS: Mapping[str, str] = {
    "outstanding_requests": "too many requests wait for a response; the oldest are given up, with no status",
    "unheard_requests": "no response was captured so far; only the newest requests go on waiting for one",
    "outstanding_tokens": "too many bare SASL tokens wait for an answer; the oldest are given up, with no status",
    "early_responses": "too many responses wait for a request that may come later; the oldest are given as orphans",
    "fetch_sessions": "fetch sessions are too many or too large to remember; some offsets asked for stay unknown",
    "api_versions": "APIs are too many to remember; kafka_api_versions leaves some out",
    "known_partitions": "partitions are too many to remember; some are told again although nothing changed",
}


class FrameRemarks:
    """Counts what was remarked on one flow. Picklable."""

    __slots__ = ("_most", "_told", "remarks")

    def __init__(self, limits: Limits) -> None:
        self.remarks = Remarks(limits)
        self._most = limits.max_expert_infos
        self._told: set[tuple[int, int]] = set()

    def add(self, frame: Frame, out: Sink, remark: Remark) -> None:
        """Remark on a frame, as long as the flow has not too many remarks."""
        self.remarks.add(place_of(frame), out, remark)

    def limit(self, frame: Frame, out: Sink, code: str) -> None:
        """Say once that a limit was reached."""
        self.remarks.limit(place_of(frame), out, code, LIMIT_TEXTS[code])

    def header(self, frame: Frame, out: Sink, role: str, text: str) -> None:
        """A header that cannot be read."""
        self.add(frame, out, ("error", "malformed", "malformed_message", f"{role} header: {text}"))

    def undecoded(self, frame: Frame, out: Sink, api: tuple[int, int], known: Operation, offer: str | None) -> str:
        """Why a body stays bytes, and what the broker offers; remarked once for each API and version of a flow."""
        code, text = known.undecoded
        text = text if offer is None else f"{text}; {offer}"
        if api not in self._told and len(self._told) < self._most:
            self._told.add(api)
            self.add(frame, out, ("note", "undecoded", code, text))
        return text

    def malformed(self, frame: Frame, out: Sink, known: Operation, role: str, error: DecodeError) -> str:
        """A body that does not follow its schema. Gives the text of the error."""
        text = str(error)
        what = f"{known.name} v{known.version} {role}: {text}"
        self.add(frame, out, ("error", "malformed", "malformed_message", what))
        return text

    def out_of_order(self, frame: Frame, out: Sink, known: Operation, correlation_id: int) -> None:
        """An answer that comes after that to a newer request."""
        what = f"{known.name} (correlation id {correlation_id}) is answered after a request that was sent later"
        self.add(frame, out, ("warn", "protocol", "answer_out_of_order", what))

    def trailing(self, frame: Frame, out: Sink, known: Operation, role: str, count: int) -> None:
        """Bytes behind the last field."""
        text = f"{known.name} v{known.version} {role}: {count} bytes behind the last field"
        self.add(frame, out, ("warn", "malformed", "trailing_bytes", text))

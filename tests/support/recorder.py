"""Decoded values of a capture, taken out of the real pipeline while it runs.

In: paths of captures. Out: one `Recorded` for each exchange, with the values that the decoders gave for request and
response and the endpoints of its connection. The conversation is the product's own; it only keeps a copy of what it
passes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from analyser.capture import EndpointTable, open_captures
from analyser.flows import Flow
from analyser.options import ReadOptions
from analyser.pipeline import Pipeline
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, EXCHANGE_FIELDS, SERVER_TO_CLIENT, Frame
from dissectors.core.protocol import Sink
from dissectors.kafka.conversation import KafkaConversation
from dissectors.kafka.dissector import KAFKA
from dissectors.kafka.rows import Request, Response

End = tuple[str, int]


class Recorded(NamedTuple):
    """One exchange. `status` is that of the exchanges table; orphans, having no request, are not recorded.

    whole: request and response, as far as there are any, are complete messages.
    """

    flow: int
    client: End
    server: End
    request: Request
    response: Response | None
    status: str
    whole: bool


class Recording(NamedTuple):
    """What the pipeline gave: exchanges in the order in which they ended, and all flows by index."""

    exchanges: list[Recorded]
    flows: list[Flow]


class _Seen(NamedTuple):
    """Kept while the pipeline runs; a message is named by (flow, direction, stream offset)."""

    exchanges: list[tuple[int, Request, Response | None]]
    statuses: dict[tuple[int, int], str]  # by flow and offset of the request
    cut: set[tuple[int, int, int]]


def record(paths: Sequence[str | Path], options: ReadOptions | None = None) -> Recording:
    """Run captures through the pipeline and keep every exchange. Raises CaptureError."""
    pipeline = _RecordingPipeline(options or ReadOptions())
    decoded = pipeline.run([source for path in paths for source in open_captures([path])])
    decoded.store.close()
    seen = pipeline.seen
    assert len(seen.exchanges) == len(seen.statuses), "an exchange passed the recorder unseen"
    exchanges = [
        Recorded(
            flow,
            *_ends(decoded.flows[flow], decoded.endpoints),
            request,
            response,
            seen.statuses[flow, request.offset],
            _is_whole(flow, request, response, seen.cut),
        )
        for flow, request, response in seen.exchanges
    ]
    return Recording(exchanges, decoded.flows)


class _RecordingPipeline(Pipeline):
    """The pipeline with a conversation that keeps values."""

    def __init__(self, options: ReadOptions) -> None:
        self.seen = _Seen([], {}, set())
        self._flow = -1
        dissector = replace(KAFKA, conversation=self._conversation)
        super().__init__({KAFKA.name: dissector}, ("exchanges", *KAFKA.rows), options)

    def _consume(self, flow: Flow) -> None:
        self._flow = flow.index  # a conversation begins while its flow is consumed
        super()._consume(flow)

    def _conversation(self, limits: Limits) -> KafkaConversation:
        return _RecordingConversation(limits, self._flow, self.seen)


class _RecordingConversation(KafkaConversation):
    def __init__(self, limits: Limits, flow: int, seen: _Seen) -> None:
        super().__init__(limits)
        self._flow = flow
        self._seen = seen

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        for _, direction, _, _, _, offset, _, _, _, complete in frames:
            if not complete:
                self._seen.cut.add((self._flow, direction, offset))
        before = len(out.rows("exchanges") or ())
        super().feed(frames, out)
        self._keep_statuses(before, out)

    def finish(self, out: Sink) -> None:
        before = len(out.rows("exchanges") or ())
        super().finish(out)
        self._keep_statuses(before, out)

    def _keep_statuses(self, before: int, out: Sink) -> None:
        for row in (out.rows("exchanges") or [])[before:]:
            named = dict(zip(EXCHANGE_FIELDS, row, strict=True))
            if named["request_offset"] is not None:
                self._seen.statuses[self._flow, named["request_offset"]] = named["status"]

    def _kafka_rows(self, request: Request, response: Response | None, sink: Sink) -> None:
        self._seen.exchanges.append((self._flow, request, response))  # every exchange passes here with its values
        super()._kafka_rows(request, response, sink)


def _is_whole(flow: int, request: Request, response: Response | None, cut: set[tuple[int, int, int]]) -> bool:
    if response is not None and (flow, SERVER_TO_CLIENT, response.offset) in cut:
        return False
    return (flow, CLIENT_TO_SERVER, request.offset) not in cut


def _ends(flow: Flow, endpoints: EndpointTable) -> tuple[End, End]:
    """(client, server) of a flow whose protocol is known."""
    pair = endpoints[flow.pair]
    low, high = (pair.low_address, pair.low_port), (pair.high_address, pair.high_port)
    return (low, high) if flow.client_is_low else (high, low)

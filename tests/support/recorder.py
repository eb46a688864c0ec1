"""Decoded values of a capture, taken out of the real pipeline while it runs.

In: paths of captures. Out: one `Recorded` for each exchange, with the values that the decoders gave for request and
response and the endpoints of its connection. The conversation is the product's own; it only keeps a copy of what it
passes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from analyser.capture import EndpointTable, open_captures
from analyser.flows import Flow
from analyser.options import ReadOptions
from analyser.pipeline import Pipeline
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
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
    """What the pipeline gave: exchanges in the order in which they ended; raw rows as dicts, `_flow` is their flow."""

    exchanges: list[Recorded]
    flows: list[Flow]
    endpoints: EndpointTable
    messages: list[dict[str, Any]]
    expert_infos: list[dict[str, Any]]

    def ends(self, flow: int) -> tuple[End, End]:
        """(client, server) of a flow whose protocol is known."""
        return _ends(self.flows[flow], self.endpoints)


def record(paths: Sequence[str | Path], options: ReadOptions | None = None) -> Recording:
    """Run captures through the pipeline and keep every exchange. Raises CaptureError."""
    pipeline = _RecordingPipeline(options or ReadOptions())
    decoded = pipeline.run([source for path in paths for source in open_captures([path])])
    try:
        rows = {name: decoded.store.tables[name] for name in ("messages", "expert_infos")}
        raw = {name: [row for batch in table.batches() for row in batch.to_pylist()] for name, table in rows.items()}
    finally:
        decoded.store.close()
    cut = {(row["_flow"], row["direction"], row["stream_offset"]) for row in raw["messages"] if not row["complete"]}
    exchanges = [
        Recorded(
            flow,
            *_ends(decoded.flows[flow], decoded.endpoints),
            request,
            response,
            status,
            _is_whole(flow, request, response, cut),
        )
        for flow, request, response, status in pipeline.seen
    ]
    return Recording(exchanges, decoded.flows, decoded.endpoints, raw["messages"], raw["expert_infos"])


def _is_whole(flow: int, request: Request, response: Response | None, cut: set[tuple[int, int, int]]) -> bool:
    if response is not None and (flow, SERVER_TO_CLIENT, response.offset) in cut:
        return False
    return (flow, CLIENT_TO_SERVER, request.offset) not in cut


class _RecordingPipeline(Pipeline):
    """The pipeline with a conversation that keeps values; `seen` has (flow, request, response, status)."""

    def __init__(self, options: ReadOptions) -> None:
        self.seen: list[tuple[int, Request, Response | None, str]] = []
        self._flow = -1
        dissector = replace(KAFKA, conversation=self._conversation)
        super().__init__({KAFKA.name: dissector}, ("messages", "exchanges", "expert_infos"), options)

    def _consume(self, flow: Flow) -> None:
        self._flow = flow.index  # a conversation begins while its flow is consumed
        super()._consume(flow)

    def _conversation(self, limits: Limits) -> KafkaConversation:
        return _RecordingConversation(limits, self._flow, self.seen)


class _RecordingConversation(KafkaConversation):
    def __init__(self, limits: Limits, flow: int, seen: list[tuple[int, Request, Response | None, str]]) -> None:
        super().__init__(limits)
        self._flow = flow
        self._seen = seen

    def _exchange(self, request: Request, response: Response | None, status: str, *rest: Any) -> None:
        self._seen.append((self._flow, request, response, status))
        super()._exchange(request, response, status, *rest)


def _ends(flow: Flow, endpoints: EndpointTable) -> tuple[End, End]:
    """(client, server) of a flow whose protocol is known."""
    pair = endpoints[flow.pair]
    low, high = (pair.low_address, pair.low_port), (pair.high_address, pair.high_port)
    return (low, high) if flow.client_is_low else (high, low)

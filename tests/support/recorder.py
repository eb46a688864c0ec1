"""Decoded values of a capture, by way of the real pipeline.

In: paths of captures. Out: one `Recorded` for each exchange, with all that the decoders give for request and response.
Streams, frames, pairing and exchange rows are the product's own; the recorder stands between framing and decoder,
keeps each frame's bytes, and decodes them with the product's decoders once the rows tell what belongs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.capture import EndpointTable, open_captures
from wirewitness.analyser.decoding.run.pipeline import Pipeline
from wirewitness.analyser.tcp.flow import Flow
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, EXCHANGE_FIELDS, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Decoder, Sink
from wirewitness.dissectors.kafka.dissector import KAFKA
from wirewitness.dissectors.kafka.headers import decode_response, request_header, response_header
from wirewitness.dissectors.kafka.operation import TOKEN
from wirewitness.dissectors.kafka.schema.compile import decoder
from wirewitness.dissectors.kafka.schema.primitives import Value

End = tuple[str, int]


class Recorded(NamedTuple):
    """One exchange that has a request.

    row: the raw row of the exchanges table, by name. request, response: the bodies; None where there is no schema, no
    response or no whole message. whole: all messages of the exchange are complete. frames: the bytes of request and
    response, sizes included; None for no response.
    """

    flow: int
    client: End
    server: End
    api_key: int
    correlation_id: int
    row: dict[str, Any]
    request: Value | None
    response: Value | None
    whole: bool
    frames: tuple[bytes, bytes | None]


class Recording(NamedTuple):
    """What the pipeline gave: exchanges in the order in which they ended, and all flows by index."""

    exchanges: list[Recorded]
    flows: dict[int, Flow]


@dataclass(frozen=True, slots=True)
class _Kept:
    """Of one flow: frames (bytes, complete) by direction and stream offset, and rows of the exchanges table."""

    flow: int
    frames: dict[tuple[int, int], tuple[bytes, bool]]
    rows: list[dict[str, Any]]


def record(paths: Sequence[str | Path], options: ReadOptions | None = None) -> Recording:
    """Run captures through the pipeline and keep every exchange. Raises CaptureError."""
    pipeline = _RecordingPipeline(options or ReadOptions())
    decoded = pipeline.run([source for path in paths for source in open_captures([path])])
    decoded.store.close()
    exchanges = [
        _recorded(kept, row, _ends(pipeline.flows[kept.flow], decoded.endpoints))
        for kept in pipeline.kept
        for row in kept.rows
        if row["request_offset"] is not None and row["operation"] != TOKEN.name  # a token has no header
    ]
    return Recording(exchanges, pipeline.flows)


class _RecordingPipeline(Pipeline):
    """The pipeline, with something that listens to every Kafka decoder."""

    def __init__(self, options: ReadOptions) -> None:
        self.kept: list[_Kept] = []
        self.flows: dict[int, Flow] = {}
        self._flow = -1
        dissector = replace(KAFKA, decoder=self._recorded, whole=None)
        super().__init__({KAFKA.name: dissector}, ("exchanges",), options)

    def _consume(self, flow: Flow) -> None:
        self.flows[flow.index] = flow
        self._flow = flow.index  # a decoder begins while its flow is consumed
        super()._consume(flow)

    def _recorded(self, limits: Limits, options: DecodeOptions) -> Decoder:
        self.kept.append(_Kept(self._flow, {}, []))
        return cast(Decoder, _Listener(KAFKA.decoder(limits, options), self.kept[-1]))


class _Listener:
    """Passes everything on to a decoder."""

    def __init__(self, decoder: Any, kept: _Kept) -> None:
        self._decoder = decoder
        self._kept = kept

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """See `Conversation.feed`."""
        for frame in frames:
            data = frame.data[frame.start : frame.end]
            self._kept.frames[frame.direction, frame.stream_offset] = data, frame.complete
        before = len(out.rows("exchanges") or ())
        out.take = None  # rows come as tuples
        self._decoder.feed(frames, out)
        if out.later is not None:  # the rows come at once
            for kind, decoders in out.later.take().items():
                kind.read_together(decoders, out)
            self._decoder.settle(out)
        self._keep_rows(before, out)

    def finish(self, out: Sink) -> None:
        """See `Conversation.finish`."""
        before = len(out.rows("exchanges") or ())
        self._decoder.finish(out)
        self._keep_rows(before, out)

    def __getattr__(self, name: str) -> Any:
        """What else a decoder can do, it does itself."""
        return getattr(self._decoder, name)

    def _keep_rows(self, before: int, out: Sink) -> None:
        for row in (out.rows("exchanges") or [])[before:]:
            self._kept.rows.append(dict(zip(EXCHANGE_FIELDS, row, strict=True)))


def _recorded(kept: _Kept, row: dict[str, Any], ends: tuple[End, End]) -> Recorded:
    asked, whole = kept.frames[CLIENT_TO_SERVER, row["request_offset"]]
    api_key, version, correlation_id, _, body = request_header(asked, 4, len(asked))
    request = _request(asked, api_key, version, body)
    response = answer = None
    if row["response_offset"] is not None:
        answer, answer_whole = kept.frames[SERVER_TO_CLIENT, row["response_offset"]]
        whole = whole and answer_whole
        response = _response(answer, api_key, version)
    return Recorded(kept.flow, *ends, api_key, correlation_id, row, request, response, whole, (asked, answer))


def _request(data: bytes, api_key: int, version: int, body: int) -> Value | None:
    decode = decoder(api_key, version, "request")
    try:
        return None if decode is None else decode(data, body, len(data))[0]
    except DecodeError:
        return None


def _response(data: bytes, api_key: int, version: int) -> Value | None:
    try:
        body = response_header(api_key, version, data, 4, len(data))[1]
        decoded = decode_response(api_key, version, data, body, len(data))
    except DecodeError:
        return None
    return None if decoded is None else decoded[0]


def _ends(flow: Flow, endpoints: EndpointTable) -> tuple[End, End]:
    """(client, server) of a flow whose protocol is known."""
    pair = endpoints[flow.pair]
    low, high = (pair.low_address, pair.low_port), (pair.high_address, pair.high_port)
    return (low, high) if flow.client_is_low else (high, low)

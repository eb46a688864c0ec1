"""WebSocket connections as packets, made by the sans-I/O protocols of `websockets`, an independent encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, ServerPerMessageDeflateFactory
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tests.support.packets import Captured
from tests.support.wire import Talk

PORT = 9001
PATH = "/mqtt?access_token=hush-hush-query"


@dataclass
class WebSocketTalk:
    """One connection; what is sent goes into one packet, or into several at the places that `cut` names."""

    subprotocol: str | None = "mqtt"
    compressed: bool = False
    forgetting: bool = False
    header_fields: Sequence[tuple[str, str]] = ()
    talk: Talk = field(default_factory=lambda: Talk(server=("10.0.0.2", PORT)))
    sent: list[int] = field(default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        names = [Subprotocol(self.subprotocol)] if self.subprotocol else None
        asked = [ClientPerMessageDeflateFactory(client_no_context_takeover=True, server_no_context_takeover=True)]
        kept = [ClientPerMessageDeflateFactory()]
        deflate = (asked if self.forgetting else kept) if self.compressed else None
        uri = parse_uri(f"ws://10.0.0.2:{PORT}{PATH}")
        self.client = ClientProtocol(uri, subprotocols=names, extensions=deflate)
        self.server = ServerProtocol(
            subprotocols=names, extensions=[ServerPerMessageDeflateFactory()] if self.compressed else None
        )

    def open(self) -> WebSocketTalk:
        """TCP handshake and upgrade."""
        self.talk.handshake()
        request = self.client.connect()
        for name, value in self.header_fields:
            request.headers[name] = value
        self.client.send_request(request)
        self._flush(True)
        asked = next(event for event in self.server.events_received() if isinstance(event, Request))
        self.server.send_response(self.server.accept(asked))
        self._flush(False)
        return self

    def binary(self, from_client: bool, data: bytes, *, cut: Sequence[int] = (), fin: bool = True) -> WebSocketTalk:
        """A binary message, or its first frame."""
        self._side(from_client).send_binary(data, fin)
        return self._flush(from_client, cut)

    def text(self, from_client: bool, data: bytes) -> WebSocketTalk:
        """A text message."""
        self._side(from_client).send_text(data)
        return self._flush(from_client)

    def continued(self, from_client: bool, data: bytes, *, fin: bool = True) -> WebSocketTalk:
        """A continuation frame."""
        self._side(from_client).send_continuation(data, fin)
        return self._flush(from_client)

    def ping(self, from_client: bool) -> WebSocketTalk:
        """A ping, and its pong."""
        self._side(from_client).send_ping(b"are you there")
        self._flush(from_client)
        return self._flush(not from_client)

    def raw(self, from_client: bool, data: bytes) -> WebSocketTalk:
        """Bytes that no library would send."""
        self.talk.send(from_client, self.sent[from_client], data, ack=self.sent[not from_client])
        self.sent[from_client] += len(data)
        return self

    def close(self) -> WebSocketTalk:
        """The client closes."""
        self.client.send_close(1000, "done")
        self._flush(True)
        return self._flush(False)

    @property
    def packets(self) -> list[Captured]:
        """All packets so far."""
        return self.talk.packets

    def _side(self, from_client: bool) -> ClientProtocol | ServerProtocol:
        return self.client if from_client else self.server

    def _flush(self, from_client: bool, cut: Sequence[int] = ()) -> WebSocketTalk:
        data = b"".join(self._side(from_client).data_to_send())
        (self.server if from_client else self.client).receive_data(data)
        edges = [0, *(place for place in cut if place < len(data)), len(data)]
        for start, end in pairwise(edges):
            if end > start:
                self.raw(from_client, data[start:end])
        return self

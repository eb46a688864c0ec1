"""The carrier WebSocket (RFC 6455).

wsproto and h11 are imported when a connection looks like one; reading other captures does not wait for them.
"""

from __future__ import annotations

from wirewitness.dissectors.carriers.frames import METHOD, looks_like, may_open, opens
from wirewitness.dissectors.carriers.tls.carrier import NAME as TLS_NAME
from wirewitness.dissectors.core.carrier import Carrier, Opening, Unwrapper
from wirewitness.dissectors.core.limits import Limits


def _opening(client: bytes, server: bytes) -> Opening | None:
    if not client.startswith(METHOD):
        return None
    from wirewitness.dissectors.carriers.upgrade import opening

    return opening(client, server)


def _unwrapper(direction: int, opened: Opening | None, limits: Limits) -> Unwrapper:
    from wirewitness.dissectors.carriers.unwrapping import WebSocketUnwrapper

    return WebSocketUnwrapper(direction, opened, limits)


WEBSOCKET = Carrier("websocket", may_open, _opening, looks_like, _unwrapper, opens=opens, lies_in=(TLS_NAME,))

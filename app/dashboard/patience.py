"""Connections that send no request. In: uvicorn's protocol of HTTP. Out: the same, which closes those after a while.

uvicorn waits without an end for the first request of a connection, and for the rest of one that has begun: whoever can
reach the port would hold all descriptors of the process, and nobody else would be served.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.protocols.http.auto import AutoHTTPProtocol

# A head is a packet or two; a request that the application works on, and its answer, may take any time.
PATIENCE_S = 10.0


def lose_patience() -> None:
    """Servers of uvicorn in this process that begin from now on wait no longer than twice PATIENCE_S."""
    HTTP_PROTOCOLS["auto"] = f"{__name__}:Impatient"


class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # it is the one of what is installed
    """Closes its connection when no request was worked on, and none begun or ended, from one look to the next."""

    _timer: asyncio.TimerHandle | None = None
    _seen: object = None

    def connection_made(self, transport: Any) -> None:
        """See asyncio."""
        super().connection_made(transport)
        self._look(transport, first=True)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self, transport: Any, *, first: bool = False) -> None:
        # A WebSocket has another protocol from its upgrade on, and pings of its own.
        if transport.is_closing() or transport.get_protocol() is not self:
            return
        request = self.cycle
        if not first and request is self._seen and (request is None or request.response_complete):
            transport.close()
            return
        self._seen = request
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._look, transport)

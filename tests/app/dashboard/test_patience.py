"""What a server of the dashboard does with connections that ask for nothing, or begin to and do not go on."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from wirewitness.app.dashboard import patience
from wirewitness.app.dashboard.patience import lose_patience

SLOW_S = 2.0
MOST_S = 120.0


async def _app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await asyncio.sleep(SLOW_S)
        await send({"type": "websocket.close"})
    elif scope["type"] == "http":
        if scope["path"] == "/slow":
            await asyncio.sleep(SLOW_S)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})


async def _answers(asked: list[bytes]) -> list[bytes]:
    """All that each connection gets until the server closes it; none of them is closed from here."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(_app, lifespan="off", log_level="critical", timeout_keep_alive=600))
    serving = asyncio.create_task(server.serve([listening]))

    async def answer(data: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(data)
        found = await asyncio.wait_for(reader.read(), MOST_S)
        writer.close()
        return found

    try:
        return await asyncio.gather(*map(answer, asked))
    finally:
        server.should_exit = True
        await serving


def test_connections_without_a_request_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", SLOW_S / 20)
    monkeypatch.setitem(uvicorn.config.HTTP_PROTOCOLS, "auto", uvicorn.config.HTTP_PROTOCOLS["auto"])
    lose_patience()
    head = b"GET /slow HTTP/1.1\r\nHost: localhost\r\n"
    upgrade = (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    told = asyncio.run(
        _answers(
            [
                b"",
                head,
                b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx",
                head + b"\r\n",
                head + b"\r\n" + b"GET / HTTP/1.1\r\n",
                head + upgrade,
            ]
        )
    )
    assert told[:2] == [b"", b""]
    assert all(one.endswith(b"done") for one in told[2:5])  # whatever it took
    assert b"101 Switching" in told[5]
    assert b"\x88" in told[5][-6:]  # closed by the application

"""A proxy that resets a connection as soon as a word comes from its client, as filters for web traffic do.

In: LISTEN TARGET WORD, the first two HOST:PORT. Out: a JSON line `listening`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import sys

from proxy import carry

AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: a close is a reset


async def filtered(source: asyncio.StreamReader, target: asyncio.StreamWriter, word: bytes) -> bool:
    """Carry bytes until their sender has ended; True as soon as WORD is among them."""
    while data := await source.read(65_536):
        if word in data:
            return True
        target.write(data)
        await target.drain()
    return False


async def main() -> None:
    """Serve until the process is ended."""
    listen, target, word = sys.argv[1:]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = target.split(":")
        there, back = await asyncio.open_connection(host, int(port))
        answers = asyncio.create_task(carry(there, writer))
        with contextlib.suppress(OSError):
            if await filtered(reader, back, word.encode()):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                writer.transport.abort()
        back.close()
        with contextlib.suppress(OSError):
            await answers

    host, port = listen.split(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({"event": "listening"}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

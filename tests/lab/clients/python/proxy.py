"""A proxy of TCP connections with the faults that proxies have.

In: LISTEN TARGETS LIFETIME_S, the first HOST:PORT, the second of them separated by commas, taken in turn; a connection
is ended after LIFETIME_S (0: never). A target that refuses: the client's connection is closed. Out: a line `listening`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys


async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Carry bytes until their sender has ended, and end the other side then."""
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    target.close()


async def main() -> None:
    """Serve until the process is ended."""
    listen, targets, lifetime = sys.argv[1], itertools.cycle(sys.argv[2].split(",")), float(sys.argv[3])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = next(targets).split(":")
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(lifetime or None):
                await asyncio.gather(carry(reader, back), carry(there, writer))
        back.close()
        writer.close()

    host, port = listen.split(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({"event": "listening"}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

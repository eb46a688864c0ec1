"""A proxy of TCP connections that ends those on which nothing was said for a while.

In: LISTEN TARGET IDLE_S, the first two HOST:PORT. Out: a JSON line `listening`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys


async def carry(source: asyncio.StreamReader, target: asyncio.StreamWriter, said: asyncio.Event) -> None:
    """Carry bytes until their sender has ended, and say so each time."""
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            said.set()
            target.write(data)
            await target.drain()


async def main() -> None:
    """Serve until the process is ended."""
    listen, target, idle_s = sys.argv[1:]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = target.split(":")
        there, back = await asyncio.open_connection(host, int(port))
        said = asyncio.Event()
        works = [asyncio.create_task(carry(*ends, said)) for ends in ((reader, back), (there, writer))]
        while not any(work.done() for work in works):
            said.clear()
            try:
                await asyncio.wait_for(said.wait(), float(idle_s))
            except TimeoutError:
                break
        for work in works:
            work.cancel()
        for end in (back, writer):
            end.close()

    host, port = listen.split(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({"event": "listening"}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

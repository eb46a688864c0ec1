"""A balancer of TCP connections: each goes to one of its targets, drawn by lot or in turns.

In: LISTEN TARGET..., each HOST:PORT; before them perhaps the word `turns`, or `age=SECONDS`, after which a connection
is ended, whatever passes on it. Out: a JSON line `listening`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
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
    words = sys.argv[1:]
    turns = words[0] == "turns"
    age_s = float(words[0].partition("=")[2]) if words[0].startswith("age=") else None
    listen, *targets = words[turns or age_s is not None :]
    order = itertools.cycle(targets) if turns else iter(lambda: random.choice(targets), None)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = next(order).split(":")
        there, back = await asyncio.open_connection(host, int(port))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(carry(reader, back), carry(there, writer)), age_s)
        back.close()
        writer.close()

    host, port = listen.split(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({"event": "listening"}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

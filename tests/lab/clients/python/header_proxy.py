"""A proxy that tells its target with a line of the PROXY protocol who has connected, wanted or not.

In: LISTEN TARGET, both HOST:PORT. Out: a JSON line `listening`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

from proxy import carry


async def main() -> None:
    """Serve until the process is ended."""
    listen, target = sys.argv[1:]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = target.split(":")
        there, back = await asyncio.open_connection(host, int(port))
        source, own = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        back.write(f"PROXY TCP4 {source[0]} {own[0]} {source[1]} {own[1]}\r\n".encode())
        with contextlib.suppress(OSError):
            await asyncio.gather(carry(reader, back), carry(there, writer))

    host, port = listen.split(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({"event": "listening"}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

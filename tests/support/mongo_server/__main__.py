"""The test server as a program: `python -m tests.support.mongo_server --address A --port N`.

More options: --compressors snappy,zlib,zstd (those it takes), --user NAME:PASSWORD (then clients must authenticate),
--secondary PORT (another member, which learns of new documents --lag-s later), --calls-itself HOST:PORT (the address
that it advertises), --max-wire-version N, --also HOST:PORT (a member that is not there), --max-connections N,
--cursor-s, --transaction-s, --scan-s, --build-s (context.Limits).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import ExitStack

from tests.support.mongo_server.context import Limits
from tests.support.mongo_server.server import Server, serving


def main() -> None:
    """Serve until SIGTERM; prints one JSON line when it listens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--compressors", default="")
    parser.add_argument("--user", action="append", default=[])
    parser.add_argument("--secondary", type=int)
    parser.add_argument("--lag-s", type=float, default=0.0)
    parser.add_argument("--calls-itself")
    parser.add_argument("--max-wire-version", type=int)
    parser.add_argument("--also")
    parser.add_argument("--max-connections", type=int)
    parser.add_argument("--cursor-s", type=float)
    parser.add_argument("--transaction-s", type=float)
    parser.add_argument("--scan-s", type=float, default=0.0)
    parser.add_argument("--build-s", type=float, default=0.0)
    words = parser.parse_args()
    compressors = tuple(filter(None, words.compressors.split(",")))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Server((words.address, words.port), compressors, tuple(words.user)) as server, ExitStack() as stack:
        if words.secondary is not None:
            place = (words.address, words.secondary)
            second = Server(place, compressors, tuple(words.user), follows=server, lag_s=words.lag_s)
            serving(stack.enter_context(second))
        if words.calls_itself is not None:
            server.context.member.calls_itself(words.calls_itself)
        if words.max_wire_version is not None:
            server.context.member.max_wire_version = words.max_wire_version
        if words.also is not None:
            server.context.member.joined_by(words.also)
        server.context.limits = Limits(
            words.cursor_s, words.transaction_s, words.max_connections, words.scan_s, words.build_s
        )
        server.context.store.transaction_s = words.transaction_s
        print(json.dumps({"event": "listening"}), flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()

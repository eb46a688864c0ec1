"""The test server as a program: `python -m tests.support.mongo_server --address A --port N`.

More options: --compressors snappy,zlib,zstd (those it takes), --user NAME:PASSWORD (then clients must authenticate).
"""

from __future__ import annotations

import argparse
import json
import signal
import sys

from tests.support.mongo_server.server import Server


def main() -> None:
    """Serve until SIGTERM; prints one JSON line when it listens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--compressors", default="")
    parser.add_argument("--user", action="append", default=[])
    words = parser.parse_args()
    compressors = tuple(filter(None, words.compressors.split(",")))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Server((words.address, words.port), compressors, tuple(words.user)) as server:
        print(json.dumps({"event": "listening"}), flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()

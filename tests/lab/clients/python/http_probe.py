"""A health check of the incidents that speaks HTTP to whatever listens.

In: a URL. Out: a JSON line per try; SIGTERM ends it.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request

PAUSE_S = 1.0


def main() -> None:
    """Ask again and again."""
    while True:
        try:
            urllib.request.urlopen(sys.argv[1], timeout=3).read()
            said = "answered"
        except (OSError, ValueError) as error:
            said = repr(error)
        print(json.dumps({"event": "asked", "said": said}), flush=True)
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()

"""`wirewitness live` for a dashboard: it ends, and what it shared is removed, when the dashboard does.

In: the words of the command line; the folder that it shares stands behind `--share`.
"""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

from wirewitness.analyser.decoding.run.parent import end_with_parent


def main() -> None:
    """Runs the command."""
    gone = end_with_parent(signal.SIGINT)
    shared = Path(sys.argv[sys.argv.index("--share") + 1])
    from wirewitness.app.cli.main import main as run

    try:
        run()
    finally:
        if gone.is_set():
            shutil.rmtree(shared, ignore_errors=True)
            with suppress(OSError):  # other captures of that dashboard still lie there
                shared.parent.rmdir()


if __name__ == "__main__":
    main()

"""A program that does not outlive the one that started it. In: standard input, a pipe that the parent holds.

However the parent ends, by SIGKILL too, the pipe is closed then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

_PATIENCE_S = 30.0


def end_with_parent(number: signal.Signals, patience_s: float = _PATIENCE_S) -> threading.Event:
    """Send that signal to this process when standard input is closed, and end it should it not go by itself.

    The event is set from then on.
    """
    gone = threading.Event()

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1 << 12):
            pass
        gone.set()
        os.kill(os.getpid(), number)
        time.sleep(patience_s)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    return gone

"""A child process that is killed between two file operations: SIGKILL at the n-th change of names below a folder.

In: a function and a number. Out: did it come to its end? The operations are those that Python's audit events tell.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}


def killed_at(step: int, folder: Path, act: Callable[[], object]) -> bool:
    """Run `act` in a forked child and kill it before its operation number `step` (from 0); False when it ended."""
    child = os.fork()
    if child == 0:
        left = step

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if event not in _EVENTS or not any(str(folder) in str(one) for one in arguments):
                return
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

        sys.addaudithook(watch)
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        assert os.WTERMSIG(ended) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(ended) == 0, "the child failed by itself"
    return False

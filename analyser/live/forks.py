"""Questions that a copy of this process answers, while this one goes on reading packets.

In: a function. Out: its result, some time later. The copy (a fork) has everything as it was at one moment, so it may
finish what is open, as if the capture ended there, and needs no memory of its own for what does not change. Writing
all rows out for another program instead costs a copy of the window for every question. The thread that asks is the
only one here and uses no DuckDB before its end; Arrow's threads are made anew in a copy.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

Answer = TypeVar("Answer")
MOST_S = 120.0
_PIECE_BYTES = 1 << 20


class CopyFailed(RuntimeError):
    """There is no copy, or it ended without an answer; the text says why."""


class Answered(NamedTuple):
    """An answer, how long it took, and how much of the processor's time."""

    value: Any
    seconds: float
    cpu_s: float


class Copy(Generic[Answer]):
    """A copy of this process that answers one question. Raises CopyFailed where the system makes none."""

    def __init__(self, question: Callable[[], Answer], nice: int = 0) -> None:
        """nice: by how much it gives way to other processes."""
        self._began = time.monotonic()
        self._pieces: list[bytes] = []
        self._reader, writer = os.pipe()
        try:
            self._pid = os.fork()
        except OSError as error:
            os.close(self._reader)
            os.close(writer)
            raise CopyFailed(f"no copy of this process can be made: {error.strerror}") from error
        if self._pid == 0:
            os.close(self._reader)
            _answer(question, writer, nice)
        os.close(writer)

    def answer(self, wait_s: float = 0.0) -> Answered | None:
        """The answer if it is there within this time. Raises CopyFailed."""
        until = time.monotonic() + wait_s
        while select.select([self._reader], [], [], max(until - time.monotonic(), 0))[0]:
            piece = os.read(self._reader, _PIECE_BYTES)
            if not piece:
                return self._end()
            self._pieces.append(piece)
        if time.monotonic() - self._began > MOST_S:
            self.close()
            raise CopyFailed(f"no answer within {MOST_S:.0f} s")
        return None

    def close(self) -> None:
        """Give up the question."""
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            os.close(self._reader)
            self._pid = 0

    def _end(self) -> Answered:
        os.close(self._reader)
        _, status, used = os.wait4(self._pid, 0)
        self._pid = 0
        if status or not self._pieces:
            raise CopyFailed(f"it ended with status {os.waitstatus_to_exitcode(status)}")
        is_answer, value = pickle.loads(b"".join(self._pieces))
        if not is_answer:
            raise CopyFailed(value)
        return Answered(value, time.monotonic() - self._began, used.ru_utime + used.ru_stime)


def _answer(question: Callable[[], Any], writer: int, nice: int) -> None:
    """In the copy: answer and end; nothing of the original's endings is run."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(OSError):
            os.nice(nice)
        try:
            told = (True, question())
        except Exception as error:
            told = (False, f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(told, pipe)
        status = 0
    finally:
        os._exit(status)

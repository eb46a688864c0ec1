"""Messages from the program that captures to the one that analyses. In: messages. Out: bytes in a pipe.

The pipe is never waited for: what it does not take is held back here, and when that is too much, packets are dropped
and counted, so that capturing goes on and memory is bounded.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections import deque
from contextlib import suppress

HEAD = struct.Struct("=cI")
# Kinds of messages: packets (a piece of pcapng), a new capture begins (its name), state (JSON), a line for people.
PACKETS, CAPTURE, STATE, LINE = b"P", b"C", b"S", b"L"
_SET_PIPE_SIZE, _PIPE_BYTES = 1031, 1 << 20


class Outlet:
    """Writes to a pipe without waiting. dropped: packets that were not passed on."""

    def __init__(self, descriptor: int, most_bytes: int) -> None:
        self._descriptor = descriptor
        self._most_bytes = most_bytes
        self._waiting: deque[memoryview] = deque()
        self.held_bytes = 0
        self.dropped = 0
        os.set_blocking(descriptor, False)
        with suppress(OSError):  # no pipe, or more than this user may have
            fcntl.fcntl(descriptor, _SET_PIPE_SIZE, _PIPE_BYTES)

    def send(self, kind: bytes, body: bytes, packets: int = 0) -> None:
        """Pass a message on; packets, and state that will be told again, are dropped when too much is held back."""
        if (packets or kind == STATE) and self.held_bytes + len(body) > self._most_bytes:
            self.dropped += packets
            return
        for piece in (HEAD.pack(kind, len(body)), body):
            if piece:
                self._waiting.append(memoryview(piece))
                self.held_bytes += len(piece)
        self.flush()

    def flush(self) -> None:
        """Write what the pipe takes now. BrokenPipeError when nobody reads any more."""
        while self._waiting:
            piece = self._waiting[0]
            try:
                count = os.write(self._descriptor, piece)
            except BlockingIOError:
                return
            self.held_bytes -= count
            if count < len(piece):
                self._waiting[0] = piece[count:]
            else:
                self._waiting.popleft()

    def finish(self) -> None:
        """Write everything, however long it takes."""
        os.set_blocking(self._descriptor, True)
        self.flush()

"""Packets on their way from whoever captures to the pipeline.

In: a descriptor with messages (`analyser/capture/message_pipe.py`) or with a capture. Out: sources that the pipeline
reads. While nothing comes, `idle` is called a few times a second, so that one thread does it all.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from wirewitness.analyser.capture import Source
from wirewitness.analyser.capture.growing import Waiting
from wirewitness.analyser.capture.message_pipe import CAPTURE, HEAD, LINE, PACKETS, STATE

IDLE_EVERY_S = 0.1

Idle = Callable[[], None]


@dataclass(slots=True)
class CaptureState:
    """How capturing goes. packets: captured; kernel_drops, backlog_drops: dropped for want of room by the kernel and
    by us; backlog_bytes: waiting for the analysis; writing_stopped: a file could not be written, so packets are missing
    in it; own_fault: the capturing program had a fault of our own, which a line says. None of them is known of a
    capture that somebody else takes."""

    packets: int | None = None
    kernel_drops: int | None = None
    backlog_drops: int | None = None
    backlog_bytes: int | None = None
    interfaces_up: list[str] | None = None
    file: str | None = None
    writing_stopped: bool = False
    own_fault: bool = False
    lines: list[str] = field(default_factory=list)

    def update(self, told: dict[str, Any]) -> None:
        """Take what the capturing program said; what it does not say stays."""
        for name, value in told.items():
            if name in self.__slots__ and name != "lines":
                setattr(self, name, value)


class Messages:
    """Reads the messages of the capturing program; each capture in them is a source."""

    def __init__(self, descriptor: int, state: CaptureState, idle: Idle) -> None:
        self.state = state
        self._descriptor, self._idle = descriptor, idle
        self._left = 0
        self._next: str | None = None
        self._over = False

    def sources(self) -> Iterator[Source]:
        """One source for each capture, in the order of time."""
        while not self._over and self._next is None:
            self.wait()
        while self._next is not None:
            name, self._next = self._next, None
            yield Source(name, stream=cast(BinaryIO, _Capture(self)))

    def fileno(self) -> int:
        """The pipe's descriptor."""
        return self._descriptor

    def read(self, target: memoryview) -> int | None:
        """Bytes of the current capture; None: nothing yet, 0: it is over."""
        if not self._left:
            if self._next is not None or self._over:
                return 0
            self.wait()
            if not self._left:
                return 0 if self._next is not None or self._over else None
        count = os.readv(self._descriptor, [target[: self._left]])
        self._left -= count
        if not count:
            self._over = True
        return count

    def wait(self) -> None:
        """Wait a little for the next message and take it; packets are left in the pipe."""
        if not select.select([self._descriptor], [], [], IDLE_EVERY_S)[0]:
            self._idle()
            return
        head = self._exactly(HEAD.size)
        if len(head) < HEAD.size:
            self._over = True
            return
        kind, length = HEAD.unpack(head)
        if kind == PACKETS:
            self._left = length
            return
        body = self._exactly(length)
        if kind == CAPTURE:
            self._next = body.decode("utf-8", "surrogateescape")
        elif kind == STATE and len(body) == length:
            self.state.update(json.loads(body))
        elif kind == LINE:
            self.state.lines.append(body.decode("utf-8", "surrogateescape"))

    def abandon(self) -> None:
        """What is still on its way is not read."""
        self._left, self._next, self._over = 0, None, True

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count and (part := os.read(self._descriptor, count)):
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class _Capture(Waiting):
    """The stream of one capture among messages."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._messages.fileno()

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto."""
        count = self._messages.read(memoryview(target).cast("B"))
        while count is None and self.waits:
            count = self._messages.read(memoryview(target).cast("B"))
        return count


class Watched(Waiting):
    """A stream of pcap from a pipe, a socket or a file. stopped: asked while waiting; True ends the stream."""

    def __init__(self, descriptor: int, idle: Idle, stopped: Callable[[], bool]) -> None:
        self._descriptor, self._idle, self._stopped = descriptor, idle, stopped

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, target: Any) -> int | None:
        """As io.RawIOBase.readinto."""
        while True:
            if self._stopped():
                return 0
            if select.select([self._descriptor], [], [], IDLE_EVERY_S)[0]:
                return os.readv(self._descriptor, [memoryview(target).cast("B")])
            self._idle()
            if not self.waits:
                return None

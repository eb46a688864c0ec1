"""What is spent on all MQTT servers: memory as one budget (`dissectors/core/budget.py`), and work.

In: what each server holds, with the overhead of objects. Out: servers that are told to let go, those that hold most
first, and how much more work is allowed. The weights were measured on CPython 3.11; each is at least what its objects
take where they are small.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from wirewitness.dissectors.core.budget import Budget

MOST_BYTES = 512 << 20
# Steps of work (`mqtt_deliveries.py`) that all servers may do beyond those that each message allows.
MOST_STEPS = 4_000_000
# A message with its names, beside its topic; what waits for it, and each who is waited for.
MESSAGE_BYTES, WAITING_BYTES, TARGET_BYTES = 600, 1_000, 120
# A filter of one connection, and each of its levels: in the tree of the server and in that of the connection.
FILTER_BYTES, LEVEL_BYTES = 600, 800
# A client that may come back, and each of its filters.
AWAY_BYTES = 400


class Holder(Protocol):
    """A server."""

    @property
    def waiting_bytes(self) -> int:
        """What it could let go of."""
        ...

    def let_go(self) -> None:
        """Wait for nothing that happened before."""
        ...


class Memory:
    """What all servers hold. has_let_go: since somebody set it to False."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._budget = Budget(most_bytes)
        self._lasting_bytes = 0
        self._steps = MOST_STEPS
        self._holders: list[Holder] = []
        self.has_let_go = False

    @property
    def held_bytes(self) -> int:
        """Of all."""
        return self._budget.held_bytes

    def join(self, holder: Holder) -> None:
        """One more server."""
        self._holders.append(holder)

    def change(self, more_bytes: int) -> None:
        """Somebody holds so much more, or less."""
        self._budget.held_bytes += more_bytes

    def take_steps(self, wanted: int) -> int:
        """So many, or what is left."""
        taken = min(wanted, self._steps)
        self._steps -= taken
        return taken

    def take_lasting(self, more_bytes: int) -> bool:
        """Somebody will hold so much and not let go of it, or does so no longer. False where there is no room: the rest
        is for what waits."""
        if more_bytes > 0 and self._lasting_bytes + more_bytes > self._budget.most_bytes * 3 // 4:
            return False
        self._lasting_bytes += more_bytes
        self.change(more_bytes)
        return True

    def keep_within(self) -> None:
        """Where too much is held, those that hold most let go."""
        if self._budget.is_exceeded:
            for holder in sorted(self._holders, key=lambda one: one.waiting_bytes, reverse=True):
                if self._budget.is_ample or not holder.waiting_bytes:
                    break
                holder.let_go()
                self.has_let_go = True


def waiting_bytes(topic: str, targets: Sized) -> int:
    """A message that waits for so many."""
    return MESSAGE_BYTES + WAITING_BYTES + len(topic) + TARGET_BYTES * len(targets)


def filter_bytes(topic_filter: str) -> int:
    """A connection's filter."""
    return FILTER_BYTES + LEVEL_BYTES * (topic_filter.count("/") + 1)

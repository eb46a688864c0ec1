"""Which record of one direction is this, and under which key? In: records, one by one. Out: their content.

Each record has a number, which is not sent but goes into its tag. In the ordinary course the number and the key are
known. Under a new key, behind a loss, or where early data was refused, the next numbers and keys are tried, within
limits; a tag that fits is proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wirewitness.dissectors.carriers.tls.hello import Hellos
from wirewitness.dissectors.carriers.tls.keylog import KeyRing
from wirewitness.dissectors.carriers.tls.schedule import DATA, Schedule
from wirewitness.dissectors.carriers.tls.suites import Suite

if TYPE_CHECKING:
    from wirewitness.dissectors.carriers.tls.opening_records import RecordKeys

# So many numbers are tried at most.
_MOST_NUMBERS = 4096
# Bytes that may be tried in vain: some for each byte that came, so that the time follows the size of the stream.
_TRIES_AT_FIRST, _TRIES_PER_BYTE, _TRY_BYTES = 32 << 20, 8, 200


class Opener:
    """Opens the records of one direction.

    epoch, generation, number: of the record that is expected next; `keys` open it, None where that is still to be
    found out. has_opened: some record was opened. Its state is kept without keys.
    """

    def __init__(self, direction: int, hellos: Hellos, suite: Suite | None, ring: KeyRing) -> None:
        self._schedule = Schedule(direction, hellos, suite, ring)
        self.keys: RecordKeys | None = None
        self.epoch, self.generation, self.number = self._schedule.first, 0, 0
        self.has_opened = False
        self._is_13 = hellos.server.is_13
        self._passed = 0
        self._tries = _TRIES_AT_FIRST

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "keys": None}

    def use(self, ring: KeyRing) -> None:
        """Look keys up in this ring from here on."""
        self._schedule.use(ring)
        self.keys = None

    @property
    def has_secrets(self) -> bool:
        """Is there a secret for this connection and direction, whatever for?"""
        return self._schedule.has_any

    @property
    def can_go_on(self) -> bool:
        """Is there a secret for what comes next, or for something behind that?"""
        return any(self._schedule.keys(epoch, generation) for epoch, generation, _ in self._ahead())

    @property
    def lead(self) -> int:
        """Bytes of a record in front of those that became content."""
        return 0 if self.keys is None else self.keys.lead

    def allow(self, size: int) -> None:
        """So many more bytes came."""
        self._tries = min(self._tries + _TRIES_PER_BYTE * size, _TRIES_AT_FIRST)

    def open(self, kind: int, record: bytes) -> bytes | None:
        """The content of the next record; None when it cannot be opened, and then the next one may have its number."""
        if self.keys is None:
            return self.find(kind, record, 1)
        content = self.keys.open(self.number, kind, record)
        self.number += content is not None
        return content

    def passed(self) -> None:
        """A record went by without being opened: the next one may have a number more."""
        self._passed += 1
        self.keys = None

    def find(self, kind: int, record: bytes, numbers: int) -> bytes | None:
        """Open a record that is one of the next `numbers` behind those that passed, under these keys or later ones."""
        cost = len(record) + _TRY_BYTES
        many = min(numbers + self._passed, _MOST_NUMBERS)
        for epoch, generation, first in self._ahead():
            for keys in self._schedule.keys(epoch, generation):
                for number in range(first, first + many):
                    if self._tries < cost:
                        return None
                    content = keys.open(number, kind, record)
                    if content is not None:
                        self.keys, self.has_opened, self._passed = keys, True, 0
                        self.epoch, self.generation, self.number = epoch, generation, number + 1
                        return content
                    self._tries -= cost
        return None

    def turn(self, epoch: int, generation: int) -> None:
        """The records that follow are under these keys."""
        self.epoch, self.generation, self.number, self.keys, self._passed = epoch, generation, 0, None, 0

    def _ahead(self) -> Iterator[tuple[int, int, int]]:
        """Which keys may be in use by now, and the first number under them."""
        yield self.epoch, self.generation, self.number
        if self._is_13 and self.epoch == DATA:
            yield DATA, self.generation + 1, 0
        for epoch in range(self.epoch + 1, DATA + 1):
            yield epoch, 0, 0

"""Which record of one direction is this, and under which key? In: records, one by one. Out: their content.

Each record has a number, which is not sent but goes into its tag. In the ordinary course the number and the key are
known. Under a new key, behind a loss, or where early data was refused, the next numbers and keys are tried, within
limits; a tag that fits is proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from wirewitness.dissectors.carriers.tls.hello import APPLICATION_DATA, RECORD_HEADER_BYTES, Hellos
from wirewitness.dissectors.carriers.tls.keylog import KeyRing
from wirewitness.dissectors.carriers.tls.schedule import DATA, Schedule
from wirewitness.dissectors.carriers.tls.search import MOST_RECORD_BYTES
from wirewitness.dissectors.carriers.tls.suites import Suite
from wirewitness.dissectors.core.carrier import Carried
from wirewitness.dissectors.core.pool import Pool

if TYPE_CHECKING:
    from wirewitness.dissectors.carriers.tls.opening_records import RecordKeys

# Many records of one direction at once, in the ordinary course: whole, under known keys, with nothing but data.
#
# In: bytes that begin with a record. Out: the data of each, up to the first record that is something else.


class WholeRecords(NamedTuple):
    """data, starts, behind: as in `Pieces`; a record without data has none. opened: how many records these are.

    used: so many bytes. is_all: what is left is the beginning of a record, or nothing.
    """

    data: list[bytes]
    starts: list[int]
    behind: list[int]
    opened: int
    used: int
    is_all: bool


def whole_records(data: bytes, offset: int, keys: RecordKeys, number: int, *, is_13: bool) -> WholeRecords:
    """The records from the beginning of `data` on, which lies at this outer offset; `number` is that of the first."""
    found, starts, behind = list[bytes](), list[int](), list[int]()
    view, size, at, first = memoryview(data), len(data), 0, number
    begin = RECORD_HEADER_BYTES + keys.lead
    is_all, open_record = True, keys.open
    while at + RECORD_HEADER_BYTES <= size:
        end = at + RECORD_HEADER_BYTES + (data[at + 3] << 8 | data[at + 4])
        if data[at] != APPLICATION_DATA or data[at + 1] != 3 or end - at > MOST_RECORD_BYTES + RECORD_HEADER_BYTES:
            is_all = False
            break
        if end > size:
            break
        content = open_record(number, APPLICATION_DATA, view[at + RECORD_HEADER_BYTES : end])
        if content and is_13:
            content = content[:-1] if content[-1] == APPLICATION_DATA else _without_padding(content)
        if content is None:
            is_all = False
            break
        if content:
            found.append(content)
            starts.append(offset + at + begin)
            behind.append(offset + end)
        number += 1
        at = end
    return WholeRecords(found, starts, behind, number - first, at, is_all)


def _without_padding(content: bytes) -> bytes | None:
    """Without type and padding (RFC 8446, 5.4); None where it is something else than data."""
    content = content.rstrip(b"\0")
    return content[:-1] if content[-1:] == bytes([APPLICATION_DATA]) else None


# Data that a client sends before the server answered (RFC 8446, 2.3). In: pieces. Out: the same, once the server took
# them, which the client says with EndOfEarlyData; what was refused is sent again as ordinary data.

# Servers take 16 KiB, some more.
MOST_EARLY_BYTES = 1 << 16


class EarlyData:
    """Pieces that wait."""

    def __init__(self) -> None:
        self._pieces: list[Carried] = []
        self._bytes = 0

    @property
    def start(self) -> int | None:
        """Outer offset of the first byte that waits."""
        return self._pieces[0].start if self._pieces else None

    def add(self, piece: Carried) -> None:
        """One more; beyond what is usual all are let go."""
        self._pieces.append(piece)
        self._bytes += len(piece.data)
        if self._bytes > MOST_EARLY_BYTES:
            self.refused()

    def taken(self) -> list[Carried]:
        """All of them."""
        found, self._pieces, self._bytes = self._pieces, [], 0
        return found

    def refused(self) -> None:
        """None of them."""
        self._pieces, self._bytes = [], 0


# So many numbers are tried at most.
_MOST_NUMBERS = 4096
# Bytes that may be tried in vain: some for each byte that came, so that the time follows the size of the stream; those
# at first are drawn from what all connections share.
_TRIES_AT_FIRST, _TRIES_PER_BYTE = 32 << 20, 8


class Opener:
    """Opens the records of one direction.

    epoch, generation, number: of the record that is expected next; `keys` open it, None where that is still to be
    found out. has_opened: some record was opened. Its state is kept without keys.
    """

    def __init__(self, direction: int, hellos: Hellos, suite: Suite | None, ring: KeyRing, tries: Pool) -> None:
        """tries: see `Limits.tls_tries`."""
        self._schedule = Schedule(direction, hellos, suite, ring)
        self.keys: RecordKeys | None = None
        self.epoch, self.generation, self.number = self._schedule.first, 0, 0
        self.has_opened = False
        self._is_13 = hellos.server.is_13
        self._passed = 0
        self._tries, self._earned = _TRIES_AT_FIRST, 0
        self._of_all = tries

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
        self._earned = min(self._earned + _TRIES_PER_BYTE * size, _TRIES_AT_FIRST)

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
        many = min(numbers + self._passed, _MOST_NUMBERS)
        for epoch, generation, first in self._ahead():
            for keys in self._schedule.keys(epoch, generation):
                cost = len(record) + keys.try_bytes
                for number in range(first, first + many):
                    if min(self._tries, self._earned + self._of_all.left) < cost:
                        return None
                    content = keys.open(number, kind, record)
                    if content is not None:
                        self.keys, self.has_opened, self._passed = keys, True, 0
                        self.epoch, self.generation, self.number = epoch, generation, number + 1
                        return content
                    self._spend(cost)
        return None

    def _spend(self, cost: int) -> None:
        self._tries -= cost
        self._of_all.spend(max(cost - self._earned, 0))
        self._earned = max(self._earned - cost, 0)

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

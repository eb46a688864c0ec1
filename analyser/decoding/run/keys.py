"""The keys that a run may use. In: paths of key logs, and secrets that captures bring along. Out: a ring of
secrets, the carriers that use it, and remarks on what could not be used.

Keys stay in the memory of this process and of those that decode a shard of the connections.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress

from wirewitness.analyser.base.words import count
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.capture.model import CaptureStats
from wirewitness.dissectors.carriers.tls.carrier import NAME, tls
from wirewitness.dissectors.carriers.tls.keylog import KeyLogReader, KeyRing
from wirewitness.dissectors.core.carrier import Carrier
from wirewitness.dissectors.registry import CARRIERS

# Of a file what is beyond is not read: two million connections.
MOST_LOG_BYTES = 512 << 20
_READ_BYTES = 1 << 20
_KIND = "TLS key log"

Entries = Mapping[bytes, tuple[bytes, ...]]


class _Log:
    """One file. It stays open, so that what is appended can be read when nothing can be opened any more."""

    def __init__(self, path: str, ring: KeyRing) -> None:
        self.path = path
        self.reader = KeyLogReader(ring)
        self.is_cut = False
        self._read_bytes = 0
        try:
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed with the process
            if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                raise CaptureError(f"{path} is no file, so it is no key log.")
        except OSError as error:
            raise CaptureError(f"{path} cannot be read: {error.strerror or error}.") from error

    def read(self) -> None:
        """What is there and was not read yet."""
        with suppress(OSError):  # a disk that fails: what was read counts
            while part := self._file.read(min(_READ_BYTES, MOST_LOG_BYTES - self._read_bytes)):
                self.reader.feed(part)
                self._read_bytes += len(part)
            self.is_cut = self._read_bytes >= MOST_LOG_BYTES
        self.reader.end()

    def remark(self) -> str | None:
        """What is to be said of it."""
        reader = self.reader
        if self.is_cut:
            return f"{self.path}: what is behind {MOST_LOG_BYTES >> 20} MiB of this key log is not read"
        if not reader.secrets:
            return f"{self.path} holds no secret of TLS: is it a key log (SSLKEYLOGFILE)?"
        if reader.damaged:
            return f"{self.path}: {count(reader.damaged, 'line')} of this key log cannot be read"
        return None


class Keys:
    """All that is known now. Raises CaptureError for a file that cannot be read."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self.ring = KeyRing()
        self.carriers: Mapping[str, Carrier] = {**CARRIERS, NAME: tls(self.ring)}
        self._logs = [_Log(path, self.ring) for path in paths]
        self._brought: dict[str, int] = {}
        self.follows = False
        for log in self._logs:
            log.read()

    def follow(self) -> None:
        """From now on, look for what is appended to the logs whenever `refresh` is called."""
        self.follows = bool(self._logs)
        self.ring.may_grow = self.ring.may_grow or self.follows

    def refresh(self) -> None:
        """Read what was appended."""
        for log in self._logs if self.follows else ():
            log.read()

    def take(self, stats: CaptureStats) -> Entries:
        """What the capture brought along since the last time; more may follow."""
        known = self._brought.get(stats.file, 0)
        self._brought[stats.file] = len(stats.secrets)
        found = KeyRing()
        for secret in stats.secrets[known:]:
            if secret.kind == _KIND:
                reader = KeyLogReader(found)
                reader.feed(secret.data)
                reader.end()
        entries = found.entries()
        self.merge(entries)
        self.ring.may_grow = self.ring.may_grow or bool(entries)
        return entries

    def merge(self, entries: Entries) -> None:
        """What another process read."""
        self.ring.merge(entries)

    def remarks(self) -> list[str]:
        """One for each log that could not be used as a whole, and one when there are too many secrets."""
        found = [remark for log in self._logs if (remark := log.remark()) is not None]
        if self.ring.dropped:
            found.append(f"{self.ring.dropped:,} secrets of the key logs are left out: the last ones are kept")
        return found

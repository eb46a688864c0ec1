"""Which captures a stream has taken, and in which batch: notes that outlive the stream.

In: a folder that is the stream's own, here or in an object store. Out: batches, numbered from 1, and their captures. A
note is written before its batch is read and never changed, so a batch that is read again has the same captures. What
was taken is known by two digests for each capture; old notes make way for a list of these.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from wirewitness.analyser.base.storage.folders import FolderPath, StorePath, folder_at, text_at
from wirewitness.analyser.base.storage.writing import names_below, put_text, remove_objects
from wirewitness.analyser.capture.errors import CaptureError

# Batches between two lists of all that was taken, and how many notes stay before a list.
LISTED_EVERY = KEPT = 100
_VERSION = 1
_NOTE, _LIST = "batch", "taken"
_NAME = re.compile(rf"({_NOTE}|{_LIST})-(\d{{12}})\.json")
_DIGEST_BYTES = 16


class Capture(NamedTuple):
    """A capture that was taken, or may be. key: of its content, "" while nobody looked at all of it. first_ns: time of
    its first packet, where it is known."""

    name: str
    key: str
    first_ns: int | None

    @property
    def digests(self) -> tuple[bytes, bytes]:
        """What it is known by: its beginning and its content. A name that is used again (a ring of files) is another
        capture; one that has grown, was renamed or copied is not."""
        return _digest_of(f"{self.first_ns} {self.name}"), _digest_of(self.key)


class TakenNotes:
    """The notes of one folder. CaptureError where they cannot be read, written or understood."""

    def __init__(self, folder: str) -> None:
        self._folder: FolderPath = folder_at(folder)
        self._first, self._listed = 1, 0
        self.last = 0
        self._digests: set[bytes] = set()
        numbers: dict[str, list[int]] = {_NOTE: [], _LIST: []}
        for name in self._told(self._names):
            if found := _NAME.fullmatch(name):
                numbers[found[1]].append(int(found[2]))
        notes = sorted(numbers[_NOTE])
        if numbers[_LIST]:
            self._listed = self.last = max(numbers[_LIST])
            self._digests = {_read_digest(one, self._path(_LIST, self.last)) for one in self._texts(_LIST, self.last)}
        self.last = max([self.last, *notes])
        self._first = min(notes, default=self.last + 1)
        for number in notes:
            if number > self._listed:
                self._digests.update(digest for one in self.batch(number) for digest in one.digests)

    def knows(self, capture: Capture) -> bool:
        """Was it taken?"""
        begins, content = capture.digests
        return begins in self._digests or (capture.key != "" and content in self._digests)

    def add(self, captures: Sequence[Capture]) -> None:
        """Note the next batch."""
        number = self.last + 1
        self._write(_NOTE, number, [list(one) for one in captures])
        self.last = number
        self._digests.update(digest for one in captures for digest in one.digests)

    def batch(self, number: int) -> list[Capture]:
        """The captures of a batch."""
        if not self._first <= number:
            raise CaptureError(
                f"{self._folder} begins with batch {self._first:,}: a stream that begins anew needs an empty folder."
            )
        path = self._path(_NOTE, number)
        found = []
        for one in self._texts(_NOTE, number):
            if not (isinstance(one, list) and len(one) == 3 and isinstance(one[0], str) and isinstance(one[1], str)):
                raise CaptureError(f"{path} is no note of a stream.")
            if not (one[2] is None or type(one[2]) is int):
                raise CaptureError(f"{path} is no note of a stream.")
            found.append(Capture(*one))
        return found

    def done_with(self, number: int) -> None:
        """No batch up to this one is asked for again: now and then a list takes the place of older notes."""
        if self.last - self._listed < LISTED_EVERY:
            return
        before, self._listed = self._listed, self.last
        self._write(_LIST, self.last, sorted(digest.hex() for digest in self._digests))
        gone = range(self._first, max(self._first, number - KEPT))
        self._remove([*([self._path(_LIST, before)] if before else []), *(self._path(_NOTE, one) for one in gone)])
        self._first = max(self._first, gone.stop)

    def _path(self, kind: str, number: int) -> FolderPath:
        return self._folder / f"{kind}-{number:012d}.json"

    def _names(self) -> list[str]:
        if isinstance(self._folder, StorePath):
            return [*names_below(self._folder)]
        return os.listdir(self._folder) if self._folder.exists() else []

    def _texts(self, kind: str, number: int) -> list[Any]:
        path = self._path(kind, number)
        try:
            told = json.loads(self._told(lambda: text_at(path)))
        except (ValueError, RecursionError) as error:
            raise CaptureError(f"{path} is no note of a stream.") from error
        if not isinstance(told, dict) or told.get("version") != _VERSION or not isinstance(told.get("captures"), list):
            raise CaptureError(f"{path} is no note of a stream, or of another version.")
        captures: list[Any] = told["captures"]
        return captures

    def _write(self, kind: str, number: int, captures: Iterable[Any]) -> None:
        path = self._path(kind, number)
        text = json.dumps({"version": _VERSION, "captures": [*captures]})
        self._told(lambda: _put(path, text))

    def _remove(self, paths: Iterable[FolderPath]) -> None:
        for path in paths:
            with suppress(OSError):  # a note that stays does no harm
                remove_objects([path.file()]) if isinstance(path, StorePath) else path.unlink()

    def _told(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except FileExistsError as error:
            raise CaptureError(f"{self._folder} is used by another stream: each needs a folder of its own.") from error
        except OSError as error:
            raise CaptureError(f"{self._folder}: {error.strerror or error}.") from error


def _put(path: FolderPath, text: str) -> None:
    """Write a file at once, where none is. FileExistsError; OSError."""
    if isinstance(path, StorePath):
        put_text(path, text, None)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    written = Path(f"{path}.{os.getpid()}")
    with written.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(written, path)
    finally:
        written.unlink()


def _digest_of(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _read_digest(text: Any, path: FolderPath) -> bytes:
    try:
        found = bytes.fromhex(text)
    except (TypeError, ValueError):
        found = b""
    if len(found) != _DIGEST_BYTES:
        raise CaptureError(f"{path} is no list of what a stream has taken.")
    return found

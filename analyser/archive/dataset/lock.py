"""One writer at a time: a lock on a dataset that ends with the process that holds it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from wirewitness.analyser.archive.dataset.place import DatasetError
from wirewitness.analyser.base.untrusted_files import text_of

LOCK = "_lock"
# A reader that repairs a dataset holds the lock for a moment; it is no reason to turn a writer away.
PATIENCE_S = 2.0


class DatasetBusy(DatasetError):
    """Somebody else writes the dataset."""


@contextmanager
def locked(root: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold the lock of the dataset in this folder, which must be there. Raises DatasetBusy, OSError, which a link in
    place of the lock is, too: whoever made the dataset could have led it to any file of the user."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(root / LOCK, flags, 0o666), "a+", encoding="utf-8") as file:
        ends = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= ends:
                    raise DatasetBusy(f"{root} is being written{_holder(root)}; try again when it is done.") from None
                time.sleep(0.05)
        file.truncate(0)
        since = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        json.dump({"process": os.getpid(), "host": socket.gethostname(), "since": since}, file)
        file.flush()
        yield
        file.truncate(0)


def _holder(root: Path) -> str:
    try:
        held = json.loads(text_of(root / LOCK))
        return f" by process {held['process']} on {held['host']} since {held['since']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""

"""tshark takes one key log. In: the key logs of a run. Out: the path of one that has the secrets of all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.analyser.decoding.run.keys import MOST_LOG_BYTES

_READ_BYTES = 1 << 20


@contextmanager
def one_keylog(paths: Sequence[str]) -> Iterator[str | None]:
    """The log itself where there is one, None where there is none; several together in a file that nobody else may
    read and that is gone afterwards. Raises OSError."""
    if len(paths) < 2:
        yield paths[0] if paths else None
        return
    with TemporaryFolder("keys") as folder:
        path = Path(folder, "keys.log")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as merged:
            for one in paths:
                left = MOST_LOG_BYTES
                with open(one, "rb") as log:
                    while part := log.read(min(_READ_BYTES, left)):
                        merged.write(part)
                        left -= len(part)
                merged.write(b"\n")
        yield str(path)

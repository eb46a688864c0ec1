"""What a capture file is known by: its content. In: files, options. Out: a key; equal keys, equal tables.

Reading gigabytes to learn whether they are the same would take as long as decoding them, so the size, both ends and
samples between them have to do. Whoever uses what was kept under a key checks that it fits the packets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.package import PACKAGE_FOLDER
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import ObjectPath
from wirewitness.analyser.capture import Source

END_BYTES = 1 << 16
SAMPLE_BYTES = 1 << 12
SAMPLES = 64


def capture_key(sources: Sequence[Source], options: ReadOptions) -> str | None:
    """None when there is something that cannot be read twice. Raises OSError."""
    digest = hashlib.blake2b(program_digest(), digest_size=16)
    digest.update(repr((sorted(options.decode_as.items()), sorted(options.enable))).encode())
    digest.update(repr(sorted(options.topic_ids.items())).encode())
    for log in options.keylogs:  # no secret goes into a key, only which file it is
        state = Path(log).stat()
        digest.update(
            f"{Path(log).resolve()} {state.st_size} {state.st_mtime_ns} {state.st_ino}\n".encode(
                errors="surrogateescape"
            )
        )
    for source in sources:
        if source.path is None or not source.path.is_file():
            return None
        digest.update(_content(source.path))
    return digest.hexdigest()


def content_key(path: FilePath) -> str:
    """The key of one file, whatever the program. Raises OSError."""
    return _content(path).hex()


def _content(path: FilePath) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    if isinstance(path, ObjectPath) and path.content_tag:  # the store knows what its content is
        digest.update(f"{path.state.st_size} {path.content_tag}".encode())
        return digest.digest()
    with path.open("rb", buffering=0) as file:
        size = file.seek(0, 2)
        digest.update(size.to_bytes(8, "big"))
        places = {0: END_BYTES, max(0, size - END_BYTES): END_BYTES}
        places |= {size * number // SAMPLES: SAMPLE_BYTES for number in range(1, SAMPLES)}
        for place in sorted(places):
            file.seek(place)
            digest.update(file.read(places[place]) or b"")
    return digest.digest()


@cache
def program_digest() -> bytes:
    """Changes with every change of the program: another one may decode otherwise."""
    digest = hashlib.blake2b(digest_size=16)
    for part in ("analyser", "dissectors"):
        folder = (PACKAGE_FOLDER / part).resolve()
        for path in sorted(folder.rglob("*")):
            if path.suffix != ".pyc" and path.is_file():
                state = path.stat()
                digest.update(f"{part}/{path.relative_to(folder)} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.digest()

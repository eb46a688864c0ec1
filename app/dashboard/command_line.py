"""What to type for the same on the command line, without the limits of a browser. In: a capture; out: text."""

from __future__ import annotations

import shlex
from pathlib import Path

from analyser.archive.dataset import is_dataset
from app.dashboard.offers import UPLOADS_PREFIX
from app.dashboard.opened import Opened


def command_line(opened: Opened, command: str, *words: str) -> str:
    """`wirewitness COMMAND CAPTURE... words`, as a shell takes it."""
    captures = [str(opened.folder)] if is_dataset(opened.folder) else [_own_name(path) for path in opened.paths]
    reading = opened.reading
    options = [f"--decode-as={port}={protocol}" for port, protocol in sorted(reading.decode_as.items())]
    options += [f"--enable={name}" for name in reading.enable]
    return " ".join(["wirewitness", command, *(shlex.quote(word) for word in (*captures, *words, *options))])


def _own_name(path: str) -> str:
    """An upload lies in a folder that its sender does not have."""
    return Path(path).name if UPLOADS_PREFIX in path else path

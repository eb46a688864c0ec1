"""Files of the program that a process opens after it has dropped its privileges, when it may not be able to any more.

In: what runs such a process, which takes these functions in place of those that drop privileges. Out: the files, in a
log. Modules count, and data beside them; neither an import of what is not installed nor files of the system do.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from tests.support.imports import PACKAGE

ROOT = Path(__file__).resolve().parents[2]


class LateFiles:
    """Notes files from `begin` to `end`, in this process and in its forks."""

    def __init__(self, log: Path) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._on = False
        stdlib = sysconfig.get_path("stdlib")
        installed = {path for path in sys.path if "site-packages" in path or "dist-packages" in path}
        own = {str(path) for path in (ROOT / "src" / PACKAGE).iterdir() if path.name != "sample_pcaps"}
        self._folders = tuple(f"{os.path.realpath(path)}{os.sep}" for path in {stdlib, *installed, *own})
        sys.addaudithook(self._watch)

    def begin(self, *_: Any, **__: Any) -> bool:
        """In place of `privileges.confine`."""
        self._on = True
        return False

    def end(self) -> None:
        """What follows needs no note."""
        self._on = False

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on or event not in ("open", "import"):
            return
        path = arguments[0] if event == "open" else arguments[1]  # of an extension module; None before one is found
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if os.path.realpath(text).startswith(self._folders):
            os.write(self._log, f"{text}\n".encode())

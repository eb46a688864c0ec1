"""Tables of a running live analysis for dashboards: `wirewitness live --share FOLDER` writes them, views read them.

In: an analysis of the last minutes, again and again. Out: a folder with the newest tables, replaced as a whole; a
reader sees one state or the next, and the state before stays long enough to be read to its end.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.base.untrusted_files import text_of
from wirewitness.analyser.capture.privileges import invoking_user
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.app.dashboard.opened import META

_FACTS = {*STAGE_OF, "stands_out"}
# Contents of records are not shown in dashboards; facts that are made when asked for are.
SHARED_TABLES = tuple(name for name, table in TABLES.items() if not table.on_request or name in _FACTS)
MARK = "live.json"
_CURRENT = "current"
_KEPT = 3


class Snapshots:
    """The writing side. Raises OSError when the folder cannot be made, holds something else, or is being written."""

    def __init__(self, folder: Path, title: str, options: Mapping[str, Any]) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        self.place, self.descriptor = folder, _opened(folder)
        names = os.listdir(self.descriptor)
        strangers = [name for name in names if MARK not in names or not _is_ours(name)]
        if strangers:
            raise FileExistsError(f"{folder} holds something else: {strangers[0]}")
        if is_running(folder):
            raise FileExistsError("another live capture writes there; give it a folder of its own")
        # Whatever becomes of the path, and whoever this process becomes, this is the folder that was looked at.
        self._folder = Path(f"/proc/self/fd/{self.descriptor}") if os.path.isdir("/proc/self/fd") else folder
        self._options = dict(options)
        for old in [one for one in self._folder.iterdir() if one.name != MARK]:
            _remove(old)
        _replace(self._folder / MARK, json.dumps({"title": title, "process": os.getpid()}))

    def write(self, analysis: Analysis) -> None:
        """Replace the tables by those of this analysis. What cannot be written, as on a full disk, leaves nothing."""
        number = time.time_ns()
        part = self._folder / f"part-{number}"
        part.mkdir(mode=0o700)
        try:
            self._fill(part, analysis)
        except BaseException:
            _remove(part)
            raise
        part.rename(self._folder / f"tables-{number}")
        _replace(self._folder / _CURRENT, f"tables-{number}")
        for old in sorted(self._folder.glob("tables-*"))[:-_KEPT]:
            _remove(old)
        for left in self._folder.glob("part-*"):
            _remove(left)

    def _fill(self, part: Path, analysis: Analysis) -> None:
        for name in analysis.tables():
            analysis.write_parquet(name, part / f"{name}.parquet")
        meta = {"paths": [], "options": self._options, "remarks": analysis.remarks, "unread": [],
                "failures": [failure.code for failure in analysis.failures],
                "tables": list(analysis.tables())}  # fmt: skip
        (part / META).write_text(json.dumps(meta), encoding="utf-8")

    def end(self) -> None:
        """Nothing follows; the newest tables stay."""
        mark = json.loads((self._folder / MARK).read_text(encoding="utf-8"))
        _replace(self._folder / MARK, json.dumps({**mark, "process": None}))


def is_live(path: str | Path) -> bool:
    """Is this a folder that `wirewitness live --share` writes or wrote?"""
    return os.path.isfile(Path(path) / MARK)


def newest(folder: Path) -> Path | None:
    """The folder with the newest tables; None while there are none."""
    try:
        found = folder / text_of(folder / _CURRENT).strip()
    except (OSError, ValueError):
        return None
    return found if found.parent == folder and (found / META).is_file() else None


def is_running(folder: Path) -> bool:
    """Is it still written?"""
    process = _marked(folder).get("process")
    if not isinstance(process, int) or process <= 0:
        return False
    try:
        os.kill(process, 0)
    except PermissionError:  # it runs as somebody else, who may capture
        return True
    except (OSError, OverflowError):
        return False
    return True


def title_of(folder: Path) -> str:
    """What is captured."""
    return str(_marked(folder).get("title") or folder.name)


def _marked(folder: Path) -> dict[str, Any]:
    """What the folder says of itself; nothing where that is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(text_of(folder / MARK))
        return found if isinstance(found, dict) else {}
    return {}


def _is_ours(name: str) -> bool:
    return name in (MARK, _CURRENT, f"{MARK}.new", f"{_CURRENT}.new") or name.startswith(("tables-", "part-"))


def _opened(folder: Path) -> int:
    """The folder's descriptor. PermissionError for one that somebody else can change: links could be planted there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    facts = os.fstat(descriptor)
    ours = {os.geteuid(), invoking.uid if (invoking := invoking_user()) is not None else os.geteuid()}
    if facts.st_uid not in ours or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(descriptor)
        whose = "belongs to somebody else" if facts.st_uid not in ours else "can be changed by others"
        raise PermissionError(f"that folder {whose}; give it a new one, or one that only you can write to")
    os.fchmod(descriptor, 0o700)
    return descriptor


def _replace(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

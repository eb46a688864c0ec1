"""Analyses under way. In: captures; out: a `Job` that tells how far it is, can be cancelled, and ends in a folder.

A job is a process of its own (`worker.py`): the browser stays quick, cancelling is ending it, and its memory goes with
it. Temporary files lie in a folder of the job that is removed in any case.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from wirewitness.analyser.analysis.evidence.cache import cache_folder, part
from wirewitness.analyser.analysis.evidence.identity import capture_key
from wirewitness.analyser.base.package import PACKAGE_FOLDER
from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.analyser.base.storage.folders import FolderPath
from wirewitness.analyser.capture import CaptureError, Source, in_time_order, open_captures
from wirewitness.app.dashboard.opened import META, reading_options

_ROOT = PACKAGE_FOLDER.parent
_PATIENCE_S = 3.0
_JOBS_KEPT = 16
_KEPT = "tables-"


class Standing(NamedTuple):
    """How far a job is: share is 0 to 1, None while the size is not known. read_bytes: while it reads, else None."""

    sentence: str
    share: float | None
    read_bytes: int | None = None


class Job:
    """One analysis. `folder` or `error` is set when it is done; neither when it was cancelled."""

    def __init__(self, paths: Sequence[str], options: Mapping[str, Any], key: str) -> None:
        self.folder: Path | None = None
        self.error: str | None = None
        self.cancelled = False
        self._began = time.monotonic()
        self.standing = Standing("Starting", None)
        self._temporary = TemporaryFolder()
        environment = {**os.environ, "TMPDIR": self._temporary.name, "PYTHONPATH": import_path()}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "wirewitness.app.dashboard.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True,
        )  # fmt: skip
        order = {"paths": list(paths), "options": dict(options), "key": key}
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        weakref.finalize(self, _stop, self._process)

    @property
    def passed_s(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def running(self) -> bool:
        """Whether it is still at work."""
        return self._reader.is_alive()

    def wait(self, timeout_s: float | None = None) -> None:
        """Until it is done."""
        self._reader.join(timeout_s)

    def cancel(self) -> None:
        """End it; what it made is removed."""
        self.cancelled = True
        _stop(self._process)
        self._reader.join(_PATIENCE_S)

    def _follow(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with suppress(ValueError, KeyError):
                self._take(json.loads(line))
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # both are pipes
        if self.folder is None and self.error is None and not self.cancelled:
            self.error = "The analysis ended before it was done: out of memory, or a fault of wirewitness."
        if self.folder is None or not self.folder.is_relative_to(self._temporary.name):
            self._temporary.cleanup()

    def _take(self, told: Mapping[str, Any]) -> None:
        if "folder" in told:
            self.folder = Path(told["folder"])
        elif "error" in told:
            self.error = told["error"]
        elif "stage" in told:
            named = f"Making tables: {told['stage']}, {told['done'] + 1} of {told['total']}"
            self.standing = Standing(named, 0.6 + 0.4 * told["done"] / told["total"])
        else:
            share = 0.6 * told["done"] / told["total"] if told["total"] else None
            self.standing = Standing(
                f"Reading {told['file']}: {told['packets']:,} {told['counted']}", share, told["done"]
            )


class Jobs:
    """The jobs of this server by the key of what they make; of those that are done the oldest are forgotten."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def job(self, key: str) -> Job | None:
        """The job under that key, at work or done."""
        return self._jobs.get(key)

    def start(self, paths: Sequence[str], options: Mapping[str, Any], key: str) -> Job:
        """The job for these captures; one that is at work is joined."""
        with self._lock:
            known = self._jobs.get(key)
            if known is None or not known.running:
                self._jobs.pop(key, None)
                known = self._jobs[key] = Job(paths, options, key)
                done = [other for other, job in self._jobs.items() if not job.running]
                for other in done[: max(len(self._jobs) - _JOBS_KEPT, 0)]:
                    del self._jobs[other]
            return known

    def forget(self, key: str) -> None:
        """Its tables are gone, or it failed: the next one starts anew."""
        with self._lock:
            self._jobs.pop(key, None)


def key_of(paths: Sequence[str], options: Mapping[str, Any]) -> str:
    """Name of the kept tables: content, place (rows name their file) and options. Raises CaptureError."""
    sources: list[Source] = []
    wrong: list[str] = []
    for path in paths:
        try:
            sources += open_captures([path])
        except CaptureError as error:
            wrong.append(str(error))
    if not sources:
        raise CaptureError(" ".join(wrong) or "No capture was given.")
    sources = in_time_order(sources)
    try:
        content = capture_key(sources, reading_options(options))
    except OSError as error:
        raise CaptureError(str(error)) from error
    text = json.dumps([content, [source.name for source in sources], _program()])
    return f"{_KEPT}{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"


def discard(folder: FolderPath) -> None:
    """Remove kept tables that are damaged from the cache; nothing that lies elsewhere."""
    root = cache_folder()
    if root is not None and isinstance(folder, Path) and folder.parent == root and folder.name.startswith(_KEPT):
        shutil.rmtree(folder, ignore_errors=True)


def kept_tables(key: str, jobs: Jobs) -> Path | None:
    """Where the tables of that key are, when they are made."""
    job = jobs.job(key)
    folder = job.folder if job is not None and job.folder is not None else part(key)
    return folder if folder is not None and (folder / META).exists() else None


def _program() -> float:
    return Path(__file__).with_name("worker.py").stat().st_mtime


def import_path() -> str:
    """PYTHONPATH for programs that run this package's code."""
    given = os.environ.get("PYTHONPATH")
    return f"{_ROOT}{os.pathsep}{given}" if given else str(_ROOT)


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()

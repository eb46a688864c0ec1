"""Which captures a run takes in now: complete ones, of the time that was asked for.

In: a file and its times. Out: a reason to leave it out, or none. A file that somebody still writes is left for a later
run, because its last connections would be cut there for good.
"""

from __future__ import annotations

import fcntl
import glob
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from wirewitness.analyser.base.storage.address import Address, address_of, local_path
from wirewitness.analyser.base.storage.files import FilePath
from wirewitness.analyser.base.storage.objects import ObjectPath, object_at, objects_below
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.capture.sources import Source, explain
from wirewitness.analyser.capture.trees import files_below

SETTLED_S = 30.0
# Clocks of the capturing and the storing machine may differ by so much.
CLOCK_SLACK_NS = 60 * 10**9
# What looks as if it was being written, and has not changed for so long, is taken.
_FORGOTTEN_S = 24 * 3600.0
# Ends of the sentences on captures that are left out though nothing is wrong with them.
TOO_EARLY, TOO_LATE = "was written before the time that was asked for.", "begins after the time that was asked for."
GROWING = "is still being written; a later run takes it."
AGAIN = "the next run tries again."
WAITS = "waits for a capture that comes before it; a later run takes both."
# File systems that refuse leases as if somebody wrote (EAGAIN) where only their server has not handed the file over.
_NETWORK = {"nfs", "nfs4", "cifs", "smb3"}
_MOUNTS = Path("/proc/self/mountinfo")


@dataclass(frozen=True, slots=True)
class Intake:
    """What a run takes.

    since_ns, until_ns: Unix time; captures wholly before or after are left out, others are taken whole. A capture ends
    before `since_ns` when it was last written before. settled_s: where the system cannot tell whether a file is being
    written, it is complete when it did not change for so long, or when a newer one lies beside it.
    """

    since_ns: int | None = None
    until_ns: int | None = None
    settled_s: float = SETTLED_S

    def reason(self, source: Source) -> str | None:
        """Why this capture is left out, as a sentence; None when it is taken. A file that is gone is taken: reading
        it says so."""
        if source.path is None:
            return None
        with suppress(OSError):
            written_ns = source.path.stat().st_mtime_ns
            if self.since_ns is not None and written_ns + CLOCK_SLACK_NS < self.since_ns:
                return f"{source.name} {TOO_EARLY}"
            if self.until_ns is not None and source.first_ns is not None and source.first_ns >= self.until_ns:
                return f"{source.name} {TOO_LATE}"
            if not is_complete(source.path, self.settled_s):
                return f"{source.name} {GROWING}"
        return None


def is_by_choice(reason: str) -> bool:
    """Whether a capture was left out for what `Intake.reason` says, or waits, which is no fault of the capture."""
    return reason.endswith((TOO_EARLY, TOO_LATE, GROWING, WAITS))


def is_complete(path: FilePath, settled_s: float = SETTLED_S) -> bool:
    """Whether nobody writes the file any more. OSError when it cannot be looked at."""
    if isinstance(path, ObjectPath):
        return not path.state.may_grow or _is_forgotten(path)
    writing = is_open_for_writing(path)
    if writing is not None:
        return not writing
    changed_s = path.stat().st_mtime
    return time.time() - changed_s >= settled_s or _has_newer_neighbour(path, changed_s)


def _is_forgotten(path: ObjectPath) -> bool:
    return time.time() - path.state.st_mtime_ns / 1e9 >= _FORGOTTEN_S


def is_open_for_writing(path: Path) -> bool | None:
    """Whether a process of this machine has the file open for writing; None where the system does not tell.

    Linux grants a read lease only on a file that nobody has open for writing; local file systems and the file's owner
    or root get an answer. Source: fcntl(2); nfs4_add_lease in Linux, fs/nfs/nfs4proc.c; cifs_setlease in cifsfs.c.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    with leases_do_no_harm() as possible:
        if not possible:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except BlockingIOError:
            return None if is_on_network(descriptor) else True
        except OSError:
            return None
        finally:
            os.close(descriptor)
    return False


def is_on_network(file: int, mounts: Path = _MOUNTS) -> bool:
    """Whether an open file is another machine's. mounts: as proc_pid_mountinfo(5)."""
    device = os.fstat(file).st_dev
    own = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError):
        for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
            mount, _, system = line.partition(" - ")
            if mount.split()[2:3] == [own]:
                return not _NETWORK.isdisjoint(system.split()[:1])
    return False


def files_named(inputs: Iterable[str | os.PathLike[str]]) -> Iterator[FilePath]:
    """The files that paths, directories, patterns and addresses stand for now; what cannot be read is passed over."""
    for given in inputs:
        name = os.fspath(given)
        if (address := address_of(name)) is not None:
            with suppress(OSError):
                yield from _objects(address)
            continue
        name = str(local_path(name))
        matches = [] if os.path.lexists(name) or not glob.has_magic(name) else sorted(glob.glob(name, recursive=True))
        for match in matches or [name]:
            path = Path(match)
            with suppress(OSError):
                yield from files_below(path).files if path.is_dir() else [path] if path.is_file() else []


def check_stores(inputs: Iterable[str | os.PathLike[str]]) -> None:
    """CaptureError where a store that is named cannot be asked: whoever follows it would wait without an end."""
    for given in inputs:
        name = os.fspath(given)
        if (address := address_of(name)) is not None:
            try:
                next(_objects(address), None)
            except OSError as error:
                raise CaptureError(explain(name, error)) from error


def _objects(address: Address) -> Iterator[ObjectPath]:
    """The one at this address, else those below it. OSError."""
    one = object_at(address)
    yield from objects_below(address) if one is None else (one,)


@contextmanager
def leases_do_no_harm() -> Iterator[bool]:
    """One who opens the file in the very moment of the lease makes the kernel send SIGIO, which ends a process that
    does not ignore it. Only the main thread can see to that, for all others too while its block runs."""
    if threading.current_thread() is not threading.main_thread():
        yield signal.getsignal(signal.SIGIO) is signal.SIG_IGN
        return
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        yield True
    finally:
        signal.signal(signal.SIGIO, before)


def _has_newer_neighbour(path: Path, changed_s: float) -> bool:
    with os.scandir(path.parent) as entries:
        others = (entry for entry in entries if entry.name != path.name and entry.is_file())
        return any(entry.stat().st_mtime > changed_s for entry in others)

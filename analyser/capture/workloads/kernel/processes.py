"""Processes by the sockets that they hold. In: /proc. Out: which process holds a socket, and what it is.

The kernel has no way from a socket to its process, so descriptors are gone through: first those of processes that held
one before, new descriptors first, then all others, a slice of time after the other. All of one process is read through
an open folder of /proc, which stands for that process even if its number is given to another one. Source: proc(5).
"""

from __future__ import annotations

import os
import re
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from wirewitness.analyser.capture.workloads.kernel.containers import Group, group

# What a process is called. In: what /proc says of it. Out: its name without arguments, which may hold credentials.
#
# Of Java, where all processes have one name, the class or the jar file that was started comes along: `java
# kafka.Kafka`. Source: the manual page of java for options that take a value of their own.

_COMM_BYTES = 15  # what the kernel keeps of a name
_JAVA = "java"
_WITH_VALUE = frozenset(
    ("-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules",
     "--limit-modules", "--add-reads", "--add-exports", "--add-opens", "--patch-module", "--enable-native-access",
     "--source", "-d", "--describe-module")
)  # fmt: skip
# A name with a package, and not too long to be one: what else stands there stays out.
_CLASS = re.compile(r"[A-Za-z_$][\w$]{0,63}(?:\.[A-Za-z_$][\w$]{0,63}){1,15}")
_JAR = re.compile(r"[\w][\w.+-]{0,100}\.jar")


def command(comm: str, exe: str | None, arguments: Sequence[str]) -> str | None:
    """The name that people know: the kernel's, unless the program gave its main thread another one."""
    program = os.path.basename(exe.removesuffix(" (deleted)")) if exe else ""
    if _JAVA in (program, comm):
        return " ".join(filter(None, (_JAVA, _java_program(arguments))))
    known = {name.encode()[:_COMM_BYTES] for name in (program, *(os.path.basename(one) for one in arguments[:2]))}
    if program and comm.encode() not in known:
        return program
    if program and comm != program and program.encode()[:_COMM_BYTES] == comm.encode():
        return program  # the kernel's name is cut
    return comm or None


def _java_program(arguments: Sequence[str]) -> str | None:
    """The class or jar file among the arguments of java."""
    left = iter(arguments[1:])
    for one in left:
        if one in ("-jar", "-m", "--module"):
            name = os.path.basename(next(left, ""))
            wanted = _JAR if one == "-jar" else _CLASS
            return name if wanted.fullmatch(name) else None
        if one in _WITH_VALUE:
            next(left, None)
        elif not one.startswith(("-", "@")):
            return one if _CLASS.fullmatch(one) else None
    return None


MOST_SOCKETS = 200_000  # numbers of sockets that are remembered
_MOST_HOT, _MOST_FACTS = 64, 4096
_FRESH_S = 2.0  # a process may become another program
_MOST_ARGUMENT_BYTES = 128 << 10  # class paths are long
_MOST_TEXT_BYTES = 64 << 10
_LOOK_AT_CLOCK_EVERY = 256
_SOCKET = "socket:["


class Process(NamedTuple):
    """What is told of a process. started: in ticks since the system started, which with the pid is unique."""

    pid: int
    started: int
    command: str | None
    uid: int | None
    group: Group


class _Seen(NamedTuple):
    pid: int
    started: int


class Processes:
    """Finds who holds sockets. denied: some processes may not be looked into."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._holders: dict[int, _Seen] = {}
        self._hot: OrderedDict[int, None] = OrderedDict()
        self._descriptors: dict[int, frozenset[str]] = {}
        self._facts: OrderedDict[int, tuple[float, Process]] = OrderedDict()
        self._lap: deque[int] = deque()
        self._laps = 0
        self.denied = False

    def known(self, inode: int) -> Process | None:
        """Who held this socket when processes were looked at last, if it still runs."""
        seen = self._holders.get(inode)
        if seen is None:
            return None
        process = self.process(seen.pid)
        if process is None or process.started != seen.started:
            del self._holders[inode]
            return None
        return process

    def look_at_known(self, wanted: Mapping[int, int], until_s: float) -> set[int]:
        """Look for sockets (inode -> uid) at processes that held one lately; those that were found."""
        left = set(wanted)
        for pid in [*self._hot]:
            if not left or time.monotonic() > until_s:
                break
            left -= self._look_at(pid, left, until_s)
        self._forget()
        return set(wanted) - left

    def look_on(self, wanted: Mapping[int, int], until_s: float) -> set[int]:
        """Go on through all processes, until this time (monotonic) or all these are found; those that were found."""
        left = set(wanted)
        laps = self._laps
        while left and self._laps == laps and time.monotonic() < until_s:
            if not self._lap:
                self._lap.extend(self._pids(wanted.values()))
            if self._lap:
                left -= self._look_at(self._lap.popleft(), left, until_s)
            if not self._lap:
                self._laps += 1
                self._forget()
        return set(wanted) - left

    def lap(self, *, after_this: bool = False) -> int:
        """How often all processes were gone through; after_this: when all that run now will have been."""
        return self._laps + after_this * (2 if self._lap else 1)

    def process(self, pid: int) -> Process | None:
        """What is known of a process; None where it has ended."""
        cached = self._facts.get(pid)
        if cached is not None and time.monotonic() < cached[0] + _FRESH_S:
            return cached[1]
        with suppress(OSError), self._opened(pid) as folder:
            found = _read_process(pid, folder)
            self._facts[pid] = time.monotonic(), found
            self._facts.move_to_end(pid)
            if len(self._facts) > _MOST_FACTS:
                self._facts.popitem(last=False)
            return found
        self._facts.pop(pid, None)
        return None

    def pids(self) -> Iterator[int]:
        """All processes there are, the oldest numbers first."""
        with suppress(OSError), os.scandir(self._proc) as entries:
            yield from sorted(int(entry.name) for entry in entries if entry.name.isdecimal())

    def _pids(self, users: Iterable[int]) -> list[int]:
        """The order of a lap: processes of the users who opened the sockets first."""
        users = set(users)
        mine: list[int] = []
        others: list[int] = []
        for pid in self.pids():
            with suppress(OSError):
                (mine if os.stat(f"{self._proc}/{pid}").st_uid in users else others).append(pid)
        return mine + others

    def _look_at(self, pid: int, wanted: set[int], until_s: float) -> set[int]:
        """Which of the wanted sockets a process holds; its other sockets are remembered, too."""
        found: set[int] = set()
        try:
            with self._opened(pid) as folder:
                started = _started(_text("stat", folder))
                names = os.listdir(descriptors := os.open("fd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder))
                try:
                    self._go_through(_Seen(pid, started), descriptors, names, wanted, found, until_s)
                finally:
                    os.close(descriptors)
        except PermissionError:
            self.denied = True
        except OSError:  # it has ended
            self._hot.pop(pid, None)
            self._descriptors.pop(pid, None)
        return found

    def _go_through(
        self, seen: _Seen, folder: int, names: list[str], wanted: set[int], found: set[int], until_s: float
    ) -> None:
        before = self._descriptors.get(seen.pid, frozenset())
        holds_any = False
        for count, name in enumerate(sorted(names, key=before.__contains__)):
            if count % _LOOK_AT_CLOCK_EVERY == _LOOK_AT_CLOCK_EVERY - 1 and time.monotonic() > until_s:
                break
            try:
                target = os.readlink(name, dir_fd=folder)
            except PermissionError:
                raise
            except OSError:  # closed meanwhile
                continue
            if target.startswith(_SOCKET):
                inode = int(target[len(_SOCKET) : -1])
                holder = self._holders.get(inode)
                if holder is None or inode in wanted:
                    self._holders[inode] = seen
                if inode in wanted:
                    found.add(inode)
                    holds_any = True
                    if found >= wanted:
                        break
        if holds_any:
            self._hot[seen.pid] = None
            self._hot.move_to_end(seen.pid, last=False)
            self._descriptors[seen.pid] = frozenset(names)
            if len(self._hot) > _MOST_HOT:
                self._descriptors.pop(self._hot.popitem()[0], None)

    def _forget(self) -> None:
        if len(self._holders) > MOST_SOCKETS:
            self._holders.clear()

    @contextmanager
    def _opened(self, pid: int) -> Iterator[int]:
        folder = os.open(f"{self._proc}/{pid}", os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield folder
        finally:
            os.close(folder)


def _read_process(pid: int, folder: int) -> Process:
    """Raises OSError where it has ended."""
    started = _started(_text("stat", folder))
    exe = None
    with suppress(OSError):
        exe = os.readlink("exe", dir_fd=folder)
    comm = _text("comm", folder).rstrip("\n")
    arguments = _text("cmdline", folder, _MOST_ARGUMENT_BYTES).split("\0")
    uid = None
    for line in _text("status", folder).splitlines():
        if line.startswith("Uid:"):
            uid = int(line.split()[2])
    where = Group()
    with suppress(OSError):
        where = group(_text("cgroup", folder))
    return Process(pid, started, command(comm, exe, arguments), uid, where)


def _started(stat: str) -> int:
    """The 22nd field; the second one, in parentheses, may hold anything. OSError where there is none."""
    fields = stat[stat.rfind(")") + 1 :].split()
    if len(fields) < 20:
        raise ProcessLookupError
    return int(fields[19])


def _text(name: str, folder: int, most: int = _MOST_TEXT_BYTES) -> str:
    descriptor = os.open(name, os.O_RDONLY, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most).decode("utf-8", "replace")

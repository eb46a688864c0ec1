"""Who is at the ends of connections. In: questions, while packets come. Out: answers, as they are found.

A question is asked of the kernel at once. What takes longer is done in slices: looking for the process, namespaces of
containers, ends that no process has accepted yet. What is gone by then stays unknown.
"""

from __future__ import annotations

import pwd
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from wirewitness.analyser.capture.workloads.kernel.containers import KubeletNames, Namespaces
from wirewitness.analyser.capture.workloads.kernel.processes import Process, Processes
from wirewitness.analyser.capture.workloads.kernel.sock_diag import End, SockDiag, Socket
from wirewitness.analyser.capture.workloads.kernel.socket_tables import connections

MOST_WAITING = 20_000
# When an end is looked for again that nobody has accepted yet, in seconds since it was before.
AGAIN_S = (0.002, 0.01, 0.05, 0.2, 1.0, 5.0)
NEW_NAMESPACE_S = 2.1
# A slice of looking through processes or tables, and how much longer than it took nothing of it is done: at processes
# that held a socket before, and at all.
SLICE_S, KNOWN_IDLE_FACTOR, IDLE_FACTOR = 0.02, 1.0, 3.0
_MOST_USERS = 4096
_DENIED = "processes of other users may not be looked into, so connections of theirs are told without one; root may"


class LocalIdentity(NamedTuple):
    """What the kernel says of one end. uid: of the process, else of the socket. user: its name on this machine; None
    in a container, which has users of its own."""

    pid: int | None = None
    command: str | None = None
    uid: int | None = None
    user: str | None = None
    container_id: str | None = None
    container: str | None = None
    pod_uid: str | None = None
    pod: str | None = None
    namespace: str | None = None


class Answer(NamedTuple):
    """identity: of the end `is_high`, None where only the first look is over: more may be found later."""

    question: int
    is_high: bool
    identity: LocalIdentity | None


@dataclass(slots=True)
class _Wanted:
    """One end. settled: the first look at it is over."""

    question: int
    is_high: bool
    local: End
    remote: End
    due_s: float
    tries: int = 0
    socket: Socket | None = None
    until_lap: int = 0
    settled: bool = False


class Lookup:
    """Answers questions. remarks: for people, each once."""

    def __init__(self, proc: str = "/proc", names: KubeletNames | None = None) -> None:
        self._proc = proc
        self._names = names or KubeletNames()
        self._processes, self._namespaces = Processes(proc), Namespaces(proc)
        self._asked: list[_Wanted] = []
        self._elsewhere: list[_Wanted] = []
        self._held: dict[int, list[_Wanted]] = {}
        self._users: dict[int, str | None] = {}
        self._idle_until_s = self._known_idle_until_s = 0.0
        self._is_denial_told = False
        self.remarks: list[str] = []
        self._diag: SockDiag | None = None
        with suppress(OSError):
            self._diag = SockDiag()

    def ask(self, question: int, low: End, high: End) -> None:
        """Ask for both ends of a connection. Of more than MOST_WAITING nothing is said."""
        now = time.monotonic()
        for is_high, local, remote in ((False, low, high), (True, high, low)):
            if len(self._asked) + len(self._elsewhere) + len(self._held) < MOST_WAITING:
                self._asked.append(_Wanted(question, is_high, local, remote, now))

    def step(self) -> list[Answer]:
        """Do what is due, for about SLICE_S; what came out."""
        answers: list[Answer] = []
        self._ask_kernel(answers)
        now = time.monotonic()
        if self._held and now >= self._known_idle_until_s:
            found = self._processes.look_at_known(self._users_of_held(), now + SLICE_S)
            self._take_found(found, answers)
            self._known_idle_until_s = time.monotonic() + KNOWN_IDLE_FACTOR * (time.monotonic() - now)
            now = time.monotonic()
        if (self._held or self._elsewhere) and now >= self._idle_until_s:
            self._look_elsewhere(answers)
            self._take_found(self._processes.look_on(self._users_of_held(), now + SLICE_S), answers)
            self._give_up(answers)
            self._idle_until_s = time.monotonic() + IDLE_FACTOR * (time.monotonic() - now)
        return answers

    def wait_s(self) -> float | None:
        """How long there is nothing to do; None until the next question."""
        due = [one.due_s for one in self._asked]
        if self._held:
            due.append(self._known_idle_until_s)
        if self._held or self._elsewhere:
            due.append(self._idle_until_s)
        return max(min(due) - time.monotonic(), 0.0) if due else None

    def _ask_kernel(self, answers: list[Answer]) -> None:
        now = time.monotonic()
        due = [one for one in self._asked if one.due_s <= now]
        if not due:
            return
        self._asked = [one for one in self._asked if one.due_s > now]
        for one, found in zip(due, self._sockets(due), strict=True):
            if found is None:
                self._elsewhere.append(one)
            else:
                self._take_socket(one, found, answers)

    def _sockets(self, wanted: list[_Wanted]) -> list[Socket | None]:
        """Of this namespace."""
        if self._diag is not None:
            try:
                return [self._diag.find(one.local, one.remote) for one in wanted]
            except OSError:
                self._diag.close()
                self._diag = None
        table = connections(f"{self._proc}/self/net")
        return [table.get((one.local, one.remote)) for one in wanted]

    def _take_socket(self, one: _Wanted, found: Socket, answers: list[Answer]) -> None:
        if not found.inode:
            self._again(one, AGAIN_S[one.tries] if one.tries < len(AGAIN_S) else None, answers)
            return
        one.socket = found
        process = self._processes.known(found.inode)
        if process is not None:
            answers.append(Answer(one.question, one.is_high, self._identity(process)))
            self._settle(one, answers)
            return
        one.until_lap = self._processes.lap(after_this=True)
        self._held.setdefault(found.inode, []).append(one)

    def _again(self, one: _Wanted, after_s: float | None, answers: list[Answer]) -> None:
        self._settle(one, answers)
        if after_s is not None:
            one.tries += 1
            one.due_s = time.monotonic() + after_s
            self._asked.append(one)

    def _settle(self, one: _Wanted, answers: list[Answer]) -> None:
        if not one.settled:
            one.settled = True
            answers.append(Answer(one.question, one.is_high, None))

    def _look_elsewhere(self, answers: list[Answer]) -> None:
        """In the namespaces of containers; which there are may be known only later."""
        wanted, self._elsewhere = self._elsewhere, []
        if not wanted:
            return
        self._namespaces.refresh(self._processes.pids())
        found = self._namespaces.find((one.local, one.remote) for one in wanted)
        for one in wanted:
            socket = found.get((one.local, one.remote))
            if socket is not None:
                self._take_socket(one, socket, answers)
            elif one.tries == 0 and one.local.address not in self._namespaces.local:
                self._again(one, NEW_NAMESPACE_S, answers)
            else:
                self._settle(one, answers)

    def _users_of_held(self) -> dict[int, int]:
        return {inode: ends[0].socket.uid for inode, ends in self._held.items() if ends[0].socket is not None}

    def _take_found(self, inodes: set[int], answers: list[Answer]) -> None:
        for inode in inodes:
            process = self._processes.known(inode)
            for one in self._held.pop(inode, []):
                identity = self._identity(process) if process is not None else self._identity_of_socket(one)
                answers.append(Answer(one.question, one.is_high, identity))
                self._settle(one, answers)

    def _give_up(self, answers: list[Answer]) -> None:
        """On processes: all have been looked at since. The user is known from the socket."""
        lap = self._processes.lap()
        for inode in [inode for inode, ends in self._held.items() if ends[-1].until_lap <= lap]:
            ends = self._held.pop(inode)
            for one in ends:
                answers.append(Answer(one.question, one.is_high, self._identity_of_socket(one)))
                self._settle(one, answers)
            if self._processes.denied and not self._is_denial_told and self._sockets(ends[-1:])[0] == ends[-1].socket:
                self._is_denial_told = True  # somebody holds it still
                self.remarks.append(_DENIED)

    def _identity(self, process: Process) -> LocalIdentity:
        names = self._names.names(process.group)
        container = process.group.container_id
        user = self._user(process.uid) if process.uid is not None and container is None else None
        pod_uid = process.group.pod_uid
        return LocalIdentity(
            process.pid, process.command, process.uid, user, container, names.container, pod_uid, names.pod,
            names.namespace,
        )  # fmt: skip

    def _identity_of_socket(self, one: _Wanted) -> LocalIdentity:
        """Its process is gone, or hidden. The user's name is left out: it may be one of a container."""
        return LocalIdentity(uid=one.socket.uid if one.socket is not None else None)

    def _user(self, uid: int) -> str | None:
        if uid not in self._users:
            if len(self._users) >= _MOST_USERS:
                self._users.clear()
            self._users[uid] = None
            with suppress(KeyError):
                self._users[uid] = pwd.getpwuid(uid).pw_name
        return self._users[uid]

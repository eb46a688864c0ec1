"""The process that looks up who owns connections: it answers questions over a pipe and does nothing else.

In: questions (`workload_messages.py`) in a pipe. Out: answers in another one. It ends when the first one does.

To look into processes of other users it keeps CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, which are as good as root's
rights, so it is a process of its own (a fork, which is there at once): it sees no packet, only addresses and ports,
opens no file for writing, starts no program and touches no other process, and the kernel holds it to that
(a filter of system calls, below). Landlock would keep it from looking into processes.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import NamedTuple, NoReturn

from wirewitness.analyser.base.faults import caught
from wirewitness.analyser.capture.privileges import CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, Fence, confine, invoking_user
from wirewitness.analyser.capture.workload_messages import (
    QUESTION_BYTES,
    Question,
    answer_bytes,
    answers,
    question_bytes,
    questions,
    remark_bytes,
)
from wirewitness.analyser.capture.workloads.kernel.lookup import Answer, Lookup

# A process that only looks (Linux, x86-64 and arm64; elsewhere nothing happens). In: nothing. Out: the same process,
# to which the kernel refuses to write to files, start programs, or touch other processes.
#
# A filter of system calls (seccomp), which cannot be taken off again. Sources: seccomp(2), linux/filter.h,
# linux/audit.h, and the tables of system calls of both architectures.

_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_OTHER_NUMBERS = 0x40000000  # x32 calls under other numbers
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Later calls have one number everywhere: io_uring, openat2 (its flags cannot be looked at), pidfd_getfd, ...
_NEW = (425, 426, 427, 437, 438, 440, 448)


class _Architecture(NamedTuple):
    """audit: its number in linux/audit.h. refused: calls. opens: (call, which argument has the flags)."""

    audit: int
    refused: tuple[int, ...]
    opens: tuple[tuple[int, int], ...]


# ptrace, process_vm_readv and _writev, kcmp, execve, execveat, bpf, perf_event_open, open_by_handle_at, and creat
_ARCHITECTURES = {
    "x86_64": _Architecture(0xC000003E, (101, 310, 311, 312, 59, 322, 321, 298, 304, 85), ((2, 1), (257, 2))),
    "aarch64": _Architecture(0xC00000B7, (117, 270, 271, 272, 221, 281, 280, 241, 265), ((56, 2),)),
}


def only_look() -> bool:
    """Give up everything but looking; True where the kernel holds this process to it."""
    architecture = _ARCHITECTURES.get(platform.machine())
    if sys.platform != "linux" or architecture is None:
        return False
    lines = _program(architecture)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = struct.pack("@HP", len(lines), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero):
        return False
    return int(libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), program, zero, zero)) == 0


def _program(of: _Architecture) -> list[tuple[int, int, int, int]]:
    """Lines (code, jump if true, jump if false, value): what is refused gets EPERM, all else is allowed."""
    refuse, allow = (_RETURN, 0, 0, _REFUSE | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    lines = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, of.audit), refuse, (_LOAD, 0, 0, _NUMBER_AT)]
    lines += [(_AT_LEAST, 0, 1, _OTHER_NUMBERS), refuse]
    for number in (*of.refused, *_NEW):
        lines += [(_EQUAL, 0, 1, number), refuse]
    for number, argument in of.opens:
        flags = (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument)
        lines += [(_EQUAL, 0, 4, number), flags, (_ANY_BIT, 0, 1, _WRITES), refuse, allow]
    return [*lines, allow]


_PIECE_BYTES, _PATIENCE_S = 1 << 16, 1.0
_SET_PIPE_SIZE, _PIPE_BYTES = 1031, 1 << 20


def run(asked: int, told: int) -> None:
    """Give up all other rights, then answer until nobody asks any more. asked, told: descriptors of pipes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    confine(invoking_user(), Fence(keep=(CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH), files=False))
    lookup = Lookup()
    only_look()
    with suppress(BrokenPipeError):
        _answer(lookup, asked, told)


def _answer(lookup: Lookup, asked: int, told: int) -> None:
    poll, left = select.poll(), b""
    poll.register(asked, select.POLLIN)
    while True:
        wait_s = lookup.wait_s()
        if poll.poll(None if wait_s is None else wait_s * 1000):
            piece = os.read(asked, _PIECE_BYTES)
            if not piece:
                return
            left += piece
            whole = len(left) // QUESTION_BYTES * QUESTION_BYTES
            for question in questions(left[:whole]):
                lookup.ask(*question)
            left = left[whole:]
        pieces = [answer_bytes(answer) for answer in lookup.step()]
        pieces += [remark_bytes(remark) for remark in lookup.remarks]
        lookup.remarks.clear()
        out = b"".join(pieces)
        while out:
            out = out[os.write(told, out) :]


class IdentityProgram:
    """The process, started before anything is captured. Nothing here waits for it. ended: it answers no more."""

    def __init__(self) -> None:
        """Raises OSError where there can be no other process."""
        asked, self._asking = os.pipe()
        self._hearing, telling = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _run_alone(asked, telling)
        os.close(asked)
        os.close(telling)
        for pipe in (self._asking, self._hearing):
            os.set_blocking(pipe, False)
            with suppress(OSError):  # more than this user may have
                fcntl.fcntl(pipe, _SET_PIPE_SIZE, _PIPE_BYTES)
        self._unsent = bytearray()
        self._left = b""
        self.ended = False

    def fileno(self) -> int:
        """Readable when there are answers."""
        return self._hearing

    def ask(self, one: Question) -> bool:
        """Ask; False where so much is asked already that it is not."""
        if self.ended or len(self._unsent) >= _PIPE_BYTES:
            return False
        self._unsent += question_bytes(one)
        return True

    def flush(self) -> None:
        """Send what the pipe takes now."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._asking, self._unsent)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.ended = True

    def answers(self) -> list[Answer | str]:
        """What it has answered by now; texts are remarks for people."""
        pieces = [self._left]
        try:
            while piece := os.read(self._hearing, _PIECE_BYTES):
                pieces.append(piece)
            self.ended = True
        except BlockingIOError:
            pass
        found, self._left = answers(b"".join(pieces))
        return found

    def close(self) -> None:
        """Let it end; it does so by itself as well, with this process."""
        for pipe in (self._asking, self._hearing):
            os.close(pipe)
        until = time.monotonic() + _PATIENCE_S
        while os.waitpid(self._pid, os.WNOHANG)[0] == 0 and time.monotonic() < until:
            time.sleep(0.01)


def _run_alone(asked: int, told: int) -> NoReturn:
    """In the new process: it has nothing of the other one's but these pipes and standard error."""
    status = 1
    try:
        os.dup2(asked, 0)
        os.dup2(told, 1)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        run(0, 1)
        status = 0
    except Exception as error:
        caught(error)
    finally:
        os._exit(status)


def end_of(address: str) -> bytes:
    """An address in 4 or 16 bytes."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)

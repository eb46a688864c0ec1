"""A process that only looks (Linux, x86-64 and arm64; elsewhere nothing happens). In: nothing. Out: the same process,
to which the kernel refuses to write to files, start programs, or touch other processes.

A filter of system calls (seccomp), which cannot be taken off again. Sources: seccomp(2), linux/filter.h, linux/audit.h,
and the tables of system calls of both architectures.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from typing import NamedTuple

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

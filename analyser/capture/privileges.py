"""Rights given up before a stranger's bytes are read (Linux; elsewhere nothing happens).

In: where a process still has to write, which capabilities it cannot do without. Out: the same process as the user who
started it (SUDO_UID), or nobody, without capabilities, unable to gain any, and, where the kernel has Landlock, unable
to open files elsewhere. Sources: capabilities(7), prctl(2), landlock(7), and linux/landlock.h for the numbers.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from wirewitness.analyser.base.package import PACKAGE_FOLDER

CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SETGID, CAP_SETUID, CAP_NET_RAW = 0, 1, 2, 6, 7, 13
CAP_SYS_PTRACE = 19
NOBODY = "nobody"
_NOBODY_ID = 65534
_SET_KEEPCAPS, _CAPBSET_DROP, _SET_NO_NEW_PRIVS, _CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 8, 24, 38, 47, 4
_THIS_PROCESS = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
# Rights of files by the version of Landlock that knows them: bits 0 to 12, then one more each.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_EXECUTE, _READ_FILE, _READ_DIR, _REMOVE_DIR = 1 << 0, 1 << 2, 1 << 3, 1 << 4
_READ = _EXECUTE | _READ_FILE | _READ_DIR
# What may be done with a single file, which is no folder.
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_NET_RIGHTS = 3  # bind and connect of TCP, since version 4
# Beside the program itself: libraries, names of users and hosts, time zones, what the kernel tells of this process.
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev/null", "/dev/urandom")


class User(NamedTuple):
    """Who a process becomes."""

    uid: int
    gid: int
    name: str


class Fence(NamedTuple):
    """Where a process may still go. write: folders it may change; empties: folders of which it may remove empty ones;
    read: what it may read beside the program and the system; keep: capabilities; network: may it open TCP connections?
    files: are files and connections fenced at all? Who is fenced may not look into other processes.
    """

    write: Sequence[Path | int] = ()
    empties: Sequence[Path] = ()
    read: Sequence[Path] = ()
    keep: Sequence[int] = ()
    network: bool = False
    files: bool = True


def invoking_user() -> User | None:
    """Whom root gives way to: who called sudo, else nobody. None where this process is not root, or may not become
    somebody else and give files away: containers leave root few capabilities."""
    wanted = 1 << CAP_CHOWN | 1 << CAP_SETGID | 1 << CAP_SETUID
    if os.geteuid() != 0 or (sys.platform == "linux" and _capabilities()[0] & wanted != wanted):
        return None
    told = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if all(text.isdecimal() for text in told) and int(told[0]) > 0:
        uid, gid = int(told[0]), int(told[1])
        with suppress(KeyError):
            return User(uid, gid, pwd.getpwuid(uid).pw_name)
        return User(uid, gid, str(uid))
    try:
        entry = pwd.getpwnam(NOBODY)
    except KeyError:
        return User(_NOBODY_ID, _NOBODY_ID, NOBODY)
    return User(entry.pw_uid, entry.pw_gid, NOBODY)


def may(user: User | None, paths: Sequence[Path], mode: int) -> bool:
    """May this user, without any capability, reach all these paths so (os.R_OK, os.W_OK)? Asked as that user.

    user: None for the one that this process is."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if user is not None:
                _become(user, ())
            else:
                _set_capabilities(())
            status = 0 if all(os.access(path, mode) for path in paths) else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def program_folders() -> list[Path]:
    """Where the code of this program lies, which is read while it runs; packages may be links to elsewhere."""
    own = (str(path) for path in (PACKAGE_FOLDER, *PACKAGE_FOLDER.iterdir()))
    named = {*own, sys.prefix, sys.base_prefix, sys.exec_prefix, *(path or "." for path in sys.path)}
    packages = [module for name, module in [*sys.modules.items()] if "." not in name]
    files = (getattr(module, "__file__", None) for module in packages)
    named |= {os.path.dirname(os.path.realpath(file)) for file in files if file}
    return sorted(map(Path, map(os.path.realpath, named)))


def confine(user: User | None, fence: Fence) -> bool:
    """Give up everything but what the fence leaves; True where the kernel fences files too. There is no way back.

    user: None to stay who one is. Raises OSError where the system refuses to take rights away.
    """
    if sys.platform != "linux":
        return False
    ruleset = _landlock(fence) if fence.files else None  # folders are named while they are in reach
    if user is not None:
        _become(user, fence.keep)
    else:
        _set_capabilities(fence.keep)
    _prctl(_SET_NO_NEW_PRIVS, 1)
    if ruleset is not None:
        _checked(int(_libc().syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))))
        os.close(ruleset)
    return ruleset is not None


def landlock_version() -> int:
    """Of the running kernel; below 1 where it fences nothing."""
    if sys.platform != "linux":
        return 0
    return int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))


def _become(user: User, keep: Sequence[int]) -> None:
    _drop_bounding(keep)
    if keep:
        _prctl(_SET_KEEPCAPS, 1)
    groups = [user.gid]
    with suppress(KeyError, OSError):
        groups = os.getgrouplist(pwd.getpwuid(user.uid).pw_name, user.gid)
    os.setgroups(groups)
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    _set_capabilities(keep)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _prctl(option: int, first: int, second: int = 0) -> None:
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    _checked(_libc().prctl(option, *arguments))


def _drop_bounding(keep: Sequence[int]) -> None:
    """No program that is started later can get them either."""
    for capability in range(64):
        if capability not in keep:
            try:
                _prctl(_CAPBSET_DROP, capability)
            except OSError:  # the kernel knows no such capability, or this process has no say
                return


def _set_capabilities(keep: Sequence[int]) -> None:
    """Of what this process has, only `keep`; nothing is inheritable."""
    left = _capabilities()[1] & sum(1 << one for one in keep)
    low, high = left & 0xFFFFFFFF, left >> 32
    with suppress(OSError):  # kernels before 4.3 have no ambient ones
        _prctl(_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    _checked(_libc().capset(_THIS_PROCESS, struct.pack("=6I", low, low, 0, high, high, 0)))


def _capabilities() -> tuple[int, int]:
    """Of this process: the effective and the permitted ones, a bit each."""
    data = ctypes.create_string_buffer(24)
    _checked(_libc().capget(_THIS_PROCESS, data))
    low, permitted_low, _, high, permitted_high, _ = struct.unpack("=6I", data.raw)
    return high << 32 | low, permitted_high << 32 | permitted_low


def _landlock(fence: Fence) -> int | None:
    """The descriptor of the rules; None where the kernel has no Landlock."""
    libc, version = _libc(), landlock_version()
    if version < 1:
        return None
    rights = (1 << _FILE_RIGHTS[min(version, max(_FILE_RIGHTS))]) - 1
    net = _NET_RIGHTS if version >= 4 and not fence.network else 0
    asked = struct.pack("=QQ", rights, net)[: 16 if version >= 4 else 8]
    ruleset = _checked(int(libc.syscall(_CREATE_RULESET, asked, ctypes.c_size_t(len(asked)), ctypes.c_uint32(0))))
    for path in [*map(Path, _SYSTEM), *program_folders(), *fence.read]:
        _allow(ruleset, path, rights & _READ)
    _allow(ruleset, Path("/dev/null"), rights & (_READ_FILE | _WRITE_FILE | _TRUNCATE))
    for place in fence.write:
        _allow(ruleset, place, rights)
    for path in fence.empties:
        _allow(ruleset, path, rights & _REMOVE_DIR)
    return ruleset


def _allow(ruleset: int, place: Path | int, rights: int) -> None:
    """place: a path or the descriptor of a folder; one that is not there, or out of reach, needs no right."""
    try:
        descriptor = os.dup(place) if isinstance(place, int) else os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, descriptor)
        _checked(int(_libc().syscall(_ADD_RULE, ctypes.c_int(ruleset), _PATH_BENEATH, rule, ctypes.c_uint32(0))))
    finally:
        os.close(descriptor)

"""Groups of processes that take a part of a processor each, by the kernel's control groups (root).

In: parts of a processor. Out: words to put before a command, whose process and all that it starts share that part. So
two processors stand for eight machines that are slower, and a program that waits for none of them is not slowed down.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Version 1 has a folder for each controller, version 2 one for all; both are looked for, since hosts have either.
_V1, _V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
# So many times what other processes get where processors are short: the part is what a group may take, and should get.
_BEFORE_OTHERS = 8
_V1_SHARES, _V2_WEIGHT = 1024 * _BEFORE_OTHERS, 100 * _BEFORE_OTHERS
_GONE_S = 10
_ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


@cache
def why_not() -> str:
    """Why there are no such groups here; empty where there are. A group is made to see: in containers what is mounted
    there may be read-only, for root too."""
    if os.geteuid():
        return "control groups need root"
    if not ((_V1 / "cpu.cfs_quota_us").exists() or "cpu" in _controllers()):
        return "the kernel gives no control group of processors"
    try:
        with processor_share(f"wirewitness-probe-{os.getpid()}", 1):
            return ""
    except OSError as error:
        return f"no control group can be made: {error.strerror}"


@contextlib.contextmanager
def processor_share(name: str, part: float) -> Iterator[list[str]]:
    """A group that takes `part` of one processor at most, before others get theirs; the words that start a command in
    it. OSError without rights.

    It is gone when the block ends, for which all its processes must have ended.
    """
    is_v1 = (_V1 / "cpu.cfs_quota_us").exists()
    group = (_V1 if is_v1 else _V2) / name
    group.mkdir()
    try:
        quota = str(round(part * _PERIOD_US))
        if is_v1:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(quota)
            (group / "cpu.shares").write_text(str(_V1_SHARES))
        else:
            (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
            (group / "cpu.weight").write_text(str(_V2_WEIGHT))
        yield ["sh", "-c", _ENTER, str(group)]
    finally:
        _removed(group)


def _controllers() -> list[str]:
    try:
        return (_V2 / "cgroup.subtree_control").read_text().split()
    except OSError:
        return []


def _removed(group: Path) -> None:
    """Processes that were killed are in their group until somebody waited for them."""
    deadline = time.monotonic() + _GONE_S
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)

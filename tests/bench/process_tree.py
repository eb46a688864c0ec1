"""A program with all processes that it starts, watched by the kernel's own figures.

In: a command. Out: wall time, and for the program, its Java and its Python workers the processor time and the most
memory of one process. What is mapped from files is the page cache's and counts apart: captures are mapped.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

Kind = Literal["driver", "java", "worker"]
LOOK_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")


class Seen(NamedTuple):
    """Of one process: its own memory (anonymous pages) and all that was resident, at most; processor time so far."""

    own_mib: float
    resident_mib: float
    cpu_s: float


class TreeRun(NamedTuple):
    """What a run took. peaks: for each kind of process the largest of them."""

    wall_s: float
    cpu_s: float
    peaks: dict[str, Seen]


def measure_tree(
    command: Sequence[str], output: Path, errors: Path, looked: Callable[[float], None] = lambda _: None
) -> TreeRun:
    """Run COMMAND to its end. looked: told the processor time so far, ten times a second.

    RuntimeError with its standard error when it fails.
    """
    seen: dict[tuple[int, str], Seen] = {}
    with output.open("wb") as out, errors.open("wb") as err:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        while process.poll() is None:
            for key, now in _look(process.pid):
                before = seen.get(key, now)
                seen[key] = Seen(*(max(pair) for pair in zip(before, now, strict=True)))
            looked(sum(one.cpu_s for one in seen.values()))
            time.sleep(LOOK_S)
        wall_s = time.perf_counter() - begun
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {errors.read_text()[-2000:]}")
    peaks: dict[str, Seen] = {}
    for (_, kind), one in seen.items():
        peaks[kind] = max(peaks.get(kind, one), one)
    return TreeRun(wall_s, sum(one.cpu_s for one in seen.values()), peaks)


def _look(root: int) -> Iterator[tuple[tuple[int, str], Seen]]:
    """The processes of the tree as they are now; those that end meanwhile are left out."""
    parents: dict[int, int] = {}
    facts: dict[int, tuple[str, float]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            fields = rest.split()
            parents[int(folder.name)] = int(fields[1])
            facts[int(folder.name)] = name, (int(fields[11]) + int(fields[12])) / _TICKS
    for pid, (name, cpu_s) in facts.items():
        if _is_below(pid, root, parents):
            kind: Kind = "driver" if pid == root else "java" if name == "java" else "worker"
            memory = _memory(pid)
            if memory is not None:
                yield (pid, kind), Seen(*memory, cpu_s)


def _is_below(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != root:
        pid = parents[pid]
    return pid == root


def _memory(pid: int) -> tuple[float, float] | None:
    """Anonymous and all resident pages in MiB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
    if "RssAnon" not in sizes:
        return None
    return int(sizes["RssAnon"].split()[0]) / 1024, int(sizes["VmRSS"].split()[0]) / 1024

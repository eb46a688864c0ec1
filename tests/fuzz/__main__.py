"""Fuzzes all levels for a time: `python -m tests.fuzz [SECONDS]`, what `make fuzz` runs.

In: seconds for everything, a seed (a new one each time unless given), a folder in which the next run goes on where this
one ended. Out: a line for each level; the exit status 1 when something was found. A finding is judged again in a
process of its own, made small, and put into `tests/fuzz/regressions`, where `make test` runs it from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.fuzz.engine import NO_ATHERIS, REGRESSIONS, WATCHED, has_atheris

ROOT = Path(__file__).resolve().parents[2]
LEAST_GUIDED_S = 30
# Beyond its time, for starting and for one input that takes long.
PATIENCE_S = 240
# On a busy machine starting takes long: what would begin after so many times the time is left out, and named.
LATEST = 1.2
SHRINK_S = 20


class Task(NamedTuple):
    """One process."""

    levels: Sequence[str]
    guided: bool
    seconds: float


class Ended(NamedTuple):
    """An input that ended a process, or that it did not come to an end of."""

    levels: Sequence[str]
    path: Path
    how: str


def main(arguments: list[str]) -> int:
    """Fuzz, judge what was found, say what was done."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description="feed every level with bytes that are made up")
    parser.add_argument("seconds", type=float, nargs="?", default=120.0, help="for everything (120)")
    parser.add_argument("--seed", type=int, help="a new one without it")
    parser.add_argument("--work", type=Path, default=ROOT / ".fuzz", help="what a next run goes on from (.fuzz)")
    parser.add_argument("--only", action="append", default=[], metavar="LEVEL", help="one level; repeatable")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    parser.add_argument("--slack", type=float, default=1.0, help="so many times the limits of time and memory (1)")
    args = parser.parse_args(arguments)
    seed = args.seed if args.seed is not None else int.from_bytes(os.urandom(4), "big")
    print(f"fuzzing for {args.seconds:.0f} s, seed {seed}, slack {args.slack:g}", flush=True)
    if not has_atheris():
        print(NO_ATHERIS, file=sys.stderr, flush=True)
        if os.environ.get("CI") == "true":
            return 1
    shutil.rmtree(args.work / "done", ignore_errors=True)
    tasks = plan(args.only, args.seconds * args.jobs, Random(seed))
    latest = time.monotonic() + LATEST * args.seconds
    with tempfile.TemporaryDirectory(prefix="wirewitness-fuzz-", dir=_memory_folder()) as running:

        def run(number: int) -> Ended | None:
            if time.monotonic() > latest:
                print(f"no time left for {', '.join(tasks[number].levels)}", flush=True)
                return None
            return _run(tasks[number], seed + number, args.work, Path(running) / str(number), args.slack)

        with ThreadPoolExecutor(args.jobs) as pool:
            ended = [found for found in pool.map(run, range(len(tasks))) if found is not None]
        _tell(args.work)
        return int(_judge(args.work, ended, args.slack))


def plan(only: Sequence[str], seconds: float, dice: Random) -> list[Task]:
    """What runs for how long: half of the time for made-up inputs of all levels, half for those guided by coverage, of
    as many levels as have time enough, chosen by the dice."""
    from tests.fuzz.levels import LEVELS

    levels = {name: LEVELS[name].weight for name in (only or LEVELS)}
    watched = [name for name in levels if name.partition("-")[0] in WATCHED] if has_atheris() else []
    dice.shuffle(watched)
    watched = watched[: max(1, int(seconds / 2 / LEAST_GUIDED_S))]
    total = sum(levels[name] for name in watched)
    made = Task(list(levels), False, seconds / 2 if watched else seconds)
    return [made, *(Task([name], True, seconds / 2 * levels[name] / total) for name in watched)]


def _run(task: Task, seed: int, work: Path, running: Path, slack: float) -> Ended | None:
    """One process to its end; the input that it was at when the end is none that it should have."""
    command = [sys.executable, "-m", "tests.fuzz.engine", f"{task.seconds:.1f}", *task.levels, "--seed", str(seed)]
    command += ["--work", str(work), "--running", str(running), "--slack", str(slack)]
    command += ["--guided"] if task.guided else []
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(running.parent)},  # in memory, and removed however the process ends
            capture_output=True,
            timeout=task.seconds + PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(task.levels, running, f"does not end within {time.monotonic() - begun:.0f} s")
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace")[-3000:]
    return Ended(task.levels, running, f"the process ends with {done.returncode}\n{said}")


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _tell(work: Path) -> None:
    """What was done, level by level."""
    rows = [json.loads(path.read_text()) for path in sorted((work / "done").glob("*.json"))]
    print(f"{'level':18}{'inputs':>10}{'guided':>10}{'slowest, s per 100 kB':>24}{'largest, bytes per byte':>26}")
    for level in dict.fromkeys(row["level"] for row in rows):
        own = [row for row in rows if row["level"] == level]
        made, guided = (sum(row["inputs"] for row in own if row["way"] == way) for way in ("made", "guided"))
        slowest: dict[str, Any] = max((row["slowest"] for row in own), key=lambda one: one["s_per_100kB"])
        largest: dict[str, Any] = max((row["largest"] for row in own), key=lambda one: one["bytes_per_byte"])
        print(f"{level:18}{made:10}{guided:10}{slowest['s_per_100kB']:24.2f}{largest['bytes_per_byte']:26.0f}")
    print(f"{sum(row['inputs'] for row in rows)} inputs", flush=True)


def _judge(work: Path, ended: list[Ended], slack: float) -> bool:
    """Was something found? Each finding judged again, by itself; what is one becomes a regression."""
    found = False
    for one in ended:
        found = True
        print(f"{', '.join(one.levels)}: {one.how}", flush=True)
        if one.path.exists():
            level, _, data = one.path.read_bytes().partition(b"\n")
            _to_regressions(level.decode(), "ended", data)
    for path in sorted((work / "findings").glob("*/*")):
        if path.suffix == ".txt":
            continue
        command = [sys.executable, "-m", "tests.fuzz.replay", path.parent.name, str(path), "--slack", str(slack)]
        done = subprocess.run([*command, "--shrink", str(SHRINK_S)], cwd=ROOT, capture_output=True, check=False)
        if done.returncode:
            found = True
            print(done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"), flush=True)
            _to_regressions(path.parent.name, path.name, path.read_bytes())
        path.unlink()
        path.with_name(path.name + ".txt").unlink(missing_ok=True)
    return found


def _to_regressions(level: str, place: str, data: bytes) -> None:
    """Put the input where `make test` runs it."""
    kept = REGRESSIONS / level
    kept.mkdir(parents=True, exist_ok=True)
    name = f"{place.lower()[:80]}-{hashlib.sha256(data).hexdigest()[:8]}"
    (kept / name).write_bytes(data)
    print(f"kept as {(kept / name).relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Judges an input again in a process of its own: `python -m tests.fuzz.replay LEVEL FILE`.

In: a level and an input that was found. Out: the verdict, and the exit status 1 when it is a finding; with --shrink the
file is made smaller as long as it shows the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.levels import LEVELS, Level
from tests.fuzz.oracle import FAULT, FINE, Verdict, confirmed


def main(arguments: list[str]) -> int:
    """Judge one input."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.replay")
    parser.add_argument("level", choices=list(LEVELS))
    parser.add_argument("file", type=Path)
    parser.add_argument("--slack", type=float, default=1.0)
    parser.add_argument("--shrink", type=float, default=0.0)
    args = parser.parse_args(arguments)
    level, data = LEVELS[args.level], args.file.read_bytes()
    verdict = verdict_on(level, data, args.slack)
    if verdict.kind == FAULT and args.shrink:
        data = _shrunk(level, data, verdict.place, args.slack, args.shrink)
        args.file.write_bytes(data)
    if verdict.kind != FINE:
        print(f"{args.level}: {verdict.kind} {verdict.place}, {len(data)} bytes\n{verdict.told}")
    return int(verdict.kind != FINE)


def verdict_on(level: Level, data: bytes, slack: float = 1.0) -> Verdict:
    """What an input is judged to be."""
    return confirmed(level.check, data, max(len(data), level.size(data)), slack, level.floor_s)


def _shrunk(level: Level, data: bytes, place: str, slack: float, seconds: float) -> bytes:
    """The input without the parts that the fault does not need, as far as the time goes."""
    ends, part = time.monotonic() + seconds, max(len(data) // 2, 1)
    while part >= 1 and time.monotonic() < ends:
        at, was = 0, len(data)
        while at < len(data) and time.monotonic() < ends:
            tried = data[:at] + data[at + part :]
            if verdict_on(level, tried, slack).place == place:
                data = tried
            else:
                at += part
        part = part // 2 if len(data) == was or part > len(data) else part
    return data


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Lets the repository's corpus grow: `python -m tests.fuzz.keep [--work .fuzz]`.

In: what guided runs kept in the working folder, and as many inputs made up. Out: files in `tests/fuzz/corpus/LEVEL`: of
these inputs, the small ones first, each that reaches lines of the product which none before it did, until a level has
its share. What is there stays, so that the corpus only grows; a level whose share is full takes no more.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from tests.fuzz.engine import CORPUS
from tests.fuzz.levels import LEVELS, Level

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = tuple(f"{ROOT / name}/" for name in ("analyser", "dissectors", "reports", "app"))
MOST_FILES, MOST_BYTES = 30, 2000
SEEDS_LOOKED_AT = 100
Line = tuple[str, int]


def lines_of(run: Callable[[], None]) -> set[Line]:
    """Lines of the product that a call reaches."""
    found: set[Line] = set()

    def line(frame: FrameType, event: str, _: Any) -> Any:
        found.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(PRODUCT) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def kept(level: Level, there: list[bytes], new: list[bytes], most: int) -> list[bytes]:
    """Of the new inputs those that reach more than what is there and the level's seeds, at most so many."""
    reached: set[Line] = set()
    for data in [*there, *level.seeds()][:SEEDS_LOOKED_AT]:
        reached |= lines_of(lambda: level.check(data))  # noqa: B023
    found: list[bytes] = []
    for data in sorted(new, key=len):
        if len(found) >= most:
            break
        lines = lines_of(lambda: level.check(data))  # noqa: B023
        if lines - reached:
            reached |= lines
            found.append(data)
    return found


def made(level: Level, most: int) -> list[bytes]:
    """Inputs changed with knowledge of their structure, the short ones of so many."""
    seeds = list(level.seeds())
    changed = (level.change(seeds[number % len(seeds)], Random(number)) for number in range(most))
    return [data for data in changed if len(data) <= MOST_BYTES]


def main(arguments: list[str]) -> int:
    """Add to the corpus of every level, or of some."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.keep")
    parser.add_argument("--work", type=Path, default=ROOT / ".fuzz")
    parser.add_argument("--most", type=int, default=100, help="so many of each kind are looked at (100)")
    parser.add_argument("levels", nargs="*")
    args = parser.parse_args(arguments)
    for name in args.levels or LEVELS:
        folder, found = CORPUS / name, args.work / "corpus" / name
        there = [path.read_bytes() for path in sorted(folder.glob("*"))]
        new = [path.read_bytes() for path in sorted(found.glob("*")) if path.stat().st_size <= MOST_BYTES]
        new = Random(0).sample(new, min(len(new), args.most)) + made(LEVELS[name], args.most)
        for data in kept(LEVELS[name], there, new, MOST_FILES - len(there)):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
        print(f"{name}: {len(list(folder.glob('*')))} inputs, {len(there)} before", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Fuzzes levels in one process: `python -m tests.fuzz.engine SECONDS LEVEL... --work FOLDER --running FILE`.

In: names of levels. Out: findings in FOLDER/findings, what was run in FOLDER/done. Two ways: inputs changed with
knowledge of their structure, all levels by turns; or, with --guided, one level by libFuzzer (atheris), which keeps what
reaches new lines in FOLDER/corpus, from which the next run goes on. An input that ends the process is left in the file
that --running names.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fuzz.levels import Level

CORPUS = Path(__file__).resolve().parent / "corpus"
REGRESSIONS = Path(__file__).resolve().parent / "regressions"
MAX_GUIDED_BYTES = 8192
# So many inputs libFuzzer starts from, beside those that it kept: each is run before it changes one.
GUIDED_START = 100
GROWN_SHARE = 0.05
GROWN_BYTES = (20_000, 200_000)
TOLD_EVERY_S = 2.0
BEGUN = time.monotonic()
NO_ATHERIS = "atheris is not installed (it is for CPython 3.11 to 3.13 on x86_64 Linux): no inputs guided by coverage"
# Where coverage is watched, by the first word of a level; known before the level is imported.
WATCHED = {
    "capture": ["wirewitness.analyser.capture"],
    "segments": ["wirewitness.analyser.tcp", "wirewitness.analyser.decoding"],
    "kafka": ["wirewitness.dissectors.kafka", "wirewitness.dissectors.core", "wirewitness.analyser.decoding"],
    "mongo": ["wirewitness.dissectors.mongo", "wirewitness.dissectors.core", "wirewitness.analyser.decoding"],
    "mqtt": ["wirewitness.dissectors.mqtt", "wirewitness.dissectors.core", "wirewitness.analyser.decoding"],
    "websocket": ["wirewitness.dissectors.carriers", "wirewitness.dissectors.mqtt", "wirewitness.analyser.decoding"],
    "compressed": ["wirewitness.dissectors.core", "wirewitness.dissectors.kafka.records"],
    "blobs": ["wirewitness.dissectors.kafka", "wirewitness.dissectors.core"],
}


def has_atheris() -> bool:
    """Can inputs be guided by coverage here?"""
    return find_spec("atheris") is not None


class Run:
    """One process's work on a level: judges inputs, keeps findings, counts."""

    def __init__(self, name: str, level: Level, work: Path, running: Path, slack: float, guided: bool) -> None:
        self.name, self.level, self.slack, self.guided = name, level, slack, guided
        self.running = running
        self._findings, self._done = work / "findings" / name, work / "done"
        for folder in (self._findings, self._done):
            folder.mkdir(parents=True, exist_ok=True)
        self.count = self.found = 0
        self.spent_s = 0.0
        self.slowest = {"s_per_100kB": 0.0, "seconds": 0.0, "bytes": 0}
        self.largest = {"bytes_per_byte": 0.0, "grown": 0, "bytes": 0}
        self._told = time.monotonic()

    def warm_up(self, inputs: list[bytes]) -> None:
        """What is imported and made at the first use counts for no input."""
        from tests.fuzz.oracle import judged

        for data in inputs[:2]:
            judged(self.level.check, data, len(data))

    def one(self, data: bytes) -> None:
        """Judge an input."""
        from tests.fuzz.oracle import FAULT, FINE, judged

        self.running.write_bytes(self.name.encode() + b"\n" + data)
        size = self._size(data)
        verdict = judged(self.level.check, data, size, self.slack, self.level.floor_s)
        self.count += 1
        if verdict.kind != FAULT:
            self._measure(verdict.seconds, verdict.grown_bytes, size)
        # What is slow under the watch of coverage is looked at again without it, by who started this process.
        if verdict.kind != FINE:
            self._keep(verdict.place, data, verdict.told)
        if time.monotonic() - self._told > TOLD_EVERY_S:
            self.tell()

    def _size(self, data: bytes) -> int:
        return len(data) if len(data) < 1000 else max(len(data), self.level.size(data))

    def _measure(self, seconds: float, grown: int, size: int) -> None:
        rate, times = seconds / max(size, 100_000) * 100_000, grown / max(size, 100_000)
        if rate > self.slowest["s_per_100kB"] and not self.guided:
            self.slowest = {"s_per_100kB": round(rate, 3), "seconds": round(seconds, 3), "bytes": size}
        if times > self.largest["bytes_per_byte"] and not self.guided:
            self.largest = {"bytes_per_byte": round(times, 1), "grown": grown, "bytes": size}

    def _keep(self, place: str, data: bytes, told: str) -> None:
        path = self._findings / place.replace("/", "_")[:150]
        if not path.exists() or path.stat().st_size > len(data):
            self.found += not path.exists()
            path.write_bytes(data)
            path.with_name(path.name + ".txt").write_text(told)

    def tell(self) -> None:
        """Write what was done so far."""
        self._told = time.monotonic()
        way = "guided" if self.guided else "made"
        said: dict[str, Any] = {"level": self.name, "way": way, "inputs": self.count, "found": self.found}
        said |= {"slowest": self.slowest, "largest": self.largest}
        (self._done / f"{self.name}-{os.getpid()}.json").write_text(json.dumps(said))

    def over(self) -> None:
        """The process ends as it should."""
        self.tell()
        self.running.unlink(missing_ok=True)


def start_inputs(name: str, level: Level, work: Path) -> Iterator[bytes]:
    """The repository's corpus, what earlier runs kept, and the level's seeds."""
    for folder in (CORPUS / name, REGRESSIONS / name, work / "corpus" / name):
        if folder.is_dir():
            yield from (path.read_bytes() for path in sorted(folder.iterdir()))
    yield from level.seeds()


def make_inputs(runs: Mapping[str, Run], inputs: Mapping[str, list[bytes]], ends: float, dice: Random) -> None:
    """Inputs changed with knowledge of their structure, some made large; of the level that had least of its time."""
    while (begun := time.monotonic()) < ends:
        run = min(runs.values(), key=lambda one: one.spent_s / one.level.weight)
        level, data = run.level, dice.choice(inputs[run.name])
        for _ in range(dice.choice([1, 1, 2, 4])):
            data = level.change(data, dice)
        if level.grown is not None and dice.random() < GROWN_SHARE:
            data = level.grown(data, dice, dice.choice(GROWN_BYTES))
        run.one(data)
        run.spent_s += time.monotonic() - begun
    for run in runs.values():
        run.over()


def guide_inputs(run: Run, inputs: list[bytes], ends: float, seed: int, work: Path) -> None:
    """The same by libFuzzer, which keeps what reaches new lines. Does not come back: libFuzzer ends the process."""
    import atheris

    kept = work / "corpus" / run.name
    kept.mkdir(parents=True, exist_ok=True)
    short = [data for data in inputs if len(data) <= MAX_GUIDED_BYTES]
    for data in Random(seed).sample(short, min(len(short), GUIDED_START)):
        (kept / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)

    def check(data: bytes) -> None:
        run.one(data)
        if time.monotonic() > ends:  # libFuzzer asks for the time only now and then
            run.over()
            os._exit(0)

    def change(data: bytes, most_bytes: int, number: int) -> bytes:
        if number % 2:
            return bytes(atheris.Mutate(data, most_bytes))
        return run.level.change(data, Random(number))[:most_bytes]

    settings = [f"-max_len={MAX_GUIDED_BYTES}", f"-seed={seed % (1 << 31) + 1}", "-rss_limit_mb=0", "-timeout=300"]
    settings += [f"-artifact_prefix={run.running.parent}/", "-verbosity=0", "-len_control=0"]
    atheris.Setup([sys.argv[0], *settings, str(kept)], check, custom_mutator=change)
    atheris.Fuzz()


def _levels(watched: str | None) -> Mapping[str, Level]:
    """All levels; the product's code is watched for coverage as far as the level WATCHED wants it."""
    if watched is None:
        from tests.fuzz.levels import LEVELS
    else:
        import atheris

        with atheris.instrument_imports(include=WATCHED[watched.partition("-")[0]], enable_loader_override=False):
            from tests.fuzz.levels import LEVELS
    return LEVELS


def main(arguments: list[str]) -> int:
    """Fuzz levels for a time, which begins with the process."""
    parser = argparse.ArgumentParser(prog="tests.fuzz.engine")
    parser.add_argument("seconds", type=float)
    parser.add_argument("levels", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--running", type=Path, required=True, help="a file for the input that is being judged")
    parser.add_argument("--slack", type=float, default=1.0, help="so many times the limits of time and memory")
    parser.add_argument("--guided", action="store_true", help="one level by libFuzzer")
    args = parser.parse_args(arguments)
    levels = _levels(args.levels[0] if args.guided else None)
    runs = {name: Run(name, levels[name], args.work, args.running, args.slack, args.guided) for name in args.levels}
    inputs = {name: list(start_inputs(name, levels[name], args.work)) for name in runs}
    for name, run in runs.items():
        run.warm_up(inputs[name])
    if args.guided:
        (run,) = runs.values()
        guide_inputs(run, inputs[run.name], BEGUN + args.seconds, args.seed, args.work)
    else:
        make_inputs(runs, inputs, BEGUN + args.seconds, Random(args.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

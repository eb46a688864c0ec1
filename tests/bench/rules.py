"""What context and rules cost beside decoding: one consumer group, 10,000, one that is at fault; MQTT, MongoDB.

    python -m tests.bench.rules                  a million messages each, three runs; --messages, --runs, --profile
    python -m tests.bench.rules --archive        the steps of an archive of the same instead, one run

In: nothing. Out: Markdown. Each run is a process of its own that decodes a capture of `replay.py` or
`replay_deliveries.py` to the tables that `analyse` needs, makes those of the context, then runs all rules; it says the
processor time (all threads) of each and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import wirewitness
from tests.bench.steps import archive_steps
from tests.support.replay import GROUP_EXCHANGES, replay
from tests.support.replay_deliveries import write_deliveries
from wirewitness.analyser.engine.facts.stages import STAGE_OF
from wirewitness.reports.report.protocols import REPORT_TABLES

PROFILES = ("hot_group", "groups", "small", "deliveries", "mongo")
# In what the lab's applications of MongoDB say again and again there are faults; `small` repeats stale commits, so that
# nearly every rule about offsets is asked about nearly every commit.
FAULTY = ("small", "mongo")
PACKETS_OF_MESSAGE = {"hot_group": 9 / 4, "small": 5 / 4, "mongo": 1.08}
PHASES = ("decoding", "tables", "context", "rules", "outliers")
ARCHIVE_STEPS = ("packets", "decoding", "tables", "context", "rules", "aggregates")
_RATIO = "(context + rules) / decoding"
_HEADS = ("profile", "messages", "decoding, s CPU", *PHASES[1:], _RATIO, "MiB")
_ARCHIVE_HEADS = ("profile", *(f"{step}, s CPU" for step in ARCHIVE_STEPS), _RATIO)


def measured(capture: Path) -> dict[str, float]:
    """CPU seconds of each phase in this process, rows of commits, findings, and peak memory in MiB."""
    times = [time.process_time()]
    with wirewitness.read(capture, tables=REPORT_TABLES) as analysis:
        times.append(time.process_time())
        source = analysis._source
        for name in source.names:
            if name not in STAGE_OF and name not in ("findings", "stands_out"):
                source.ensure(name)
        times.append(time.process_time())
        for name in source.names:
            if name in STAGE_OF:
                source.ensure(name)
        times.append(time.process_time())
        found = len(analysis.findings())
        times.append(time.process_time())
        source.ensure("stands_out")
        times.append(time.process_time())
        messages = analysis.sql("SELECT count(*) FROM messages").column(0)[0].as_py()
    took = {phase: after - before for phase, before, after in zip(PHASES, times[:-1], times[1:], strict=True)}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return took | {"messages": messages, "findings": found, "peak_mib": peak}


def make(profile: str, messages: int, out: Path) -> None:
    """Write a capture of about so many messages."""
    if profile == "groups":
        replay(out, profile, flows=max(messages // (2 * GROUP_EXCHANGES), 2))
    elif profile == "deliveries":
        write_deliveries(out, messages)
    else:
        replay(out, profile, packets=round(messages * PACKETS_OF_MESSAGE[profile]))


def runs_of(capture: Path, runs: int) -> list[dict[str, float]]:
    """The capture in so many processes, one after the other."""
    command = [sys.executable, "-m", "tests.bench.rules", "--measure", str(capture)]
    return [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)]


def line(profile: str, runs: list[dict[str, float]]) -> str:
    """A row of the table: medians, and the ratio within one run."""
    middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    ratio = statistics.median((run["context"] + run["rules"]) / (run["decoding"] + run["tables"]) for run in runs)
    figures = " | ".join(f"{middle[phase]:.1f}" for phase in PHASES)
    return f"| {profile} | {middle['messages']:,.0f} | {figures} | {ratio:.2f} | {middle['peak_mib']:.0f} |"


def archive_line(profile: str, took: Mapping[str, float]) -> str:
    """A row of the table of archives."""
    ratio = (took["context"] + took["rules"]) / (took["packets"] + took["decoding"] + took["tables"])
    return f"| {profile} | {' | '.join(f'{took[step]:.1f}' for step in ARCHIVE_STEPS)} | {ratio:.2f} |"


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="context and rules beside decoding")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", choices=PROFILES, action="append")
    parser.add_argument("--archive", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measured(args.measure)))
        return
    heads = _ARCHIVE_HEADS if args.archive else _HEADS
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    with tempfile.TemporaryDirectory(prefix="bench-rules-") as folder:
        for profile in args.profile or PROFILES:
            capture = Path(folder) / f"{profile}.pcap"
            make(profile, args.messages, capture)
            if args.archive:
                row = archive_line(profile, archive_steps(capture, Path(folder)))
            else:
                row = line(profile, runs_of(capture, args.runs))
            print(row, flush=True)
            capture.unlink()


if __name__ == "__main__":
    main()

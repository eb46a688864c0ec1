"""Live decoding for minutes: its memory stays flat, nothing is dropped, old rows leave.

    python -m tests.bench.soak [--seconds 600] [--rate 2000]

Sends connections of a few Kafka exchanges each to a loopback of its own, one after the other, while `wirewitness live`
captures, decodes, writes a ring of files and forgets rows after a minute. Samples the memory of both of its programs
and the bytes in its folders. Exit status 1 when memory grows after the first third, or a packet is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.app.program import COMMAND, environment
from tests.bench.live import namespace
from tests.support.replay import replay

KEEP_S = 60
PACKETS_OF_FLOW = 20
EVERY_S = 5.0
# What a third of the time may add: the allocator's play, not rows.
GROWTH, GROWTH_MIB = 1.10, 24


class Sample(NamedTuple):
    """Resident memory of the analysis and of the program that captures, and bytes of temporary files."""

    at_s: float
    analysis_mib: float
    capture_mib: float
    files_mib: float


def soak(folder: Path, seconds: float, rate: int) -> tuple[list[Sample], str, int]:
    """Samples, what the program said in the end, and packets sent."""
    capture = folder / "soak.pcap"
    count = replay(capture, "flows", flows=int(seconds * rate / PACKETS_OF_FLOW) + 100).packets
    count = min(count, int(seconds * rate))
    temporary = folder / "tmp"
    temporary.mkdir()
    written = folder / "ring" / "soak.pcapng"
    written.parent.mkdir()
    samples = []
    with namespace() as name, (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        inside = ["ip", "netns", "exec", name]
        words = ["live", "-i", "lo", "--write", str(written), "--rotate", "20MB,3", "--keep", f"{KEEP_S}s"]
        running = subprocess.Popen(
            [*inside, *COMMAND, *words], stdout=out, stderr=err, env=environment(TMPDIR=str(temporary))
        )
        while not list(written.parent.iterdir()):
            time.sleep(0.1)
        time.sleep(2)
        load = [sys.executable, "-m", "tests.bench.live_load", "lo", str(capture), str(rate), str(count)]
        sender = subprocess.Popen([*inside, *load], stdout=subprocess.DEVNULL, env=environment())
        began = time.monotonic()
        while sender.poll() is None:
            samples.append(sample(running.pid, temporary, time.monotonic() - began))
            print(*(f"{value:8.1f}" for value in samples[-1]), flush=True)
            time.sleep(EVERY_S)
        time.sleep(3)
        running.send_signal(signal.SIGINT)
        running.wait(300)
    print((folder / "err").read_text()[-2000:], file=sys.stderr)
    return samples, (folder / "out").read_text(), count


def sample(pid: int, temporary: Path, at_s: float) -> Sample:
    """Memory now."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    capturing = [child for child in children if "capturing" in Path(f"/proc/{child}/cmdline").read_text()]
    files = sum(path.stat().st_size for path in temporary.rglob("*") if path.is_file())
    return Sample(at_s, _mib(pid), sum(_mib(int(child)) for child in capturing), files / 2**20)


def _mib(pid: int) -> float:
    """Memory of a process's own: a ring that the kernel shares does not count."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def judged(samples: list[Sample]) -> list[str]:
    """What is wrong; nothing when memory is flat."""
    third = len(samples) // 3
    wrong = []
    for name in ("analysis_mib", "capture_mib", "files_mib"):
        middle, last = (
            statistics.median(getattr(one, name) for one in part) for part in (samples[third:-third], samples[-third:])
        )
        if last > middle * GROWTH + GROWTH_MIB:
            wrong.append(f"{name} grew from {middle:.0f} to {last:.0f}")
    return wrong


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description="live decoding for minutes")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=int, default=2000, help="packets per second")
    args = parser.parse_args()
    if os.geteuid():
        print("a network namespace needs root", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="wirewitness-soak-") as folder:
        samples, report, sent = soak(Path(folder), args.seconds, args.rate)
    wrong = judged(samples)
    found = re.search(r"([\d,]+) packets in", report)
    seen = int(found[1].replace(",", "")) if found else 0
    if seen != sent:
        wrong.append(f"{sent} packets were sent, {seen} analysed")
    print(report[:1500])
    print("; ".join(wrong) or f"flat: {samples[-1]}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

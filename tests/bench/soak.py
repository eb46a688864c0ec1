"""Live decoding for minutes: its memory stays flat, nothing is dropped, old rows leave.

    python -m tests.bench.soak [--seconds 600] [--rate 3000]

Sends connections of a few Kafka exchanges each to a loopback of its own, one after the other, while `wirewitness live`
captures, decodes, writes a ring of files, shares its tables and forgets rows after a minute. Samples the memory of both
of its programs and the bytes in its folders, and measures how long it goes on after SIGINT. Exit status 1 when memory
grows after the first third, a packet is missing, or it ends late without saying why.
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
# After SIGINT; longer only with a line that says what for.
END_S = 5.0
# What a third of the time may add: the allocator's play, not rows.
GROWTH, GROWTH_MIB = 1.10, 12


class Sample(NamedTuple):
    """Resident memory of the analysis and of the program that captures, and bytes of temporary files."""

    at_s: float
    analysis_mib: float
    capture_mib: float
    files_mib: float


class Soaked(NamedTuple):
    """Samples, what the program said, packets sent, and seconds from SIGINT to its end."""

    samples: list[Sample]
    report: str
    said: str
    sent: int
    ended_s: float


def soak(folder: Path, seconds: float, rate: int) -> Soaked:
    """Run it; files go to the folder."""
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
        words = ["live", "-i", "lo", "--write", str(written), "--rotate", "20MB,3", "--keep", f"{KEEP_S}s",
                 "--share", str(folder / "shared")]  # fmt: skip
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
        asked = time.monotonic()
        running.send_signal(signal.SIGINT)
        running.wait(300)
        ended_s = time.monotonic() - asked
    return Soaked(samples, (folder / "out").read_text(), (folder / "err").read_text(), count, ended_s)


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
    parser.add_argument("--rate", type=int, default=3000, help="packets per second")
    args = parser.parse_args()
    if os.geteuid():
        print("a network namespace needs root", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="wirewitness-soak-") as folder:
        done = soak(Path(folder), args.seconds, args.rate)
    print(done.said[-2000:], file=sys.stderr)
    wrong = judged(done.samples)
    found = re.search(r"([\d,]+) packets in", done.report)
    seen = int(found[1].replace(",", "")) if found else 0
    if seen != done.sent:
        wrong.append(f"{done.sent} packets were sent, {seen} analysed")
    if done.ended_s > END_S and not re.search(r"still (?:reading|putting)", done.said):
        wrong.append(f"it ended {done.ended_s:.1f} s after SIGINT and did not say why")
    print(done.report[:1500])
    print("; ".join(wrong) or f"flat: {done.samples[-1]}", f"ended {done.ended_s:.1f} s after SIGINT", sep="; ")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

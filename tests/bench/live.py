"""The highest rate of packets that live decoding keeps up with, and how long a finding takes.

In: the program and a capture to send. Out: for wirewitness, `tshark -i` and `tcpdump -w` at each rate, whether every
packet was there and analysed at most some seconds after the last one was sent; tcpdump only writes. All of it in a
network namespace of its own, on its loopback. The delay: from the packet that proves a finding to the line that tells.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.app.program import COMMAND, environment
from tests.support.replay import replay
from wirewitness.analyser.live.session import ENDED

LATE_S = 3.0
# tcpdump takes packets from the kernel once a second; it would leave the last ones there.
SETTLE_S = 1.2
STARTED_S = 60.0
FULL_RATES, QUICK_RATES = (5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 120_000), (2_000,)
SECONDS = 8.0
SAMPLE = Path(__file__).resolve().parents[2] / "sample_pcaps" / "kafka_stale_commit.pcapng"


class LiveRate(NamedTuple):
    """One program at one rate: packets sent and seen, in what time they were sent, how late it was done with them.

    reached: packets per second that were really sent. kept_up: none is missing, and it was not late.
    """

    program: str
    wanted: int
    reached: float
    sent: int
    seen: int
    late_s: float
    cpu_s: float

    @property
    def kept_up(self) -> bool:
        return self.seen >= self.sent and self.late_s <= LATE_S


def live_rates(folder: Path, quick: bool) -> list[LiveRate]:
    """All programs at rising rates, each until it does not keep up."""
    rates = QUICK_RATES if quick else FULL_RATES
    capture = folder / "live.pcap"
    replay(capture, "small", int(SECONDS * rates[-1]))
    found = []
    with namespace() as name:
        for program in PROGRAMS:
            for rate in rates:
                found.append(measure(name, program, capture, rate, folder))
                if not found[-1].kept_up:
                    break
    capture.unlink()
    return found


def measure(name: str, program: str, capture: Path, rate: int, folder: Path) -> LiveRate:
    """Start the program, send for some seconds, ask it to end."""
    command, ready, counted = PROGRAMS[program]
    out, err = folder / "live.out", folder / "live.err"
    words = [word.format(out=folder / "live.written") for word in command]
    before = os.times()
    with out.open("wb") as out_file, err.open("wb") as err_file:
        running = subprocess.Popen(
            ["ip", "netns", "exec", name, *words], stdout=out_file, stderr=err_file, env=environment()
        )
        try:
            _wait(lambda: ready in err.read_text(errors="replace") or bool(list(folder.glob("live.written*"))))
            time.sleep(1.5)
            sent = _send(name, capture, rate, int(rate * SECONDS))
            began = time.monotonic()
            time.sleep(SETTLE_S)
            running.send_signal(signal.SIGINT)
            late_s = _late(running, err, began)
            running.wait(300)
        finally:
            running.kill()
            running.wait()
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    seen = counted(out.read_text(errors="replace"), err.read_text(errors="replace"))
    for path in folder.glob("live.written*"):
        path.unlink()
    return LiveRate(program, rate, sent["packets"] / sent["seconds"], int(sent["packets"]), seen, late_s, cpu_s)


def delays_s(folder: Path) -> list[float]:
    """Seconds from a finding's last packet so far to the line that tells it, of the stale commit sent as it was."""
    from scapy.utils import RawPcapNgReader

    with RawPcapNgReader(str(SAMPLE)) as packets:
        frames = [bytes(frame) for frame, _ in packets]
    delays = []
    with namespace() as name:
        command = [
            *COMMAND,
            "live",
            "-i",
            "lo",
            "--format",
            "jsonl",
            "--quiet",
            "--write",
            str(folder / "live.written"),
        ]
        running = subprocess.Popen(
            ["ip", "netns", "exec", name, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        _wait(lambda: bool(list(folder.glob("live.written*"))))
        time.sleep(1.5)
        small = folder / "live.pcap"
        _write_pcap(small, frames)
        threading.Thread(target=_send, args=(name, small, 400, len(frames)), daemon=True).start()
        until = time.monotonic() + len(frames) / 400 + 5
        threading.Timer(until - time.monotonic(), running.send_signal, (signal.SIGINT,)).start()
        assert running.stdout is not None
        for line in running.stdout:
            row = json.loads(line)
            if row["type"] == "finding" and row["event"] == "new" and time.monotonic() < until:
                delays.append(time.time() - _seconds(row["ts_last"]))
        running.wait(60)
        small.unlink()
    for path in folder.glob("live.written*"):
        path.unlink()
    return delays


@contextmanager
def namespace() -> Iterator[str]:
    """A network namespace with a loopback that nobody else uses."""
    name = f"wwbench{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "netns", "exec", name, "ip", "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)


def _send(name: str, capture: Path, rate: int, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.live_load", "lo", str(capture), str(rate), str(count)]
    done = subprocess.run(
        ["ip", "netns", "exec", name, *command], stdout=subprocess.PIPE, env=environment(), check=True, timeout=600
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


def _late(running: subprocess.Popen[bytes], err: Path, began: float) -> float:
    """Until the program has read everything: wirewitness says so before its report, the others end."""
    while running.poll() is None and ENDED not in err.read_text(errors="replace"):
        time.sleep(0.05)
    return time.monotonic() - began


def _wait(condition: object) -> None:
    until = time.monotonic() + STARTED_S
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise RuntimeError("a program did not start to capture")
        time.sleep(0.05)


def _write_pcap(path: Path, frames: list[bytes]) -> None:
    from scapy.utils import RawPcapWriter

    with RawPcapWriter(str(path), linktype=1) as writer:
        writer.write_header(None)
        for frame in frames:
            writer.write_packet(frame)


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text[:26] + "+00:00").timestamp()


def _ours(out: str, _: str) -> int:
    """Packets of the report; those that were dropped are missing in it."""
    found = re.search(r"([\d,]+) packets? in 1 file", out)
    return int(found[1].replace(",", "")) if found else 0


def _tcpdump(_: str, err: str) -> int:
    found = re.search(r"(\d+) packets? captured", err)
    return int(found[1]) if found else 0


FILTER = "tcp port 9092"
PROGRAMS = {
    "wirewitness": ([*COMMAND, "live", "-i", "lo", "--ports", "9092", "--write", "{out}"], "\0", _ours),
    "tshark -i": (
        ["tshark", "-l", "-i", "lo", "-f", FILTER, "-T", "fields", "-e", "frame.number", "-e", "kafka.api_key"],
        "Capturing on", lambda out, _: len(out.splitlines()),
    ),
    "tcpdump -w": (["tcpdump", "-U", "-i", "lo", "-w", "{out}", FILTER], "listening on", _tcpdump),
}  # fmt: skip


def main() -> None:
    """Print what is measured, for a look at this part alone."""
    with tempfile.TemporaryDirectory(prefix="wirewitness-bench-") as folder:
        for rate in live_rates(Path(folder), "--quick" in sys.argv):
            print(rate, rate.kept_up, flush=True)
        print([round(delay, 2) for delay in sorted(delays_s(Path(folder)))])


if __name__ == "__main__":
    main()

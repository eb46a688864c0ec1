"""Capturing at an interface: a single server's, or the switch that several share.

In: the host and a file name. Out: a pcapng file with every packet whole and nanosecond times.
tcpdump captures; editcap changes the container from pcap to pcapng and leaves the packets as they are.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.lab.net import Host
from tests.lab.processes import LabError, Process, run, wait_until

BUFFER_KIB = 16384
# The kernel hands packets on in blocks; what is still on the way when tcpdump is told to stop would be lost.
DRAIN_S = 1.0


def check_nothing_lost(words: str) -> None:
    """Raise LabError if tcpdump's closing WORDS speak of dropped packets: such a capture is no sample."""
    found = re.search(r"(\d+) packets? dropped by kernel", words)
    if found is None or int(found.group(1)):
        raise LabError(f"the capture is not whole:\n{words}")


@contextlib.contextmanager
def capturing(host: Host, path: Path, log_dir: Path, interface: str = "eth0") -> Iterator[None]:
    """Capture HOST's IPv4 traffic on INTERFACE into PATH (pcapng) during the block; LabError if packets were lost."""
    raw = log_dir / "capture.pcap"
    command = ["tcpdump", "-n", "-U", "-s", "0", "-B", str(BUFFER_KIB), "--time-stamp-precision=nano",
               "-Z", "root", "-i", interface, "-w", str(raw), "ip"]  # fmt: skip
    process = Process("tcpdump", host.command(*command), log_dir)
    try:

        def ready() -> bool:
            process.check_alive("the capture began")
            return "listening on" in process.stderr_path.read_text(errors="replace")

        wait_until(ready, "tcpdump listens", 20)
        yield
        time.sleep(DRAIN_S)
        process.terminate()
        check_nothing_lost(process.stderr_path.read_text())
        run(["editcap", "-F", "pcapng", str(raw), str(path)])
        raw.unlink()
    finally:
        process.stop()

"""Packets of a capture onto an interface at a steady rate.

    python -m tests.bench.live_load IFACE CAPTURE PACKETS_PER_SECOND COUNT

Standard output gets one JSON line when all are sent: how many, and in what time. Needs the right to send raw packets.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from itertools import islice
from pathlib import Path

from scapy.utils import RawPcapReader

BURST_S = 0.002


def send(interface: str, frames: list[bytes], per_second: float) -> dict[str, float]:
    """Send all frames in bursts of some milliseconds; a rate that cannot be reached shows in the time."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind((interface, 0))
        began = time.monotonic()
        sent = 0
        while sent < len(frames):
            due = min(len(frames), int((time.monotonic() - began + BURST_S) * per_second))
            for frame in frames[sent:due]:
                sender.send(frame)
            sent = due
            ahead_s = began + sent / per_second - time.monotonic()
            if ahead_s > 0:
                time.sleep(min(ahead_s, BURST_S))
        return {"packets": sent, "seconds": time.monotonic() - began}


def frames_of(capture: Path, count: int) -> list[bytes]:
    """The first packets of a pcap file."""
    with RawPcapReader(str(capture)) as packets:
        return [bytes(frame) for frame, _ in islice(packets, count)]


def main() -> None:
    """See the module's docstring."""
    interface, capture, per_second, count = sys.argv[1:]
    print(json.dumps(send(interface, frames_of(Path(capture), int(count)), float(per_second))), flush=True)


if __name__ == "__main__":
    main()

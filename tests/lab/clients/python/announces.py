"""A host that announces an address as its own, as hosts do on their network: ARP, again and again.

In: ADDRESS FIRST_S EVERY_S: when it says so first, and how often then. Out: a JSON line `ready`.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from pathlib import Path

DEVICE, ARP, EVERYBODY = "eth0", 0x0806, b"\xff" * 6


def announcement(address: str, own: bytes) -> bytes:
    """Return the frame: an ARP request whose sender and target are one address (RFC 5227, section 2.3)."""
    said = socket.inet_aton(address)
    head = EVERYBODY + own + struct.pack("!H", ARP)
    return head + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + own + said + bytes(6) + said


def main() -> None:
    """Announce until the process is ended."""
    address, first_s, every_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    own = bytes.fromhex(Path(f"/sys/class/net/{DEVICE}/address").read_text().strip().replace(":", ""))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((DEVICE, 0))
        print(json.dumps({"event": "ready"}), flush=True)
        time.sleep(first_s)
        while True:
            wire.send(announcement(address, own))
            time.sleep(every_s)


if __name__ == "__main__":
    main()

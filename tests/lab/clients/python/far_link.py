"""Makes the host in whose namespace it runs a far one: all that it sends and gets is under way for a while.

In: DELAY_MS [PORT], the time of one direction; with PORT only what goes to or comes from it. Out: a JSON line `ready`.
The host's address moves to a TAP device, whose frames cross this program on their way to eth0 and back. The kernel of
the lab needs no netem for it; a capture at another host sees the round trip that a long line has. The order of frames
is kept among those that are delayed alike.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable

TUNSETIFF, TAP, NO_INFO = 0x400454CA, 0x0002, 0x1000
OUTSIDE, INSIDE = "eth0", "far0"
NOBODY = "02:00:00:00:00:01"
ALL = 0x0003
FRAME = 65_536
PORTS_AT = 34  # in an Ethernet frame with IPv4 without options


def ip(*words: str) -> str:
    """Run ip and return what it prints."""
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


def opened_tap() -> int:
    """Return the descriptor of a new TAP device that has eth0's hardware and network address."""
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", INSIDE.encode(), TAP | NO_INFO))
    [link] = json.loads(ip("-j", "address", "show", OUTSIDE))
    [address] = [f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"] if one["family"] == "inet"]
    ip("address", "flush", "dev", OUTSIDE)
    # So that the kernel takes no frame that has not crossed this program: those at eth0 are for another host.
    ip("link", "set", OUTSIDE, "address", NOBODY, "promisc", "on")
    ip("link", "set", INSIDE, "address", link["address"], "mtu", "1500", "up")
    ip("address", "add", address, "dev", INSIDE)
    return tap


def carry(read: Callable[[], bytes], write: Callable[[bytes], object], delay_of: Callable[[bytes], float]) -> None:
    """Carry frames from one side to the other, in threads of their own."""
    lines: dict[float, queue.Queue[tuple[float, bytes]]] = {}

    def take() -> None:
        while True:
            frame = read()
            delay_s = delay_of(frame)
            if delay_s not in lines:
                lines[delay_s] = queue.Queue()
                threading.Thread(target=give, args=(lines[delay_s],), daemon=True).start()
            lines[delay_s].put((time.monotonic() + delay_s, frame))

    def give(line: queue.Queue[tuple[float, bytes]]) -> None:
        while True:
            due, frame = line.get()
            time.sleep(max(0.0, due - time.monotonic()))
            write(frame)

    threading.Thread(target=take, daemon=True).start()


def main() -> None:
    """Carry until the process is ended."""
    delay_s, port = int(sys.argv[1]) / 1000, int(sys.argv[2]) if len(sys.argv) > 2 else None

    def delay_of(frame: bytes) -> float:
        return delay_s if port is None or port in struct.unpack_from("!HH", frame.ljust(38), PORTS_AT) else 0.0

    outside = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
    outside.bind((OUTSIDE, ALL))
    tap = opened_tap()

    def incoming() -> bytes:
        while True:
            frame, where = outside.recvfrom(FRAME)
            if where[2] != socket.PACKET_OUTGOING:
                return frame

    carry(incoming, lambda frame: os.write(tap, frame), delay_of)
    carry(lambda: os.read(tap, FRAME), outside.send, delay_of)
    print(json.dumps({"event": "ready"}), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()

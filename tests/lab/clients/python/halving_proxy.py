"""A proxy that passes each request on in two writes, its first bytes and its rest, and leaves Nagle's rule switched on.

In: LISTEN TARGET, both HOST:PORT. Out: a JSON line `listening`. The second write waits until the first is acknowledged,
which the other side does only after its delay.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading

FIRST_BYTES = 16


def carry(source: socket.socket, target: socket.socket, cut: bool) -> None:
    """Carry bytes until one side ends; CUT: each in two writes."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            for part in (data[:FIRST_BYTES], data[FIRST_BYTES:]) if cut else (data,):
                target.sendall(part)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def main() -> None:
    """Serve until the process is ended."""
    places = [one.split(":") for one in sys.argv[1:]]
    (listen, port), (host, target_port) = places
    with socket.create_server((listen, int(port))) as listening:
        print(json.dumps({"event": "listening"}), flush=True)
        while True:
            client, _ = listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            there = socket.create_connection((host, int(target_port)))
            threading.Thread(target=carry, args=(client, there, True), daemon=True).start()
            threading.Thread(target=carry, args=(there, client, False), daemon=True).start()


if __name__ == "__main__":
    main()

"""A front that ends TLS before a server of clear text: `python -m tests.lab.tls_front LISTEN TARGET NAME=VALUE...`.

LISTEN, TARGET: address:port. Words: cert, key; ca: clients must have a certificate that it issued; keylog: its keys go
there; delay_s: so long it does nothing once a client has connected; forgets: each connection meets another context, as
if it came to another server of the same name, so that no session goes on. Prints one JSON line when it listens.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress


def place(text: str) -> tuple[str, int]:
    """Return address and port."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes until one side ends."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def context_of(words: Mapping[str, str]) -> ssl.SSLContext:
    """Return what is to be used for one connection, or for all."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(words["cert"], words["key"])
    if "ca" in words:
        context.load_verify_locations(words["ca"])
        context.verify_mode = ssl.CERT_REQUIRED
    if "keylog" in words:
        context.keylog_filename = words["keylog"]
    return context


def serve(raw: socket.socket, context: ssl.SSLContext, target: tuple[str, int], delay_s: float) -> None:
    """Serve one connection."""
    with suppress(OSError), raw:
        time.sleep(delay_s)
        secure = context.wrap_socket(raw, server_side=True)
        with secure, socket.create_connection(target) as inner:
            threading.Thread(target=pump, args=(inner, secure), daemon=True).start()
            pump(secure, inner)


def main() -> None:
    """Serve until it is killed."""
    listen, target, *given = sys.argv[1:]
    words = dict(word.split("=", 1) for word in given)
    context, delay_s = context_of(words), float(words.get("delay_s", "0"))
    with socket.create_server(place(listen)) as listening:
        print(json.dumps({"event": "listening"}), flush=True)
        while True:
            raw, _ = listening.accept()
            own = context_of(words) if "forgets" in words else context
            threading.Thread(target=serve, args=(raw, own, place(target), delay_s), daemon=True).start()


if __name__ == "__main__":
    main()

"""An HTTP endpoint whose answers are not those of a collector. In: what it says. Out: how much of it was taken."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_ASKED_BYTES = 1 << 16


@dataclass
class Said:
    """url: base of the endpoint. sent_bytes: what connections took, their buffers included. asked: how many came."""

    url: str
    sent_bytes: int = 0
    asked: int = 0


@contextmanager
def saying(pieces: Iterable[bytes], pause_s: float = 0.0) -> Iterator[Said]:
    """On each connection the pieces are sent, one after each pause, until the other side goes away; then it is closed.

    pieces: must be there for each connection anew.
    """
    over = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    said = Said(f"http://127.0.0.1:{server.getsockname()[1]}")

    def answer(one: socket.socket) -> None:
        with one, suppress(OSError):
            one.recv(_ASKED_BYTES)
            for piece in pieces:
                one.sendall(piece)
                said.sent_bytes += len(piece)
                if over.wait(pause_s):
                    return
            one.shutdown(socket.SHUT_WR)
            one.recv(_ASKED_BYTES)

    def accept() -> None:
        with suppress(OSError):
            while not over.is_set():
                one, _ = server.accept()
                said.asked += 1
                threading.Thread(target=answer, args=(one,), daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield said
    finally:
        over.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()

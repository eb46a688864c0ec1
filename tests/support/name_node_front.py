"""A front before a name node of HDFS, which sees each call of its clients and can do something before it passes it on.

In: where the name node is, and what to do with each call. Out: a port. Calls and answers are passed on as they are;
data nodes are asked by the clients themselves. A call is a frame of Hadoop's RPC: a length, then messages of protocol
buffers, each with its own length before it
(https://hadoop.apache.org/docs/stable/api/org/apache/hadoop/ipc/package-summary.html).
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator

from tests.support.faulty_front import Plan, Request

_PREAMBLE_BYTES = 7
_TEXT = 0x0A  # field 1, a text


class NameNodeFront:
    """port: of the front. seen: the calls so far. plan: of its faults only `before` is done."""

    def __init__(self, port: int, plan: Plan) -> None:
        self.seen = list[Request]()
        self._plan, self._upstream, self._lock = plan, port, threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more clients."""
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                server = socket.create_connection(("127.0.0.1", self._upstream))
                threading.Thread(target=self._answers, args=(server, client), daemon=True).start()
                threading.Thread(target=self._calls, args=(client, server), daemon=True).start()

    def _calls(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, contextlib.suppress(OSError, EOFError):
            server.sendall(_read(client, _PREAMBLE_BYTES))
            while True:
                length = _read(client, 4)
                frame = _read(client, int.from_bytes(length, "big"))
                self._look_at(frame)
                server.sendall(length + frame)

    def _look_at(self, frame: bytes) -> None:
        messages = [*itertools.islice(_messages(frame), 3)]
        if len(messages) == 3 and messages[1][:1] == bytes([_TEXT]):  # else the client says who it is
            with self._lock:
                request = Request(len(self.seen), _first_text(messages[1]), _first_text(messages[2]), "")
                self.seen.append(request)
            fault = self._plan(request)
            if fault is not None and fault.before is not None:
                fault.before()

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def name_node_front(port: int, plan: Plan = lambda _: None) -> Iterator[NameNodeFront]:
    """A front before the name node on this port."""
    front = NameNodeFront(port, plan)
    try:
        yield front
    finally:
        front.close()


def _read(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def _messages(frame: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(frame):
        length, at = _varint(frame, at)
        yield frame[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def _first_text(message: bytes) -> str:
    """Of a call the name of its method, of what it asks for the path."""
    if message[:1] != bytes([_TEXT]):
        return ""
    length, at = _varint(message, 1)
    return message[at : at + length].decode(errors="replace")

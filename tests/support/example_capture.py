"""A capture of the example protocol: `python -m tests.support.example_capture FILE` writes it.

One client sends five calls, two of them before the first is answered; the last one is never answered.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.example_encode import request, response
from tests.support.packets import ACK, FIN, Captured, pcap
from tests.support.wire import Talk

PORT = 7070
CALLS = ((True, request(b"add 2 3")), (True, request(b"add 4 5")), (False, response(b"5")), (False, response(b"9")),
         (True, request(b"divide 1 0")), (False, response(b"no such number")), (True, request(b"stop")))  # fmt: skip


def packets(*, handshake: bool = True) -> list[Captured]:
    """Handshake, a packet for each frame and its acknowledgement, and both FINs."""
    talk = Talk(server=("10.0.0.2", PORT))
    if handshake:
        talk.handshake()
    sent = [0, 0]
    for from_client, frame in CALLS:
        talk.send(from_client, sent[from_client], frame, ack=sent[not from_client])
        sent[from_client] += len(frame)
        talk.send(not from_client, sent[not from_client], flags=ACK, ack=sent[from_client])
    talk.send(True, sent[True], flags=FIN | ACK, ack=sent[False])
    return talk.send(False, sent[False], flags=FIN | ACK, ack=sent[True] + 1).packets


def write_capture(path: Path) -> Path:
    """A pcap file with ns timestamps."""
    path.write_bytes(pcap(packets(), nanoseconds=True))
    return path


if __name__ == "__main__":
    write_capture(Path(sys.argv[1]))

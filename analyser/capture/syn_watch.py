"""Connections as they begin: the SYNs of an interface, at once. In: an interface, a filter program. Out: their ends.

A ring hands packets over some time after they came, in which a short connection is over; who owns it is asked before.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from wirewitness.analyser.capture.ring import FilterProgram, attach, bind_to, ignore_outgoing, interface_facts
from wirewitness.analyser.capture.workloads.kernel.sock_diag import End

# What the program of the filter lets through, beside which packets are wanted: SYN without ACK, no extension headers.
SYN_FILTER = "(tcp[13] & 18 = 2) or (ip6[6] = 6 and ip6[53] & 18 = 2)"
# The same, compiled for packets that begin with IP.
SYN_PROGRAM: FilterProgram = (
    (48, 0, 0, 0), (84, 0, 0, 240), (21, 0, 8, 64), (48, 0, 0, 9), (21, 0, 15, 6), (40, 0, 0, 6), (69, 13, 0, 8191),
    (177, 0, 0, 0), (80, 0, 0, 13), (84, 0, 0, 18), (21, 8, 9, 2), (48, 0, 0, 0), (84, 0, 0, 240), (21, 0, 6, 96),
    (48, 0, 0, 6), (21, 0, 4, 6), (48, 0, 0, 53), (84, 0, 0, 18), (21, 0, 1, 2), (6, 0, 0, 262144), (6, 0, 0, 0),
)  # fmt: skip
_MOST_AT_ONCE, _HEAD_BYTES = 500, 96
_TCP, _IPV6_BYTES = 6, 40
_OUTGOING = 4


class Begun(NamedTuple):
    """A connection: its ends in order, and the sequence number of its SYN."""

    low: End
    high: End
    seq: int


class SynWatch:
    """The SYNs of an interface from now on. Raises OSError, NoInterfaceError."""

    def __init__(self, name: str, program: FilterProgram) -> None:
        _, flags = interface_facts(name)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
        try:
            attach(self._socket, program)
            ignore_outgoing(self._socket, flags)
            bind_to(self._socket, name)
        except BaseException:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """Readable when a connection begins."""
        return self._socket.fileno()

    def begun(self) -> Iterator[Begun]:
        """What has begun since; of very much at once a part."""
        with suppress(OSError):  # nothing more, or the interface went away
            for _ in range(_MOST_AT_ONCE):
                found = _read(self._socket.recv(_HEAD_BYTES))
                if found is not None:
                    yield found

    def close(self) -> None:
        """Watch no more."""
        self._socket.close()


def _read(packet: bytes) -> Begun | None:
    """The ends in the headers of IP and TCP; None for what has none."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20 and packet[9] == _TCP:
        at, source, destination = (packet[0] & 15) * 4, packet[12:16], packet[16:20]
    elif version == 6 and len(packet) >= _IPV6_BYTES and packet[6] == _TCP:
        at, source, destination = _IPV6_BYTES, packet[8:24], packet[24:40]
    else:
        return None
    if len(packet) < at + 8:
        return None
    ports = int.from_bytes(packet[at : at + 2]), int.from_bytes(packet[at + 2 : at + 4])
    low, high = sorted((End(source, ports[0]), End(destination, ports[1])))
    return Begun(low, high, int.from_bytes(packet[at + 4 : at + 8]))

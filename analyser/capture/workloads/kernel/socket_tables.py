"""The TCP sockets of a network namespace, out of its table. In: a folder such as /proc/self/net or /proc/4711/net.

Out: connections with their numbers and users. Only for namespaces of others, and where there is no sock_diag: the whole
table is read. Source: proc_pid_net(5), Linux net/ipv4/tcp_ipv4.c (get_tcp4_sock).
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress

from wirewitness.analyser.capture.workloads.kernel.sock_diag import NOT_HELD, End, Socket, unmapped

MOST_BYTES = 16 << 20  # about 100,000 connections
_PIECE_BYTES = 1 << 20
_FIELDS_NEEDED = 10


def connections(net: str) -> dict[tuple[End, End], Socket]:
    """(local, remote) -> socket of the connections that somebody may hold. A table that cannot be read has none."""
    found: dict[tuple[End, End], Socket] = {}
    for name in ("tcp", "tcp6"):
        for line in _lines(os.path.join(net, name)):
            fields = line.split()
            with suppress(ValueError, IndexError):
                if len(fields) >= _FIELDS_NEEDED and int(fields[3], 16) not in NOT_HELD:
                    found[_end(fields[1]), _end(fields[2])] = Socket(int(fields[9]), int(fields[7]))
    return found


def _lines(path: str) -> Iterator[bytes]:
    """Whole lines, as far as MOST_BYTES go; none where the file is not there."""
    left, read = b"", 0
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        while read < MOST_BYTES and (piece := file.read(_PIECE_BYTES)):
            read += len(piece)
            *lines, left = (left + piece).split(b"\n")
            yield from lines


def _end(text: bytes) -> End:
    """`0100007F:2384`: words of the address in this machine's order, the port as people write it."""
    address, port = text.split(b":")
    words = struct.iter_unpack(">I", bytes.fromhex(address.decode("ascii")))
    packed = b"".join(word.to_bytes(4, sys.byteorder) for (word,) in words)
    return End(unmapped(packed), int(port, 16))

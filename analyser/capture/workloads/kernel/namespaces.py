"""Network namespaces of this machine, by the processes in them. In: /proc. Out: sockets by the ends of connections.

Containers have namespaces of their own, so their sockets are in no table of this one. Their tables are read through a
process in each, which needs no change of namespace. Sources: network_namespaces(7); Linux, net/ipv4/fib_trie.c and
net/ipv6/addrconf.c for the local addresses.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from wirewitness.analyser.capture.workloads.kernel.sock_diag import End, Socket
from wirewitness.analyser.capture.workloads.kernel.socket_tables import connections

MOST_NAMESPACES = 512
_LOOK_AGAIN_S = 2.0
_MOST_BYTES = 4 << 20
_LOCAL = "/32 host LOCAL"


class Namespace(NamedTuple):
    """One that is not this process's. pid: of a process in it. addresses: its own ones, but for loopback."""

    pid: int
    addresses: frozenset[bytes]


class Namespaces:
    """The other namespaces; which there are is looked for every few seconds at most."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._found: list[Namespace] = []
        self._looked_s = -_LOOK_AGAIN_S
        self.local = frozenset[bytes]()

    def refresh(self, pids: Iterable[int]) -> None:
        """Look which namespaces these processes have."""
        now = time.monotonic()
        if now < self._looked_s + _LOOK_AGAIN_S:
            return
        self._looked_s = now
        seen: dict[str, int] = {}
        for pid in pids:
            with suppress(OSError):
                seen.setdefault(os.readlink(f"{self._proc}/{pid}/ns/net"), pid)
        with suppress(OSError):
            seen.pop(os.readlink(f"{self._proc}/self/ns/net"), None)
        self.local = addresses(f"{self._proc}/self/net")
        some = [*seen.values()][:MOST_NAMESPACES]
        self._found = [Namespace(pid, addresses(f"{self._proc}/{pid}/net")) for pid in some]

    def find(self, wanted: Iterable[tuple[End, End]]) -> dict[tuple[End, End], Socket]:
        """Sockets by (local, remote), in namespaces that have the local address. One that several namespaces have, as
        networks of different containers may be alike, is nobody's."""
        left = {pair for pair in wanted if not _is_loopback(pair[0].address)}
        found: dict[tuple[End, End], Socket] = {}
        several = set()
        for one in self._found:
            mine = [pair for pair in left if pair[0].address in one.addresses]
            if not mine:
                continue
            table = connections(f"{self._proc}/{one.pid}/net")
            for pair in mine:
                if pair in table:
                    several.update({pair} & found.keys())
                    found[pair] = table[pair]
        return {pair: socket for pair, socket in found.items() if pair not in several}


def addresses(net: str) -> frozenset[bytes]:
    """The addresses of a namespace, but for loopback. In: a folder such as /proc/self/net."""
    found = set()
    leaf = ""
    for line in _text(f"{net}/fib_trie").splitlines():
        if "|--" in line:
            leaf = line.split()[-1]
        elif line.strip() == _LOCAL:
            with suppress(OSError):
                found.add(socket.inet_aton(leaf))
    for line in _text(f"{net}/if_inet6").splitlines():
        with suppress(ValueError, IndexError):
            found.add(bytes.fromhex(line.split()[0]))
    return frozenset(address for address in found if not _is_loopback(address))


def _is_loopback(address: bytes) -> bool:
    return address[:1] == b"\x7f" if len(address) == 4 else address == b"\0" * 15 + b"\1"


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode("ascii", "replace")
    except OSError:
        return ""

"""Containers and pods of processes. In: a process's /proc/PID/cgroup, the folders of logs that a kubelet keeps.

Out: the container's id, the pod's uid, and their names. Sources: containerd, cri-o, Docker and podman name the group of
a container (`cri-containerd-ID.scope` of systemd, plain `ID` of cgroupfs); kubelet, pkg/kubelet/cm (`kubepods`, QoS
classes, `podUID`, with `_` for `-` under systemd) and pkg/kubelet/kuberuntime (BuildPodLogsDirectory,
legacyLogSymlink).
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from wirewitness.analyser.capture.workloads.kernel.sock_diag import End, Socket
from wirewitness.analyser.capture.workloads.kernel.socket_tables import connections

# Network namespaces of this machine, by the processes in them. In: /proc. Out: sockets by the ends of connections.
#
# Containers have namespaces of their own, so their sockets are in no table of this one. Their tables are read through
# a process in each, which needs no change of namespace. Sources: network_namespaces(7); Linux, net/ipv4/fib_trie.c
# and net/ipv6/addrconf.c for the local addresses.

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


# Monitors (`crio-conmon-ID`, `libpod-conmon-ID`) are no part of the container.
_CONTAINER = re.compile(
    r"(?:(?:docker|cri-containerd|cri-dockerd|containerd|nerdctl|crio|libpod)-|[^/]*:cri-containerd:)?"
    r"([0-9a-f]{64})(?:\.scope)?"
)
# A static pod's uid is a digest of its file, without hyphens.
_POD = re.compile(
    r"(?:kubepods-(?:burstable-|besteffort-)?)?"
    r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?::.*)?"
)
POD_LOGS, CONTAINER_LOGS = "/var/log/pods", "/var/log/containers"
_MOST_NAMES = 10_000
_READ_AGAIN_S = 2.0


class Group(NamedTuple):
    """Where a process runs; both are None outside of containers."""

    container_id: str | None = None
    pod_uid: str | None = None


class Names(NamedTuple):
    """What a kubelet calls a container."""

    container: str | None = None
    pod: str | None = None
    namespace: str | None = None


def group(text: str) -> Group:
    """The innermost container in the lines of a /proc/PID/cgroup, of either version."""
    for line in text.splitlines():
        parts = line.split(":", 2)[-1].split("/")
        for at in range(len(parts) - 1, -1, -1):
            found = _CONTAINER.fullmatch(parts[at])
            if found is not None:
                pods = (_POD.fullmatch(part) for part in reversed(parts[: at + 1]))
                pod = next((match[1].replace("_", "-") for match in pods if match is not None), None)
                return Group(found[1], pod)
    return Group()


class KubeletNames:
    """Names by ids, as the kubelet of this machine has written them down. Looked for again when an id is not known."""

    def __init__(self, pod_logs: str = POD_LOGS, container_logs: str = CONTAINER_LOGS) -> None:
        self._pod_logs, self._container_logs = pod_logs, container_logs
        self._pods: dict[str, Names] = {}
        self._containers: dict[str, Names] = {}
        self._read_s = -_READ_AGAIN_S

    def names(self, of: Group) -> Names:
        """What is known of a group; nothing of one that no kubelet made."""
        if of.pod_uid is None:
            return Names()
        if of.container_id not in self._containers or of.pod_uid not in self._pods:
            self._read()
        pod = self._pods.get(of.pod_uid, Names())
        container = self._containers.get(of.container_id or "", Names())
        if pod.pod is not None and container.pod not in (None, pod.pod):
            return pod
        return Names(container.container, pod.pod or container.pod, pod.namespace or container.namespace)

    def _read(self) -> None:
        now = time.monotonic()
        if now < self._read_s + _READ_AGAIN_S:
            return
        self._read_s = now
        self._pods, self._containers = {}, {}
        for name in _entries(self._pod_logs):
            parts = name.split("_")
            if len(parts) == 3:  # NAMESPACE_POD_UID: no name in Kubernetes has a _
                self._pods[parts[2]] = Names(None, parts[1], parts[0])
        for name in _entries(self._container_logs):
            found = re.fullmatch(r"([^_]+)_([^_]+)_([^_]+)-([0-9a-f]{64})\.log", name)
            if found is not None:
                self._containers[found[4]] = Names(found[3], found[1], found[2])


def _entries(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (entry.name for entry in islice(entries, _MOST_NAMES))

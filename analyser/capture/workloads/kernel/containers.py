"""Containers and pods of processes. In: a process's /proc/PID/cgroup, the folders of logs that a kubelet keeps.

Out: the container's id, the pod's uid, and their names. Sources: containerd, cri-o, Docker and podman name the group of
a container (`cri-containerd-ID.scope` of systemd, plain `ID` of cgroupfs); kubelet, pkg/kubelet/cm (`kubepods`, QoS
classes, `podUID`, with `_` for `-` under systemd) and pkg/kubelet/kuberuntime (BuildPodLogsDirectory,
legacyLogSymlink).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

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

"""Files that name addresses, recognised by their content. In: paths. Out: entries, or one line that says what is wrong.

Five forms: /etc/hosts, CSV and TOML with times, what `kubectl get pods -o json` writes, and what `docker inspect` or
`docker network inspect` does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.times import ns_of
from wirewitness.analyser.capture.workloads.address_names import FIRST_NS, LAST_NS, AddressNames, Entry, NamesFile
from wirewitness.analyser.capture.workloads.docker_file import docker_entries, is_docker
from wirewitness.analyser.capture.workloads.hosts_file import csv_entries, hosts_entries, known_address, toml_entries
from wirewitness.analyser.capture.workloads.workload import Identity, identity

# Pods as Kubernetes lists them. In: what `kubectl get pods -o json` writes, one pod or a list. Out: entries.
#
# Source: the Kubernetes API, core/v1 Pod: status.podIPs, status.hostIP, status.startTime, spec.nodeName,
# spec.hostNetwork, status.containerStatuses[].state.terminated.finishedAt, metadata.deletionTimestamp,
# metadata.ownerReferences. A list may have nodes, too: their addresses get their names. A pod with hostNetwork has
# its node's address, as all others like it and the node itself have: only the node is named there.

_OVER = ("Succeeded", "Failed")
_HASH = "pod-template-hash"
# A table of TOML begins with a bracket as well, but with no value in it.
_JSON_LIST = re.compile(r"\[\s*[{\]]")


def pods_entries(document: Any) -> tuple[list[Entry], int]:
    """Entries, and how many pods have no address although they ran. ValueError for anything else than pods."""
    kind, items = _text(document, "kind"), _get(document, "items")
    if isinstance(items, list):
        listed = items
    elif kind in ("Pod", "Node"):
        listed = [document]
    else:
        raise ValueError(f"JSON of kind {kind or 'unknown'} and not of pods")
    found: dict[Entry, None] = {}
    pods = nodes = wrong = 0
    for item in listed:
        if not isinstance(item, dict):
            continue
        kind = _text(item, "kind") or ("Pod" if kind in ("PodList", "List") else None)
        if kind == "Node":
            nodes += 1
            found |= dict.fromkeys(_node_entries(item))
        elif kind == "Pod":
            pods += 1
            entries = list(_pod_entries(item))
            wrong += not entries and _text(item, "status", "phase") in ("Running", *_OVER)
            found |= dict.fromkeys(entries)
    if not pods and not nodes and listed:
        raise ValueError("a list without pods")
    return list(found), wrong


def _pod_entries(pod: Mapping[str, Any]) -> Iterator[Entry]:
    node = _text(pod, "spec", "nodeName")
    hosts = [_text(pod, "status", "hostIP"), *(_text(one, "ip") for one in _list(pod, "status", "hostIPs"))]
    for address in {known_address(host) for host in hosts if host}:
        if node and address:
            yield Entry(address, _node(node))
    if _get(pod, "spec", "hostNetwork") is True:
        return
    told = [_text(pod, "status", "podIP"), *(_text(one, "ip") for one in _list(pod, "status", "podIPs"))]
    one, begins, ends = _identity(pod), _began(pod), _ended(pod)
    for address in dict.fromkeys(known_address(text) for text in told if text):
        if address and one.known:
            yield Entry(address, one, begins, ends)


def _node_entries(node: Mapping[str, Any]) -> Iterator[Entry]:
    name = _text(node, "metadata", "name")
    for one in _list(node, "status", "addresses"):
        address = known_address(_text(one, "address"))
        if name and address and _text(one, "type") in ("InternalIP", "ExternalIP"):
            yield Entry(address, _node(name))


def _node(name: str) -> Identity:
    return identity(host=name, source="pods")


def _identity(pod: Mapping[str, Any]) -> Identity:
    containers = [_text(one, "name") for one in _list(pod, "spec", "containers")]
    return identity(
        pod=_text(pod, "metadata", "name"),
        namespace=_text(pod, "metadata", "namespace"),
        workload=_workload(pod),
        # Of several containers no address says which one it is.
        container=containers[0] if len(containers) == 1 else None,
        host=_text(pod, "spec", "nodeName"),
        source="pods",
    )


def _workload(pod: Mapping[str, Any]) -> str | None:
    """`deployment payments`: a Deployment makes ReplicaSets, whose names end with a hash that is a label of the pod."""
    identities = [one for one in _list(pod, "metadata", "ownerReferences") if _text(one, "kind") and _text(one, "name")]
    chosen = next(
        (one for one in identities if _get(one, "controller") is True), identities[0] if len(identities) == 1 else None
    )
    if chosen is None:
        return None
    kind, name = _text(chosen, "kind") or "", _text(chosen, "name") or ""
    template = _text(pod, "metadata", "labels", _HASH)
    if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
        kind, name = "Deployment", name.removesuffix(f"-{template}")
    return f"{kind.lower()} {name}"


def _began(pod: Mapping[str, Any]) -> int:
    began = _time(_text(pod, "status", "startTime"))
    created = _time(_text(pod, "metadata", "creationTimestamp"))
    return next((ns for ns in (began, created) if ns is not None), FIRST_NS)


def _ended(pod: Mapping[str, Any]) -> int:
    """When its address was free again: at the end of its last container, where all have ended for good."""
    statuses = _list(pod, "status", "containerStatuses")
    ends = [_time(_text(one, "state", "terminated", "finishedAt")) for one in statuses]
    known = [ns for ns in ends if ns is not None]
    if _text(pod, "status", "phase") in _OVER and known and len(known) == len(ends):
        return max(known)
    deleted = _time(_text(pod, "metadata", "deletionTimestamp"))
    return LAST_NS if deleted is None else deleted


def _get(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Any, *path: str) -> str | None:
    found = _get(value, *path)
    return found if isinstance(found, str) and found else None


def _list(value: Any, *path: str) -> Sequence[Any]:
    found = _get(value, *path)
    return found if isinstance(found, list) else ()


def _time(text: str | None) -> int | None:
    try:
        return None if text is None else max(FIRST_NS, min(ns_of(text), LAST_NS))
    except (ValueError, OverflowError):
        return None


# Some 10,000 pods as kubectl writes them; parsed it takes about eight times as much memory.
MAX_BYTES = 128 << 20
MAX_ENTRIES = 500_000
FORMS = (
    "an /etc/hosts file, CSV or TOML with addresses and names, `kubectl get pods -o json`, `docker inspect` or "
    "`docker network inspect`"
)


class NamesFileError(ValueError):
    """A file that cannot be used; the text is one line for people."""


def read_names(paths: Iterable[str]) -> AddressNames:
    """The files together. NamesFileError."""
    return AddressNames(map(read_file, paths))


def read_file(path: str) -> NamesFile:
    """One file. NamesFileError where it cannot be read, is too large, or has none of the forms."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise NamesFileError(f"{path} cannot be read: {error.strerror}") from error
    return parsed(path, data)


def parsed(path: str, data: bytes) -> NamesFile:
    """The file with this content. NamesFileError likewise."""
    if len(data) > MAX_BYTES:
        raise NamesFileError(f"{path} is larger than {MAX_BYTES >> 20} MB: name only the pods or hosts that matter")
    text = data.decode("utf-8-sig", "replace")
    if "\0" in text:
        raise NamesFileError(f"{path} does not name addresses: it is {FORMS} that is wanted")
    try:
        entries, passed_over = _entries(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise NamesFileError(f"{path} does not name addresses ({_short(error)}): {FORMS} is wanted") from error
    if len(entries) > MAX_ENTRIES:
        raise NamesFileError(f"{path} names more than {MAX_ENTRIES:,} addresses")
    return NamesFile(path, tuple(entries), passed_over)


def _entries(text: str) -> tuple[list[Entry], int]:
    """Entries, and how many parts were passed over. ValueError for what has none of the forms."""
    start = text.lstrip()
    if start.startswith("{") or _JSON_LIST.match(start):
        document = json.loads(text)
        return docker_entries(document) if is_docker(document) else pods_entries(document)
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if first.lstrip().startswith("[") or ("=" in first and "," not in first):
        return toml_entries(text)
    if "," in first and "address" in first.lower():
        return csv_entries(text)
    return hosts_entries(text)


def _short(error: BaseException) -> str:
    return str(error).partition("\n")[0][:100] or type(error).__name__

"""Columns about who is at an end of a connection: the same of both ends in `flows`, the most telling ones elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from wirewitness.analyser.capture.workloads.workload import Identity
from wirewitness.analyser.tables.model import Column

SIDES = ("client", "server")
_MEANINGS = {
    "process": "program and process id at the {} end, as `java (4711)`",
    "pid": "process id at the {} end",
    "user": "user of that process: name, or number",
    "container": "container at the {} end: name, or id",
    "pod": "Kubernetes pod at the {} end",
    "namespace": "its namespace",
    "workload": "what made the pod, as `deployment payments`",
    "host": "machine, Kubernetes node or name of the address at the {} end",
    "workload_source": "where this was learned: capture, comment (ptcpdump), pktap, hosts, pods, docker or kernel",
}


def process_text(one: Identity) -> str | None:
    """`java (4711)`, `java`, `(4711)`; None where no process is known."""
    pid = "" if one.pid is None else f"({one.pid})"
    return " ".join(part for part in (one.command, pid) if part) or None


# Column without its side, Arrow type, how it is made of an owner.
FIELDS: tuple[tuple[str, pa.DataType, Callable[[Identity], Any]], ...] = (
    ("process", pa.string(), process_text),
    ("pid", pa.int64(), lambda one: one.pid),
    ("user", pa.string(), lambda one: one.user),
    ("container", pa.string(), lambda one: one.container),
    ("pod", pa.string(), lambda one: one.pod),
    ("namespace", pa.string(), lambda one: one.namespace),
    ("workload", pa.string(), lambda one: one.workload),
    ("host", pa.string(), lambda one: one.host),
    ("workload_source", pa.string(), lambda one: one.source),
)


def _column(side: str, name: str) -> Column:
    kind = "int64" if name == "pid" else "string"
    return Column(f"{side}_{name}", kind, _MEANINGS[name].format(side), "flow")  # type: ignore[arg-type]


# All that `flows` has of one side; null where nobody says.
CLIENT_OWNER, SERVER_OWNER = (tuple(_column(side, name) for name, _, _ in FIELDS) for side in SIDES)
# What stands beside an address in other tables.
BESIDE = ("process", "pod", "host")
CLIENT_BESIDE = tuple(_column("client", name) for name in BESIDE)

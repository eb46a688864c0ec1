"""A link of few bytes a second: what a host sends, or what it gets.

In: a host's name, a rate. Out: the link is quick again when the block ends. The kernel does it (tc, token bucket).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from tests.lab.net import Host, in_namespace

BURST, LATENCY = "6kb", "60s"  # a few packets at once; what waits longer than this is lost


def _shape(namespace: str, device: str, kilobits: int) -> None:
    in_namespace(namespace, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{kilobits}kbit",
                 "burst", BURST, "latency", LATENCY)  # fmt: skip


@contextlib.contextmanager
def sends_slowly(hosts: Mapping[str, Host], name: str, kilobits: int) -> Iterator[None]:
    """Let a host send no more than so many kilobits a second during the block."""
    namespace = hosts[name].namespace
    _shape(namespace, "eth0", kilobits)
    try:
        yield
    finally:
        in_namespace(namespace, "tc", "qdisc", "del", "dev", "eth0", "root")


@contextlib.contextmanager
def gets_slowly(hosts: Mapping[str, Host], name: str, kilobits: int) -> Iterator[None]:
    """Let a host get no more than so many kilobits a second during the block."""
    switch, port = hosts["switch"].namespace, f"port{list(hosts).index(name)}"
    _shape(switch, port, kilobits)
    try:
        yield
    finally:
        in_namespace(switch, "tc", "qdisc", "del", "dev", port, "root")

"""Hosts for a run: one network namespace each, joined by veth pairs to a bridge in a namespace of its own.

In: host names. Out: Host values with an address; everything is gone when the block ends, however it ends.
MTU 1500 and all offloads off: the captured segments are those that a real wire would carry.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from tests.lab.processes import LabError, run

SUBNET = "10.77.0"
FIRST_SERVER = 2
FIRST_CLIENT = 11
OFFLOADS = ("tx", "rx", "tso", "gso", "gro", "lro")
_run_numbers = count(1)


class Host(NamedTuple):
    """A namespace that plays one machine."""

    name: str
    namespace: str
    address: str

    def command(self, *words: str) -> list[str]:
        """Return the command that runs WORDS on this host."""
        return ["ip", "netns", "exec", self.namespace, *words]


def in_namespace(namespace: str, *words: str) -> None:
    """Run one short command inside a namespace."""
    run(["ip", "netns", "exec", namespace, *words])


def delete_namespace(namespace: str) -> None:
    """Remove a namespace and with it its interfaces; one that is already gone is no error."""
    with contextlib.suppress(LabError):
        run(["ip", "netns", "delete", namespace])


def make_namespace(namespace: str) -> None:
    """Make an empty namespace."""
    run(["ip", "netns", "add", namespace])
    in_namespace(namespace, "ip", "link", "set", "lo", "up")


def plug_in(host: Host, switch: str, port: str) -> None:
    """Give HOST an eth0 that is plugged into the switch's bridge."""
    run(["ip", "link", "add", port, "netns", switch, "mtu", "1500", "type", "veth",
         "peer", "name", "eth0", "netns", host.namespace, "mtu", "1500"])  # fmt: skip
    in_namespace(switch, "ip", "link", "set", port, "master", "br0", "up")
    in_namespace(host.namespace, "ip", "address", "add", f"{host.address}/24", "dev", "eth0")
    in_namespace(host.namespace, "ip", "link", "set", "eth0", "up")
    for namespace, device in ((host.namespace, "eth0"), (switch, port)):
        for offload in OFFLOADS:
            with contextlib.suppress(LabError):  # a kernel without this one offload has it off
                in_namespace(namespace, "ethtool", "-K", device, offload, "off")


def unplug(host: Host) -> None:
    """Cut a host off: nothing leaves or reaches it any more."""
    in_namespace(host.namespace, "ip", "link", "set", "eth0", "down")


def plug_back(host: Host) -> None:
    """Undo `unplug`."""
    in_namespace(host.namespace, "ip", "link", "set", "eth0", "up")


@contextlib.contextmanager
def network(servers: Sequence[str], clients: Sequence[str]) -> Iterator[dict[str, Host]]:
    """Hold a network of the named hosts; servers get addresses from .2 on, clients from .11 on, in their order.

    One more Host, "switch", is where all traffic passes: a capture of its br0 sees each packet once.
    """
    prefix = f"wwlab{os.getpid()}x{next(_run_numbers)}"
    switch = f"{prefix}-switch"
    numbers = [*zip(servers, count(FIRST_SERVER), strict=False), *zip(clients, count(FIRST_CLIENT), strict=False)]
    hosts = {name: Host(name, f"{prefix}-{name}", f"{SUBNET}.{number}") for name, number in numbers}
    try:
        make_namespace(switch)
        in_namespace(switch, "ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        in_namespace(switch, "ip", "link", "set", "br0", "up")
        for number, host in enumerate(hosts.values()):
            make_namespace(host.namespace)
            plug_in(host, switch, f"port{number}")
        yield {**hosts, "switch": Host("switch", switch, "")}
    finally:
        for namespace in [*(host.namespace for host in hosts.values()), switch]:
            delete_namespace(namespace)

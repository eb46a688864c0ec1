"""Packets dropped on their way into or out of a host: some of a client's, or all of some connections.

In: a host and the client. Out: nothing is dropped any more when the block ends. The kernel does it (tc, classic BPF).
A capture at the host's interface sees what comes in before it is dropped, and nothing of what is dropped going out.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator, Sequence

from tests.lab.net import Host, in_namespace
from tests.lab.processes import run

# Classic BPF: operation codes, and where they find things in an Ethernet frame with IPv4 without options.
LOAD_WORD, LOAD_HALF, IF_EQUAL, IF_AT_LEAST, RETURN = 32, 40, 21, 53, 6
ETHER_TYPE, IPV4, RANDOM = 12, 0x800, 2**32 - 0x1000 + 56
PASS, DROP = 0, 2  # what tc takes them for
CLIENT_IN = {"ingress": (26, 34), "egress": (30, 36)}  # where address and port of the client lie

# operation, value, where to go on when it holds and when not; None: the next
Step = tuple[int, int, int | None, int | None]


def local_ports(host: Host, remote_port: int) -> list[int]:
    """Return the ports of HOST's open connections to a port elsewhere."""
    lines = run(host.command("ss", "-Htn", "state", "established", f"( dport = :{remote_port} )")).splitlines()
    return [int(line.split()[2].rpartition(":")[2]) for line in lines]


def steps(address: str, direction: str, share: float, ports: Sequence[int]) -> list[Step]:
    """Return the tests of a packet: is it the client's, is it of these PORTS, else by chance."""
    where, port_where = CLIENT_IN[direction]
    found: list[Step] = [
        (LOAD_HALF, ETHER_TYPE, None, None),
        (IF_EQUAL, IPV4, None, PASS),
        (LOAD_WORD, where, None, None),
        (IF_EQUAL, int(ipaddress.IPv4Address(address)), None, PASS),
    ]
    if not ports:
        return [*found, (LOAD_WORD, RANDOM, None, None), (IF_AT_LEAST, int(share * 2**32), PASS, DROP)]
    return [*found, (LOAD_HALF, port_where, None, None), *((IF_EQUAL, port, DROP, None) for port in ports)]


def bytecode(found: Sequence[Step]) -> str:
    """Return steps as tc reads them; two returns stand at their end."""
    ends = {PASS: len(found), DROP: len(found) + 1}
    lines = [(operation, *(0 if to is None else ends[to] - number - 1 for to in ways), value)
             for number, (operation, value, *ways) in enumerate(found)]  # fmt: skip
    lines += [(RETURN, 0, 0, PASS), (RETURN, 0, 0, DROP)]
    return f"{len(lines)}," + "".join(" ".join(map(str, line)) + "," for line in lines)


@contextlib.contextmanager
def dropping(
    host: Host,
    address: str,
    share: float = 0.0,
    ports: Sequence[int] = (),
    directions: Sequence[str] = tuple(CLIENT_IN),
) -> Iterator[None]:
    """Drop a SHARE (0 to 1) of the packets between HOST and ADDRESS, or all of the client's PORTS, during the block.

    DIRECTIONS: ingress is what HOST gets, egress what it sends.
    """
    in_namespace(host.namespace, "tc", "qdisc", "add", "dev", "eth0", "clsact")
    try:
        for direction in directions:
            code = bytecode(steps(address, direction, share, ports))
            in_namespace(host.namespace, "tc", "filter", "add", "dev", "eth0", direction, "bpf", "da", "bytecode", code)
        yield
    finally:
        in_namespace(host.namespace, "tc", "qdisc", "del", "dev", "eth0", "clsact")

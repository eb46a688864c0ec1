"""A path on which large packets are lost and small ones pass: its MTU is smaller than its ends know.

In: a host, a client's address. Out: all passes again when the block ends. The kernel does it (tc, classic BPF).
A capture at the host's interface sees the large packets that come in before they are dropped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.lab.firewall import DROP, IF_AT_LEAST, PASS, Step, bytecode, steps
from tests.lab.net import Host, in_namespace

LOAD_LENGTH = 128  # operation code of classic BPF: the packet's length
NO_SHARE = 0.0
TESTS_OF_CLIENT = 4  # the steps of a filter that find out whose packet it is


@contextlib.contextmanager
def losing_large(host: Host, address: str, from_bytes: int = 1300) -> Iterator[None]:
    """Drop what HOST gets from ADDRESS in packets of FROM_BYTES or more during the block."""
    whose = steps(address, "ingress", NO_SHARE, ())[:TESTS_OF_CLIENT]
    found: list[Step] = [*whose, (LOAD_LENGTH, 0, None, None), (IF_AT_LEAST, from_bytes, DROP, PASS)]
    in_namespace(host.namespace, "tc", "qdisc", "add", "dev", "eth0", "clsact")
    try:
        in_namespace(host.namespace, "tc", "filter", "add", "dev", "eth0", "ingress", "bpf", "da", "bytecode",
                     bytecode(found))  # fmt: skip
        yield
    finally:
        in_namespace(host.namespace, "tc", "qdisc", "del", "dev", "eth0", "clsact")

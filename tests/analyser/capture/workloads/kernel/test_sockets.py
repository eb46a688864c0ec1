"""Sockets of this machine's kernel by their ends, both ways of asking."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import closing

import pytest

from wirewitness.analyser.capture.workloads.kernel.sock_diag import End, SockDiag, Socket, unmapped
from wirewitness.analyser.capture.workloads.kernel.socket_tables import connections

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks a Linux kernel")
Find = Callable[[End, End], Socket | None]


def by_netlink(local: End, remote: End) -> Socket | None:
    with closing(SockDiag()) as diag:
        return diag.find(local, remote)


def by_table(local: End, remote: End) -> Socket | None:
    return connections("/proc/self/net").get((local, remote))


def ends(one: socket.socket) -> tuple[End, End]:
    def end(name: tuple[str, int]) -> End:
        family = socket.AF_INET6 if ":" in name[0] else socket.AF_INET
        return End(unmapped(socket.inet_pton(family, name[0])), name[1])

    return end(one.getsockname()[:2]), end(one.getpeername()[:2])


def pair(address: str, listening: str) -> tuple[socket.socket, socket.socket, socket.socket]:
    """A listener, a client, what the listener accepted."""
    family = socket.AF_INET6 if ":" in listening else socket.AF_INET
    listener = socket.create_server((listening, 0), family=family, dualstack_ipv6=listening == "::")
    client = socket.create_connection((address, listener.getsockname()[1]))
    return listener, client, listener.accept()[0]


def inode(one: socket.socket) -> int:
    return os.fstat(one.fileno()).st_ino


both_ways = pytest.mark.parametrize("find", [by_netlink, by_table])


@both_ways
@pytest.mark.parametrize(("address", "listening"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("127.0.0.1", "::")])
def test_both_ends_are_found(find: Find, address: str, listening: str) -> None:
    try:
        sockets = pair(address, listening)
    except OSError as error:
        pytest.skip(f"no connection of this kind here: {error}")
    listener, client, accepted = sockets
    with listener, client, accepted:
        for one in (client, accepted):
            assert find(*ends(one)) == Socket(inode(one), os.geteuid())


@both_ways
def test_who_has_not_been_accepted_has_no_number_yet(find: Find) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        local, remote = ends(client)
        told = find(remote, local)
        assert told is not None
        assert told.inode == 0


@both_ways
def test_who_listens_or_is_gone_is_nobody(find: Find) -> None:
    listener, client, accepted = pair("127.0.0.1", "127.0.0.1")
    local, remote = ends(client)
    client.close()
    accepted.close()
    with listener:
        assert find(local, remote) is None  # waits for late packets
        assert find(remote, local) is None  # somebody listens there
        assert find(End(local.address, 1), remote) is None

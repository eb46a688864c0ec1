"""Identities of real connections between real processes."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from wirewitness.analyser.capture.workloads.kernel.lookup import LocalIdentity, Lookup
from wirewitness.analyser.capture.workloads.kernel.sock_diag import End

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks a Linux kernel")

PATIENCE_S = 60.0
# Prints its port, accepts one connection after a line of its input, and holds it until the input ends.
SERVER = """
import socket, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.readline()
held = listener.accept()
print("accepted", flush=True)
sys.stdin.read()
"""
CLIENT = """
import socket, sys
held = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(held.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def running(text: str, *arguments: str, before: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    command = [*before, sys.executable, "-c", text, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def accept(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert line(process) == "accepted"


def end(address: str, port: int) -> End:
    return End(socket.inet_aton(address), port)


def found(lookup: Lookup, wanted: int = 2, seconds: float = PATIENCE_S) -> dict[bool, LocalIdentity]:
    """The identities by end, until so many are there or nothing is left to do."""
    identities: dict[bool, LocalIdentity] = {}
    until = time.monotonic() + seconds
    while time.monotonic() < until and len(identities) < wanted:
        identities.update({one.is_high: one.identity for one in lookup.step() if one.identity is not None})
        wait_s = lookup.wait_s()
        if wait_s is None:
            break
        time.sleep(min(wait_s, 0.05))
    return identities


def identity_of(process: subprocess.Popen[str]) -> LocalIdentity:
    name = os.path.basename(os.path.realpath(sys.executable))
    user = pwd.getpwuid(os.geteuid()).pw_name
    return LocalIdentity(process.pid, name, os.geteuid(), user)


def test_both_ends_are_local() -> None:
    lookup = Lookup()
    with running(SERVER, "127.0.0.1") as server:
        port = int(line(server))
        with running(CLIENT, "127.0.0.1", str(port)) as client:
            own = int(line(client))
            low, high = sorted((end("127.0.0.1", port), end("127.0.0.1", own)))
            lookup.ask(1, low, high)
            # The client is known at once, the server when it has accepted: the listening socket's identity is no
            # answer.
            assert set(found(lookup, wanted=1)) == {high.port == own}
            accept(server)
            lookup.ask(2, low, high)
            identities = found(lookup)
    told = {is_high: one._replace(command=None) for is_high, one in identities.items()}
    expected = {high.port == own: identity_of(client), high.port == port: identity_of(server)}
    assert told == {is_high: one._replace(command=None) for is_high, one in expected.items()}
    assert all((one.command or "").startswith("python") for one in identities.values())
    assert not lookup.remarks


def test_who_accepts_late_is_told_late() -> None:
    lookup = Lookup()
    with running(SERVER, "127.0.0.1") as server:
        port = int(line(server))
        with socket.create_connection(("127.0.0.1", port)) as client:
            lookup.ask(1, end("127.0.0.1", port), end(*client.getsockname()))
            assert found(lookup, wanted=1)[True].pid == os.getpid()
            accept(server)
            assert found(lookup, wanted=1)[False].pid == server.pid


def test_a_connection_that_is_over_has_no_identity() -> None:
    lookup = Lookup()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        ends = end(*client.getsockname()), end(*listener.getsockname())
        client.close()
        listener.accept()[0].close()
        lookup.ask(1, *ends)
        assert found(lookup, wanted=1, seconds=4) == {}


def test_a_socket_that_nobody_holds_any_more_is_not_of_its_number_s_next_user() -> None:
    """The process that held it has ended, and its pid is another one's, which was started at another time."""
    lookup = Lookup()
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    accepted = listener.accept()[0]
    ends = end(*client.getsockname()), end(*listener.getsockname())
    with listener, client, accepted, running("import sys; sys.stdin.read()") as other:
        lookup.ask(1, *ends)
        assert {one.pid for one in found(lookup).values()} == {os.getpid()}
        inode = os.fstat(client.fileno()).st_ino
        seen = lookup._processes._holders[inode]
        lookup._processes._holders[inode] = seen._replace(pid=other.pid)
        lookup.ask(2, *ends)
        assert {one.pid for one in found(lookup).values()} == {os.getpid()}


def test_many_connections_at_once() -> None:
    lookup = Lookup()
    with socket.create_server(("127.0.0.1", 0), backlog=300) as listener:
        held = []
        for number in range(200):
            client = socket.create_connection(listener.getsockname())
            held += [client, listener.accept()[0]]
            lookup.ask(number, end(*client.getsockname()), end(*listener.getsockname()))
        told = {}
        until = time.monotonic() + PATIENCE_S
        while len(told) < 400 and time.monotonic() < until:
            told.update(
                {(one.question, one.is_high): one.identity for one in lookup.step() if one.identity is not None}
            )
            time.sleep(0.001)
        for one in held:
            one.close()
    assert len(told) == 400
    assert {one.pid for one in told.values()} == {os.getpid()}


@pytest.fixture
def container() -> Iterator[str]:
    """A network namespace with the address 10.98.7.2, 10.98.7.1 is this one's."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2, for a network namespace")
    name = f"owner{os.getpid()}"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        ip("netns", "add", name)
        ip("link", "add", f"ow{os.getpid()}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("addr", "add", "10.98.7.1/30", "dev", f"ow{os.getpid()}")
        ip("link", "set", f"ow{os.getpid()}", "up")
        ip("-n", name, "addr", "add", "10.98.7.2/30", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
    except subprocess.CalledProcessError as error:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        pytest.skip(f"no network namespace can be made: {error.stderr.decode().strip()}")
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=False)


def test_a_process_in_another_network_namespace(container: str) -> None:
    """Its sockets are in no table of this one."""
    inside = ("ip", "netns", "exec", container)
    with running(SERVER, "10.98.7.1") as server:
        port = int(line(server))
        with running(CLIENT, "10.98.7.1", str(port), before=inside) as client:
            own = int(line(client))
            accept(server)
            lookup = Lookup()
            lookup.ask(1, end("10.98.7.1", port), end("10.98.7.2", own))
            identities = found(lookup)
    assert {is_high: one.pid for is_high, one in identities.items()} == {False: server.pid, True: client.pid}

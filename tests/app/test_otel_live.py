"""`wirewitness otel -i`: exchanges on loopback become spans at a real receiver, each once."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.app.program import COMMAND, environment, run
from tests.conftest import require_program
from tests.support.otlp_receiver import receiver
from wirewitness.analyser.live.capturer import may_capture

PUBLISHES = 30
CONNECT = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01x"
CONNACK = b"\x20\x02\x00\x00"
DISCONNECT = b"\xe0\x00"


def publish(identifier: int) -> bytes:
    """PUBLISH with QoS 1 to `a/b`, payload `hello`."""
    body = b"\x00\x03a/b" + identifier.to_bytes(2, "big") + b"hello"
    return bytes((0x32, len(body))) + body


def talk(server: socket.socket) -> None:
    """One client that is answered at once."""
    with socket.create_connection(server.getsockname()) as client, server.accept()[0] as peer:
        for asked, answer in [
            (CONNECT, CONNACK),
            *((publish(one), b"\x40\x02" + one.to_bytes(2, "big")) for one in range(1, PUBLISHES + 1)),
        ]:
            client.sendall(asked)
            assert peer.recv(100) == asked
            peer.sendall(answer)
            assert client.recv(100) == answer
            time.sleep(0.05)
        client.sendall(DISCONNECT)
        assert peer.recv(100) == DISCONNECT


@contextmanager
def capturing(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """The command, once the kernel hands packets to it."""
    command = [*COMMAND, "otel", "-i", "lo", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    try:
        until = time.monotonic() + 300
        while not _is_handed_packets(process.pid) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
        yield process
    finally:
        process.kill()
        process.wait()


def _is_handed_packets(pid: int) -> bool:
    """Whether this process or one that it started has a socket that packets of all protocols come to; one that only
    asks for the right has none. Other tests capture, too."""
    table = Path("/proc/net/packet").read_text(encoding="ascii").splitlines()[1:]
    wanted = {f"socket:[{line.split()[8]}]" for line in table if line.split()[3] == "0003"}
    return any(link in wanted for one in _with_children(pid) for link in _open_files(one))


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            yield from _with_children(int(child))


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(one.readlink())


def test_each_exchange_is_sent_once() -> None:
    if not may_capture():
        pytest.skip("no right to capture packets (CAP_NET_RAW)")
    require_program("tcpdump")
    with receiver() as received, socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with capturing("--ports", port, "--endpoint", received.url) as process:
            talk(server)
            until = time.monotonic() + 120
            while len(received.spans()) < PUBLISHES + 1 and time.monotonic() < until:
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        spans = received.spans()
    assert errors.decode().splitlines()[-1] == f"{len(spans):,} spans sent"
    assert len({span.span_id for span in spans}) == len(spans) == PUBLISHES + 2
    topics = Counter(
        attribute.value.string_value
        for span in spans
        for attribute in span.attributes
        if attribute.key == "messaging.destination.name"
    )
    assert topics == {"a/b": PUBLISHES}


def test_captures_or_an_interface() -> None:
    for words in ((), ("-i", "lo", "x.pcap"), ("x.pcap", "--ports", "1")):
        assert run("otel", *words).returncode == 2

"""`wirewitness live` names the processes at both ends of connections, in the packets that it writes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import wirewitness
from tests.app.program import COMMAND, environment
from tests.conftest import require_program
from tests.support.shares import share
from wirewitness.analyser.live.capturer import may_capture

NOBODY = 65534
PATIENCE_S = 120
CLIENT = """
import os, socket, sys
if len(sys.argv) > 2:
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
held = socket.socket()
held.connect(("127.0.0.1", int(sys.argv[1])))
print(held.getsockname()[1], flush=True)
held.sendall(b"x")
while held.recv(1 << 16):
    pass
"""


@contextmanager
def live(folder: Path, *words: str, out: Path | None = None) -> Iterator[Path]:
    """A capture of loopback into a file, which is whole behind the block. out: gets standard output as it comes."""
    if not may_capture():
        pytest.skip("no right to capture (CAP_NET_RAW)")
    written = folder / "written.pcapng"
    command = [*COMMAND, "live", "-i", "lo", "--write", str(written), "--format", "jsonl", *words]
    with open(os.devnull if out is None else out, "wb") as told:
        process = subprocess.Popen(command, stdout=told, stderr=subprocess.PIPE, env=environment())
    try:
        until = time.monotonic() + PATIENCE_S
        while not written.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        yield written
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    assert b"fault of wirewitness" not in err


def send_until(accepted: socket.socket, path: Path, *names: str) -> None:
    """Packets, slowly, until the file has the names: the first look takes long where a machine has much to do."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and not all(name.encode() in path.read_bytes() for name in names):
        accepted.sendall(b"y")
        time.sleep(0.05)


@contextmanager
def client(port: int, user: int | None = None) -> Iterator[tuple[int, int]]:
    """A process that connects; its pid and port. It ends when the connection does."""
    command = [sys.executable, "-c", CLIENT, str(port), *([] if user is None else [str(user)])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())


def comments(path: Path) -> list[tuple[int, str]]:
    """(port that sent it, comments) of the packets that have some, as Wireshark reads them, which has no complaint."""
    fields = ["-T", "fields", "-e", "tcp.srcport", "-e", "frame.comment"]
    done = subprocess.run(
        [require_program("tshark"), "-r", str(path), *fields], capture_output=True, text=True, check=True
    )
    complaints = [line for line in done.stderr.splitlines() if line and "Running as user" not in line]
    assert not complaints
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [(int(port), text) for port, text in rows if text]


def listen() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@pytest.mark.parametrize("user", share([None, NOBODY], [NOBODY]))
def test_both_processes_stand_in_the_file(tmp_path: Path, user: int | None) -> None:
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can start a process of another user")
    with listen() as listener:
        port = listener.getsockname()[1]
        with live(tmp_path, "--ports", str(port)) as written, client(port, user) as (pid, own):
            accepted = listener.accept()[0]
            send_until(accepted, written, f"PID: {pid}\n", f"PID: {os.getpid()}\n")
            accepted.close()
    told = dict(comments(written))
    assert told.keys() == {own, port}
    assert told[own].startswith(f"PID: {pid}\\nCmd: python")
    assert f"UserId: {os.geteuid() if user is None else user}" in told[own]
    assert told[port].startswith(f"PID: {os.getpid()}\\nCmd: python")


@pytest.mark.exhaustive
def test_connections_that_stood_before_are_named_as_well(tmp_path: Path) -> None:
    with listen() as listener:
        port = listener.getsockname()[1]
        with client(port) as (pid, own):
            accepted = listener.accept()[0]
            with live(tmp_path, "--ports", str(port)) as written:
                send_until(accepted, written, f"PID: {pid}\n", f"PID: {os.getpid()}\n")
            accepted.close()
    told = dict(comments(written))
    assert told.keys() == {own, port}
    assert told[own].startswith(f"PID: {pid}\\n")


@pytest.mark.exhaustive
def test_every_file_of_a_ring_has_them(tmp_path: Path) -> None:
    """The file in which a connection began is removed some time."""
    if not may_capture():
        pytest.skip("no right to capture (CAP_NET_RAW)")
    with listen() as listener:
        port = listener.getsockname()[1]
        command = [*COMMAND, "live", "-i", "lo", "--ports", str(port), "--write", str(tmp_path / "ring.pcapng")]
        process = subprocess.Popen(
            [*command, "--rotate", "100kB,9", "--format", "jsonl"], stdout=subprocess.DEVNULL, env=environment()
        )
        until = time.monotonic() + 120
        while not list(tmp_path.glob("ring-*")) and time.monotonic() < until:
            time.sleep(0.05)
        with client(port) as (pid, own):
            accepted = listener.accept()[0]
            for _ in range(80):
                accepted.sendall(b"y" * 5000)
                time.sleep(0.05)
            accepted.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
    files = sorted(tmp_path.glob("ring-*.pcapng"))
    assert len(files) >= 3
    for path in files[1:-1]:
        assert f"PID: {os.getpid()}\\n" in dict(comments(path))[port]
    assert f"PID: {pid}\\n" in dict(comments(files[0]) + comments(files[1]))[own]


@pytest.mark.exhaustive
def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with listen() as listener:
        port = listener.getsockname()[1]
        with live(tmp_path, "--ports", str(port), "--no-owners") as written, client(port):
            accepted = listener.accept()[0]
            for _ in range(20):
                accepted.sendall(b"y")
                time.sleep(0.05)
            accepted.close()
    assert not comments(written)


@pytest.mark.exhaustive
def test_an_end_of_which_only_the_others_packets_are_captured(tmp_path: Path) -> None:
    """It is told on what it receives."""
    with listen() as listener:
        port = listener.getsockname()[1]
        with live(tmp_path, "--filter", f"tcp src port {port}") as written, client(port) as (pid, _):
            accepted = listener.accept()[0]
            send_until(accepted, written, f"PID: {pid}\n", f"PID: {os.getpid()}\n")
            accepted.close()
    told = [text for sender, text in comments(written) if sender == port]
    assert any(f"PID: {pid}\\n" in text for text in told)
    assert any(f"PID: {os.getpid()}\\n" in text for text in told)
    with wirewitness.read(written, tables=["flows"]) as analysis:
        assert analysis.table("flows").shape[0] == 1


def test_streamed_exchanges_name_the_process(tmp_path: Path) -> None:
    """A client of MQTT connects and pings, slowly."""
    connect, accepted = bytes.fromhex("100f00044d5154540402003c0003616263"), bytes.fromhex("20020000")
    with listen() as listener:
        port = listener.getsockname()[1]
        told = tmp_path / "told.jsonl"
        with (
            live(tmp_path, "--ports", str(port), "--decode-as", f"{port}=mqtt", out=told),
            socket.create_connection(("127.0.0.1", port)) as client,
            listener.accept()[0] as server,
        ):
            until = time.monotonic() + PATIENCE_S
            sent, answered = connect, accepted
            while f"({os.getpid()})" not in told.read_text() and time.monotonic() < until:
                client.sendall(sent)
                time.sleep(0.05)
                server.sendall(answered)
                sent, answered = b"\xc0\x00", b"\xd0\x00"
    rows = [json.loads(line) for line in told.read_text().splitlines()]
    processes = {row["client_process"] for row in rows if row["type"] == "exchange"}
    assert any(f"({os.getpid()})" in (one or "") for one in processes)

"""The command: what it refuses before a browser opens, and the server that it starts."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.app.captures import write_capture
from tests.app.program import COMMAND, environment, run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["gone.pcap"], b"gone.pcap"),
        (["notes.txt"], b"notes.txt"),
        (["--port", "0", "a.pcap"], b"--port"),
        (["--decode-as", "1=nonsense", "a.pcap"], b"nonsense"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: Sequence[str], sentence: bytes) -> None:
    (tmp_path / "notes.txt").write_text("nothing like a capture, but long enough to be looked at\n" * 5)
    write_capture(tmp_path / "a.pcap")
    result = run("dashboard", "--no-browser", *arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert b"Traceback" not in result.stderr


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = run("dashboard", "--no-browser", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert result.returncode == 2
    assert b"cannot listen on 127.0.0.1" in result.stderr


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_it_serves_this_machine_only_and_leaves_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = [*COMMAND, "dashboard", "--no-browser", "--port", str(port), str(write_capture(tmp_path / "a.pcap"))]
    env = environment(XDG_CACHE_HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path), TMPDIR=str(folder))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd=tmp_path) as server:
        try:
            assert answers(f"http://127.0.0.1:{port}/_stcore/health") == b"ok"
            assert listeners(port) == {"127.0.0.1"}
            assert refused(port, "/", "evil.example") == 403
            assert refused(port, "/_stcore/metrics", "localhost") == 404
            assert [path.name for path in folder.glob("wirewitness-tmp-*")] != []
        finally:
            server.send_signal(ending)
        output, _ = server.communicate(timeout=300)
    assert f"dashboard at http://127.0.0.1:{port} (Ctrl-C ends it)".encode() in output
    assert b"Traceback" not in output
    assert list(folder.glob("wirewitness-tmp-*")) == []


def refused(port: int, path: str, host: str) -> int:
    """The status of a request under that name of the server."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request, timeout=30)
    return error.value.code


def answers(address: str) -> bytes:
    """What is served there, as soon as something is."""
    for _ in range(240):
        try:
            with urllib.request.urlopen(address, timeout=5) as response:
                body: bytes = response.read()
                return body
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"nothing answers at {address}")


def listeners(port: int) -> set[str]:
    """Local IPv4 addresses on which that port is listened to."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, state = line.split()[1], line.split()[3]
        address, number = local.split(":")
        if state == "0A" and int(number, 16) == port:
            found.add(".".join(str(byte) for byte in reversed(bytes.fromhex(address))))
    return found

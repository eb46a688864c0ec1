"""`wirewitness live` reads a stranger's bytes without rights: who its processes are, what a decoder could still do."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.app.program import COMMAND, environment
from tests.conftest import ROOT, require_program
from tests.support.example_capture import write_capture
from wirewitness.analyser.capture.privileges import landlock_version
from wirewitness.analyser.live.capturer import may_capture

NET_RAW = 1 << 13
CALLER = 12345  # a user who called sudo

# A decoder that tries everything when the first frame comes, and says what it could do.
HOSTILE = """
import json, os, socket, sys
from pathlib import Path
from wirewitness.dissectors.example.decoder import ExampleDecoder
tried = {}
def attempt(name, act):
    try:
        act()
        tried[name] = True
    except OSError:
        tried[name] = False
right = ExampleDecoder.feed
def feed(self, frames, out):
    if not tried:
        import tempfile
        attempt("temporary", lambda: Path(tempfile.gettempdir(), "own").write_text("x"))
        attempt("write", lambda: Path(sys.argv[-1], "planted").write_text("x"))
        attempt("append", lambda: open(Path(sys.argv[-1], "theirs"), "a").write("x"))
        attempt("read", lambda: Path(sys.argv[-1], "theirs").read_text())
        attempt("remove", lambda: os.unlink(Path(sys.argv[-1], "theirs")))
        attempt("link", lambda: os.symlink("/etc/passwd", Path(sys.argv[-1], "link")))
        attempt("connect", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[-2])), 5))
        attempt("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        attempt("root", lambda: os.setuid(0) if os.getuid() else os.chown(Path(sys.argv[-1], "theirs"), 1, 1))
        print("tried", json.dumps(tried), file=sys.stderr)
    right(self, frames, out)
ExampleDecoder.feed = feed
place, port = sys.argv.pop(), sys.argv.pop()
arguments = sys.argv[1:]
sys.argv += [port, place]
from wirewitness.app.shared.failure import OWN_PROCESS
from wirewitness.app.cli.main import cli
cli(arguments, prog_name="wirewitness", obj=OWN_PROCESS)
"""


def status_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(re.split(r":\s*", line, maxsplit=1) for line in lines)  # type: ignore[arg-type]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own are for its user alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("with_files", [False, True])
@pytest.mark.parametrize("caller", [None, CALLER])
def test_no_process_of_a_capture_is_root(open_folder: Path, caller: int | None, with_files: bool) -> None:
    if os.geteuid() != 0 or not may_capture():
        pytest.skip("only root can give up being root")
    own = {"SUDO_UID": str(caller), "SUDO_GID": str(caller)} if caller is not None else {}
    temporary = open_folder / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    shared, ring = open_folder / "shared", open_folder / "ring.pcapng"
    words = ["--share", str(shared), "--write", str(ring)] if with_files else []
    command = [*COMMAND, "live", "-i", "lo", "--ports", "9", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(TMPDIR=str(temporary), **own)
    )
    try:
        until = time.monotonic() + 300
        found: list[dict[str, str]] = []
        while [one["NoNewPrivs"] for one in found] != ["1", "1"] and time.monotonic() < until:
            time.sleep(0.1)
            # A child that only asks what is allowed may end meanwhile.
            with suppress(FileNotFoundError, ProcessLookupError):
                found = [status_of(pid) for pid in (process.pid, *children(process.pid)[:1])]
        assert [one["NoNewPrivs"] for one in found] == ["1", "1"]
        decoding, capturing = found
        user = str(caller or 65534)
        assert decoding["Uid"].split() == [user] * 4
        assert decoding["Gid"].split() == [user] * 4
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(decoding[name], 16) == 0, name
        # Without a caller a folder of root's can only be written by root, who has no other right any more.
        assert capturing["Uid"].split() == ["0" if with_files and caller is None else user] * 4
        left = NET_RAW | (1 << 1 if with_files and caller is not None else 0)
        assert int(capturing["CapEff"], 16) == int(capturing["CapPrm"], 16) == left
        assert int(capturing["CapInh"], 16) == int(capturing["CapAmb"], 16) == 0
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    assert b"CAPTURE" in out
    assert [one.name for one in temporary.iterdir()] == []
    if with_files:
        assert ring.stat().st_size > 0
        assert shared.stat().st_uid == int(user)
        assert json.loads((shared / "live.json").read_text())["process"] is None


def test_root_of_a_container_with_few_capabilities_captures_too(open_folder: Path) -> None:
    """It may not become somebody else: it stays who it is, without the rights."""
    if os.geteuid() != 0 or not may_capture():
        pytest.skip("only root can be such a root")
    few = [require_program("setpriv"), "--bounding-set=-all,+net_raw,+net_admin", "--inh-caps=-all"]
    words = ["live", "-i", "lo", "--ports", "9", "--duration", "1s", "--share", str(open_folder / "shared")]
    done = subprocess.run([*few, *COMMAND, *words], capture_output=True, env=environment(), timeout=120, check=False)
    assert (done.returncode, done.stderr.count(b"error")) == (0, 0), done.stderr
    assert b"CAPTURE" in done.stdout
    assert json.loads((open_folder / "shared" / "live.json").read_text())["process"] is None


def test_a_decoder_can_only_write_where_the_analysis_does(open_folder: Path) -> None:
    if landlock_version() < 4:
        pytest.skip("this kernel fences no files or no connections (Landlock)")
    (open_folder / "theirs").write_text("hers")
    (open_folder / "theirs").chmod(0o666)
    open_folder.chmod(0o777)
    capture = write_capture(open_folder / "calls.pcap")
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = ["live", "-r", str(capture), "--enable", "example", "--quiet"]
        command = [sys.executable, "-c", HOSTILE, *words, str(server.getsockname()[1]), str(open_folder)]
        done = subprocess.run(command, capture_output=True, env=environment(), timeout=120, check=False, cwd=ROOT)
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("tried ")]
    assert told, done.stderr
    tried = json.loads(told[0].removeprefix("tried "))
    assert tried == {name: name == "temporary" for name in tried}
    assert done.returncode == 0, done.stderr
    assert b"CAPTURE" in done.stdout
    assert (open_folder / "theirs").read_text() == "hers"

"""The programs of `wirewitness live` read nothing of their own files once they have dropped their privileges: the
program may lie in a folder that only root may enter."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

from tests.app.program import environment
from tests.app.test_live_rights import children, status_of
from tests.app.test_otel_sender import rows
from tests.conftest import ROOT, SAMPLES
from tests.support.lab_exchanges import Exchange, lab_connections
from tests.support.otlp_receiver import receiver
from tests.support.private_program import private_program
from tests.support.shares import share
from wirewitness.analyser.capture.message_pipe import HEAD, PACKETS
from wirewitness.analyser.capture.privileges import User, may
from wirewitness.analyser.live.capturer import may_capture
from wirewitness.dissectors.kafka.schema.api_keys import api_name

NOBODY = User(65534, 65534, "nobody")
SAMPLE = SAMPLES / "kafka_admin.pcapng"
KINDS = {
    "Kafka": [SAMPLE],
    "all": sorted([*SAMPLES.glob("*.pcapng"), *SAMPLES.glob("tls/*.pcapng"), *SAMPLES.glob("request_logs/*.gz")]),
}
OURS = ("wirewitness.analyser.", "wirewitness.dissectors.", "wirewitness.reports.")
# The parts that only other commands than `live` import.
ELSEWHERE = ("wirewitness.analyser.archive", "wirewitness.reports.report.tshark", "wirewitness.reports.base.otel",
             "scapy", "pyshark", "obstore", "hdfs_native", "jinja2", "tomllib")  # fmt: skip

LIVE = """
import sys
from pathlib import Path
from click.testing import CliRunner
from wirewitness.analyser.live import confined
from wirewitness.app.shared.failure import OWN_PROCESS
from wirewitness.app.cli.main import cli
from tests.support.late_files import LateFiles
late = LateFiles(Path(sys.argv[1]))
confined.readable, confined.confine = lambda *_: False, late.begin
for number, name in enumerate(sys.argv[2:]):
    words = ["live", "-r", name, "--format", ("text", "jsonl")[number % 2], "--debug"]
    done = CliRunner().invoke(cli, words, obj=OWN_PROCESS, catch_exceptions=False)
    late.end()
    assert done.exit_code == 0, (name, done.output)
"""

CAPTURING = """
import sys
from pathlib import Path
from wirewitness.analyser.capture import capturing
from tests.support.late_files import LateFiles
late = LateFiles(Path(sys.argv[1]))
class NoRing(capturing.Ring):
    def __init__(self, name, *_):
        raise capturing.NoInterfaceError(name)
def confine(*_):
    late.begin()
    from wirewitness.analyser.capture import CaptureStats, EndpointTable, Source, read_batches
    for name in sys.argv[2:]:
        for _ in read_batches(Source(name, path=Path(name)), EndpointTable(), CaptureStats(name)):
            pass
capturing.Ring, capturing.readable, capturing.confine = NoRing, lambda *_: False, confine
job = capturing.CaptureJob(("lo",), identities=True)
null = open("/dev/null", "r+b")
capturing.Capturing(job, capturing.Outlet(null.fileno(), 1 << 20)).run(null.fileno())
late.end()
"""

SENDER = """
import sys
from pathlib import Path
from wirewitness.reports.base.otel import export
from wirewitness.app.cli import otel_sender
from tests.support.late_files import LateFiles
late = LateFiles(Path(sys.argv.pop(1)))
export.readable, export.confine = lambda *_: False, late.begin
otel_sender.main()
late.end()
"""

IMPORTED = """
import sys
from wirewitness.analyser.capture.program import Imports
from wirewitness.analyser.live.confined import load_program
load_program(Imports(()))
for name, module in sys.modules.items():
    print(name, getattr(module, "__file__", None), sep="\t")
"""

FOLDERS = """
import sys
from pathlib import Path
from wirewitness.analyser.capture.privileges import program_folders
import wirewitness.app.cli.live, wirewitness.analyser.live.session, wirewitness.reports.report.contents
files = [getattr(module, "__file__", None) for module in [*sys.modules.values()]]
folders = program_folders()
for file in files:
    if file is not None and not any(Path(file).resolve().is_relative_to(folder) for folder in folders):
        print(file)
"""


def ran(program: str, *words: str | Path, stdin: bytes = b"") -> bytes:
    """Standard output of such a program."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], input=stdin, capture_output=True, env=environment(),
        timeout=600, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("kind", share(KINDS, ["Kafka"]))
def test_a_live_analysis_opens_no_file_of_the_program(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "opened"
    ran(LIVE, log, *KINDS[kind])
    assert log.read_text() == ""


def test_the_capturing_program_opens_no_file_of_the_program(tmp_path: Path) -> None:
    log = tmp_path / "opened"
    ran(CAPTURING, log, SAMPLE)
    assert log.read_text() == ""


def test_what_sends_spans_opens_no_file_of_the_program(tmp_path: Path) -> None:
    log = tmp_path / "opened"
    with receiver() as received:
        ran(SENDER, log, "lab", received.url + "/v1/traces", stdin=messages(rows()))
        assert received.spans()
    assert log.read_text() == ""


def test_all_that_the_program_ever_imports_is_imported() -> None:
    there = dict(line.split("\t") for line in ran(IMPORTED).decode().splitlines())
    ours = [name for name in there if name.startswith(OURS) and not name.startswith(ELSEWHERE)]
    wanted = {one for name in ours for one in imports_of(Path(there[name]))}
    missing = sorted(name for name in wanted - there.keys() if not name.startswith(ELSEWHERE) and is_module(name))
    assert missing == []


def test_the_folders_that_stay_readable_have_all_of_the_program() -> None:
    """Parts of a checkout are links to elsewhere."""
    command = [sys.executable, "-P", "-c", FOLDERS]
    done = subprocess.run(command, capture_output=True, env={"PYTHONPATH": str(ROOT / "src")}, cwd="/", check=True)
    assert done.stdout.split() == []


def test_live_from_a_folder_that_only_root_may_enter() -> None:
    if os.geteuid() != 0 or not may_capture():
        pytest.skip("only root, with the right to capture, drops its privileges in such a folder")
    connections = [one for one in lab_connections(SAMPLE) if one]
    with tempfile.TemporaryDirectory() as folder:
        python = private_program(Path(folder))
        assert not may(NOBODY, [python], os.R_OK)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            told, err = live_while(python, lambda: [talk(server, one) for one in connections])
    assert b"fault" not in err, err
    exchanges = [row for row in map(json.loads, told.splitlines()) if row["type"] == "exchange"]
    seen = [row["operation"] for row in exchanges if row["server_port"] == port]
    assert sorted(seen) == sorted(api_name(one.api_key) for connection in connections for one in connection)


def live_while(python: Path, work: Callable[[], object]) -> tuple[bytes, bytes]:
    """Standard output and standard error of a capture of loopback in which this work is done."""
    command = [python, "-c", "from wirewitness.app.start import main; main()", "live", "-i", "lo", "--format", "jsonl"]
    env = {name: value for name, value in environment().items() if name != "PYTHONPATH"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd="/")
    try:
        until = time.monotonic() + 300
        while not has_no_privileges(process.pid) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        work()
        time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGINT)
        told, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return told, err


def has_no_privileges(pid: int) -> bool:
    """Both the program that analyses and the one that captures."""
    with suppress(FileNotFoundError, ProcessLookupError):
        found = [status_of(one)["NoNewPrivs"] for one in (pid, *children(pid)[:1])]
        return found == ["1", "1"]
    return False


def talk(server: socket.socket, exchanges: Iterable[Exchange]) -> None:
    """A connection on which these are asked and answered."""
    with socket.create_connection(server.getsockname()) as client, server.accept()[0] as peer:
        for one in exchanges:
            for sender, receives, data in ((client, peer, one.request), (peer, client, one.response)):
                sender.sendall(data)
                left = len(data)
                while left:
                    left -= len(receives.recv(left))


def messages(sent: Iterable[pa.RecordBatch]) -> bytes:
    """What the analysis writes to the program that sends spans."""
    found = b""
    for batch in sent:
        with pa.BufferOutputStream() as stream:
            with pa.ipc.new_stream(stream, batch.schema) as writer:
                writer.write_batch(batch)
            body = stream.getvalue().to_pybytes()
        found += HEAD.pack(PACKETS, len(body)) + body
    return found


def imports_of(file: Path) -> Iterator[str]:
    """Names in import statements anywhere in a module, but for those that only type checkers follow."""
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


def is_module(name: str) -> bool:
    """Is it one, and installed?"""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False

"""The program that sends spans: what it takes arrives, and an end that nobody asked for is said."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import wirewitness
from tests.app.program import environment
from tests.conftest import ROOT, SAMPLES
from tests.support.otlp_receiver import receiver
from wirewitness.analyser.capture.privileges import landlock_version
from wirewitness.app.cli.otel_sender import SenderProgram, Sent
from wirewitness.reports.base.otel.exchanges import TABLES, batches


def rows() -> list[pa.RecordBatch]:
    with wirewitness.read(SAMPLES / "mqtt_qos2_stuck.pcapng", tables=TABLES) as analysis:
        return list(batches(analysis))


def test_rows_become_spans() -> None:
    taken = rows()
    count = sum(batch.num_rows for batch in taken)
    with receiver() as received:
        sender = SenderProgram("lab", received.url + "/v1/traces")
        sender.take(taken)
        sender.take([])
        assert sender.close() == Sent(count, 0)
        assert len(received.spans()) == count == 75


def test_a_program_that_was_ended_costs_spans_and_not_the_capture() -> None:
    sender = SenderProgram("lab", "http://127.0.0.1:9/v1/traces")
    sender.kill()
    sender.take(rows())
    with pytest.raises(RuntimeError, match="ended with status -9"):
        sender.close()


# A decoder of rows that tries everything, and says what it could do.
HOSTILE = """
import json, os, socket, sys
from pathlib import Path
from wirewitness.app.cli import otel_sender
place, port = Path(sys.argv.pop()), int(sys.argv.pop())
tried = {}
def attempt(name, act):
    try:
        act()
        tried[name] = True
    except OSError:
        tried[name] = False
def messages(source):
    attempt("write", lambda: Path(place, "planted").write_text("x"))
    attempt("append", lambda: open(Path(place, "theirs"), "a").write("x"))
    attempt("read", lambda: Path(place, "theirs").read_text())
    attempt("remove", lambda: os.unlink(Path(place, "theirs")))
    attempt("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
    attempt("root", lambda: os.setuid(0) if os.getuid() else os.chown(Path(place, "theirs"), 1, 1))
    attempt("certificate", lambda: Path(os.environ["OTEL_EXPORTER_OTLP_CERTIFICATE"]).read_text())
    attempt("connect", lambda: socket.create_connection(("127.0.0.1", port), 5))
    print("tried", json.dumps(tried), file=sys.stderr)
    return iter(())
otel_sender._messages = messages
otel_sender.main()
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own are for its user alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_the_program_has_no_rights() -> None:
    """It reads rows made of a stranger's bytes."""
    with receiver() as received:
        sender = SenderProgram("lab", received.url + "/v1/traces")
        taken = rows()
        sender.take(taken)
        until = time.monotonic() + 300
        while not received.spans() and time.monotonic() < until:
            time.sleep(0.1)
        lines = Path(f"/proc/{sender._process.pid}/status").read_text().splitlines()
        status = dict(re.split(r":\s*", line, maxsplit=1) for line in lines)
        assert sender.close().lost == 0
    assert status["NoNewPrivs"] == "1"
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}


@pytest.mark.parametrize("private", [False, True])
def test_it_can_send_and_read_its_certificate_and_nothing_else(open_folder: Path, private: bool) -> None:
    """A certificate that only its owner reads stays readable."""
    if landlock_version() < 1:
        pytest.skip("this kernel fences no files (Landlock)")
    (open_folder / "theirs").write_text("hers")
    (open_folder / "theirs").chmod(0o666)
    certificate = open_folder / "own.pem"
    certificate.write_text("x")
    certificate.chmod(0o600 if private else 0o644)
    with receiver() as received:
        port = received.url.rsplit(":", 1)[1].strip("/")
        command = [sys.executable, "-c", HOSTILE, "lab", received.url, port, str(open_folder)]
        told = environment(OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificate))
        done = subprocess.run(command, capture_output=True, env=told, timeout=120, check=False, cwd=ROOT)
    said = [line for line in done.stderr.decode().splitlines() if line.startswith("tried ")]
    assert said, done.stderr
    tried = json.loads(said[0].removeprefix("tried "))
    assert tried == {name: name in ("certificate", "connect") for name in tried}
    assert (open_folder / "theirs").read_text() == "hers"
    assert sorted(os.listdir(open_folder)) == ["own.pem", "theirs"]

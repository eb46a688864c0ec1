"""`wirewitness live` as a process: streams, pipes, signals, rights; on loopback where the right to capture is there."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.app.program import COMMAND, environment, run, run_process
from tests.conftest import SAMPLES, require_program
from tests.support.shares import share
from wirewitness.analyser.live.capturer import may_capture
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.report.contents import report
from wirewitness.reports.report.protocols import REPORT_TABLES

SAMPLE = SAMPLES / "kafka_fenced_commit.pcapng"


def objects(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_stream_ends_with_the_report_of_its_capture() -> None:
    data = SAMPLE.read_bytes()
    result = run_process("live", "-r", "-", stdin=data)
    assert result.returncode == 0
    with wirewitness.read(SAMPLE, tables=REPORT_TABLES) as analysis:
        expected = render(report(analysis), 100)
    assert result.stdout.decode() == expected.replace(str(SAMPLE), "-")
    codes = re.findall(r"^(?:\w+: )?(?:critical|warning|info) (\w{3}\d{3})", result.stderr.decode(), re.M)
    assert "KAF105" in codes


def test_json_lines_of_a_cut_stream() -> None:
    data = SAMPLE.read_bytes()[:-37]
    result = run_process("live", "-r", "-", "--format", "jsonl", stdin=data)
    assert result.returncode == 0
    assert "the last block is cut" in result.stderr.decode()
    table = run("table", "exchanges", "-", "--format", "jsonl", "--quiet", stdin=data).stdout
    told = objects(result.stdout)
    exchanges = [{k: v for k, v in row.items() if k != "type"} for row in told if row["type"] == "exchange"]
    expected = objects(table)
    for row in [*exchanges, *expected]:
        row["cluster_id"] = None
    assert sorted(map(repr, exchanges)) == sorted(map(repr, expected))
    assert {row["code"] for row in told if row["type"] == "finding"} >= {"KAF105"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param("", "name what to read", id="no source"),
        pytest.param("-i lo -r -", "name what to read", id="two sources"),
        pytest.param("-r /no/such", "/no/such cannot be read: No such file or directory", id="no file"),
        pytest.param("-r - --write x.pcapng", "--write: for interfaces (-i) only", id="write a stream"),
        pytest.param("-i lo --rotate 1MB,3", "--rotate needs --write", id="rotate what"),
        pytest.param("-i lo --write x --rotate 1MB", "write SIZE,COUNT, such as 100MB,10", id="rotate how"),
        pytest.param("-i lo --duration soon", "write 90s, 10m, 2h or 1d", id="duration"),
        pytest.param("-i lo --ports 9092,kafka", "write ports of 1 to 65535", id="ports"),
    ],
)  # fmt: skip
def test_one_clear_line(words: str, told: str) -> None:
    result = run("live", *words.split())
    assert result.returncode == 2, result.stderr
    assert told in result.stderr.decode()


def test_no_capture() -> None:
    result = run_process("live", "-r", "-", stdin=b"GET / HTTP/1.1\r\n\r\n12345678")
    assert result.returncode == 2
    assert result.stderr.startswith(b"wirewitness: - is not a capture: it starts with the text 'GET / HTTP/1.1")
    assert len(result.stderr.splitlines()) == 1


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def need_right() -> None:
    if not may_capture():
        pytest.skip("no right to capture packets (CAP_NET_RAW)")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(
            ["-i", "lo", "--filter", "tcp prt 1"], "the filter 'tcp prt 1' cannot be used: can't parse", id="filter"
        ),
        pytest.param(["-i", "nope0"], "there is no interface nope0", id="interface"),
    ],
)
def test_what_cannot_be_captured(words: list[str], told: str) -> None:
    need_right()
    require_program("tcpdump")
    result = run("live", *words)
    assert result.returncode == 2
    assert told in result.stderr.decode()


def test_without_the_right_the_pipe_is_shown_first() -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not there to take the right away")
    need_right()
    command = [
        "setpriv",
        "--bounding-set=-net_raw",
        "--inh-caps=-net_raw",
        *COMMAND,
        "live",
        "-i",
        "lo",
        "--ports",
        "9092",
    ]
    result = subprocess.run(command, capture_output=True, env=environment(), timeout=60, check=False)
    lines = result.stderr.decode().splitlines()
    assert result.returncode == 2
    assert lines[0].startswith("wirewitness: no right to capture on lo")
    assert lines[1].strip() == "sudo tcpdump -i lo -U -w - 'tcp port 9092' | wirewitness live -r -"
    assert "setcap cap_net_raw+ep" in lines[3]


def test_ctrl_c_as_soon_as_packets_are_captured_ends_with_the_report(tmp_path: Path) -> None:
    """Also while the program is still getting ready to read them."""
    need_right()
    command = [*COMMAND, "live", "-i", "lo", "--write", str(tmp_path / "x.pcapng")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    wait_for(lambda: any(tmp_path.iterdir()))
    process.send_signal(signal.SIGINT)
    told, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert b"CAPTURE" in told


def test_a_file_that_cannot_be_written_shows_in_the_status() -> None:
    """The report is there all the same."""
    need_right()
    result = run_process("live", "-i", "lo", "--duration", "1s", "--write", "/dev/full")
    assert result.returncode == 3
    assert (
        "writing /dev/full stopped: No space left on device; it holds what came before; the analysis goes on"
        in result.stderr.decode()
    )
    assert b"CAPTURE" in result.stdout


def test_a_closed_pipe_ends_quietly() -> None:
    program = f"{sys.executable} -c 'from wirewitness.app.cli.main import main; main()'"
    script = f"set -o pipefail; {program} live -r {SAMPLE} --format jsonl --quiet | head -c 100 >/dev/null"
    result = subprocess.run(["bash", "-c", script], capture_output=True, env=environment(), timeout=60, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("interface", share(["lo", "any"], ["any"]))
def test_loopback_with_files(interface: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Packets of one port, captured into small files; Ctrl-C; the report is that of the files."""
    need_right()
    require_program("tcpdump")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = [
            "-i",
            interface,
            "--ports",
            str(port),
            "--write",
            str(tmp_path / "ring.pcapng"),
            "--rotate",
            "100kB,50",
        ]
        process = subprocess.Popen(
            [*COMMAND, "live", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        )
        request.addfinalizer(process.kill)
        wait_for(lambda: any(tmp_path.iterdir()))
        with socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0] as peer:
            for _ in range(40):
                client.sendall(bytes(8000))
                got = 0
                while got < 8000:
                    got += len(peer.recv(8000))
                time.sleep(0.02)
        wait_for(lambda: sum(file.stat().st_size for file in tmp_path.iterdir()) > 40 * 8000)
        process.send_signal(signal.SIGINT)
        told, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    files = sorted(tmp_path.iterdir())
    assert len(files) >= 3
    assert all(file.stat().st_size <= 100_000 for file in files)
    with wirewitness.read(files, tables=REPORT_TABLES) as analysis:
        assert told.decode() == render(report(analysis), 100)
        flows = analysis.arrow("flows")
        assert flows.column("bytes_to_server").to_pylist() == [40 * 8000]
        assert flows.column("duplicate_packets").to_pylist() == [0]  # loopback brings each packet twice

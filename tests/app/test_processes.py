"""`--processes`: same output, standard input too, and Ctrl-C leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.app.captures import write_capture
from tests.app.program import COMMAND, environment, run
from tests.conftest import ROOT
from tests.support.replay import replay

SAMPLE = ROOT / "sample_pcaps" / "kafka_fenced_commit.pcapng"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture that takes seconds to read."""
    path = tmp_path_factory.mktemp("captures") / "long.pcap"
    replay(path, "small", 400_000, 0, 40)
    return path


def test_the_report_is_the_same() -> None:
    small = ROOT / "sample_pcaps" / "mqtt_takeover_loop.pcapng"
    one, two = (run("analyse", small, "--format", "json", "--processes", n) for n in ("1", "2"))
    assert (two.returncode, two.stdout, two.stderr) == (0, one.stdout, one.stderr)


def test_standard_input_is_shared_out() -> None:
    wanted = ("--format", "csv", "--columns", "flow_id,protocol,packets,bytes_to_server,bytes_to_client")
    result = run("table", "flows", "-", "--processes", "2", *wanted, stdin=SAMPLE.read_bytes())
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == run("table", "flows", SAMPLE, *wanted).stdout


@pytest.mark.parametrize("value", ["0", "-1", "two", "65"])
def test_wrong_numbers(value: str) -> None:
    result = run("table", "flows", SAMPLE, "--processes", value)
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"Traceback" not in result.stderr


def test_a_folder_of_the_caller_is_no_source_of_code(tmp_path: Path) -> None:
    (tmp_path / "analyser.py").write_text("raise SystemExit('not this one')")
    (tmp_path / "pickle.py").write_text("raise SystemExit('nor this one')")
    write_capture(tmp_path / "a.pcap")
    command = [
        COMMAND[0],
        "-P",
        *COMMAND[1:],
        *["table", "flows", "a.pcap", "--processes", "2", "--format", "csv", "--columns", "packets"],
    ]
    result = subprocess.run(command, capture_output=True, env=environment(), cwd=tmp_path, check=False)
    assert (result.returncode, result.stdout.split()) == (0, [b"packets", b"8"]), result.stderr


@pytest.mark.parametrize("to_group", [True, False], ids=["as Ctrl-C", "to the parent only"])
def test_interrupting_leaves_no_process(long: Path, to_group: bool) -> None:
    program = subprocess.Popen(
        [*COMMAND, "table", "messages", long, "--processes", "3", "--format", "csv"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(), start_new_session=True,
    )  # fmt: skip
    children = _children(program.pid, 2)
    (os.killpg if to_group else os.kill)(program.pid, signal.SIGINT)
    _, said = program.communicate(timeout=60)
    assert (program.returncode, said.strip()) == (130, b"wirewitness: interrupted")
    assert _all_end(children)


def test_killing_the_parent_ends_the_others(long: Path) -> None:
    program = subprocess.Popen(
        [*COMMAND, "table", "messages", long, "--processes", "2", "--format", "csv"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    (child,) = _children(program.pid, 1)
    program.kill()
    program.wait()
    assert _all_end([child])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_while_rules_run_ends_all(tmp_path: Path, number: signal.Signals) -> None:
    capture = tmp_path / "small.pcap"
    replay(capture, "small", 40_000, 0, 40)
    program = subprocess.Popen(
        [*COMMAND, "analyse", capture, "--processes", "2"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**environment(), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    (child,) = _children(program.pid, 1)
    until = time.monotonic() + 300
    while not [*tmp_path.glob("wirewitness-tmp-*/rules-*")] and time.monotonic() < until:
        time.sleep(0.002)
    assert program.poll() is None
    program.send_signal(number)
    assert program.wait(60) == (130 if number == signal.SIGINT else -number)
    assert _all_end([child])
    assert number == signal.SIGKILL or [*tmp_path.iterdir()] == [capture]


def _all_end(pids: list[int]) -> bool:
    """Whether the processes are gone within minutes."""
    until = time.monotonic() + 300
    while any(map(_runs, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(_runs, pids))


def _children(parent: int, count: int) -> list[int]:
    """The process ids of the parent's children once there are `count`."""
    listing = Path(f"/proc/{parent}/task/{parent}/children")
    until = time.monotonic() + 300
    while time.monotonic() < until:
        found = [int(pid) for pid in listing.read_text().split()]
        if len(found) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{count} children were expected")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

"""The program as a process: pipes, terminals, signals, widths, start-up time."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.app.captures import write_capture
from tests.app.program import COMMAND, environment, run, run_process
from tests.conftest import SAMPLES
from tests.support.packets import pcap
from tests.support.shares import every, share


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("captures") / "many.pcap", exchanges=3000)


def shell(script: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """A bash script in which `ww` is the program; its status is that of the first failing program of a pipe."""
    program = (
        f"ww() {{ {sys.executable} -c 'from wirewitness.app.start import main; main()' \"$@\"; }}; set -o pipefail; "
    )
    return subprocess.run(
        ["bash", "-c", program + script], capture_output=True, env=environment(**env), timeout=120, check=False
    )


def on_terminal(arguments: list[str], **env: str) -> str:
    """What the program shows when standard output and error are a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env=environment(**env)
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], 60)[0]:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert process.wait(timeout=60) == 0, shown
    return shown.decode()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("table messages {} --format csv", id="csv"),
        pytest.param("table messages {}", id="aligned"),
        pytest.param("analyse {}", id="report"),
        pytest.param("tables --format json", id="tables"),
        pytest.param("--help", id="help"),
    ],
)
def test_a_closed_pipe_ends_quietly(capture: Path, command: str) -> None:
    result = shell(f"ww {command.format(capture)} | true")
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_closed_pipe_keeps_the_status(capture: Path) -> None:
    result = shell(f"ww table messages {capture} /no/such.pcap --format csv 2>/dev/null | head -c 10")
    assert result.returncode == 3


def test_a_closed_standard_error_is_no_failure(capture: Path) -> None:
    assert shell(f"ww table flows {capture} /no/such.pcap --columns protocol 2> >(true)").returncode == 3


def test_a_full_disk_is_said() -> None:
    result = shell("ww tables --format json > /dev/full")
    assert result.returncode == 2
    assert result.stderr == b"wirewitness: cannot write to standard output: No space left on device\n"


def test_an_interrupt_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "table", "flows", "-", "--output", str(tmp_path / "out")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(TMPDIR=str(tmp_path)),
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(pcap([]))
    process.stdin.flush()
    deadline = time.monotonic() + 300
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)  # reading has begun when its temporary folder is there
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err.strip()) == (130, b"", b"wirewitness: interrupted")
    assert not (tmp_path / "out").exists()


# Says on a pipe of its own that it begins to import the commands.
BEGINNING = """
import os, sys
def told(event, names):
    if event == "import" and names[0] == "wirewitness.app.cli.main":
        os.write(int(os.environ["BEGUN"]), b"!")
from wirewitness.app.start import main
sys.addaudithook(told)
main()
"""


DELAYS_S = [0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2]


@pytest.mark.parametrize("delay_s", share(DELAYS_S, every(3, DELAYS_S)))
def test_an_early_interrupt_is_one_line(delay_s: float) -> None:
    begun, begins = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", BEGINNING, "table", "flows", "-"], pass_fds=[begins],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(BEGUN=str(begins)),
    )  # fmt: skip
    os.close(begins)
    assert os.read(begun, 1) == b"!"
    os.close(begun)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    out, err = process.communicate()
    assert (process.returncode, out, err.strip()) == (130, b"", b"wirewitness: interrupted")


@pytest.mark.parametrize("number", share([1, 2, 10, 50, 100, 150, 200], [1, 50, 200]))
def test_an_interrupt_while_a_module_is_imported(number: int) -> None:
    """Before the import of so many modules, whatever the machine does beside."""
    program = """
import os, signal, sys
seen = set()
def told(event, names):
    if event == "import" and names[0] not in seen:
        seen.add(names[0])
        if len(seen) == int(sys.argv[-1]):
            os.kill(os.getpid(), signal.SIGINT)
from wirewitness.app.start import main
sys.addaudithook(told)
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "table", "flows", str(number)], capture_output=True, env=environment(),
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"wirewitness: interrupted")


def test_an_interrupt_at_the_very_end_is_not_lost() -> None:
    program = """
import atexit, os, signal
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from wirewitness.app.start import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "--version"], capture_output=True, env=environment(), timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, b"wirewitness: interrupted\n")


def test_a_run_has_no_threads_for_matrices_and_ends_without_a_search_for_cycles() -> None:
    program = """
import atexit, gc, os
atexit.register(lambda: print(os.environ["OPENBLAS_NUM_THREADS"], gc.get_freeze_count() > 10_000))
from wirewitness.app.start import main
main()
"""
    command = [sys.executable, "-c", program, "--version"]
    env = {name: value for name, value in environment().items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(command, capture_output=True, env=env, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == b"1 True"
    env["OPENBLAS_NUM_THREADS"] = "3"
    done = subprocess.run(command, capture_output=True, env=env, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == b"3 True"


def test_duckdb_has_nothing_to_complain_of_at_the_end() -> None:
    result = run_process("query", SAMPLES / "mongo_show_databases.pcapng", "select count(*) as n from flows")
    assert (result.returncode, result.stderr) == (0, b"")


def test_standard_input_is_a_capture(capture: Path) -> None:
    columns = ("--columns", "file,packets", "--format", "csv")
    result = run_process("table", "captures", "-", *columns, stdin=capture.read_bytes())
    assert (result.returncode, result.stdout) == (0, b"file,packets\n-,6002\n")


def test_a_cut_record_keeps_the_rest(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "cut.pcap")
    path.write_bytes(path.read_bytes()[:-5])
    result = run_process("table", "exchanges", path, "--columns", "status", "--format", "csv")
    assert (result.returncode, result.stdout.count(b"\n")) == (0, 4)
    assert b"cut.pcap" in result.stderr


@pytest.mark.parametrize(
    ("content", "status"),
    [
        pytest.param(b"", 2, id="empty file"),
        pytest.param(b"PK\x03\x04" + bytes(100), 2, id="not a capture"),
        pytest.param(bytes(range(256)) * 40, 2, id="random bytes"),
        pytest.param(pcap([]), 0, id="header only"),
        pytest.param(pcap([])[:20], 2, id="cut header"),
    ],
)
def test_bad_input(tmp_path: Path, content: bytes, status: int) -> None:
    path = tmp_path / "bad\x1b[31m.pcap"
    path.write_bytes(content)
    result = run("analyse", path)
    assert result.returncode == status, result.stderr
    assert b"Traceback" not in result.stderr
    assert b"\x1b" not in result.stderr + result.stdout
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_report_keeps_the_width(capture: Path, width: int) -> None:
    lines = run("analyse", capture, COLUMNS=str(width)).stdout.decode().splitlines()
    assert max(len(line.replace(str(capture), "")) for line in lines) <= width


def test_colours_only_on_a_terminal(capture: Path) -> None:
    arguments = ["analyse", str(capture), "--quiet"]
    assert "\x1b[1m" in on_terminal(arguments)
    assert "\x1b" not in on_terminal(arguments, NO_COLOR="1")
    assert "\x1b" not in on_terminal(arguments, TERM="dumb")
    assert b"\x1b" not in run(*arguments).stdout


def test_progress_shows_on_a_terminal_and_goes_away(capture: Path) -> None:
    shown = on_terminal(["analyse", str(capture)], COLUMNS="100", NO_COLOR="1")
    assert "\x1b[?25l" in shown
    assert "CAPTURE" in shown.rsplit("\x1b[?25h", 1)[1]


def test_file_output_has_no_colours(capture: Path, tmp_path: Path) -> None:
    on_terminal(["analyse", str(capture), "--output", str(tmp_path / "report.txt"), "--quiet"])
    assert "\x1b" not in (tmp_path / "report.txt").read_text()


def test_json_goes_to_standard_output_alone(capture: Path, tmp_path: Path) -> None:
    result = run_process("analyse", capture, tmp_path / "gone.pcap", "--format", "json")
    assert result.returncode == 3
    assert json.loads(result.stdout)["operations"][0]["exchanges"] == 3000
    assert b"gone.pcap" in result.stderr


def test_another_encoding_loses_nothing(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.pcap", client_id="支付-é")
    columns = ("--columns", "client_id")
    shown = run_process("table", "exchanges", path, *columns, PYTHONIOENCODING="latin-1")
    assert shown.stdout.splitlines()[1] == "\\u652f\\u4ed8-é".encode("latin-1")
    data = run_process("table", "exchanges", path, *columns, "--format", "csv", PYTHONIOENCODING="latin-1")
    assert data.stdout.splitlines()[1].decode("utf-8") == "支付-é"


def test_client_ids_cannot_drive_the_terminal(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.pcap", client_id="\x1b]0;owned\x07app")
    for arguments in (["analyse", str(path)], ["table", "exchanges", str(path)]):
        shown = run(*arguments, "--decode-as", "9092=kafka").stdout.decode()
        assert "\x1b" not in shown
        assert "\\x1b]0;owned\\x07app" in shown


def test_help_comes_at_once() -> None:
    """In processor time, which a busy machine does not lengthen much."""
    times = []
    for _ in range(5):
        start = os.times()
        assert run_process("--help").returncode == 0
        end = os.times()
        times.append(end.children_user + end.children_system - start.children_user - start.children_system)
    assert min(times) < 0.25


def test_version() -> None:
    assert re.fullmatch(r"wirewitness (\d+\.\d+.*|\(not installed.*\))\n", run_process("--version").stdout.decode())

"""How the program ends, whatever happens inside."""

from __future__ import annotations

import errno
import subprocess
import sys

import click
import duckdb
import pytest
from click.testing import CliRunner, Result

from tests.app.program import environment, run
from tests.conftest import SAMPLES
from wirewitness.app.cli.main import GuardedGroup
from wirewitness.app.shared.failure import CallerError, Status


@click.group(cls=GuardedGroup)
def program() -> None:
    """Commands that end in every way there is."""


@program.command()
@click.argument("how")
@click.option("--debug", is_flag=True)
def end(how: str, debug: bool) -> Status | None:
    """Ends as told."""
    endings = {
        "fault": KeyError("lost\nsecond line"),
        "caller": CallerError("no such thing", "hint"),
        "usage": click.UsageError("wrong"),
        "interrupt": KeyboardInterrupt(),
        "duckdb": RuntimeError("Query interrupted"),
        "file": click.FileError("x", "gone"),
        "disk": OSError(errno.ENOSPC, "No space left on device"),
        "memory": duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 16.0 KiB"),
    }
    if how in endings:
        raise endings[how]
    return Status.SOME_INPUT_UNREAD if how == "unread" else None


def test_the_program_alone_shows_its_help_line_by_line() -> None:
    alone, asked = run(), run("--help")
    assert alone.returncode == Status.USAGE
    assert alone.stderr == asked.stdout


def ended(*arguments: str) -> Result:
    return CliRunner().invoke(program, list(arguments))


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("well", 0),
        ("unread", 3),
        ("disk", 3),
        ("memory", 3),
        ("fault", 70),
        ("caller", 2),
        ("usage", 2),
        ("file", 2),
        ("interrupt", 130),
        ("duckdb", 130),
    ],
)
def test_statuses(how: str, status: int) -> None:
    result = ended("end", how)
    assert result.exit_code == status
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_our_fault_is_one_line_with_the_way_to_the_trace() -> None:
    assert ended("end", "fault").stderr == (
        "wirewitness: internal error, please report it: KeyError: '...'; run again with --debug for the trace\n"
    )


def test_debug_shows_the_trace() -> None:
    shown = ended("end", "fault", "--debug").stderr
    assert "Traceback (most recent call last):" in shown
    assert shown.splitlines()[-1].startswith("wirewitness: internal error")


def test_the_callers_mistake_keeps_its_hint() -> None:
    assert ended("end", "caller").stderr == "wirewitness: no such thing\nhint\n"


def test_an_unknown_command_is_usage() -> None:
    assert ended("ende").exit_code == 2


def test_ctrl_c_is_not_lost_where_python_drops_exceptions() -> None:
    """In a destructor, as when rows are let go of, before something that waits for long."""
    program = """
import os, signal, sys, time
from wirewitness.app.shared.failure import guarded
from wirewitness.app.shared.interrupts import note_interrupts
class Rows:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
def run():
    Rows()
    time.sleep(300)
note_interrupts()
sys.exit(guarded(run, debug=False))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == Status.INTERRUPTED
    assert done.stderr == "wirewitness: interrupted\n"


@pytest.mark.parametrize("module", ["numpy.lib", "numpy.linalg", "pyarrow.lib", "wirewitness.analyser.base.words"])
def test_ctrl_c_in_the_middle_of_an_import(module: str) -> None:
    """It counts when the import is done: raised in it, it may be dropped, or leave a module half made."""
    program = """
import os, signal, sys
def told(event, names):
    if event == "import" and names[0] == sys.argv[-1]:
        os.kill(os.getpid(), signal.SIGINT)
from wirewitness.app.start import main
sys.addaudithook(told)
main()
"""
    capture = str(SAMPLES / "mongo_show_databases.pcapng")
    done = subprocess.run(
        [sys.executable, "-c", program, "table", "flows", capture, module], capture_output=True, text=True,
        env=environment(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.strip()) == (Status.INTERRUPTED, "wirewitness: interrupted")


@pytest.mark.parametrize("words", [["table", "flows", "/no/such.pcap"], ["table", "flowz"], ["tables"]])
def test_ctrl_c_counts_where_all_is_done_before_it_is_raised(words: list[str]) -> None:
    """It falls into an import, and the rest, a failure or not, takes less time than it waits for."""
    program = """
import os, signal, sys
sent = []
def told(event, names):
    interrupts = sys.modules.get("wirewitness.app.shared.interrupts")
    noted = hasattr(interrupts, "_interrupted") and signal.getsignal(signal.SIGINT) is interrupts._interrupted
    if event == "import" and noted and not sent:
        sent.append(True)
        interrupts._AGAIN_S = 300
        os.kill(os.getpid(), signal.SIGINT)
from wirewitness.app.start import main
sys.addaudithook(told)
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, env=environment(), check=False
    )
    assert (done.returncode, done.stderr.strip()) == (Status.INTERRUPTED, "wirewitness: interrupted")

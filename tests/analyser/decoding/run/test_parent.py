"""A program that a dashboard started ends when the dashboard is gone."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.app.program import environment

PROGRAM = """
import signal, sys, time
from wirewitness.analyser.decoding.run.parent import end_with_parent
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
gone = end_with_parent(signal.SIGINT, float(sys.argv[2]))
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("gone" if gone.is_set() else "interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("ears", "patience_s", "said", "status"), [("open", "60", b"gone\n", 0), ("deaf", "0.2", b"", -signal.SIGKILL)]
)
def test_a_closed_pipe_ends_the_program(ears: str, patience_s: str, said: bytes, status: int) -> None:
    command = [sys.executable, "-c", PROGRAM, ears, patience_s]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        assert program.poll() is None
        output, _ = program.communicate(timeout=300)  # closes standard input
        assert (output, program.returncode) == (said, status)

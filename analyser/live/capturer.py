"""The program that captures, started and stopped. In: a job. Out: a descriptor with its messages."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from typing import IO, cast

from wirewitness.analyser.capture.capturing import CaptureJob, job_text

_PATIENCE_S = 2.0
PROGRAM = "from wirewitness.analyser.capture.capturing import main; main()"


def may_capture() -> bool:
    """May this user take packets from interfaces (CAP_NET_RAW)?"""
    if not hasattr(socket, "AF_PACKET"):
        return False
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except OSError:  # a system may have no such sockets at all
        return False
    return True


class Capturer:
    """A running capture."""

    def __init__(self, job: CaptureJob) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, job_text(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for this process, which ends the other
            env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)},
        )
        self._stdin, self._stdout = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)

    def fileno(self) -> int:
        """The descriptor with its messages."""
        return self._stdout.fileno()

    def __enter__(self) -> Capturer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Ask it to end; what it has captured still comes."""
        with suppress(BrokenPipeError, ValueError):
            os.write(self._stdin.fileno(), b".")  # a copy of this process may hold the pipe open

    def close(self) -> int:
        """End it now, if it has not ended; its exit status."""
        self.stop()
        with suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()
        try:
            return self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(PermissionError):  # it may still be root, and this process not any more
                self._process.kill()
            return self._process.wait()

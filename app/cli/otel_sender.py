"""The program that sends spans of a running capture, beside the one that analyses.

In: on standard input messages (`analyser/capture/message_pipe.py`) with rows of exchanges as Arrow streams; the name of
the service and the URL as arguments. Out: spans to the endpoint, errors on standard error, and at the end one line of
JSON: how many were sent, how many lost. The analysis asks copies of its process and so has no second thread.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, NamedTuple, cast

import pyarrow as pa

from wirewitness.analyser.capture.message_pipe import HEAD, PACKETS, Outlet

PROGRAM = "from wirewitness.app.cli.otel_sender import main; main()"
# What the SDK and Arrow import when they first send and convert.
_LIBRARIES = ("requests", "netrc", "pyarrow.compute", "encodings.idna", "traceback", "unicodedata")
# Rows that the pipe does not take at once.
_MOST_BYTES = 64 << 20


class Sent(NamedTuple):
    """Spans that the endpoint took, and those that it did not."""

    sent: int
    lost: int


class SenderProgram:
    """The running program."""

    def __init__(self, service_name: str, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, service_name, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # Ctrl-C is for this process, which ends the other
            env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path)},
        )
        self._stdin = cast(IO[bytes], self._process.stdin)
        self._outlet = Outlet(self._stdin.fileno(), _MOST_BYTES)

    def take(self, rows: list[pa.RecordBatch]) -> None:
        """Send them some time; they are lost when too much waits, or when the program has ended."""
        with suppress(BrokenPipeError):
            self._outlet.flush()
            for batch in rows:
                with pa.BufferOutputStream() as stream:
                    with pa.ipc.new_stream(stream, batch.schema) as writer:
                        writer.write_batch(batch)
                    self._outlet.send(PACKETS, stream.getvalue().to_pybytes(), batch.num_rows)

    def close(self) -> Sent:
        """Wait until all is sent, or until the endpoint fails once more: then what still waits is lost. RuntimeError
        when the program breaks."""
        with suppress(BrokenPipeError):
            self._outlet.finish()
        with suppress(BrokenPipeError):
            self._stdin.close()
        told = cast(IO[bytes], self._process.stdout).read()
        if self._process.wait() or not told:
            raise RuntimeError(f"the program that sends spans ended with status {self._process.returncode}")
        sent, lost = json.loads(told)
        return Sent(sent, lost + self._outlet.dropped)

    def kill(self) -> None:
        """End it, whatever it is doing; nothing where it has ended."""
        with suppress(PermissionError):  # it may be root's, and this process not any more; it ends with its input
            self._process.kill()
        self._process.wait()


def main() -> None:
    """Take rows until standard input ends, and send what is left; without rights, since rows are a stranger's."""
    from wirewitness.analyser.capture.program import Imports
    from wirewitness.app.cli.otel_live import Sender
    from wirewitness.reports.base.otel.export import confined
    from wirewitness.reports.base.otel.spans import resource

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    service_name, url = sys.argv[1:]
    source = resource(service_name)
    confined(Imports(("wirewitness.reports.base.otel", "wirewitness.reports.base.formats"), _LIBRARIES))
    sender = Sender(source, url)
    for rows in _messages(sys.stdin.buffer):
        sender.take(rows)
    sender.close()
    sys.stdout.write(json.dumps([sender.sent, sender.lost]))


def _messages(source: IO[bytes]) -> Iterator[list[pa.RecordBatch]]:
    while len(head := source.read(HEAD.size)) == HEAD.size:
        _, length = HEAD.unpack(head)
        body: Any = source.read(length)
        if len(body) < length:
            return
        with pa.ipc.open_stream(body) as reader:
            yield list(reader)

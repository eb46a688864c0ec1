"""A real S3 server on this machine: versitygw, an S3 front of a folder, built from its Go module.

In: a directory. Out: its address, and what programs need in their environment to use it.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.lab.go_toolchain import go_command
from tests.lab.places import WORK_DIR
from tests.lab.processes import Process, run, wait_until
from tests.lab.spark_cluster import free_port

_MODULE = "github.com/versity/versitygw/cmd/versitygw"
_VERSION = "v1.8.0"
ADDRESS = "127.0.0.1"
KEY_ID, SECRET = "labKeyId7Qx2", "labSecret9Zr4"


class S3Server(NamedTuple):
    """port: where it listens. buckets: a folder with a folder for each bucket."""

    port: int
    buckets: Path

    def environment(self, port: int = 0) -> dict[str, str]:
        """What the tools of S3 read. port: of a front before it."""
        return {
            "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{ADDRESS}:{port or self.port}", "NO_PROXY": ADDRESS, "no_proxy": ADDRESS,
        }  # fmt: skip


@contextlib.contextmanager
def s3_server(directory: Path) -> Iterator[S3Server]:
    """The server, empty but for one bucket, `captures`."""
    buckets = directory / "buckets"
    (buckets / "captures").mkdir(parents=True)
    (directory / "metadata").mkdir()
    port = free_port()
    command = [
        str(_program()),
        "--quiet",
        "--keep-alive",
        "--port",
        f"{ADDRESS}:{port}",
        "posix",
        "--sidecar",
        str(directory / "metadata"),
        str(buckets),
    ]
    process = Process("versitygw", command, directory, {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": SECRET})
    try:
        wait_until(lambda: answers(port, process), "the S3 server answers", 30)
        yield S3Server(port, buckets)
    finally:
        process.kill()


def _program() -> Path:
    folder = WORK_DIR / "go-bin" / _VERSION
    if not (folder / "versitygw").exists():
        run([go_command(), "install", f"{_MODULE}@{_VERSION}"], env={**os.environ, "GOBIN": str(folder)})
    return folder / "versitygw"


def answers(port: int, process: Process) -> bool:
    """Does the process listen on its port?"""
    process.check_alive("it answers")
    with contextlib.suppress(OSError):
        socket.create_connection((ADDRESS, port), 1).close()
        return True
    return False

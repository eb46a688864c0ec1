"""A standalone Spark cluster on loopback: one master, worker processes of one core each.

In: a folder for logs and work. Out: the master's URL and the processes, which may be killed; all are gone when the
block ends. The workers do not have this source tree on their module path: what runs there came in the zip.
"""

from __future__ import annotations

import contextlib
import shlex
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab.processes import Process, wait_until
from wirewitness.analyser.archive.spark.java import find_java, write_launcher

ADDRESS = "127.0.0.1"
WORKER_MEMORY = "1200m"
_START_S = 180


class Cluster(NamedTuple):
    """A running cluster."""

    url: str
    master: Process
    workers: tuple[Process, ...]


class Start(NamedTuple):
    """How a worker is started. address: where it listens; Spark takes those of one address for one machine, and reads
    their shuffle files from the disk. before: words before its command."""

    address: str = ADDRESS
    before: Sequence[str] = ()


@contextlib.contextmanager
def spark_cluster(folder: Path, starts: Sequence[Start] = (Start(), Start())) -> Iterator[Cluster]:
    """Hold a master and these workers."""
    import pyspark

    home = Path(pyspark.__file__).parent
    write_launcher(find_java(), folder / "java")
    environment = {
        "JAVA_HOME": str(folder / "java"), "SPARK_LOCAL_IP": ADDRESS, "SPARK_HOME": str(home), "PYTHONPATH": "",
        "SPARK_LOCAL_DIRS": str(folder / "local"), "SPARK_NO_DAEMONIZE": "1",
    }  # fmt: skip
    port = free_port()
    url = f"spark://{ADDRESS}:{port}"
    running: list[Process] = []

    def start(name: str, *words: str, how: Start = Start()) -> Process:  # noqa: B008  a value
        command = [*how.before, str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{words[0]}", *words[1:]]
        running.append(Process(name, command, folder, environment))
        return running[-1]

    try:
        master = start("master", "master.Master", "--host", ADDRESS, "--port", str(port), "--webui-port", "0")
        wait_until(lambda: _answers(port, master), "the master answers", _START_S)
        started = tuple(
            start(f"worker-{number}", "worker.Worker", "--host", how.address, "--webui-port", "0", "--cores", "1",
                  "--memory", WORKER_MEMORY, "--work-dir", str(folder / f"work-{number}"), url, how=how)
            for number, how in enumerate(starts)
        )  # fmt: skip
        yield Cluster(url, master, started)
    finally:
        for process in running:
            process.stop()


def apart(places: Sequence[Path], hidden: Path) -> list[Start]:
    """Starts of workers as on machines of their own: each has an address and one of these folders for its temporary
    files, and sees neither those of the others nor what is in `hidden`."""
    found = []
    for number, place in enumerate(places):
        place.mkdir()
        unseen = [hidden, *(other for other in places if other != place)]
        mounts = " && ".join(f"mount -t tmpfs none {shlex.quote(str(folder))}" for folder in unseen)
        address = f"127.0.0.{number + 2}"
        own = [f"TMPDIR={place}", f"SPARK_LOCAL_DIRS={place}", f"SPARK_LOCAL_IP={address}"]
        before = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", "env", *own]
        found.append(Start(address, before))
    return found


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server((ADDRESS, 0)) as probe:
        return int(probe.getsockname()[1])


def executors_of(folder: Path, number: int) -> list[Path]:
    """Folders of the executors that a worker has started."""
    return sorted((folder / f"work-{number}").glob("app-*/*"))


def _answers(port: int, master: Process) -> bool:
    master.check_alive("it answers")
    with contextlib.suppress(OSError):
        socket.create_connection((ADDRESS, port), 1).close()
        return True
    return False

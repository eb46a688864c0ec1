"""A real Apache Kafka broker: fetched by Maven, formatted, started on a lab host, stopped.

In: a host and a directory. Out: a running single-node KRaft broker and its request log.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import NamedTuple

from tests.lab.net import Host
from tests.lab.processes import LabError, Process, run, wait_until

LAB_DIR = Path(__file__).parent
WORK_DIR = LAB_DIR / ".work"
POM = LAB_DIR / "broker" / "pom.xml"
LIBRARIES = WORK_DIR / "broker-libs"
PORT = 9092
# Fixed, so that samples that are made again differ only where a run must differ.
CLUSTER_ID = "d2lyZXdpdG5lc3MtbGFiMQ"
START_S = 60


class Broker(NamedTuple):
    """A running broker."""

    endpoint: str
    request_log: Path


def version() -> str:
    """Return the pinned Kafka version of the pom."""
    found = re.search(r"<kafka.version>([^<]+)<", POM.read_text())
    if found is None:
        raise LabError(f"no kafka.version in {POM}")
    return found.group(1)


def fetch() -> None:
    """Let Maven copy the broker and what it needs to LIBRARIES, unless this pom's jars are there already."""
    stamp = LIBRARIES / "pom.stamp"
    if stamp.exists() and stamp.read_text() == POM.read_text():
        return
    run(["mvn", "-B", "-q", "-f", str(POM), "dependency:copy-dependencies",
         f"-DoutputDirectory={LIBRARIES}", "-DincludeScope=runtime"])  # fmt: skip
    stamp.write_text(POM.read_text())


def java(main_class: str, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    """Return the command that runs a main class of the broker's jars."""
    return ["java", "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *options,
            "-cp", f"{LIBRARIES}/*", main_class, *words]  # fmt: skip


def write_config(host: Host, run_dir: Path) -> Path:
    """Fill the templates of broker/ for this run and return the path of server.properties."""
    values = {"address": host.address, "port": str(PORT), "run_dir": str(run_dir)}
    for name in ("server.properties", "log4j2.yaml"):
        template = Template((POM.parent / name).read_text())
        (run_dir / name).write_text(template.substitute(values))
    return run_dir / "server.properties"


@contextlib.contextmanager
def running(host: Host, run_dir: Path) -> Iterator[Broker]:
    """Hold a fresh broker on HOST; its data, logs and request log are in RUN_DIR."""
    fetch()
    config = write_config(host, run_dir)
    run(java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)))
    options = (f"-Dlog4j2.configurationFile={run_dir / 'log4j2.yaml'}",)
    process = Process("broker", host.command(*java("kafka.Kafka", str(config), options=options)), run_dir)
    server_log = run_dir / "server.log"
    try:

        def ready() -> bool:
            process.check_alive("the broker was ready")
            return server_log.exists() and "Kafka Server started" in server_log.read_text(errors="replace")

        wait_until(ready, f"the broker is ready, see {server_log}", START_S)
        yield Broker(f"{host.address}:{PORT}", run_dir / "requests.log")
        process.stop(timeout_s=30)
    finally:
        process.stop(timeout_s=5)

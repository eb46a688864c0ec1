"""Real HDFS on this machine: a name node and two data nodes of Apache Hadoop, fetched by Maven.

In: a directory. Out: its address, and what programs need in their environment to use it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import NamedTuple

from tests.lab.kafka import copy_jars, java
from tests.lab.places import LAB_DIR, WORK_DIR
from tests.lab.processes import Process, run, wait_until
from tests.lab.spark_cluster import free_port

_FILES = LAB_DIR / "hdfs_nodes"
_LIBRARIES = WORK_DIR / "hdfs-libs"
_NODES = "org.apache.hadoop.hdfs.server"
ADDRESS = "127.0.0.1"
# Who may do all, and the name that programs give: nobody checks it without Kerberos.
OWNER = "lab"
_START_S = 90


class HdfsServer(NamedTuple):
    """port: where the name node listens."""

    port: int

    @property
    def address(self) -> str:
        """Of its root, without a slash behind it."""
        return f"hdfs://{ADDRESS}:{self.port}"

    def environment(self, user: str = OWNER) -> dict[str, str]:
        """What clients of HDFS read."""
        return {"HADOOP_USER_NAME": user}


@contextlib.contextmanager
def hdfs_server(directory: Path) -> Iterator[HdfsServer]:
    """The nodes, with nothing in them."""
    copy_jars(_FILES / "pom.xml", _LIBRARIES)
    port = free_port()
    site = Template((_FILES / "site.xml").read_text()).substitute(address=ADDRESS, port=port, directory=directory)
    for name in ("core-site.xml", "hdfs-site.xml"):
        (directory / name).write_text(site)
    (directory / "log4j.properties").write_text((_FILES / "log4j.properties").read_text())
    for name in ("hdfs", "datanode", "static"):  # pages that the jars have not, and nobody asks for
        (directory / "webapps" / name).mkdir(parents=True)
    environment = {"HADOOP_USER_NAME": OWNER}
    name_node = _command(directory, "namenode.NameNode")
    run([*name_node, "-format", "-nonInteractive"], env={"HADOOP_USER_NAME": OWNER, **os.environ})
    running: list[Process] = []
    try:
        running.append(Process("namenode", name_node, directory, environment))
        for number in range(2):
            folder = f"-Ddfs.datanode.data.dir=file://{directory}/data-{number}"
            command = _command(directory, "datanode.DataNode", folder)
            running.append(Process(f"datanode-{number}", command, directory, environment))
        server = HdfsServer(port)
        wait_until(lambda: _writes(server, running), "HDFS takes a file", _START_S)
        yield server
    finally:
        for process in running:
            process.kill()


def _command(directory: Path, name: str, *words: str) -> list[str]:
    command = java(_LIBRARIES, f"{_NODES}.{name}")
    place = command.index("-cp") + 1
    command[place] = f"{directory}:{command[place]}"
    return [*command, *words]


def _writes(server: HdfsServer, running: list[Process]) -> bool:
    for process in running:
        process.check_alive("HDFS takes a file")
    from hdfs_native import Client, WriteOptions

    try:
        with Client(f"hdfs://{ADDRESS}:{server.port}").create("/probe", WriteOptions(overwrite=True)) as stream:
            stream.write(b"1")
    except Exception:
        return False
    return True

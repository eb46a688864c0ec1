"""Other brokers of MQTT, for incidents alone: Aedes (Node, 3.1.1), HiveMQ CE (Java) and Moquette (Java, 3.1.1).

In: a host, a directory and settings: Aedes' options as JSON, parts of HiveMQ's <mqtt> and other elements, lines of
moquette.conf. Out: a running broker. They log no packets: truths of incidents do not need that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab.clients import node
from tests.lab.kafka import copy_jars
from tests.lab.net import Host
from tests.lab.places import LAB_DIR, WORK_DIR
from tests.lab.processes import Process, wait_until

PORT = 1883
START_S = 60
STARTED = "Server started"  # what Moquette prints
SOURCES = LAB_DIR / "mqtt_servers"
HIVE_CONFIG = """\
<?xml version="1.0"?>
<hivemq>
  <listeners><tcp-listener><port>{port}</port><bind-address>0.0.0.0</bind-address></tcp-listener></listeners>
  <anonymous-usage-statistics><enabled>false</enabled></anonymous-usage-statistics>
  {more}
</hivemq>
"""
MOQUETTE_CONFIG = """\
port {port}
host 0.0.0.0
allow_anonymous true
persistence_enabled false
telemetry_enabled false
{more}
"""
JAVA = ("java", "-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
OPENED = ("java.base/java.lang", "java.base/java.nio", "java.base/sun.nio.ch", "java.base/jdk.internal.misc",
          "jdk.management/com.sun.management.internal", "java.base/sun.security.provider")  # fmt: skip


class Broker(NamedTuple):
    """A broker that runs."""

    host: Host
    process: Process


class Other(NamedTuple):
    """What an incident wants of its broker."""

    kind: str
    settings: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Fetch the broker."""
        if self.kind == "aedes":
            node.fetched("node_aedes")
        else:
            copy_jars(SOURCES / f"{self.kind}.xml", WORK_DIR / self.kind)

    def command(self, directory: Path) -> list[str]:
        """Write the configuration and return the command that serves with it."""
        self.prepare()
        more = "\n".join(self.settings)
        if self.kind == "aedes":
            return ["node", str(node.fetched("node_aedes") / "server.mjs"), str(PORT), more or "{}"]
        jars = str(WORK_DIR / self.kind / "*")
        if self.kind == "hivemq":
            (directory / "config.xml").write_text(HIVE_CONFIG.format(port=PORT, more=more))
            opened = [f"--add-opens={one}=ALL-UNNAMED" for one in OPENED]
            return [*JAVA, *opened, "-cp", jars, str(SOURCES / "Hive.java"), str(directory)]
        (directory / "config").mkdir()
        (directory / "config" / "moquette.conf").write_text(MOQUETTE_CONFIG.format(port=PORT, more=more))
        return [*JAVA, f"-Dmoquette.path={directory}", "-cp", jars, "io.moquette.broker.Server"]

    @contextlib.contextmanager
    def running(self, hosts: Sequence[Host], directory: Path) -> Iterator[Broker]:
        """Hold a fresh broker; its files are in DIRECTORY."""
        process = Process(self.kind, hosts[0].command(*self.command(directory)), directory)
        try:
            if self.kind == "moquette":
                wait_until(lambda: STARTED in process.stdout_path.read_text(), "Moquette is ready", START_S)
            else:
                process.wait_for_event("running", timeout_s=START_S)
            yield Broker(hosts[0], process)
            process.check_alive("the clients had left")
        finally:
            process.stop()

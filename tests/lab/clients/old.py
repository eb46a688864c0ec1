"""Client programs with libraries of their own: those of past years, and Kafka Streams.

In: versions. Out: commands that run them. Nothing of them is installed into this project's environment.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.lab import clients, kafka
from tests.lab.places import WORK_DIR
from tests.lab.processes import run

JARS_POM = clients.CLIENTS_DIR / "jars" / "pom.xml"
JAVA_SOURCE = clients.CLIENTS_DIR / "java_old" / "OldClient.java"
STREAMS_SOURCE = clients.CLIENTS_DIR / "java_streams" / "StreamsApp.java"
KAFKA_PYTHON = "2.0.2"


def jars(artifact: str, version: str) -> Path:
    """Fetch one artifact of org.apache.kafka with what it needs and return the folder."""
    folder = WORK_DIR / f"{artifact}-{version}"
    kafka.copy_jars(JARS_POM, folder, f"-Dartifact={artifact}", f"-Dartifact.version={version}")
    return folder


def java_command(version: str, *words: str) -> list[str]:
    """Compile OldClient against a kafka-clients version, once, and return the command that runs it with WORDS."""
    libraries = f"{jars('kafka-clients', version)}/*"
    classes = WORK_DIR / f"java-old-classes-{version}"
    stamp = classes / "compiled"
    if not stamp.exists() or stamp.stat().st_mtime < JAVA_SOURCE.stat().st_mtime:
        run(["javac", "-d", str(classes), "-cp", libraries, str(JAVA_SOURCE)])
        stamp.touch()
    return ["java", "-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", f"{classes}:{libraries}", "OldClient", *words]  # fmt: skip


def streams_command(*words: str) -> list[str]:
    """Compile StreamsApp against Kafka Streams of the broker's version and return the command that runs it."""
    libraries = f"{jars('kafka-streams', kafka.version())}/*"
    classes = WORK_DIR / "java-streams-classes"
    stamp = classes / "compiled"
    if not stamp.exists() or stamp.stat().st_mtime < STREAMS_SOURCE.stat().st_mtime:
        run(["javac", "-Xlint:all", "-d", str(classes), "-cp", libraries, str(STREAMS_SOURCE)])
        stamp.touch()
    return ["java", "-Xms64m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", f"{classes}:{libraries}", "StreamsApp", *words]  # fmt: skip


def kafka_python() -> Path:
    """Fetch the old kafka-python and return its folder, for PYTHONPATH."""
    folder = WORK_DIR / f"kafka-python-{KAFKA_PYTHON}"
    if not (folder / "kafka").is_dir():
        run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps",
             "--target", str(folder), f"kafka-python=={KAFKA_PYTHON}"])  # fmt: skip
    return folder

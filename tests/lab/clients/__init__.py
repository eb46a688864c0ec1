"""Building the lab's client programs with their own tools.

In: nothing. Out: paths of the built programs, all under .work/.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

from tests.lab import broker
from tests.lab.processes import run

CLIENTS_DIR = Path(__file__).parent
BINARIES = broker.WORK_DIR / "bin"
JAVA_CLASSES = broker.WORK_DIR / "java-classes"
PYTHON_DIR = CLIENTS_DIR / "python"


def go_program(name: str) -> str:
    """Build clients/NAME (go build does nothing when it is up to date) and return the binary's path."""
    binary = BINARIES / name
    # CGO is not needed by any client, so no C compiler is either.
    env = {**os.environ, "CGO_ENABLED": "0"}
    run(["go", "build", "-trimpath", "-o", str(binary), "."], cwd=CLIENTS_DIR / name, env=env)
    return str(binary)


def java_command(*words: str) -> list[str]:
    """Compile clients/java if a source is newer than its classes and return the command that runs Lab with WORDS."""
    sources = sorted((CLIENTS_DIR / "java").glob("*.java"))
    stamp = JAVA_CLASSES / "compiled"
    libraries = f"{broker.LIBRARIES}/*"
    if not stamp.exists() or stamp.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        broker.fetch()
        run(["javac", "-Xlint:all", "-d", str(JAVA_CLASSES), "-cp", libraries, *map(str, sources)])
        stamp.touch()
    return ["java", "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", f"{JAVA_CLASSES}:{libraries}", "Lab", *words]  # fmt: skip


def python_command(script: str, *words: str) -> list[str]:
    """Return the command that runs clients/python/SCRIPT.py with WORDS in this interpreter's environment."""
    return [sys.executable, str(PYTHON_DIR / f"{script}.py"), *words]


def python_version(distribution: str) -> str:
    """Return the installed version of a Python client."""
    return importlib.metadata.version(distribution)

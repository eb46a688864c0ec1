"""Building the lab's client programs with their own tools.

In: nothing. Out: paths of the built programs, all under .work/.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
from pathlib import Path

from tests.lab import kafka
from tests.lab.go_toolchain import go_command
from tests.lab.places import WORK_DIR
from tests.lab.processes import LabError, run

CLIENTS_DIR = Path(__file__).parent
BINARIES = WORK_DIR / "bin"
JAVA_CLASSES = WORK_DIR / "java-classes"
CONSTRAINTS = Path(__file__).parents[3] / "constraints.txt"
PYTHON_DIR = CLIENTS_DIR / "python"


def go_program(name: str, folder: Path = CLIENTS_DIR) -> str:
    """Build the program NAME of FOLDER (go build does nothing when it is up to date) and return the binary's path."""
    binary = BINARIES / name
    # CGO is not needed by any client, so no C compiler is either.
    env = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    run([go_command(), "build", "-trimpath", "-o", str(binary), "."], cwd=folder / name, env=env)
    return str(binary)


def go_program_with(name: str, module: str, version: str) -> str:
    """Build the program NAME with another version of a module than its go.mod asks for; the binary's path."""
    folder = WORK_DIR / "go-variants"
    variant = f"{name}-{version}"
    shutil.copytree(CLIENTS_DIR / name, folder / variant, dirs_exist_ok=True)
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    run([go_command(), "get", f"{module}@{version}"], cwd=folder / variant, env=env)
    return go_program(variant, folder)


def java_command(*words: str) -> list[str]:
    """Compile clients/java if a source is newer than its classes and return the command that runs Lab with WORDS."""
    sources = sorted((CLIENTS_DIR / "java").glob("*.java"))
    stamp = JAVA_CLASSES / "compiled"
    libraries = f"{kafka.LIBRARIES}/*"
    if not stamp.exists() or stamp.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        kafka.fetch()
        run(["javac", "-Xlint:all", "-d", str(JAVA_CLASSES), "-cp", libraries, *map(str, sources)])
        stamp.touch()
    # The client's own errors would stand in the lines of standard output.
    return ["java", "-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF",
            "-cp", f"{JAVA_CLASSES}:{libraries}", "Lab", *words]  # fmt: skip


def python_command(script: str, *words: str) -> list[str]:
    """Return the command that runs clients/python/SCRIPT.py with WORDS in this interpreter's environment."""
    return [sys.executable, str(PYTHON_DIR / f"{script}.py"), *words]


def python_pin(distribution: str) -> str:
    """Return "NAME VERSION" of a Python client as constraints.txt pins it."""
    version = _found(rf"^{distribution}==(\S+)", CONSTRAINTS)
    return f"{distribution} {version}"


def go_pin(program: str, module: str, folder: Path = CLIENTS_DIR) -> str:
    """Return "NAME VERSION" of a Go module as its program's go.mod pins it."""
    version = _found(rf"{re.escape(module)} (v\S+)", folder / program / "go.mod")
    return f"{module.removeprefix('github.com/')} {version}"


def check_python_client(distribution: str) -> None:
    """Raise LabError unless the pinned version of a Python client is installed."""
    try:
        installed = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        installed = "none"
    if f"{distribution} {installed}" != python_pin(distribution):
        raise LabError(f"{python_pin(distribution)} is needed, installed is {installed} (make installs the extra lab)")


def _found(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text(), re.MULTILINE)
    if match is None:
        raise LabError(f"{path.name} has no line like {pattern}")
    return match.group(1)

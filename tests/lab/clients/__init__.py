"""Building the lab's client programs with their own tools.

In: nothing. Out: paths of the built programs, all under .work/.
"""

from __future__ import annotations

import os
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
    # -trimpath keeps this machine's folders out of the binary; CGO is not needed by any client.
    env = {**os.environ, "CGO_ENABLED": "0"}
    run(["go", "build", "-trimpath", "-o", str(binary), "."], cwd=CLIENTS_DIR / name, env=env)
    return str(binary)

"""The Go that builds the clients: the installed one, or the newer one that it fetches.

In: the `go` of the PATH. Out: the path of a Go that is new enough for the clients' go.mod files. Distributions often
bring an older Go. From 1.21 on Go fetches a newer toolchain itself, as a module; for an older one, or with
GOTOOLCHAIN=local, this does the same with `go mod download`, which checks the module against Go's checksum database.
"""

from __future__ import annotations

import functools
import json
import os
import re
import tempfile
from pathlib import Path

from tests.lab.processes import LabError, run

WANTED = (1, 26)  # what the go.mod files ask for
FETCHED = "1.26.8"


def version_of(go: str) -> tuple[int, int]:
    """Return major and minor version of a Go; LabError if it does not say."""
    words = run([go, "version"], env={**os.environ, "GOTOOLCHAIN": "local"})
    found = re.search(r"go(\d+)\.(\d+)", words)
    if found is None:
        raise LabError(f"no version in {words!r}")
    return int(found.group(1)), int(found.group(2))


@functools.cache
def go_command() -> str:
    """Return the Go to build with, fetching it on the first call if the installed one is too old."""
    return "go" if version_of("go") >= WANTED else fetch_toolchain()


def fetch_toolchain() -> str:
    """Let the installed Go download the toolchain FETCHED into its module cache and return that Go's path."""
    # Before 1.21 there is no GOTOOLCHAIN; from 1.21 on `local` keeps this very Go at work.
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"}
    platform = "-".join(run(["go", "env", "GOOS", "GOARCH"], env=env).split())
    module = f"golang.org/toolchain@v0.0.1-go{FETCHED}.{platform}"
    with tempfile.TemporaryDirectory() as empty:
        Path(empty, "go.mod").write_text("module empty\n")
        root = Path(json.loads(run(["go", "mod", "download", "-json", module], cwd=Path(empty), env=env))["Dir"])
    for program in [*(root / "bin").iterdir(), *(root / "pkg" / "tool").rglob("*")]:
        program.chmod(0o755)  # a module archive holds no modes
    return str(root / "bin" / "go")

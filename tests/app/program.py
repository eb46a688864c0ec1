"""Runs the real program in a process of its own, as a shell does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()"]


def environment(**changes: str) -> dict[str, str]:
    """The environment with the source tree importable and without settings that change the output."""
    kept = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "COLUMNS", "FORCE_COLOR"}}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm", **changes}


def run(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """Exit status, standard output and standard error of one run; neither is a terminal."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, env=environment(**env), cwd=cwd,
        timeout=120, check=False,
    )  # fmt: skip

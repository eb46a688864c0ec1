"""Runs the command line: in this process, which takes a tenth of the time, or in one of its own, as a shell does."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

# Some commands let pyarrow do without pandas for the rest of their process; it stays as it is where pandas is there.
import pandas  # noqa: F401
from click.testing import CliRunner

from tests.conftest import IMPORT_PATH
from wirewitness.app.cli.main import cli

COMMAND = [sys.executable, "-c", "from wirewitness.app.start import main; main()"]
_CHANGES_OUTPUT = ("NO_COLOR", "COLUMNS", "FORCE_COLOR")


def environment(**changes: str) -> dict[str, str]:
    """The environment with the source tree on the module path and without settings that change the output."""
    kept = {k: v for k, v in os.environ.items() if k not in _CHANGES_OUTPUT}
    return {**kept, "PYTHONPATH": IMPORT_PATH, "TERM": "xterm", **changes}


def run(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """Exit status, standard output and standard error of one run; neither is a terminal.

    The same command with the same ending of every exception; what belongs to a process (pipes, signals, encodings,
    imports) is tested with `run_process`.
    """
    words = [*map(str, arguments)]
    changes: dict[str, str | None] = {**dict.fromkeys(_CHANGES_OUTPUT), "TERM": "xterm", **env}
    with chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(cli, words, input=stdin, env=changes, catch_exceptions=False, prog_name="wirewitness")
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout_bytes, done.stderr_bytes)


def run_process(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """The same of the real program in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, env=environment(**env), cwd=cwd,
        timeout=120, check=False,
    )  # fmt: skip

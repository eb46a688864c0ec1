"""The system programs that the lab needs, and the Debian packages that hold them.

In: nothing (`python3 -m tests.lab.prerequisites`). Out: one line per missing program, exit status 1 if any is missing.
Standard library only: it runs before the virtual environment exists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

JAVA_MINIMUM = 17
GO_MINIMUM = (1, 26)


class Program(NamedTuple):
    """A program the lab runs and the apt package that brings it."""

    name: str
    apt_package: str


PROGRAMS = (
    Program("ip", "iproute2"),
    Program("ethtool", "ethtool"),
    Program("tcpdump", "tcpdump"),
    Program("editcap", "wireshark-common"),
    Program("tshark", "tshark"),
    Program("setpriv", "util-linux"),
    Program("java", "openjdk-17-jdk-headless"),
    Program("javac", "openjdk-17-jdk-headless"),
    Program("mvn", "maven"),
    Program("go", "golang-go"),
)
APT_PACKAGES = tuple(dict.fromkeys(program.apt_package for program in PROGRAMS))


def first_match(command: list[str], pattern: str) -> tuple[int, ...]:
    """Return the integers of PATTERN's groups in the command's output, empty if it does not run or match."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ()
    found = re.search(pattern, done.stdout + done.stderr)
    return tuple(int(group) for group in found.groups()) if found else ()


def find_missing() -> list[str]:
    """Return one sentence for each thing that is missing; empty when the lab can run."""
    missing = [
        f"{program.name}: not found, install the apt package {program.apt_package}"
        for program in PROGRAMS
        if shutil.which(program.name) is None
    ]
    java = first_match(["java", "-version"], r'version "(\d+)')
    if java and java[0] < JAVA_MINIMUM:
        missing.append(f"java: version {java[0]} found, {JAVA_MINIMUM} or newer needed (openjdk-17-jdk-headless)")
    go = first_match(["go", "env", "GOVERSION"], r"go(\d+)\.(\d+)")
    if go and go < GO_MINIMUM and first_match(["go", "env", "GOTOOLCHAIN"], r"(local)\b|$") != ():
        missing.append(
            f"go: version {go[0]}.{go[1]} found, {GO_MINIMUM[0]}.{GO_MINIMUM[1]} or newer needed (go.dev/dl)"
        )
    if os.geteuid() != 0:
        missing.append("root: network namespaces and captures need it, run as root")
    return missing


def main() -> int:
    """Print what is missing, give the exit status."""
    missing = find_missing()
    for line in missing:
        print(line)
    if missing:
        print("apt-get install " + " ".join(APT_PACKAGES))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

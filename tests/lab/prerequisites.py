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
NODE_MINIMUM = (20, 19)  # what the MongoDB driver asks for
GO_MINIMUM = (1, 19)  # old enough for the distributions; it fetches the Go that the clients need


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
    Program("mosquitto", "mosquitto"),
    Program("mosquitto_pub", "mosquitto-clients"),
    Program("node", "nodejs"),
    Program("npm", "npm"),
    Program("chromium", "chromium"),
)


def missing_packages() -> tuple[str, ...]:
    """Packages of the programs that are not there. Those of others stay out: some cannot be installed beside a Node or
    Java that came from elsewhere.
    """
    absent = (program.apt_package for program in PROGRAMS if shutil.which(program.name) is None)
    return tuple(dict.fromkeys(absent))


def output_of(command: list[str]) -> str:
    """Return what a command prints, empty if it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr


def java_problem() -> str | None:
    """Return a sentence if Java is there but too old."""
    found = re.search(r'version "(\d+)', output_of(["java", "-version"]))
    if found is None or int(found.group(1)) >= JAVA_MINIMUM:
        return None
    return (
        f"java: version {found.group(1)} found, {JAVA_MINIMUM} needed, install the apt package openjdk-17-jdk-headless"
    )


def go_problem() -> str | None:
    """Return a sentence if Go is there but too old to fetch the one that the clients need."""
    found = re.search(r"go(\d+)\.(\d+)", output_of(["go", "version"]))
    if found is None or (int(found.group(1)), int(found.group(2))) >= GO_MINIMUM:
        return None
    wanted = ".".join(map(str, GO_MINIMUM))
    return f"go: version {found.group(1)}.{found.group(2)} found, {wanted} needed, install it from https://go.dev/dl"


def node_problem() -> str | None:
    """Return a sentence if Node is there but too old."""
    found = re.search(r"v(\d+)\.(\d+)", output_of(["node", "--version"]))
    if found is None or (int(found.group(1)), int(found.group(2))) >= NODE_MINIMUM:
        return None
    wanted = ".".join(map(str, NODE_MINIMUM))
    return f"node: version {found.group(1)}.{found.group(2)} found, {wanted} needed, install it from https://nodejs.org"


def find_missing() -> list[str]:
    """Return one sentence for each thing that is missing; empty when the lab can run."""
    missing = [
        f"{program.name}: not found, install the apt package {program.apt_package}"
        for program in PROGRAMS
        if shutil.which(program.name) is None
    ]
    missing += [problem for problem in (java_problem(), go_problem(), node_problem()) if problem is not None]
    if os.geteuid() != 0:
        missing.append("root: network namespaces and captures need it, run as root")
    return missing


def main() -> int:
    """Print what is missing, give the exit status."""
    missing = find_missing()
    for line in missing:
        print(line)
    if missing_packages():
        print("apt-get install " + " ".join(missing_packages()))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

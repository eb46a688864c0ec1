"""Installs the programs that tests call, where apt and the rights are there; says what is missing otherwise.

In: `captors` (for `make test`), `browser` or `lab` (for the real servers) on the command line. Out: one line for each
thing that is missing in the end and what is skipped without it. Exit status 1 in CI when something is missing, else 0.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from tests.lab import prerequisites


def missing_captors() -> list[str]:
    """A sentence for each of tshark and tcpdump that is missing."""
    without = {
        "tshark": "the comparison with Wireshark is skipped without it",
        "tcpdump": "live capture with a filter is not tried without it",
    }
    return [
        f"{name}: not found, install the apt package {name}; {loss}"
        for name, loss in without.items()
        if not shutil.which(name)
    ]


def missing_browser() -> list[str]:
    """A sentence if the browser of the dashboard's tests is missing."""
    if shutil.which("chromium"):
        return []
    return ["chromium: not found, install the apt package chromium; the dashboard is not tried without it"]


# What is missing, in words; and the packages to install then.
NEEDS: dict[str, tuple[Callable[[], list[str]], Callable[[], tuple[str, ...]]]] = {
    "browser": (missing_browser, lambda: ("chromium",)),
    "captors": (missing_captors, lambda: ("tshark", "tcpdump")),
    "lab": (prerequisites.find_missing, prerequisites.missing_packages),
}


def apt_install(packages: tuple[str, ...]) -> None:
    """Install packages as root, or through sudo where it asks for no password; does nothing where neither works."""
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if not packages or shutil.which("apt-get") is None or (prefix and shutil.which("sudo") is None):
        return
    print("installing with apt: " + " ".join(packages), file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        done = subprocess.run(
            [*prefix, "apt-get", *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"apt-get {command[0]} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return


def main(arguments: list[str]) -> int:
    """See the module's docstring."""
    absent: list[str] = []
    for need in arguments:
        find, packages = NEEDS[need]
        if find():
            apt_install(packages())
        absent += find()
    for line in absent:
        print(line)
    return 1 if absent and os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

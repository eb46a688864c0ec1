"""The program in a folder that only its user may enter, as a clone in a home folder of mode 0700 is.

In: an empty folder. Out: a Python there with the program and what it needs; none of it is imported from elsewhere, but
for Python itself.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
import venv
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tests.support.imports import PACKAGE

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def private_program(folder: Path) -> Path:
    """The Python of a virtual environment in this folder, which gets mode 0700."""
    folder.chmod(0o700)
    venv.EnvBuilder(symlinks=True).create(folder / "venv")
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    package = ROOT / "src" / PACKAGE
    shutil.copytree(package, packages / PACKAGE, ignore=shutil.ignore_patterns("sample_pcaps"))  # with its bytecode
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name in _needed(project["dependencies"]):
        _link_files(name, packages)
    return folder / "venv" / "bin" / "python"


def _needed(requirements: Iterable[str]) -> set[str]:
    """Names of the packages required, and of those that they require, as far as they are installed."""
    found: set[str] = set()
    waiting = [*requirements]
    while waiting:
        name, _, condition = waiting.pop().partition(";")
        match = _NAME.match(name)
        if match is None or match[0] in found or "extra" in condition:
            continue
        try:
            waiting += distribution(match[0]).requires or []
        except PackageNotFoundError:  # for another system
            continue
        found.add(match[0])
    return found


def _link_files(name: str, packages: Path) -> None:
    """The files of an installed package: hard links where that is possible, for most of them are large."""
    for file in distribution(name).files or ():
        if ".." not in file.parts and "tests" not in file.parts:
            path = packages / file
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file.locate(), path)
            except OSError:
                shutil.copy2(file.locate(), path)

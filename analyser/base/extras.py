"""What to say where an optional part's packages are missing. In: the extra's name in pyproject.toml. Out: a command."""

from __future__ import annotations

import shlex
import sys


def how_to_install(extra: str) -> str:
    """The command that adds the extra's packages to the Python that runs, from a clone of the project."""
    python = shlex.quote(sys.executable or "python3")
    return f"in a clone of wirewitness run {python} -m pip install -e '.[{extra}]'"

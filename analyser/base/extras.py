"""What to say where an optional part's packages are missing. In: the extra's name in pyproject.toml, modules. Out: a
command, and whether it has to be said."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec


def how_to_install(extra: str) -> str:
    """The command that adds the extra's packages to the Python that runs, from a clone of the project."""
    python = shlex.quote(sys.executable or "python3")
    return f"in a clone of wirewitness run {python} -m pip install -e '.[{extra}]'"


def are_there(*modules: str) -> bool:
    """Can these modules of other packages be imported? None of them is."""
    try:
        return all(find_spec(module) is not None for module in modules)
    except ImportError:
        return False

"""The program's own files: read them all before a process drops its privileges.

A process without privileges may not be allowed into the folder in which the program is installed, such as a home
folder of mode 0700. In: what it may import later. Out: all of it is in memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

from wirewitness.analyser.capture.privileges import User, may

# What numpy imports when it is first used. `numpy.unique` needs numpy.ma.
NUMPY = ("numpy.ma", "numpy.rec", "numpy.char", "numpy.strings", "numpy.linalg", "numpy.random")


class Imports(NamedTuple):
    """What a process may import at any time; not all of it has to be installed. packages: with all modules in them,
    except those whose names begin with one of `without`. modules: single ones."""

    packages: tuple[str, ...]
    modules: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def readable(user: User | None, *imports: Imports) -> bool:
    """May this user, without any capability, read these modules and Python's own? user: None for the present one."""
    if sys.platform != "linux":
        return True  # nothing is dropped there
    files = [path for one in imports for path in _files((*one.packages, *one.modules))]
    return may(user, [*files, Path(os.__file__)], os.R_OK)


def import_all(*imports: Imports) -> None:
    """Import everything that is installed of it."""
    for one in imports:
        for name in (*_modules(one), *one.modules):
            with suppress(ImportError):
                import_module(name)


def _modules(imports: Imports) -> Iterator[str]:
    for name in imports.packages:
        with suppress(ImportError):
            for found in walk_packages(import_module(name).__path__, f"{name}."):
                if not found.name.startswith(imports.without):
                    yield found.name


def _files(names: tuple[str, ...]) -> Iterator[Path]:
    """Where these modules are, as far as they are installed."""
    for name in names:
        with suppress(ImportError):  # the package that the module belongs to is not installed
            spec = find_spec(name)
            if spec is not None and spec.has_location and spec.origin is not None:
                yield Path(spec.origin)

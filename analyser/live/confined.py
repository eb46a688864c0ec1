"""The decoding process of a live capture gives up its rights. In: where it goes on writing.
Out: a process without them.

Packets are a stranger's bytes, and who captures is often root. What needs rights, opening sockets and making folders,
is done before; the rest runs as the user who started it, or as nobody.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.analyser.capture.privileges import Fence, User, confine, invoking_user, may
from wirewitness.analyser.capture.program import NUMPY, Imports, import_all, readable
from wirewitness.dissectors.registry import read_all_files

_TEMPORARY = ("/tmp", "/var/tmp")
# What our modules and libraries import when they first use it; os.wait4 wants `resource`.
_IMPORTS = Imports(
    ("wirewitness.analyser", "wirewitness.dissectors", "wirewitness.reports"),
    (*NUMPY, "pandas.core.arrays.arrow._arrow_utils", "pyarrow.acero", "pyarrow.compute", "pyarrow.dataset",
     "pyarrow.parquet", "duckdb", "crc32c", "encodings.idna", "encodings.ascii", "encodings.latin_1", "fractions",
     "difflib", "textwrap", "traceback", "resource", "linecache", "unicodedata", "stringprep", "calendar", "_strptime",
     "locale", "inspect", "zoneinfo"),
    ("wirewitness.analyser.archive", "wirewitness.reports.report.tshark", "wirewitness.reports.base.otel"),
)  # fmt: skip


class Confinement:
    """Everything temporary of this process lies in one folder from now on; `begin` gives up the rights."""

    def __init__(self) -> None:
        place = _in_reach_of(invoking_user())
        self._beside = [Path(place)]
        self._own = TemporaryFolder("live", place)
        self._folder = Path(self._own.name)
        tempfile.tempdir = self._own.name
        atexit.register(self._own.cleanup)

    def begin(self, shown_with: Imports, shared: int | None = None, beside: Sequence[Path] = ()) -> bool:
        """Give up every right; True where the kernel fences files too. shown_with: what shows the analysis imports.
        shared: descriptor of a folder to write to. beside: further folders of which empty ones may be removed."""
        user = invoking_user()
        own = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        write = [own, *([shared] if shared is not None else [])]
        if user is not None:
            for folder in write:
                _hand_over(folder, user)
        if not readable(user, _IMPORTS, shown_with):
            load_program(shown_with)
        fenced = confine(user, Fence(write, [*self._beside, *beside]))
        os.close(own)
        return fenced


def _in_reach_of(user: User | None) -> str:
    """The folder for temporary files, or another one where that is root's own."""
    usual = tempfile.gettempdir()
    places = (place for place in (usual, *_TEMPORARY) if user is None or may(user, [Path(place)], os.X_OK))
    return next(places, usual)


def _hand_over(folder: int, user: User) -> None:
    """Give a folder and all that is in it to somebody."""
    for _, folders, files, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in (*folders, *files):
            os.chown(name, user.uid, user.gid, dir_fd=here, follow_symlinks=False)
    os.fchown(folder, user.uid, user.gid)


def load_program(shown_with: Imports) -> None:
    """Read every file of the program that a live analysis may need."""
    import_all(_IMPORTS, shown_with)
    read_all_files()

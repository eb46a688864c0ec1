"""Captures in, tables and findings out.

import wirewitness
with wirewitness.read("incident.pcapng") as analysis:
    analysis.findings()
    analysis.table("exchanges")
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from wirewitness.analyser.base.options import Progress, ProgressCallback, ReadOptions
from wirewitness.analyser.capture.errors import CaptureError
from wirewitness.analyser.decoding.run.helpers import Helpers

if TYPE_CHECKING:
    from wirewitness.analyser.analysis.analysis import Analysis

__all__ = ["CaptureError", "Progress", "ProgressCallback", "ReadOptions", "read"]


def read(
    paths: str | Path | Iterable[str | Path],
    *,
    options: ReadOptions | None = None,
    tables: Iterable[str] | None = None,
    progress: ProgressCallback | None = None,
) -> Analysis:
    """Read captures to their ends and give their tables.

    paths: files (pcap, pcapng, also compressed), directories of captures, "-" for standard input, or one dataset (a
    directory made by `wirewitness archive`), of which only the rows asked for are read.
    tables: names of the tables needed, None for all; what they need themselves is added. Fewer tables are quicker.
    Raises CaptureError when no input could be read; inputs that could not be read beside others are in `unread`.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    options = options or ReadOptions()
    with Helpers(options.processes - 1) as helpers:
        from wirewitness.analyser.inputs import read_captures

        return read_captures(given, options, tables, progress, helpers)

"""The sample captures that come with the program. In: nothing. Out: name -> file, protocol, what it shows."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from wirewitness.analyser.base.package import PACKAGE_FOLDER

_FOLDER = PACKAGE_FOLDER / "sample_pcaps"


class Sample(NamedTuple):
    """One sample capture, made with real servers and clients."""

    path: Path
    protocol: str
    shows: str


@cache
def samples() -> dict[str, Sample]:
    """All samples by name; none where they were not installed, as in the code that is sent to workers of a cluster."""
    try:
        listed = tomllib.loads((_FOLDER / "MANIFEST.toml").read_text(encoding="utf-8"))["sample"]
    except (OSError, ValueError, KeyError):
        return {}
    found = {Path(one["file"]).stem: Sample(_FOLDER / one["file"], one["protocol"], one["shows"]) for one in listed}
    return {name: one for name, one in found.items() if one.path.exists()}

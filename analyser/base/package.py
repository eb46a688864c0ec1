"""Where the package `wirewitness` is on disk: the folder that its parts and its data files are in."""

from __future__ import annotations

from pathlib import Path

# Not resolved: in a checkout the parts are links from here to top-level folders.
PACKAGE_FOLDER = Path(__file__).parents[2]

"""Where a dataset is: how it is told from a capture, for whoever has to know no more than that.

In: paths. Out: whether there is a dataset.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from wirewitness.analyser.base.storage.folders import FolderPath, folder_at
from wirewitness.analyser.capture.errors import CaptureError

MANIFEST = "wirewitness.json"
STAGING = "_staging"
# What helps where a dataset cannot be read, and where its state cannot be gone on from.
REBUILD = "make it anew from its captures with `wirewitness archive --rebuild`."
ANEW = "make the dataset anew from its captures (archive --rebuild)"


class DatasetError(CaptureError):
    """A dataset that cannot be used; the text is one line for people."""


def is_dataset(path: str | FolderPath) -> bool:
    """Is there a dataset in that directory, or below that address? One whose first change did not come to its end is
    none.

    False where that cannot be seen: whoever reads it as a capture says why.
    """
    root = folder_at(path)
    with suppress(OSError):
        return (root / MANIFEST).is_file()
    return False


def one_dataset(paths: Iterable[str | Path]) -> str | Path | None:
    """The dataset among these inputs, None for captures. DatasetError for a dataset that is not the only input."""
    given = list(paths)
    for path in given:
        if is_dataset(path):
            if len(given) > 1:
                raise DatasetError(f"{path} is a dataset, which is read alone: no captures or datasets beside it.")
            return path
    return None

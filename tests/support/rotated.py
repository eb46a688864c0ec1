"""A capture cut into many files, as rotating capture programs leave them.

In: packets of a capture. Out: files whose names tell nothing of their order.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tests.support.packets import Captured, pcap


def rotated(
    packets: Sequence[Captured], folder: Path, files: int, *, seed: int = 1, packed: bool = False
) -> list[Path]:
    """So many files of about equal numbers of packets, in the order of time. packed: as gzip."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"rotated-{number:03d}.pcap{'.gz' if packed else ''}" for number in range(files)]
    random.Random(seed).shuffle(names)
    edges = [len(packets) * number // files for number in range(files + 1)]
    paths = []
    for name, (start, end) in zip(names, pairwise(edges), strict=True):
        content = pcap(list(packets[start:end]), nanoseconds=True)
        paths.append(folder / name)
        paths[-1].write_bytes(gzip.compress(content, 1) if packed else content)
    return paths

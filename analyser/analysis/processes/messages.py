"""What a process that runs rules is told, and what it tells in the end. All of it goes through pipes.

Rules have numbers in the order in which they are offered, those that look at the same rows in turns one for all of
them; whoever is free takes the next number (`queue.py`). So have shards of stages, other ones.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wirewitness.analyser.analysis.processes.shared_tables import Shown


@dataclass(frozen=True, slots=True)
class Begin:
    """What it is told first.

    folder: holds the files of tables, and its own ones while it runs. tables: a descriptor of the memory with tables.
    queue: a descriptor to take numbers of rules from, `first` one for those of shards, which go before; `telling` one
    to tell shards that are made. names: all tables that there are. temporary_bytes: what its queries may spill.
    """

    folder: Path
    tables: int
    queue: int
    first: int
    telling: int
    names: tuple[str, ...]
    temporary_bytes: int


class Offer(NamedTuple):
    """Tables are finished; these rules, which read nothing else, have the next numbers. codes: of each number."""

    tables: tuple[Shown, ...]
    codes: tuple[tuple[str, ...], ...]


# Of a shard: its number, and whether it is made.
SHARD_MADE = struct.Struct("=H?")


class Shards(NamedTuple):
    """So many shards of a stage have the numbers from `first` on.

    work: see `maker_of`. tables: all that it reads, as they are now; held: those of them that it gets as rows, too.
    """

    work: str
    tables: tuple[Shown, ...]
    held: tuple[str, ...]
    first: int
    shards: int


def file_of_shard(folder: Path, number: int) -> Path:
    """Where a process leaves the rows of a shard that it made."""
    return folder / f"made-{number}.arrow"


class Looked(NamedTuple):
    """What a rule gave: rows of findings, and failures as `failure_data` makes them.

    lacks_memory: its rows did not fit into the memory of this process.
    """

    rows: list[dict[str, Any]]
    failures: list[bytes]
    lacks_memory: bool = False


@dataclass(frozen=True, slots=True)
class LookedAt:
    """All that a process tells: what rules gave by their codes; the trace of its failure, should it have failed."""

    found: Mapping[str, Looked]
    failure: str = ""

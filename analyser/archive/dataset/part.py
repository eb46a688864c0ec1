"""One Parquet file of a dataset, and the place to which its rows belong, as its path tells it."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

import numpy as np

# Rows of connections that were captured at a second point; later packets can tell that they were not.
HIDDEN = "_hidden"
NULL = "__HIVE_DEFAULT_PARTITION__"
# Ends of the names of parts, and of those that the next run makes anew.
_SUFFIX, _PROVISIONAL = ".parquet", ".open.parquet"
_HOUR = re.compile(r"\d{4}-\d\d-\d\dT\d\d", re.ASCII)


class Part(NamedTuple):
    """One Parquet file of a table. path: relative to the dataset, with `/`.

    provisional: its rows belong to what was open when the run ended; the next run drops the part and makes it anew.
    """

    table: str
    path: str
    rows: int
    bytes: int
    provisional: bool

    def is_hidden(self) -> bool:
        """Whether its rows count only when it turns out that nothing else tells the same."""
        return self.path.startswith(f"{HIDDEN}/")

    @staticmethod
    def name_of(name: str, number: int, *, provisional: bool) -> str:
        """The name of the file of a part. name: unique among those of its place, but for the number."""
        return f"part-{name}-{number:04d}{_PROVISIONAL if provisional else _SUFFIX}"

    @staticmethod
    def is_name_of_provisional(path: str) -> bool:
        """Whether a file by this name holds rows that the next run makes anew."""
        return path.endswith(_PROVISIONAL)


class Place(NamedTuple):
    """Where rows of a table belong. hour: hours since 1970 in UTC of its first time column; None for no time."""

    protocol: str | None
    hour: int | None

    def folder(self) -> str:
        """`protocol=P/day=D/hour=H` as Hive writes it."""
        day, hour = NULL, NULL
        if self.hour is not None:
            day, hour = str(np.datetime64(self.hour, "h")).split("T")
        protocol = NULL if self.protocol is None else quote(self.protocol, safe="")
        return f"protocol={protocol}/day={day}/hour={hour}"

    @classmethod
    def of(cls, part: Part) -> Place:
        """The place that a part's path tells. ValueError for a path that `write_parts` did not make."""
        protocol, day, hour = (piece.partition("=")[2] for piece in part.path.split("/")[-4:-1])
        hours = None
        if NULL not in (day, hour):
            if _HOUR.fullmatch(f"{day}T{hour}") is None:
                raise ValueError(f"no hour: {day!r:.20} {hour!r:.20}")
            hours = int(np.datetime64(f"{day}T{hour}", "h").astype(np.int64))
        return cls(None if protocol == NULL else unquote(protocol), hours)


def is_inside(path: str) -> bool:
    """Does a path that a dataset names stay in it? Somebody else may have written it."""
    pieces = path.split("/")
    return not path.startswith("/") and ".." not in pieces and "" not in pieces and "\0" not in path

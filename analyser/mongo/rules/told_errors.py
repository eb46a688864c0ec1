"""The errors that answers of MongoDB tell: of the command, of single writes, of the write concern.

In: commands as rows. Out: errors, each with its group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from wirewitness.analyser.engine.rules.frame_rows import Row
from wirewitness.analyser.mongo.rules.errors import (
    EVERYDAY,
    OTHER,
    PROBES,
    WRITE_CONCERN,
    Group,
    group_of,
    needs_nobody,
)

# CommandNotFound, Unauthorized: a standalone server that has no replica set (76) answers a monitor as it should.
_REFUSES_PROBES = (59, 13)


class Error(NamedTuple):
    """One error that an answer tells. what: command, write or write concern."""

    what: str
    code: int | None
    name: str | None
    group: Group
    row: Row


def never_answered(rows: Iterable[Row], use: Callable[[], list[Row]], least: int) -> set[str]:
    """Questions about the server that it refuses each time, so that whoever asks has nothing of them."""
    refused = Counter(row["command"] for row in rows if row["error_code"] in _REFUSES_PROBES)
    often = {name for name, count in refused.items() if name in PROBES and count >= least}
    return often - {row["command"] for row in use() if row["succeeded"]} if often else often


def errors_in(rows: Iterable[Row], also: Collection[str]) -> Iterator[Error]:
    """The errors that these commands were answered with. also: questions about the server that are told as well."""
    for row in rows:
        codes = row["write_error_codes"]
        writes = [] if codes is None else [int(code) for code in codes]
        names = (row["write_error_names"] or "").split(",")
        of_writes = bool(writes or row["write_errors"])
        concern = row["write_concern_error_code"]
        of_command = row["status"] == "error" and not (row["ok"] and (of_writes or concern is not None))
        is_told = row["command"] in also or not needs_nobody(row["command"], row["error_code"])
        if of_command and is_told:
            yield Error("command", row["error_code"], row["error_name"], group_of(row["error_code"]), row)
        for place, code in enumerate(writes):
            yield Error("write", code, names[place] if place < len(names) else None, group_of(code), row)
        if of_writes and not writes:
            yield Error("write", None, None, OTHER, row)
        if concern is not None:
            yield Error("write concern", concern, row["write_concern_error_name"], _of_concern(concern), row)


def _of_concern(code: int) -> Group:
    """A write concern fails as its own, or because the member changed its role."""
    group = group_of(code)
    return WRITE_CONCERN if group in (OTHER, EVERYDAY) else group

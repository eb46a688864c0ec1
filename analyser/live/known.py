"""Findings of one window after the other, each told once. In: the findings of a window. Out: what is new in them.

A window that moves on sees the same condition with other first packets. Findings of one rule and subject are the same
one when they have an id in common or their times overlap; what follows later, with nothing between, is another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Row = Mapping[str, Any]
What = Literal["new", "confirmed", "withdrawn"]

MOST_KNOWN = 10_000


class News(NamedTuple):
    """What became of a finding: it is new, it is provisional no longer, or later packets have overturned it."""

    what: What
    finding: Row


@dataclass(slots=True)
class _Known:
    """A finding that was told. finding_id: the one it was told under; row: as the last window gave it."""

    finding_id: str
    row: dict[str, Any]
    ids: set[str] = field(default_factory=set)
    withdrawn: bool = False


class KnownFindings:
    """What was found since the start. Rows are those of the table `findings`, times in ns."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], list[_Known]] = {}
        self.dropped = 0
        self._count = 0

    def rows(self) -> list[dict[str, Any]]:
        """All that hold, with the ids that they were told under."""
        held = [known for group in self._of.values() for known in group if not known.withdrawn]
        return [{**known.row, "finding_id": known.finding_id} for known in held]

    def take(self, found: Sequence[Row], cut_ns: int | None) -> list[News]:
        """Compare with the findings of another window. cut_ns: nothing from before this time is in it."""
        news: list[News] = []
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in found:
            groups.setdefault((row["code"], row["subject"]), []).append(row)
        seen: set[int] = set()
        for key, rows in groups.items():
            news += self._group(self._of.setdefault(key, []), rows, seen)
        news += self._overturned(seen, cut_ns)
        self._forget()
        return news

    def _group(self, known: list[_Known], rows: Iterable[Row], seen: set[int]) -> Iterable[News]:
        left = []
        for row in rows:
            same = next((one for one in known if row["finding_id"] in one.ids), None)
            if same is None:
                left.append(row)
            else:
                yield from _again(same, row, seen)
        for row in left:
            same = next((one for one in known if id(one) not in seen and _overlap(one.row, row)), None)
            if same is None:
                fresh = _Known(row["finding_id"], dict(row), {row["finding_id"]})
                known.append(fresh)
                self._count += 1
                seen.add(id(fresh))
                yield News("new", fresh.row)
            else:
                yield from _again(same, row, seen)

    def _overturned(self, seen: set[int], cut_ns: int | None) -> Iterable[News]:
        """Provisional findings whose packets are all in the window, which does not give them any more."""
        for group in self._of.values():
            for known in group:
                first_ns = known.row["ts_first"]
                inside = cut_ns is None or (first_ns is not None and first_ns > cut_ns)
                if id(known) not in seen and known.row["provisional"] and inside and not known.withdrawn:
                    known.withdrawn = True
                    yield News("withdrawn", {**known.row, "finding_id": known.finding_id})

    def _forget(self) -> None:
        """Where there are too many, all of the rules and subjects that were told first."""
        while self._count > MOST_KNOWN:
            key = next(iter(self._of))
            group = self._of.pop(key)
            self._count -= len(group)
            self.dropped += len(group)


def _again(known: _Known, row: Row, seen: set[int]) -> Iterable[News]:
    """A known finding in another window."""
    was_provisional, was_withdrawn = known.row["provisional"], known.withdrawn
    first_ns = min((ns for ns in (known.row["ts_first"], row["ts_first"]) if ns is not None), default=None)
    last_ns = max((ns for ns in (known.row["ts_last"], row["ts_last"]) if ns is not None), default=None)
    provisional = row["provisional"] and was_provisional
    known.row = {**row, "ts_first": first_ns, "ts_last": last_ns, "provisional": provisional}
    known.ids = {known.finding_id, row["finding_id"]}
    known.withdrawn = False
    seen.add(id(known))
    told = {**known.row, "finding_id": known.finding_id}
    if was_withdrawn:
        yield News("new", told)
    elif was_provisional and not provisional:
        yield News("confirmed", told)


def _overlap(one: Row, other: Row) -> bool:
    if one["ts_first"] is None or other["ts_first"] is None:
        return True
    return bool(one["ts_first"] <= other["ts_last"] and other["ts_first"] <= one["ts_last"])

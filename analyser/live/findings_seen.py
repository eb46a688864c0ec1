"""Findings of one window after the other, each told once. In: the findings of a window. Out: what is new in them.

A window that moves on sees the same condition with other first packets. Findings of one rule and subject are the same
one when they have an id in common or their times overlap; what follows later, with nothing between, is another. Windows
may be of several sizes, and a large one may be answered after a small one that was asked later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

_EVER = 1 << 62

Row = Mapping[str, Any]
What = Literal["new", "confirmed", "withdrawn"]

MOST_KNOWN = 10_000
# What no window has given for so long is in none any more.
_GONE_AFTER_NS = 1200 * 1_000_000_000


class News(NamedTuple):
    """What became of a finding: it is new, it is provisional no longer, or later packets have overturned it."""

    what: What
    finding: Row


@dataclass(slots=True)
class _Known:
    """A finding that was told. finding_id: the one it was told under; row: as the newest window gave it, which reaches
    to until_ns."""

    finding_id: str
    row: dict[str, Any]
    until_ns: int
    ids: set[str] = field(default_factory=set)
    withdrawn: bool = False


class KnownFindings:
    """What was found since the start. Rows are those of the table `findings`, times in ns.

    is_full: there were too many that windows still give; others were not told. forgotten: findings that were told and
    are not known any more.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._of: dict[tuple[str, str], list[_Known]] = {}
        self._most = most
        self._count = 0
        self.forgotten = 0
        self.is_full = False

    def rows(self) -> list[dict[str, Any]]:
        """All that hold, with the ids that they were told under."""
        held = [known for group in self._of.values() for known in group if not known.withdrawn]
        return [{**known.row, "finding_id": known.finding_id} for known in held]

    def take(
        self, found: Sequence[Row], cut_ns: int | None, until_ns: int | None = None, *, is_near: bool = False
    ) -> list[News]:
        """Compare with the findings of another window. cut_ns: nothing from before this time or of it is in it;
        until_ns: nor from after this time. None: it is not bounded there. is_near: larger windows are looked at too,
        so these tell whether a condition that was known before goes on or has come back."""
        until_ns = _EVER if until_ns is None else until_ns
        self._forget(until_ns)
        news: list[News] = []
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in found:
            groups.setdefault((row["code"], row["subject"]), []).append(row)
        seen: set[int] = set()
        for key, rows in groups.items():
            known = self._of.setdefault(key, [])
            news += self._group(known, rows, seen, until_ns, tells_others=not (is_near and known))
        news += self._overturned(seen, groups, cut_ns, until_ns)
        return news

    def _group(
        self, known: list[_Known], rows: Iterable[Row], seen: set[int], until_ns: int, *, tells_others: bool
    ) -> Iterable[News]:
        left = []
        for row in rows:
            same = next((one for one in known if row["finding_id"] in one.ids), None)
            if same is None:
                left.append(row)
            else:
                yield from _again(same, row, seen, until_ns)
        for row in left:
            same = next((one for one in known if id(one) not in seen and _overlap(one.row, row)), None)
            if same is not None:
                yield from _again(same, row, seen, until_ns)
            elif tells_others and self._count >= self._most:
                self.is_full = True
            elif tells_others:
                fresh = _Known(row["finding_id"], dict(row), until_ns, {row["finding_id"]})
                known.append(fresh)
                self._count += 1
                seen.add(id(fresh))
                yield News("new", fresh.row)

    def _overturned(
        self, seen: set[int], found: Mapping[tuple[str, str], Sequence[Row]], cut_ns: int | None, until_ns: int
    ) -> Iterable[News]:
        """Findings that the window would give if they still held."""
        for key, group in self._of.items():
            for known in group:
                if id(known) in seen or known.withdrawn or not _might_fall(known, cut_ns, until_ns):
                    continue
                if not any(_overlap(known.row, row) for row in found.get(key, ())):  # else it is part of that one
                    known.withdrawn, known.until_ns = True, until_ns
                    yield News("withdrawn", {**known.row, "finding_id": known.finding_id})

    def _forget(self, until_ns: int) -> None:
        """Where there are too many: those that windows have not given for long."""
        if self._count < self._most:
            return
        for key, group in list(self._of.items()):
            left = [known for known in group if known.until_ns >= until_ns - _GONE_AFTER_NS]
            self._of[key] = left
            self._count -= len(group) - len(left)
            self.forgotten += len(group) - len(left)
            if not left:
                del self._of[key]


def _might_fall(known: _Known, cut_ns: int | None, until_ns: int) -> bool:
    """The window was asked no earlier than one that gave the finding, and has all packets so far, or those of a
    provisional one: what stands else may rest on packets before its first."""
    first_ns = known.row["ts_first"]
    inside = first_ns is not None and cut_ns is not None and first_ns > cut_ns and known.row["provisional"]
    return (cut_ns is None or bool(inside)) and known.until_ns <= until_ns


def _again(known: _Known, row: Row, seen: set[int], until_ns: int) -> Iterable[News]:
    """A known finding in another window."""
    seen.add(id(known))
    known.ids = {known.finding_id, known.row["finding_id"], row["finding_id"]}
    if until_ns < known.until_ns:  # packets that this window lacks have told more
        return
    known.until_ns = until_ns
    was_provisional, was_withdrawn = known.row["provisional"], known.withdrawn
    first_ns = min((ns for ns in (known.row["ts_first"], row["ts_first"]) if ns is not None), default=None)
    last_ns = max((ns for ns in (known.row["ts_last"], row["ts_last"]) if ns is not None), default=None)
    provisional = row["provisional"] and was_provisional
    known.row = {**row, "ts_first": first_ns, "ts_last": last_ns, "provisional": provisional}
    known.withdrawn = False
    told = {**known.row, "finding_id": known.finding_id}
    if was_withdrawn:
        yield News("new", told)
    elif was_provisional and not provisional:
        yield News("confirmed", told)


def _overlap(one: Row, other: Row) -> bool:
    if one["ts_first"] is None or other["ts_first"] is None:
        return True
    return bool(one["ts_first"] <= other["ts_last"] and other["ts_first"] <= one["ts_last"])

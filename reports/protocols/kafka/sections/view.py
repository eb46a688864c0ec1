"""A view of Kafka for people. In: rows and the columns to show; out: aligned tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from wirewitness.analyser.base import times
from wirewitness.reports.base.formats.document import Block, Cells, Heading, Paragraph, alike_without_empty
from wirewitness.reports.base.formats.values import ms_text, time_text
from wirewitness.reports.base.questions.columns import Column
from wirewitness.reports.base.sections.column_widths import room_of
from wirewitness.reports.protocols.kafka.questions.view import KafkaView


def view_blocks(
    rows: Sequence[Mapping[str, Any]], view: KafkaView, nothing: str, stand: Sequence[Mapping[str, Any]] = ()
) -> list[Block]:
    """The rows under their headings, without columns that are empty in all. nothing: said instead of no rows.

    Where rows are of several clusters, these are told apart: what is in them may have the same names. stand: rows of
    the view of states, for a line under the heading of each group; groups without other rows have this line alone.
    """
    if not rows and not stand:
        return [Paragraph(nothing)]
    text, names = view.heading
    shown = view.shown
    if _CLUSTER not in shown and len({row.get(_CLUSTER.name) for row in (*rows, *stand)}) > 1:
        if names:
            text, names = f"{text}, cluster {{}}", (*names, _CLUSTER.name)
        else:
            shown = (*shown, _CLUSTER)
    lines = {tuple(row[name] for name in names): state_line(row) for row in stand}
    found = {key: list(group) for key, group in groupby(rows, key=lambda row: tuple(row[name] for name in names))}
    tables = dict(zip(found, alike_without_empty([_cells(some, shown) for some in found.values()]), strict=True))
    blocks: list[Block] = []
    for key in (*found, *(one for one in lines if one not in found)):
        if names:
            blocks.append(Heading(text.format(*("?" if value is None else value for value in key))))
        if key in lines:
            blocks.append(Paragraph(lines[key]))
        if key in tables:
            blocks.append(tables[key])
    return blocks


def state_line(row: Mapping[str, Any], since: str = "") -> str:
    """How a group stands, in a line. row: of the view of states. since: the time in other words than the exact ones."""
    state = f"{row['state']} since {since or _time(row['ts_since'])}" if row["state"] else "State not known"
    kind = {"consumer": "KIP-848 consumer group", "classic": f"classic {row['protocol_type'] or ''} group"}
    members = row["members"]
    told = (
        None if members is None else "1 member" if members == 1 else f"{members:,} members",
        " ".join(kind.get(row["type"], f"{row['type']} group").split()) if row["type"] else None,
        f"assignor {row['assignor']}" if row["assignor"] else None,
        None if row["generation"] is None else
        f"{'generation' if row['type'] == 'classic' else 'epoch'} {row['generation']}",
        f"leader {row['leader_id']}" if row["leader_id"] else None,
        f"coordinator {row['coordinator']}" if row["coordinator"] else None,
    )  # fmt: skip
    return ", ".join([state, *(text for text in told if text)]) + "."


def _cells(rows: Sequence[Mapping[str, Any]], shown: Sequence[Column]) -> Cells:
    return Cells(
        tuple(column.capitals for column in shown),
        tuple(tuple(_WRITTEN[column.kind](row[column.name]) for column in shown) for row in rows),
        numbers=tuple(i for i, column in enumerate(shown) if column.kind in _NUMBERS),
        wrapped=tuple(i for i, column in enumerate(shown) if column.name in _WORDS),
        **room_of(shown),
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else str(value)


def _known(value: Any) -> str:
    return _text(value) or "-"


def _span(value: float | None) -> str:
    return "" if value is None else times.ms_text(value)


def _offset(value: int | None) -> str:
    return "-" if value is None else str(value)


def _count(value: int | None) -> str:
    return f"{value:,}" if value else ""


def _time(value: Any) -> str:
    """A time of pandas or Unix ns."""
    return "" if value is None else time_text(value if isinstance(value, int) else value.value)


_WRITTEN: Mapping[str, Callable[[Any], str]] = {
    "text": _text,
    "known": _known,
    "span": _span,
    "flag": _text,
    "figure": _text,
    "plain": _text,
    "offset": _offset,
    "count": _count,
    "bytes": _count,
    "ms": ms_text,
    "time": _time,
}
_NUMBERS = ("figure", "plain", "offset", "count", "bytes", "ms", "span")
_CLUSTER = Column("cluster_id", "Cluster")
_WORDS = ("topics", "assignment", "set_off_by", "waited_for_whom")

"""The screen of `wirewitness live`. In: a session, what happened lately, the terminal's size; out: what rich draws.

Text from the wire is made visible and never read as markup. A part takes what room it needs, as long as the others have
theirs; in a narrow terminal the less important columns stay out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.table import Table
from rich.text import Text

from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.printable import shortened, visible
from wirewitness.reports.base.formats.words import size

if TYPE_CHECKING:
    from wirewitness.analyser.live.feed import CaptureState
    from wirewitness.analyser.live.findings_seen import News
    from wirewitness.analyser.live.pipeline import LivePipeline
    from wirewitness.analyser.live.rates import OperationRate
    from wirewitness.analyser.live.session import Session
    from wirewitness.reports.protocols.kafka.questions.groups import Group, PartitionState

WIDE = 100
_LEAST_ROWS = 3
_TONES = {"critical": "bold red", "warning": "bold yellow", "info": "cyan"}
_EVENT_MARKS = {"new": "", "confirmed": "confirmed ", "withdrawn": "withdrawn "}


def screen(
    session: Session, title: str, news: Sequence[News], lines: Sequence[str], width: int, height: int
) -> RenderableType:
    """Everything, for a terminal of this size. news, lines: the newest last."""
    operations = [
        rate for rate in session.pipeline.rates.operations()
        if not session.pipeline.shown_protocols or rate.protocol in session.pipeline.shown_protocols
    ]  # fmt: skip
    partitions = committed(session.view or [])
    head = [*_head(session, title, width), *(Text(visible(line), style="yellow") for line in lines)]
    room = max(height - sum(_height(line, width) for line in head) - 1, 3 * _LEAST_ROWS)
    findings = _findings(news, width)
    shares = share_rows([len(operations) + 2, len(partitions) + 2 if partitions else 0, len(findings) + 1], room)
    parts: list[RenderableType] = [*head, _operations(operations[: max(shares[0] - 2, 0)], width)]
    if partitions:
        parts.append(_committers(partitions[: max(shares[1] - 2, 0)], width))
    parts += [Text(""), *findings[: max(shares[2] - 1, 0)]]
    return Lines(*parts)


def share_rows(wanted: Sequence[int], room: int) -> list[int]:
    """How many rows each part gets: all it wants, or an equal share of what those that want less leave."""
    shares = [0] * len(wanted)
    left, waiting = room, sorted(range(len(wanted)), key=lambda place: wanted[place])
    for number, place in enumerate(waiting):
        shares[place] = min(wanted[place], left // (len(waiting) - number))
        left -= shares[place]
    return shares


def committed(groups: Sequence[Group]) -> list[tuple[Group, PartitionState]]:
    """Partitions of all groups: those with several committers first, then by lag."""
    rows = [(group, state) for group in groups for state in group.partitions]
    return sorted(rows, key=lambda row: (-row[1].committers, -(row[1].lag or 0), row[0].group_id or ""))


def _head(session: Session, title: str, width: int) -> list[Text]:
    state, pipeline = session.state, session.pipeline
    seconds = int(time.monotonic() - session.began_s)
    clock = f"{seconds // 3600:d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    ending = "  ending: Ctrl-C again leaves the backlog out" if session.stopping else ""
    first = Text(f"{visible(title)}  {clock}  {_amount(pipeline)}{ending}", style="bold")
    told = _losses(state)
    found = len(session.findings.rows())
    second = Text("  ".join([*told, count(found, "finding"), "Ctrl-C: report"]), style="dim")
    if state.kernel_drops or state.backlog_drops:
        second.stylize("bold red", 0, len("  ".join(told)))
    written = [Text(f"writing {visible(shortened(state.file, width - 8))}", style="dim")] if state.file else []
    return [first, second, *written]


def _amount(pipeline: LivePipeline) -> str:
    return count(pipeline.packets, "packet") if pipeline.lines is None else count(pipeline.lines, "line")


def _losses(state: CaptureState) -> list[str]:
    if state.packets is None:
        return []
    drops = f"dropped {state.kernel_drops or 0:,} by the kernel, {state.backlog_drops or 0:,} by us"
    return [drops, f"backlog {size(state.backlog_bytes or 0)}"]


def _operations(rates: Sequence[OperationRate], width: int) -> Table:
    wide = width >= WIDE
    table = _table()
    table.add_column("PROTOCOL" if wide else "")
    table.add_column("OPERATION", no_wrap=True, overflow="ellipsis", max_width=40 if wide else 18)
    names = ("PER S", "TOTAL", "ERRORS", "NO RESPONSE", "MEDIAN MS", "P95 MS", "MAX MS")
    for name in names if wide else ("PER S", "TOTAL", "ERR", "MS", "P95"):
        table.add_column(name, justify="right", no_wrap=True)
    for rate in rates:
        errors = Text(f"{rate.errors:,}" if rate.errors else "", style="red")
        open_ = f"{rate.unanswered:,}" if rate.unanswered else ""
        times = [_ms(rate.median_ms), _ms(rate.p95_ms), _ms(rate.max_ms)]
        total = f"{rate.exchanges:,}" if wide else _short(rate.exchanges)
        cells: list[Any] = [rate.protocol, visible(rate.operation), f"{rate.per_second:,.1f}", total, errors]
        table.add_row(*(_plain(cell) for cell in [*cells, *([open_, *times] if wide else times[:2])]))
    if not rates:
        table.add_row("", Text("no exchange yet", style="dim"))
    return table


def _committers(rows: Sequence[tuple[Group, PartitionState]], width: int) -> Table:
    wide = width >= WIDE
    table = _table()
    names = ("TOPIC-PARTITION", "COMMITTED", "LOG END", "COMMITTERS", "LAST COMMIT BY") if wide else (
        "PARTITION", "OFFSET", "", "BY", "LAST BY")  # fmt: skip
    name_width = width // (4 if wide else 5)
    for name in ("GROUP", names[0]):
        table.add_column(name, no_wrap=True, min_width=min(name_width, 12))
    for name in (*names[1:3], "LAG", names[3]):
        if name:
            table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    table.add_column(names[4], no_wrap=True, overflow="ellipsis", ratio=1)
    for group, state in rows:
        several = Text(str(state.committers), style="bold yellow" if state.committers > 1 else "")
        number = f"-{state.partition}"
        where = shortened(visible(state.topic or "?"), name_width - len(number)) + number
        offsets = [_number(state.committed_offset), _number(state.log_end_offset), _number(state.lag)]
        by = " ".join(filter(None, (state.client_id, f"@{state.client_address}" if state.client_address else None)))
        shown = offsets if wide else [offsets[0], offsets[2]]
        cells: list[Any] = [shortened(visible(group.group_id or "?"), name_width), where, *shown, several, by]
        table.add_row(*(_plain(cell) for cell in cells))
    return table


def _findings(news: Sequence[News], width: int) -> list[Text]:
    """Lines of the newest findings, the newest first."""
    found: list[Text] = []
    for item in reversed(news):
        row = item.finding
        text = Text(no_wrap=False)
        text.append(f"{row['severity']} {row['code']} ", style=_TONES[row["severity"]])
        maybe = "provisional: " if row["provisional"] and item.what != "withdrawn" else ""
        text.append(_EVENT_MARKS[item.what] + maybe, style="dim")
        text.append(visible(row["sentence"]), style="dim strike" if item.what == "withdrawn" else "")
        found += _wrapped(text, width, 2 if width >= WIDE else 3)
    return found


def _wrapped(text: Text, width: int, most: int) -> list[Text]:
    """Lines of a text, at most so many; words are cut only where a line cannot hold them."""
    lines = list(text.wrap(Console(width=width), width - 1))
    if len(lines) > most:
        lines[most - 1].rstrip()
        lines[most - 1].append("…")
    return lines[:most]


def _height(text: Text, width: int) -> int:
    return max(1, -(-len(text.plain) // width))


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim", expand=False, padding=(0, 2, 0, 0))


def _plain(cell: Any) -> Text:
    return cell if isinstance(cell, Text) else Text(visible(str(cell)))


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _short(value: int) -> str:
    for unit, scale in (("G", 10**9), ("M", 10**6), ("k", 10**4)):
        if value >= scale:
            return f"{value / (1000 if unit == 'k' else scale):.{0 if unit == 'k' else 1}f}{unit}"
    return f"{value:,}"


def _ms(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

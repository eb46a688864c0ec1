"""Operations and clients of a report. In: their values; out: sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wirewitness.analyser.base.words import count
from wirewitness.reports.base.formats.document import Block, Cells, Paragraph, Section, with_columns, without_empty
from wirewitness.reports.base.formats.values import ms_text
from wirewitness.reports.base.questions.operations import Client, Operation

_ROWS_SHOWN = 30
_ERRORS_SHOWN = 12


def operation_section(operations: Sequence[Operation]) -> Section:
    """Requests per operation with their errors and latencies."""
    table = tuple(
        (
            o.protocol or "",
            o.operation or "not decoded",
            f"{o.exchanges:,}",
            f"{o.errors:,}" if o.errors else "",
            f"{o.unanswered:,}" if o.unanswered else "",
            ms_text(o.median_ms),
            ms_text(o.p99_ms),
            ms_text(o.max_ms),
        )
        for o in operations[:_ROWS_SHOWN]
    )
    header = ("PROTOCOL", "OPERATION", "COUNT", "ERRORS", "NO RESPONSE", "MEDIAN MS", "P99 MS", "MAX MS")
    blocks: list[Block] = [without_empty(Cells(header, table, numbers=(2, 3, 4, 5, 6, 7)))]
    blocks.extend(more(len(operations) - _ROWS_SHOWN, "operation", "exchanges"))
    blocks.extend(
        Paragraph(f"{o.operation}: {_counted(o.error_names)}", "errors")
        for o in operations[:_ROWS_SHOWN]
        if o.error_names
    )
    waiting = [o.operation or "not decoded" for o in operations[:_ROWS_SHOWN] if o.waiting]
    if waiting:
        text = "long polls, for data, members or news, are not in these latencies."
        blocks.append(Paragraph(f"{', '.join(waiting)}: {text}"))
    return Section("OPERATIONS", tuple(blocks))


def _counted(names: Mapping[str, int]) -> str:
    shown = [f"{name} {number:,}" for name, number in list(names.items())[:_ERRORS_SHOWN]]
    more = [f"{len(names) - _ERRORS_SHOWN} more names"] if len(names) > _ERRORS_SHOWN else []
    return ", ".join(shown + more)


def client_section(clients: Sequence[Client], total: int) -> Section:
    """Who sent requests: the busiest of `total` clients."""
    table = tuple(
        (
            c.client_address or "?",
            c.client_id or "(none)",
            c.owner or "",
            c.protocol or "",
            f"{c.flows:,}",
            f"{c.exchanges:,}",
            f"{c.errors:,}" if c.errors else "",
        )
        for c in clients
    )
    header = ("ADDRESS", "CLIENT ID", "OWNER", "PROTOCOL", "FLOWS", "REQUESTS", "ERRORS")
    shown = [place for place, name in enumerate(header) if name != "OWNER" or any(row[place] for row in table)]
    cells = Cells(header, table, numbers=(4, 5, 6), shortened=(1,), wrapped=(2,))
    blocks: list[Block] = [with_columns(cells, shown)]
    blocks.extend(more(total - len(clients), "client", "exchanges"))
    return Section("CLIENTS", tuple(blocks))


def more(number: int, what: str, table: str) -> list[Block]:
    """How much is not shown, and where it is."""
    if number <= 0:
        return []
    text = f"and {count(number, f'more {what}')}; all rows: wirewitness table {table} CAPTURE..."
    return [Paragraph(text, tone="quiet")]

"""Who wrote a partition, side by side: the committers that a finding names, as a table of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from wirewitness.reports.base.formats.document import Cells, with_columns
from wirewitness.reports.base.questions.causes import Finding

_HEADER = ("ADDRESS", "CLIENT ID", "OWNER", "MEMBER ID", "GENERATION", "CONNECTION", "OFFSETS", "COMMITS")
_OWNER = 2


@dataclass(frozen=True, slots=True)
class Connection:
    """Ports and addresses of a flow."""

    client: str
    server: str


def committer_table(finding: Finding, connections: Mapping[str, Connection], most: int) -> Cells:
    """The two (or more) who wrote the partition, side by side; of request logs with lines in place of packets.

    most: so many of them are shown.
    """
    header = (*_HEADER, "PACKETS", "LINES")
    shown = finding.committers[:most]
    table = tuple((*_committer(one, connections), _first_to_last(finding.lines_of(one))) for one in shown)
    packets, lines = (any(row[place] for row in table) for place in (-2, -1))
    owners = any(row[_OWNER] for row in table)
    places = [place for place in range(len(header) - 2) if place != _OWNER or owners]
    places += [*([-2] if packets or not lines else []), *([-1] if lines else [])]
    return with_columns(Cells(header, table, numbers=(4, 7), shortened=(3,)), [place % len(header) for place in places])


def _committer(committer: Mapping[str, Any], connections: Mapping[str, Connection]) -> tuple[str, ...]:
    flow = str(committer.get("flow_id") or "")
    connection = connections.get(flow)
    packets = (committer.get("first_packet"), committer.get("last_packet"))
    return (
        plain(committer.get("address")),
        plain(committer.get("client_id")) or "(none)",
        owner_of(committer),
        plain(committer.get("member_id")) or "(none)",
        plain(committer.get("generation")),
        f"{connection.client} > {connection.server} flow {flow}" if connection else flow,
        _offsets(committer.get("offsets")),
        plain(committer.get("commits")),
        " to ".join(dict.fromkeys(str(p) for p in packets if p is not None)),
    )


def owner_of(client: Mapping[str, Any]) -> str:
    """`pod payments-7d4f, java (4711)` of a client in a finding's numbers; empty where nobody says."""
    pod, host, process = (client.get(name) for name in ("pod", "host", "process"))
    place = f"pod {pod}" if pod else f"host {host}" if host else ""
    return ", ".join(part for part in (place, plain(process)) if part)


def _first_to_last(lines: Sequence[tuple[str, int]]) -> str:
    """`request.log 12 to 80`, or where a rotated one follows `request.log.1 12 to request.log 3`."""
    if not lines:
        return ""
    (file, first), (last_file, last) = lines[0], lines[-1]
    until = [] if lines[0] == lines[-1] else [str(last) if file == last_file else f"{PurePath(last_file).name} {last}"]
    return " to ".join([f"{PurePath(file).name} {first}", *until])


def plain(value: Any) -> str:
    """Its text; nothing for None."""
    return "" if value is None else str(value)


def _offsets(value: Any) -> str:
    """`1200`, `7000 to 7900`, or with the last one where that is not the highest: `500 to 1010, last 500`."""
    numbers = [v for v in value if isinstance(v, int)] if isinstance(value, list) else []
    if not numbers:
        return plain(value)
    low, high, last = min(numbers), max(numbers), numbers[-1]
    if low == high:
        return str(low)
    return f"{low} to {high}" if last == high else f"{low} to {high}, last {last}"

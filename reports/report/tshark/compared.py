"""What a protocol tells so that its messages can be compared with tshark's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from wirewitness.reports.report.tshark.case import Limit
from wirewitness.reports.report.tshark.message import Ours, Theirs
from wirewitness.reports.report.tshark.trees import Packet, Pairs

Row = Mapping[str, Any]


def _never(_: Ours) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Compared:
    """One protocol.

    name: ours. layer: tshark's name of it. read: a tree of that layer -> the message, None when it is none.
    tables: own ones that are read. subqueries: what `joins` need (`name as (select ...)`). columns: those of `joins`,
    by names that no other protocol has. joins: to the messages m, their exchange as request r and as response a.
    values: a row of ours -> the values that tshark shows too.
    by_operation: what numbers a message is only unique beside its operation.
    request_is_packet: the value `request` of a response is the packet of its request, not its number.
    hidden: regular expression of tshark's fields that hold keys, values, documents, payloads or credentials.
    limits: why the two sides may differ in this protocol; the first that applies is the reason.
    needs_start: only the beginning of the connection tells how to read such a message.
    """

    name: str
    layer: str
    read: Callable[[Packet, Pairs], Theirs | None]
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    joins: str
    values: Callable[[Row], dict[str, Any]]
    hidden: str
    limits: tuple[Limit, ...]
    subqueries: tuple[str, ...] = ()
    by_operation: bool = False
    request_is_packet: bool = False
    needs_start: Callable[[Ours], bool] = _never

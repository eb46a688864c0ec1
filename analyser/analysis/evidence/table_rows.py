"""Looking up messages where the tables are at hand: they answer instead of an index, and nothing is decoded for it.

In: something that answers SELECTs over flows, messages and exchanges. Out: a `MessageSource`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from wirewitness.analyser.analysis.evidence.index import flow_row
from wirewitness.analyser.analysis.evidence.rows import FlowRow, MessageId, MessageRow, UnknownId, parse_message_id
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.base.words import printable
from wirewitness.analyser.tables.queries import QueryError, UnreadableRows, literal
from wirewitness.dissectors.core.model import PACKET_BITS, packet_of, split_packet

_DIRECTIONS = ("client_to_server", "server_to_client")
_FLOW_COLUMNS = (
    "flow_id, protocol, client_address, client_port, server_address, server_port, encapsulation, client_first_seq, "
    "server_first_seq, carrier, encrypted, file, first_packet, epoch_ns(ts_first) AS first_ns, "
    "epoch_ns(ts_last) AS last_ns"
)
_MESSAGE_COLUMNS = (
    "flow_id, file, packet_first, packet_last, line, epoch_ns(ts) AS ts_ns, direction, role, operation, version, "
    "stream_offset, message_id, length_bytes, complete, error"
)
# Somebody else may have written the rows. Numbers that cannot be lead to other files or take all memory.
_MOST = {
    **dict.fromkeys(("first_packet", "packet_first", "packet_last", "line"), 1 << PACKET_BITS),
    **dict.fromkeys(("client_port", "server_port"), 1 << 16),
    "length_bytes": 1 << 31,
}
_TIMES = ("first_ns", "last_ns", "ts_ns")  # null for those without an end
# Clocks step, and answers come late.
_MARGIN_NS = 3_600_000_000_000
_MAX_NAME = 200


class Select(Protocol):
    """Asks for rows of a table. when: outside of these times none are wanted; leaving them out is not needed."""

    def __call__(self, columns: str, table: str, condition: str, when: ReadOptions) -> Sequence[Mapping[str, Any]]:
        """The rows as mappings."""
        ...


class CaptureTimes(NamedTuple):
    """A capture: its name in the tables, Unix ns of its first and last packet, how many it has."""

    name: str
    first_ns: int | None
    last_ns: int | None
    packets: int | None = None

    def may_have(self, packet: int) -> bool:
        """Whether it may have a packet of that number."""
        return self.packets is None or packet <= self.packets


class TableRows:
    """The tables as a `MessageSource`. Raises UnreadableRows for rows that no program of ours wrote."""

    def __init__(self, select: Select, files: Sequence[CaptureTimes]) -> None:
        """files: the captures by their numbers."""
        self._unchecked = select
        self._files = files
        self._numbers = {file.name: number for number, file in enumerate(files)}
        self._lasting: dict[str, tuple[int, int]] = {}

    def messages(self, flow: FlowRow, direction: int | None, offset: int | None) -> Iterator[MessageRow]:
        """Messages of a flow by time."""
        chosen = f"flow_id = {literal(flow.flow_id)}"
        if direction is not None:
            chosen += f" AND direction = {literal(_DIRECTIONS[direction])}"
        if offset is not None:
            chosen += f" AND {_begins(flow, direction, offset)}"
        before: dict[str, int] = {}
        for row in self._select(_MESSAGE_COLUMNS, "messages", f"{chosen} ORDER BY ts, stream_offset", self._life(flow)):
            if offset is not None:
                before[row["direction"]] = self._end_before(flow, row)
            message = self._message(flow, row, before.get(row["direction"], flow.key))
            before[row["direction"]] = message.packet_last
            yield message

    def completed_in(self, packet: int) -> Iterator[MessageRow]:
        """The messages whose last byte came in a packet."""
        file, number = split_packet(packet)
        name, first_ns, last_ns, _ = self._files[file]
        place = f"(packet_last = {number} OR line = {number})"
        chosen = f"file = {literal(name)} AND {place} ORDER BY ts, stream_offset, direction"
        when = ReadOptions() if first_ns is None or last_ns is None else _around(first_ns, last_ns)
        for row in self._select(_MESSAGE_COLUMNS, "messages", chosen, when):
            flow = self.flow(row["flow_id"])
            if flow is not None:
                yield self._message(flow, row, self._end_before(flow, row))

    def partner_offset(self, row: MessageRow) -> int | None:
        """Where the other message of its exchange begins."""
        own, other = ("request_message_id", "response_message_id")[:: -1 if row.direction else 1]
        chosen = f"{own} = {literal(row.message_id().text())} AND {other} IS NOT NULL"
        for found in self._select(other, "exchanges", chosen, self._life(row.flow)):
            with suppress(UnknownId):
                return parse_message_id(found[other]).offset
            raise UnreadableRows(f"rows of exchanges cannot be read: {other} is none")
        return None

    def flow(self, flow_id: str) -> FlowRow | None:
        """The flow of that id."""
        for row in self._select(_FLOW_COLUMNS, "flows", f"flow_id = {literal(flow_id)}", ReadOptions()):
            return self._flow(row)
        return None

    def flows(self) -> Iterator[FlowRow]:
        """All flows, by their first packets."""
        rows = self._select(_FLOW_COLUMNS, "flows", "true", ReadOptions())
        return iter(sorted(map(self._flow, rows), key=lambda flow: flow.key))

    def next_flow(self, flow: FlowRow) -> int | None:
        """The first packet of the next flow between the same ends."""
        ends = {"client": flow.client, "server": flow.server}
        if None in (*flow.client, *flow.server):
            return None
        same = [f"{side}_address = {literal(end[0])} AND {side}_port = {end[1]}" for side, end in ends.items()]
        same.append(f"coalesce(encapsulation, '') = {literal(flow.encapsulation)}")
        keys = [self._flow(row).key for row in self._select(_FLOW_COLUMNS, "flows", " AND ".join(same), ReadOptions())]
        return min((key for key in keys if key > flow.key), default=None)

    def _select(self, columns: str, table: str, condition: str, when: ReadOptions) -> Sequence[Mapping[str, Any]]:
        try:
            rows = self._unchecked(columns, table, condition, when)
        except QueryError as error:
            raise UnreadableRows(f"rows of {table} cannot be read: {error}") from error
        for row in rows:
            wrong = next((name for name, value in row.items() if not _can_be(name, value)), None)
            if wrong is None and row.get("line") is None:  # a line stands for packets
                wrong = next((name for name in ("packet_first", "packet_last") if row.get(name, 1) is None), None)
            if wrong is not None:
                raise UnreadableRows(f"rows of {table} cannot be read: no capture has such a {wrong}")
        return rows

    def _flow(self, row: Mapping[str, Any]) -> FlowRow:
        self._lasting[row["flow_id"]] = row["first_ns"], row["last_ns"]
        return flow_row(packet_of(self._number(row), row["first_packet"] or 0), row)

    def _number(self, row: Mapping[str, Any]) -> int:
        """Of the capture of a row. Raises UnreadableRows where it is none of these, as rows of others may name."""
        number = self._numbers.get(row["file"])
        if number is None:
            raise UnreadableRows(f"rows name a capture that is none of these: {printable(str(row['file']), _MAX_NAME)}")
        return number

    def _life(self, flow: FlowRow) -> ReadOptions:
        return _around(*self._lasting[flow.flow_id])

    def _end_before(self, flow: FlowRow, row: Mapping[str, Any]) -> int:
        """The last packet of the message before in its stream; the flow's first packet where there is none."""
        if row["file"] == self._files[split_packet(flow.key)[0]].name or row["line"] is not None:
            return flow.key  # there is one file only, or no packets
        chosen = (
            f"flow_id = {literal(flow.flow_id)} AND direction = {literal(row['direction'])} "
            f"AND stream_offset < {row['stream_offset']} ORDER BY stream_offset DESC LIMIT 1"
        )
        for found in self._select("file, packet_last", "messages", chosen, self._life(flow)):
            return packet_of(self._number(found), found["packet_last"])
        return flow.key

    def _first_packet(self, flow: FlowRow, row: Mapping[str, Any], before: int) -> int:
        """The packet with the first byte. The tables name the file of the last one only: the first comes behind the
        message before (packed packet `before`), in the earliest file that has a packet of its number there."""
        number, file = row["packet_first"], self._number(row)
        last = packet_of(file, row["packet_last"])
        files = range(split_packet(flow.key)[0], file + 1)
        places = [packet_of(one, number) for one in files if self._files[one].may_have(number)]
        possible = [place for place in places if flow.key <= place <= last]
        return next((place for place in possible if place >= before), (possible or places or [last])[-1])

    def _message(self, flow: FlowRow, row: Mapping[str, Any], before: int) -> MessageRow:
        file, line, offset = self._number(row), row["line"], row["stream_offset"]
        return MessageRow(
            flow,
            _DIRECTIONS.index(row["direction"]),
            parse_message_id(row["message_id"]).offset if offset is None else offset,
            row["length_bytes"],
            self._first_packet(flow, row, before) if line is None else packet_of(file, line),
            packet_of(file, row["packet_last"] if line is None else line),
            row["ts_ns"],
            row["role"],
            row["operation"],
            row["version"],
            row["complete"],
            row["error"],
        )


def _can_be(name: str, value: Any) -> bool:
    if name == "direction":
        return value in _DIRECTIONS
    if name in _TIMES:
        return value is not None
    return name not in _MOST or value is None or 0 <= value < _MOST[name]


def _begins(flow: FlowRow, direction: int | None, offset: int) -> str:
    """The condition that a message has this offset; one of a request log has it in its name alone."""
    ids = [MessageId(flow.flow_id, one, offset).text() for one in ((0, 1) if direction is None else (direction,))]
    named = ", ".join(literal(one) for one in ids)
    return f"(stream_offset = {offset} OR (stream_offset IS NULL AND message_id IN ({named})))"


def _around(first_ns: int, last_ns: int) -> ReadOptions:
    return ReadOptions(from_ns=first_ns - _MARGIN_NS, to_ns=last_ns + _MARGIN_NS)

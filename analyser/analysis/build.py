"""From raw rows to the registered tables.

In: raw Arrow batches (dissector fields and the first packet of the flow) and what is known of the flows now. Out:
Arrow batches with exactly the registered columns. Everything is done for whole columns; no row becomes a Python object
here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from wirewitness.analyser.analysis.covered import Spans, covered_until
from wirewitness.analyser.analysis.masking import masked_column
from wirewitness.analyser.analysis.responses import OF_ENDS, answer_due, late
from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.capture import CaptureStats
from wirewitness.analyser.decoding.rows.text_codes import in_text
from wirewitness.analyser.decoding.rows.timeorder import FLOW, NO_FLOW
from wirewitness.analyser.tables.coded import Coder
from wirewitness.analyser.tables.tables import TABLES, Column, arrow_schema
from wirewitness.analyser.tcp import waits
from wirewitness.dissectors.core.model import PACKET_BITS
from wirewitness.dissectors.core.protocol import Dissector

_DIRECTIONS = pa.array(["client_to_server", "server_to_client"])
_SIDES = pa.array(["c", "s"])
_OTHER_SIDES = pa.array(["s", "c"])
_NS_PER_MS = 1e6
_NUMBER = (1 << PACKET_BITS) - 1
MAX_ROWS = 1 << 16
MAX_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Lookups:
    """What is known when a table leaves the store.

    logs: indexes of files that are request logs: rows of theirs have lines where others have packets.
    opens: content was asked for, so that closed places are shown.
    flows: of the registered `flows` table OF_FLOWS at least, and the column FLOW, by which it is sorted. clusters:
    cluster id per row of flows. topics: topic id to name. files: capture names by file index. protocols: dissectors by
    their names.
    """

    flows: pa.Table
    clusters: pa.Array
    topics: Mapping[str, str]
    files: Sequence[str]
    protocols: Mapping[str, Dissector]
    logs: frozenset[int] = frozenset()
    opens: bool = False


def log_files(captures: Sequence[CaptureStats]) -> frozenset[int]:
    """Which of these inputs, by number, are request logs."""
    return frozenset(place for place, stats in enumerate(captures) if stats.lines is not None)


def finish_batch(
    table: str, raw: pa.RecordBatch, known: Lookups, columns: Sequence[str] | None = None, coder: Coder | None = None
) -> pa.RecordBatch:
    """One raw batch with the registered columns of its table, or those named; what nothing tells is null.

    raw: its texts may be codes. coder: leaves and makes codes of texts, so types are those of the schema for the other
    columns alone.
    """
    builder = _Builder(table, raw, known)
    schema = arrow_schema(table)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    lists = TABLES[table].lists
    # Of a raw row that becomes many, everything else is the same: it is made once and repeated.
    identities = pc.list_parent_indices(raw.column(lists[0])) if lists else None
    arrays = []
    for name in schema.names:
        column = TABLES[table].column(name)
        array = builder.column(column)
        if coder is not None:
            array = coder.coded(name, array)
        array = masked_column(table, column, array, opens=known.opens)
        if identities is not None:
            array = pc.list_flatten(array) if column.name in lists else pc.take(array, identities)
        kind = schema.field(name).type
        arrays.append(array if coder is not None and pa.types.is_dictionary(array.type) else pc.cast(array, kind))
    fields = [field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def pieces(table: str, raw: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The raw batch in parts that become about MAX_ROWS rows or MAX_BYTES at most."""
    lists = TABLES[table].lists
    if not lists:
        yield raw
        return
    rows = len(pc.list_flatten(raw.column(lists[0])))
    most = max(1, min(MAX_ROWS, MAX_BYTES * rows // max(raw.nbytes, 1)))
    ends = np.cumsum(pc.list_value_length(raw.column(lists[0])).to_numpy(zero_copy_only=False))
    start = 0
    while start < raw.num_rows:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield raw.slice(start, stop - start)
        start = stop


class _Builder:
    """The columns of one batch, made on demand."""

    def __init__(self, table: str, raw: pa.RecordBatch, known: Lookups) -> None:
        self.table = table
        self.raw = raw
        self.known = known
        self.rows = raw.num_rows
        self.flow = _positions(known.flows.column(FLOW), raw.column(FLOW))
        self._names = set(raw.schema.names)

    def column(self, column: Column) -> pa.Array:
        """The array of a registered column."""
        special = _SPECIAL.get((self.table, column.name)) or _SPECIAL.get(("", column.name))
        if special is not None:
            return special(self)
        if column.source == "flow":
            return self.of_flow(column.name)
        if column.name in self._names:
            return self.number(column.name) if column.name in _PACKETS else self.raw.column(column.name)
        return pa.nulls(self.rows)

    def of_flow(self, name: str) -> pa.Array:
        """A column of the flow table, taken for every row."""
        source = self.known.flows.column(name)
        if source.null_count == len(source):  # as what only some captures tell is in most
            return pa.nulls(self.rows, source.type)
        return pc.take(source.combine_chunks(), self.flow)

    def _is_one_of(self, name: str, values: Sequence[str]) -> pa.Array:
        """Is a column of the flow one of these?"""
        return pc.is_in(self.of_flow(name), pa.array(values, pa.string()))

    def field(self, name: str) -> pa.Array:
        """A raw field; nulls where the table has none of that name."""
        return self.raw.column(name) if name in self._names else pa.nulls(self.rows, pa.int64())

    def message_id(self, side: pa.Array | str, offset: pa.Array) -> pa.Array:
        """flow id, direction letter and stream offset; null where the offset is null."""
        letters = pa.scalar(side) if isinstance(side, str) else side
        return pc.binary_join_element_wise(self.of_flow("flow_id"), letters, pc.cast(offset, pa.string()), "-")

    def request_id(self) -> pa.Array:
        """Of the direction that the row names, else the client's."""
        asking = self.sides() if "direction" in self._names else "c"
        return self.message_id(asking, self.field("request_offset"))

    def response_id(self) -> pa.Array:
        """Of the side that was asked."""
        asked = pc.take(_OTHER_SIDES, self.field("direction")) if "direction" in self._names else "s"
        return self.message_id(asked, self.field("response_offset"))

    def exchange_id(self) -> pa.Array:
        return pc.coalesce(self.request_id(), self.response_id())

    def first_packet(self) -> pa.Array:
        """The packed packet that names the row's file: of the request, else of the response."""
        for names in (("packet_last",), ("request_packet", "response_packet"), ("packet",), ("line",)):
            if names[0] in self._names:
                return pc.coalesce(*(self.raw.column(name) for name in names if name in self._names))
        return pa.nulls(self.rows, pa.int64())

    def file(self) -> pa.Array:
        return self.file_of(self.first_packet())

    def file_of(self, packet: pa.Array) -> pa.Array:
        return pc.take(pa.array(self.known.files, pa.string()), pc.shift_right(packet, PACKET_BITS))

    def number(self, name: str) -> pa.Array:
        packet = self.field(name)
        number = pc.bit_wise_and(packet, _NUMBER)
        return pc.if_else(self.in_log(packet), None, number) if self.known.logs else number

    def in_log(self, packet: pa.Array) -> pa.Array:
        """Are these packed packets lines of a request log?"""
        return in_logs(packet, self.known.logs)

    def line(self) -> pa.Array:
        if not self.known.logs:
            return pa.nulls(self.rows, pa.int64())
        line = self.first_packet()
        return pc.if_else(self.in_log(line), pc.bit_wise_and(line, _NUMBER), None)

    def stream_offset(self) -> pa.Array:
        """A log has numbers of its own there, by which messages are named."""
        offset = self.field("stream_offset")
        return pc.if_else(self.in_log(self.first_packet()), None, offset) if self.known.logs else offset

    def sides(self) -> pa.Array:
        return pc.take(_SIDES, self.field("direction"))

    def error_name(self) -> pa.Array:
        if "error_name" in self._names:
            return self.raw.column("error_name")
        protocol = self.known.protocols.get(TABLES[self.table].protocol or "")
        names = {} if protocol is None else protocol.error_names
        codes = pa.array(names.keys(), pa.int64())
        return pc.take(pa.array(names.values(), pa.string()), pc.index_in(self.field("error_code"), codes))

    def topic(self) -> pa.Array:
        """The name on the wire, else the name that the topic id had elsewhere in the capture."""
        name = self.raw.column("topic") if "topic" in self._names else pa.nulls(self.rows, pa.string())
        if "topic_id" not in self._names or not self.known.topics or name.null_count == 0:
            return name
        ids = pa.array(self.known.topics.keys(), pa.string())
        names = pa.array(self.known.topics.values(), pa.string())
        told = pc.index_in(in_text(self.raw.column("topic_id")), ids)
        return pc.coalesce(in_text(name), pc.take(names, told))

    def decoded(self) -> pa.Array:
        """What records of the system's own topics say."""
        from wirewitness.analyser.decoding.rows.internal_records import decoded

        return decoded(self.raw, in_text(self.topic()))

    def from_client(self, of_client: str, of_server: str) -> pa.Array:
        sent_by_client = pc.equal(self.field("direction"), 0)
        return pc.if_else(sent_by_client, self.of_flow(of_client), self.of_flow(of_server))

    def latency_ms(self) -> pa.Array:
        gap = pc.subtract(self.field("ts_response"), self.field("ts"))
        answered = pc.and_(pc.is_valid(self.field("request_offset")), pc.is_valid(self.field("response_offset")))
        untimed = [name for name, protocol in self.known.protocols.items() if not protocol.timed_waits]
        waits = pc.and_(pc.fill_null(self.raw.column("awaitable"), False), self._is_one_of("protocol", untimed))
        answered = pc.and_not(answered, waits)
        # Over a step of the clock a float cannot tell every nanosecond.
        return pc.round(pc.divide(pc.cast(pc.if_else(answered, gap, None), pa.float64(), safe=False), _NS_PER_MS), 6)

    def answer_due(self) -> pa.Array:
        """See `responses.py`."""
        names = ("status", "operation", "awaitable", "direction", "ts", "request_offset", "request_bytes")
        raw = {name: in_text(self.field(name)) for name in names}
        return answer_due(raw, self._of_some_flows, self.known.protocols.values())

    def late(self) -> pa.Array:
        names = ("ts_response", "direction", "response_offset", "response_bytes")
        return late({name: self.field(name) for name in names}, self._of_some_flows)

    def _of_some_flows(self, name: str, rows: Any) -> pa.Array:
        return pc.take(self.known.flows.column(name).combine_chunks(), pc.take(self.flow, pa.array(rows)))


def in_logs(packet: pa.Array, logs: Collection[int]) -> pa.Array:
    """Do these packed packets lie in the files with these indexes?"""
    return pc.is_in(pc.shift_right(packet, PACKET_BITS), pa.array(sorted(logs), pa.int64()))


def with_first_packets(flows: pa.Table, files: Sequence[str], logs: Collection[int] = ()) -> pa.Table:
    """The flows table with the file and number of each flow's first packet, which FLOW holds. logs: as in Lookups."""
    key = flows.column(FLOW)
    columns = {
        "file": pc.take(pa.array(files, pa.string()), pc.shift_right(key, PACKET_BITS)),
        "first_packet": pc.if_else(in_logs(key, logs), None, pc.bit_wise_and(key, _NUMBER)),
    }
    for name, values in columns.items():
        flows = flows.set_column(flows.schema.get_field_index(name), flows.schema.field(name), values)
    return flows


def with_ends(flows: pa.Table, spans: Spans) -> pa.Table:
    """The flows table with `observed_until`; spans: what the captures cover (`covered.py`).

    It holds until when a flow was looked at that a limit ended.
    """
    ended, closed = (pc.cast(flows.column(name), pa.int64()) for name in ("ts_last", "ts_closed"))
    later = covered_until(ended.combine_chunks(), spans)
    field = flows.schema.field("observed_until")
    ended_early = pc.cast(flows.column(field.name), pa.int64())
    until = pc.if_else(pc.is_valid(closed), closed, pc.coalesce(ended_early, later))
    return flows.set_column(flows.schema.get_field_index(field.name), field, pc.cast(until, field.type))


def duplicate_flows(flows: pa.Table) -> pa.Array:
    """FLOW of those that saw a connection once more."""
    return pc.filter(flows.column(FLOW), pc.is_valid(flows.column("duplicate_of"))).combine_chunks()


def _positions(keys: pa.ChunkedArray, wanted: pa.Array) -> pa.Array:
    """Where each wanted key stands among the sorted keys; null for NO_FLOW."""
    numbers = wanted.to_numpy()
    return pa.array(np.searchsorted(keys.to_numpy(), numbers), mask=numbers == NO_FLOW)


_Maker = Callable[[_Builder], pa.Array]

# Columns of `flows` that rows of other tables get.
_TAKEN = {
    column.name
    for table in TABLES.values()
    for column in table.columns
    if column.source == "flow" and table.name != "flows"
}
OF_FLOWS = tuple(name for name in TABLES["flows"].column_names() if name in _TAKEN or name in OF_ENDS)

# Columns that hold a packet number: without the file, which a raw field has in its upper bits.
_PACKETS = frozenset(
    column.name
    for table in TABLES.values()
    for column in table.columns
    if column.source == "derived" and "packet" in column.name.split("_")
)

# Columns that are not simply a raw field or a flow's column; "" stands for every table.
_SPECIAL: dict[tuple[str, str], _Maker] = {
    ("", "exchange_id"): _Builder.exchange_id,
    ("", "file"): _Builder.file,
    ("", "request_file"): _Builder.file,
    ("", "error_name"): _Builder.error_name,
    ("", "topic"): _Builder.topic,
    ("", "cluster_id"): lambda b: pc.take(b.known.clusters, b.flow),
    ("", "decoded"): _Builder.decoded,
    ("", "line"): _Builder.line,
    ("messages", "stream_offset"): _Builder.stream_offset,
    (waits.TABLE, "file"): lambda b: b.file_of(b.field("packet_first")),
    (waits.TABLE, "file_last"): lambda b: b.file_of(b.field("packet_last")),
    ("", "message_id"): lambda b: b.message_id(b.sides(), b.field("stream_offset")),
    ("", "first_message_id"): lambda b: b.message_id(b.sides(), b.field("first_offset")),
    ("", "direction"): lambda b: pc.take(_DIRECTIONS, b.field("direction")),
    ("messages", "src_address"): lambda b: b.from_client("client_address", "server_address"),
    ("messages", "src_port"): lambda b: b.from_client("client_port", "server_port"),
    ("messages", "dst_address"): lambda b: b.from_client("server_address", "client_address"),
    ("messages", "dst_port"): lambda b: b.from_client("server_port", "client_port"),
    ("exchanges", "request_message_id"): _Builder.request_id,
    ("exchanges", "latency_ms"): _Builder.latency_ms,
    ("exchanges", "answer_due"): _Builder.answer_due,
    ("exchanges", "late"): _Builder.late,
    ("", "response_message_id"): _Builder.response_id,
}


def computed(table: str, column: str) -> bool:
    """The column is made from other fields; anything else needs a raw field or a flow's column of its name."""
    return (table, column) in _SPECIAL or ("", column) in _SPECIAL

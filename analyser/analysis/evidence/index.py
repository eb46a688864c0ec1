"""Which messages there are and where, kept between runs: captures in, an `Index` that answers at once out.

The first question about captures decodes them and leaves the answer in the user's cache; later ones find it there.
Without a cache everything works, only slower.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from wirewitness.analyser.analysis.evidence.cache import new_part, part
from wirewitness.analyser.analysis.evidence.identity import capture_key
from wirewitness.analyser.analysis.evidence.rows import FlowRow, MessageId, MessageRow, UnknownId
from wirewitness.analyser.base import compute as pc
from wirewitness.analyser.base.options import ProgressCallback, ReadOptions
from wirewitness.analyser.base.private_files import TemporaryFolder
from wirewitness.analyser.capture import CaptureError, Source
from wirewitness.analyser.capture.packet_positions import Places, find_places
from wirewitness.analyser.decoding.rows.timeorder import FLOW
from wirewitness.analyser.decoding.run.helpers import Helpers
from wirewitness.analyser.tables.coded import plain
from wirewitness.dissectors.core.model import packet_of

_MESSAGES, _EXCHANGES, _FLOWS, _PLACES = "messages.parquet", "exchanges.parquet", "flows.parquet", "places.json"
_DIGEST = "digest"  # of these four, as they were written
_MESSAGE_COLUMNS = (
    "direction", "stream_offset", "length_bytes", "packet_first", "packet_last", "ts", "role", "operation", "version",
    "complete", "error", FLOW,
)  # fmt: skip
# What `flow_row` reads.
_FLOW_COLUMNS = (
    FLOW, "flow_id", "protocol", "client_address", "client_port", "server_address", "server_port", "encapsulation",
    "client_first_seq", "server_first_seq", "carrier", "encrypted",
)  # fmt: skip
HINT = "`wirewitness table messages CAPTURE --columns message_id,operation` lists them"


class MessageSource(Protocol):
    """Where an index looks things up. Raises OSError, ValueError when what it reads is damaged."""

    def messages(self, flow: FlowRow, direction: int | None, offset: int | None) -> Iterator[MessageRow]:
        """Messages of a flow by time; of one direction, of one offset where these are given."""
        ...

    def completed_in(self, packet: int) -> Iterator[MessageRow]:
        """The messages whose last byte came in a packet (file and number in one)."""
        ...

    def partner_offset(self, row: MessageRow) -> int | None:
        """Where the other message of its exchange begins, in the other direction."""
        ...

    def flow(self, flow_id: str) -> FlowRow | None:
        """The flow of that id."""
        ...

    def flows(self) -> Iterator[FlowRow]:
        """All flows, by their first packets."""
        ...

    def next_flow(self, flow: FlowRow) -> int | None:
        """The first packet of the next flow between the same ends."""
        ...


class Index:
    """Messages, exchanges and flows of some captures.

    sources: the captures, in the order in which packed packets count them. places: where packets lie in each,
    looked up when a capture is read. inputs: what `analyser.read` takes to read the same. keylogs: as in ReadOptions.
    """

    def __init__(
        self,
        kept: MessageSource,
        sources: Sequence[Source],
        places: Sequence[Places],
        inputs: Sequence[str] | None = None,
        close: Callable[[], None] = lambda: None,
        keylogs: Sequence[str] = (),
    ) -> None:
        self.keylogs = tuple(keylogs)
        self.sources = tuple(sources)
        self.places = places
        self.inputs = [str(source.path) for source in sources] if inputs is None else list(inputs)
        self._kept = kept
        self._close = close

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def message(self, wanted: MessageId) -> MessageRow:
        """UnknownId when no capture holds it."""
        flow = self.flow(wanted.flow_id)
        for row in self._kept.messages(flow, wanted.direction, wanted.offset):
            return row
        raise UnknownId(f"no message {wanted.text()}{self._neighbour(wanted, flow)}; {HINT}")

    def completed_in(self, packet: int) -> list[MessageRow]:
        """The messages whose last byte came in a packet (file and number in one)."""
        return list(self._kept.completed_in(packet))

    def of_flow(self, flow: FlowRow) -> list[MessageRow]:
        """All messages of a flow, by time."""
        return list(self._kept.messages(flow, None, None))

    def partner(self, row: MessageRow) -> MessageRow | None:
        """The response of a request, the request of a response."""
        offset = self._kept.partner_offset(row)
        return None if offset is None else self.message(MessageId(row.flow.flow_id, 1 - row.direction, offset))

    def flow(self, flow_id: str) -> FlowRow:
        """UnknownId when no capture holds it."""
        found = self._kept.flow(flow_id)
        if found is None:
            raise UnknownId(f"no flow {flow_id}; `wirewitness table flows CAPTURE` lists them")
        return found

    def flows(self) -> list[FlowRow]:
        """All flows, by their first packets."""
        return list(self._kept.flows())

    def end_of(self, flow: FlowRow) -> int:
        """The first packet of the next flow between the same ends; beyond all packets when there is none."""
        later = self._kept.next_flow(flow)
        return packet_of(len(self.sources), 0) if later is None else later

    def _neighbour(self, wanted: MessageId, flow: FlowRow) -> str:
        """Where a message that begins at another byte holds the wanted one, or lies near it."""
        offsets = sorted(row.stream_offset for row in self._kept.messages(flow, wanted.direction, None))
        if not offsets:
            return ": that flow has no messages in this direction"
        near = max((offset for offset in offsets if offset <= wanted.offset), default=offsets[0])
        return f"; the nearest one in that flow is {wanted._replace(offset=near).text()}"


class _Folder:
    """What `_build` left in a folder; see `MessageSource`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._flow_table: pa.Table | None = None

    def messages(self, flow: FlowRow, direction: int | None, offset: int | None) -> Iterator[MessageRow]:
        """Messages of a flow by time."""
        wanted = {FLOW: flow.key, "direction": direction, "stream_offset": offset}
        return self._messages({name: value for name, value in wanted.items() if value is not None})

    def completed_in(self, packet: int) -> Iterator[MessageRow]:
        """The messages whose last byte came in a packet."""
        return self._messages({"packet_last": packet})

    def partner_offset(self, row: MessageRow) -> int | None:
        """Where the other message of its exchange begins."""
        own, other = ("request_offset", "response_offset")[:: -1 if row.direction else 1]
        found = next(_rows(self._folder / _EXCHANGES, {FLOW: row.flow.key, own: row.stream_offset}), None)
        return None if found is None else found[other]

    def flow(self, flow_id: str) -> FlowRow | None:
        """The flow of that id."""
        rows = pc.filter(self._flows, pc.equal(self._flows["flow_id"], flow_id)).to_pylist()
        return flow_row(rows[0][FLOW], rows[0]) if rows else None

    def flows(self) -> Iterator[FlowRow]:
        """All flows, by their first packets."""
        return (flow_row(row[FLOW], row) for row in self._flows.to_pylist())

    def next_flow(self, flow: FlowRow) -> int | None:
        """The first packet of the next flow between the same ends."""
        table = self._flows
        same = pc.greater(table[FLOW], flow.key)
        for side, (address, port) in (("client", flow.client), ("server", flow.server)):
            same = pc.and_(same, pc.equal(table[f"{side}_address"], address))
            same = pc.and_(same, pc.equal(table[f"{side}_port"], port))
        later = [
            row[FLOW]
            for row in pc.filter(table, same).to_pylist()
            if (row["encapsulation"] or "") == flow.encapsulation
        ]
        return min(later, default=None)

    @property
    def _flows(self) -> pa.Table:
        if self._flow_table is None:
            with pq.ParquetFile(self._folder / _FLOWS) as file:
                self._flow_table = file.read(columns=list(_FLOW_COLUMNS))
        return self._flow_table

    def _messages(self, wanted: Mapping[str, int]) -> Iterator[MessageRow]:
        keys = self._flows[FLOW]
        for row in _rows(self._folder / _MESSAGES, wanted):
            place = pc.index(keys, row[FLOW]).as_py()
            flow = self._flows.slice(place, 1).to_pylist()[0]
            yield _message_row(flow_row(flow[FLOW], flow), row)


def _rows(path: Path, wanted: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Rows of a Parquet file in which these columns have these values. Raises OSError, ValueError.

    Only where there are some is more read than these columns. `pyarrow.parquet.read_table` does the same with
    `pyarrow.dataset`, whose import alone takes longer than all that is done here for one message.
    """
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=list(wanted))
            chosen = reduce(pc.and_, (pc.equal(table[name], value) for name, value in wanted.items()))
            if pc.any(chosen).as_py():
                yield from pc.filter(file.read_row_group(group), chosen).to_pylist()


def _in_folder(
    folder: Path, sources: Sequence[Source], options: ReadOptions, close: Callable[[], None] = lambda: None
) -> Index:
    """The index in a folder."""
    kept = json.loads((folder / _PLACES).read_text())
    places = [Places(one[0], tuple(one[1]), tuple(one[2]), *one[3:]) for one in kept]
    return Index(_Folder(folder), sources, places, close=close, keylogs=options.keylogs)


def open_index(
    sources: Sequence[Source], options: ReadOptions, progress: ProgressCallback | None = None, *, use_cache: bool = True
) -> Index:
    """The index of these captures, from the cache or made now. Raises CaptureError."""
    key: str | None = None
    if use_cache:
        with suppress(OSError):
            key = capture_key(sources, options)
    if key is not None:
        kept = part(f"index-{key}")
        if kept is not None:
            with suppress(OSError):
                if (kept / _DIGEST).read_bytes() == _digest(kept):
                    return _in_folder(kept, sources, options)
        with suppress(OSError):
            return _keep(key, sources, options, progress)
    temporary = TemporaryFolder()
    try:
        _build(Path(temporary.name), sources, options, progress)
        return _in_folder(Path(temporary.name), sources, options, temporary.cleanup)
    except BaseException:
        temporary.cleanup()
        raise


def _keep(key: str, sources: Sequence[Source], options: ReadOptions, progress: ProgressCallback | None) -> Index:
    with new_part(f"index-{key}") as folder:
        _build(folder, sources, options, progress)
        (folder / _DIGEST).write_bytes(_digest(folder))
    kept = part(f"index-{key}")
    if kept is None:
        raise OSError("the index did not stay")
    return _in_folder(kept, sources, options)


def _digest(folder: Path) -> bytes:
    """Tells what was written from what a full disk, a damaged one or anybody else made of it. Raises OSError."""
    found = hashlib.blake2b(digest_size=16)
    for name in (_MESSAGES, _EXCHANGES, _FLOWS, _PLACES):
        with (folder / name).open("rb") as file:
            found.update(hashlib.file_digest(file, "blake2b").digest())
    return found.digest()


def _build(folder: Path, sources: Sequence[Source], options: ReadOptions, progress: ProgressCallback | None) -> None:
    with Helpers(options.processes - 1) as helpers:
        from wirewitness.analyser.decoding.run.decode import decode_captures

        decoded = decode_captures(list(sources), ["messages", "exchanges"], options, progress, helpers)
    try:
        if decoded.unread:
            raise CaptureError(" ".join(unread.reason for unread in decoded.unread))
        pq.write_table(decoded.flows_table(), folder / _FLOWS, compression="zstd")
        for name, columns, target in (
            ("messages", _MESSAGE_COLUMNS, _MESSAGES),
            ("exchanges", ("request_offset", "response_offset", FLOW), _EXCHANGES),
        ):
            table = decoded.store.tables[name]
            schema = pa.schema([table.schema.field(column) for column in columns])
            with pq.ParquetWriter(folder / target, schema, compression="zstd") as writer:
                for batch in table.batches():
                    writer.write_batch(plain(batch, schema))
    finally:
        decoded.store.close()
    places = [_places(source) for source in sources]
    (folder / _PLACES).write_text(json.dumps(places))


def _places(source: Source) -> Places:
    in_file = source.path is not None and source.path.is_file() and source.other_kind is None
    return find_places(source) if in_file else Places()


def flow_row(key: int, row: Mapping[str, Any]) -> FlowRow:
    """A row of the `flows` table whose first packet, packed, is `key`."""
    return FlowRow(
        key,
        row["flow_id"],
        row["protocol"],
        (row["client_address"], row["client_port"]),
        (row["server_address"], row["server_port"]),
        row["encapsulation"] or "",
        (row["client_first_seq"], row["server_first_seq"]),
        row["carrier"],
        row["encrypted"],
    )


def _message_row(flow: FlowRow, row: dict[str, Any]) -> MessageRow:
    return MessageRow(flow, *(row[column] for column in _MESSAGE_COLUMNS[:-1]))

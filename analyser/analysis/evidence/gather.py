"""From messages to what is wanted of their flows: packets to choose, and what to overwrite in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from wirewitness.analyser.analysis.evidence.bytes import BytesGone, message_bytes
from wirewitness.analyser.analysis.evidence.choose import Choice, FlowChoice, Stretch
from wirewitness.analyser.analysis.evidence.decrypted import Clear
from wirewitness.analyser.analysis.evidence.hiding import Hidden
from wirewitness.analyser.analysis.evidence.index import Index
from wirewitness.analyser.analysis.evidence.inner_messages import CarriedMessage, watch
from wirewitness.analyser.analysis.evidence.logged import is_logged
from wirewitness.analyser.analysis.evidence.rows import FlowRow, MessageRow, UnknownId, parse_message_id
from wirewitness.analyser.decoding.faults import inspecting
from wirewitness.analyser.decoding.outer_map import Span
from wirewitness.dissectors.core.inspect import Asked, Inspect, MayHide, undecoded
from wirewitness.dissectors.core.model import packet_of
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.secrets import may_hold_secrets
from wirewitness.dissectors.registry import dissector_of

# With payload shown, all that is hidden are credentials and what is closed.
_ALL, _NOTHING = DecodeOptions(payload=True, closed=True), DecodeOptions()


def add_evidence(
    choice: Choice, index: Index, finding_id: str, evidence: Iterable[Mapping[str, Any]]
) -> list[MessageRow]:
    """Want what a finding lists as evidence: packets by number, and messages, which are returned to be added.

    evidence: mappings of file, packet and message_id, as the findings table has them.
    """
    rows: list[MessageRow] = []
    files = [str(source.path) for source in index.sources]
    choice.comment = f"evidence of finding {finding_id}"
    for one in evidence:
        if one.get("message_id"):
            with suppress(UnknownId):
                rows.append(index.message(parse_message_id(one["message_id"])))
        if one.get("packet") is not None and one.get("file") in files:
            choice.packets.add(packet_of(files.index(one["file"]), one["packet"]))
    return rows


def parted(rows: Iterable[MessageRow], index: Index) -> tuple[list[MessageRow], list[MessageRow]]:
    """Messages that lie in packets, and those of request logs."""
    found: tuple[list[MessageRow], list[MessageRow]] = [], []
    for row in rows:
        found[is_logged(row, index.sources)].append(row)
    return found


def add_message(choice: Choice, index: Index, row: MessageRow) -> None:
    """Want the packets of a message, those that came out of order too."""
    try:
        pieces = [piece.packet for piece in message_bytes(row, index.sources, index.places, index.keylogs).pieces]
    except BytesGone:
        pieces = []
    choice.add_message(row, index.end_of(row.flow), pieces)


def add_hidden(choice: Choice, index: Index) -> None:
    """Find what is overwritten in the flows that are touched: credentials, and what no dissector decodes. TLS stays:
    nobody can read it. Raises BytesGone."""
    choice.redacting = True
    for one in choice.flows.values():
        if one.flow.encrypted:
            continue
        dissector = dissector_of(one.flow.protocol)
        look = inspecting(dissector.inspect if dissector is not None else undecoded)
        may_hide = dissector.may_hide if dissector is not None else None
        find = _of_messages if one.flow.carrier is None else _of_carried
        found = find(one, index, _Look(look, may_hide, choice.faults))
        one.hidden = tuple(  # type: ignore[assignment]  # of two
            Hidden(first_seq, *spans) for first_seq, spans in zip(one.flow.first_seqs, found, strict=True)
        )


def add_clear(choice: Choice, index: Index) -> int:
    """Want the flows that are touched in clear text, as far as they can be decrypted. How many stay encrypted."""
    encrypted = [one for one in choice.flows.values() if one.flow.encrypted]
    for one in encrypted:
        made = Clear(one.flow, index.sources, index.places, min(one.end, choice.last() + 1), index.keylogs)
        one.clear = None if made.is_empty else made
    return sum(one.clear is None for one in encrypted)


def add_beginnings(choice: Choice) -> list[FlowRow]:
    """Want encrypted flows from their first packet on: nobody can decrypt what lies behind a gap. These flows."""
    encrypted = [one for one in choice.flows.values() if one.flow.encrypted]
    for one in encrypted:
        one.stretches.append(Stretch(None, one.flow.key, max(stretch.last for stretch in one.stretches)))
    return [one.flow for one in encrypted]


class _Look(NamedTuple):
    """How messages of a protocol are looked into."""

    inspect: Inspect
    may_hide: MayHide | None
    faults: Counter[str]

    def secrets(self, data: bytes, asked: Asked, *, decoded: bool) -> Iterator[tuple[int, int]]:
        """Credentials in a message; where it could not be decoded, or not to its end, what applications sent too: it is
        not known to be nothing else."""
        if decoded and self.may_hide is not None and not self.may_hide(asked) and not may_hold_secrets(data):
            return
        seen = self.inspect(data, asked, _ALL if decoded else _NOTHING)
        if decoded and seen.error is not None:
            decoded, seen = False, self.inspect(data, asked, _NOTHING)
        if seen.own_fault and seen.error is not None:
            self.faults[seen.error] += 1
        for start, end, kind in seen.hidden:
            if kind == "secret" or not decoded:
                yield start, end


class _Found(NamedTuple):
    """Of one direction, from and to before which stream offsets was looked, and credentials in it."""

    seen: list[tuple[int, int]]
    secrets: list[tuple[int, int]]


def _of_messages(one: FlowChoice, index: Index, look: _Look) -> tuple[_Found, _Found]:
    found = _Found([], []), _Found([], [])
    for row in index.of_flow(one.flow):
        asked, own, start = Asked(row.role, row.operation, row.version), found[row.direction], row.stream_offset
        data = message_bytes(row, index.sources, index.places, index.keylogs).data
        own.seen.append((start, start + len(data)))
        decoded = row.complete and row.error is None
        hidden = look.secrets(data, asked, decoded=decoded)
        own.secrets.extend((start + first, start + last) for first, last in hidden)
    return found


def _of_carried(one: FlowChoice, index: Index, look: _Look) -> tuple[_Found, _Found]:
    """The same inside a carrier. Of a compressed message all goes that holds a credential."""
    rows = {(row.direction, row.stream_offset): row for row in index.of_flow(one.flow)}
    found = _Found([], []), _Found([], [])

    def see(message: CarriedMessage) -> None:
        row = rows.get((message.direction, message.stream_offset))
        asked = Asked(None, None, None) if row is None else Asked(row.role, row.operation, row.version)
        decoded = row is not None and row.complete and row.error is None
        for start, end in look.secrets(message.data, asked, decoded=decoded):
            own = found[message.direction].secrets
            own.extend(_outer(span, start, end) for span in message.spans)

    watched = watch(one.flow, index.sources, index.places, one.end, see, index.keylogs)
    for direction, start, end in watched.hidden:
        found[direction].secrets.append((start, end))
    for direction, start, end in watched.seen:
        found[direction].seen.append((start, end))
    return found


def _outer(span: Span, start: int, end: int) -> tuple[int, int]:
    """What of the outer bytes of a span holds bytes `start` to before `end` of its message."""
    first, last = max(start, span.start), min(end, span.end)
    if first >= last:
        return 0, 0
    if span.outer_end - span.outer_start != span.end - span.start:
        return span.outer_start, span.outer_end
    return span.outer_start + first - span.start, span.outer_start + last - span.start

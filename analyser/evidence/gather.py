"""From messages to what is wanted of their flows: packets to choose, and credentials to overwrite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from analyser.decoding.carried import Span
from analyser.decoding.faults import inspecting
from analyser.evidence.bytes import BytesGone, message_bytes
from analyser.evidence.carried import CarriedMessage, watch
from analyser.evidence.choose import Choice, FlowChoice, SecretSpan
from analyser.evidence.index import Index
from analyser.evidence.rows import MessageRow, UnknownId, parse_message_id
from dissectors.core.inspect import Asked, Inspect, MayHide, undecoded
from dissectors.core.model import packet_of
from dissectors.core.options import DecodeOptions
from dissectors.core.secrets import may_hold_secrets
from dissectors.registry import dissector_of

# With payload shown, all that is hidden are credentials.
_ALL = DecodeOptions(payload=True)


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


def add_message(choice: Choice, index: Index, row: MessageRow) -> None:
    """Want the packets of a message, those that came out of order too."""
    try:
        pieces = [piece.packet for piece in message_bytes(row, index.sources, index.places).pieces]
    except BytesGone:
        pieces = []
    choice.add_message(row, index.end_of(row.flow), pieces)


def add_secrets(choice: Choice, index: Index) -> None:
    """Find the credentials in all messages of the flows that are touched. Raises BytesGone."""
    choice.redacting = True
    for one in choice.flows.values():
        dissector = dissector_of(one.flow.protocol)
        look = inspecting(dissector.inspect if dissector is not None else undecoded)
        may_hide = dissector.may_hide if dissector is not None else None
        if one.flow.carrier is not None:
            _add_carried_secrets(one, index, look, may_hide)
            continue
        for row in index.of_flow(one.flow):
            asked = Asked(row.role, row.operation, row.version)
            first_seq = one.flow.first_seqs[row.direction]
            if first_seq is None:
                continue
            data = message_bytes(row, index.sources, index.places).data
            if may_hide is not None and not may_hide(asked) and not may_hold_secrets(data):
                continue
            one.secrets += [
                SecretSpan(row.direction, first_seq + row.stream_offset + start, end - start)
                for start, end, kind in look(data, asked, _ALL).hidden
                if kind == "secret"
            ]


def _add_carried_secrets(one: FlowChoice, index: Index, look: Inspect, may_hide: MayHide | None) -> None:
    """The same inside a carrier. Of a compressed message all goes that holds a credential."""
    asked = {
        (row.direction, row.stream_offset): Asked(row.role, row.operation, row.version)
        for row in index.of_flow(one.flow)
    }

    def see(message: CarriedMessage) -> None:
        known = asked.get((message.direction, message.stream_offset), Asked(None, None, None))
        if may_hide is not None and not may_hide(known) and not may_hold_secrets(message.data):
            return
        for start, end, kind in look(message.data, known, _ALL).hidden:
            if kind == "secret":
                for span in message.spans:
                    _add(message.direction, *_outer(span, start, end))

    def _add(direction: int, start: int, end: int) -> None:
        first_seq = one.flow.first_seqs[direction]
        if first_seq is not None and start < end:
            one.secrets.append(SecretSpan(direction, first_seq + start, end - start))

    for hidden in watch(one.flow, index.sources, index.places, one.end, see):
        _add(*hidden)


def _outer(span: Span, start: int, end: int) -> tuple[int, int]:
    """What of the outer bytes of a span holds bytes `start` to before `end` of its message."""
    first, last = max(start, span.start), min(end, span.end)
    if first >= last:
        return 0, 0
    if span.outer_end - span.outer_start != span.end - span.start:
        return span.outer_start, span.outer_end
    return span.outer_start + first - span.start, span.outer_start + last - span.start

"""From messages to what is wanted of their flows: packets to choose, and credentials to overwrite."""

from __future__ import annotations

from analyser.evidence.bytes import BytesGone, message_bytes
from analyser.evidence.choose import Choice, SecretSpan
from analyser.evidence.index import Index
from analyser.evidence.rows import MessageRow
from dissectors.core.inspect import Asked, undecoded
from dissectors.core.options import DecodeOptions
from dissectors.registry import dissector_of

# With payload shown, all that is hidden are credentials.
_ALL = DecodeOptions(payload=True)


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
        look = dissector.inspect if dissector is not None else undecoded
        may_hide = dissector.may_hide if dissector is not None else None
        for row in index.of_flow(one.flow):
            asked = Asked(row.role, row.operation, row.version)
            first_seq = one.flow.first_seqs[row.direction]
            if first_seq is None or (may_hide is not None and not may_hide(asked)):
                continue
            data = message_bytes(row, index.sources, index.places).data
            one.secrets += [
                SecretSpan(row.direction, first_seq + row.stream_offset + start, end - start)
                for start, end, kind in look(data, asked, _ALL).hidden
                if kind == "secret"
            ]

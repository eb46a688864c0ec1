"""Values of looking up messages. In: nothing. Out: a message's row, a flow's ends, the errors of a wrong id."""

from __future__ import annotations

import re
from typing import NamedTuple

from wirewitness.analyser.capture import Endpoints
from wirewitness.dissectors.core.model import split_packet

_MESSAGE_ID = re.compile(r"([0-9a-f]+)-([cs])-([0-9]{1,18})")
_FLOW_ID = re.compile(r"[0-9a-f]+")


class UnknownId(LookupError):
    """An id that names nothing in these captures; the text is a sentence and a hint for people."""


class MessageId(NamedTuple):
    """The parts of a message id. direction: 0 from the client, 1 from the server."""

    flow_id: str
    direction: int
    offset: int

    def text(self) -> str:
        """As in the tables."""
        return f"{self.flow_id}-{'cs'[self.direction]}-{self.offset}"


class FlowRow(NamedTuple):
    """What is needed of a flow. key: its first packet, packed. first_seqs: of the client's and the server's stream.

    carrier: what its protocol travels in; None for nothing. encrypted: it speaks TLS.
    """

    key: int
    flow_id: str
    protocol: str | None
    client: tuple[str, int]
    server: tuple[str, int]
    encapsulation: str
    first_seqs: tuple[int | None, int | None]
    carrier: str | None = None
    encrypted: bool = False

    def client_is_low(self, ends: Endpoints) -> bool | None:
        """Is the client the low endpoint of this pair? None when it is another flow's pair."""
        if ends.encapsulation != self.encapsulation:
            return None
        low, high = (ends.low_address, ends.low_port), (ends.high_address, ends.high_port)
        if (low, high) == (self.client, self.server):
            return True
        return False if (high, low) == (self.client, self.server) else None


class MessageRow(NamedTuple):
    """A message's row. packet_first, packet_last: file and number in one, see `packet_of`; of a request log, which has
    no packets and no lengths, its line."""

    flow: FlowRow
    direction: int
    stream_offset: int
    length_bytes: int | None
    packet_first: int
    packet_last: int
    ts_ns: int
    role: str | None
    operation: str | None
    version: str | None
    complete: bool
    error: str | None

    def message_id(self) -> MessageId:
        return MessageId(self.flow.flow_id, self.direction, self.stream_offset)

    def files(self) -> range:
        """Indices of the files it may lie in."""
        first, last = split_packet(self.packet_first)[0], split_packet(self.packet_last)[0]
        return range(min(first, last), max(first, last) + 1)


def parse_message_id(text: str) -> MessageId:
    """UnknownId when the text cannot be a message id."""
    match = _MESSAGE_ID.fullmatch(text.strip())
    if match is None:
        kind = "looks like a flow id" if _FLOW_ID.fullmatch(text.strip()) else "is no message id"
        raise UnknownId(f"{text!r} {kind}; a message id is FLOW-c-OFFSET or FLOW-s-OFFSET")
    return MessageId(match[1], "cs".index(match[2]), int(match[3]))

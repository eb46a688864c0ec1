"""The values that pass between framing, conversations and tables.

Rows are plain tuples: a capture holds millions of them, and a tuple costs a tenth of an object with names. The names
of a row's fields stand here (and in `dissectors/<protocol>/rows.py` for a protocol's own tables), in the order in
which dissectors put them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CLIENT_TO_SERVER = 0
SERVER_TO_CLIENT = 1

Row = tuple[Any, ...]


class Frame(NamedTuple):
    """One frame of one direction, uncopied: `data[start:end]` are its bytes.

    order: the packet at which the bytes became readable; frames of both directions are fed in this order.
    stream_offset: of its first byte. packet_first, packet_last: the packets it came in; they carry the capture file in
    their upper bits, see `packet_of`. ts_ns: Unix time of the last one. complete: False where a gap or the end of the
    stream cut it.
    """

    order: int
    direction: int
    data: bytes
    start: int
    end: int
    stream_offset: int
    packet_first: int
    packet_last: int
    ts_ns: int
    complete: bool

    @property
    def size(self) -> int:
        """Its bytes, those that are there."""
        return self.end - self.start


PACKET_BITS = 40
_PACKET_MASK = (1 << PACKET_BITS) - 1


def packet_of(file_index: int, number: int) -> int:
    """One integer for (capture file, packet number in it); sorts by file, then number."""
    return (file_index << PACKET_BITS) | number


def split_packet(packet: int) -> tuple[int, int]:
    """(file index, packet number in that file) of `packet_of`."""
    return packet >> PACKET_BITS, packet & _PACKET_MASK


MESSAGE_FIELDS = (
    "direction",
    "stream_offset",
    "length_bytes",
    "packet_first",
    "packet_last",
    "ts",
    "role",
    "operation",
    "version",
    "correlation_id",
    "client_id",
    "complete",
    "error",
    "summary",
)

# direction: of the request; that of a response without request is the other one's.
EXCHANGE_FIELDS = (
    "direction",
    "request_offset",
    "response_offset",
    "request_packet",
    "response_packet",
    "ts",
    "ts_response",
    "operation",
    "version",
    "client_id",
    "status",
    "error_code",
    "error_name",
    "request_bytes",
    "response_bytes",
    "awaitable",
)

EXPERT_FIELDS = ("direction", "stream_offset", "packet", "ts", "severity", "group", "code", "text", "span")

CORE_ROWS = {"messages": MESSAGE_FIELDS, "exchanges": EXCHANGE_FIELDS, "expert_infos": EXPERT_FIELDS}

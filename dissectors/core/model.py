"""The values that pass between framing, decoders and tables.

Rows are plain tuples: a capture holds millions of them, and a tuple costs a tenth of an object with names. The names
of a row's fields stand here (and in `dissectors/<protocol>/rows.py` for a protocol's own tables), in the order in
which dissectors put them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wirewitness.dissectors.core.fields import Field, Fields, packet, ts

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


MESSAGES = Fields(
    Field("direction", "string", "client_to_server or server_to_client", source="derived", raw="int64"),
    Field("stream_offset", "int64", "offset of the first byte in its stream; null in a log", "bytes", source="derived"),
    Field("length_bytes", "int64", "bytes of the message, length prefix included; null in a log", unit="bytes"),
    packet("packet_first", "packet with the first byte"),
    packet("packet_last", "packet that completes the message, where Wireshark shows it"),
    ts("time of the packet that completes the message"),
    Field("role", "string", "request, response or notification"),
    Field("operation", "string", "API, packet type or command name"),
    Field("version", "string", "protocol version of this message"),
    Field("correlation_id", "int64", "what pairs request and response in this protocol"),
    Field("client_id", "string", "client id; for a response that of its request"),
    Field("complete", "bool", "false when a gap or the capture's end cut it", nullable=False),
    Field("error", "string", "why the message could not be decoded in full"),
    Field("summary", "string", "one line for people"),
)

# direction: of the request; that of a response without request is the other one's.
EXCHANGES = Fields(
    Field("direction", "string", "client_to_server or server_to_client: whose request", source="derived", raw="int64"),
    Field("request_offset"),
    Field("response_offset"),
    packet("request_packet", "packet that completes the request"),
    packet("response_packet", "packet that completes the response"),
    ts("time of the packet that completes the request (of the response for an orphan)"),
    Field("ts_response", "time", "time of the packet that completes the response", unit="UTC"),
    Field("operation", "string", "API, packet type or command name"),
    Field("version", "string", "protocol version of the request"),
    Field("client_id", "string", "client id in the request header"),
    Field(
        "status",
        "string",
        "ok (a response; one not decoded has no error_code), error, unanswered, orphan, one_way; null: not "
        "known, since a limit ended the wait",
    ),
    Field("error_code", "int64", "first error code that is not 0, else 0; null when unanswered or undecoded"),
    Field("error_name", "string", "the code's name in the protocol's documents", source="derived"),
    Field(
        "request_bytes",
        "int64",
        "size of the request, length prefix included; of one that is cut as its prefix says",
        unit="bytes",
    ),
    Field("response_bytes", "int64", "size of the response, length prefix included", unit="bytes"),
    Field(
        "awaitable",
        "bool",
        "long poll: the request makes the server wait for data (Fetch, ShareFetch), members (JoinGroup, SyncGroup) or "
        "news (hello), so that percentiles leave it out; null: not known, the request was not seen or decoded",
    ),
    Field(
        "throttle_time_ms",
        "int64",
        "how long a quota of the server makes this client wait, as the response says; null where none does",
        unit="ms",
    ),
)

EXPERT_INFOS = Fields(
    Field("direction", "string", "client_to_server or server_to_client: whose bytes", source="derived", raw="int64"),
    Field("stream_offset"),
    packet("packet", "packet"),
    Field("ts", "time", "time of that packet", unit="UTC"),
    Field("severity", "string", "chat, note, warn or error", nullable=False),
    Field("group", "string", "capture, tcp, framing, malformed, undecoded, limit, protocol, bug", nullable=False),
    Field("code", "string", "stable name of the note", nullable=False),
    Field("text", "string", "the note for people", nullable=False, content=True),
    Field("span", "string", "stream offsets first-last it is about"),
)

MESSAGE_FIELDS, EXCHANGE_FIELDS, EXPERT_FIELDS = MESSAGES.names, EXCHANGES.names, EXPERT_INFOS.names
CORE_ROWS: dict[str, Fields] = {"messages": MESSAGES, "exchanges": EXCHANGES, "expert_infos": EXPERT_INFOS}

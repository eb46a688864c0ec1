"""From HTTP/1.1 to WebSocket: the upgrade that opens a connection (RFC 6455, 4).

In: the first bytes of both directions. Out: an `Opening`. h11 reads the heads; it is told what both sides said, as if
it were each of them in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import h11

from wirewitness.dissectors.carriers.frames import METHOD
from wirewitness.dissectors.core.carrier import HiddenBytes, Opening, Told
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.secrets import secret_spans

# A head that is longer opens nothing.
MAX_HEAD_BYTES = 16 * 1024
# The name of a protocol is short; some clients put a token where it belongs.
MAX_NAME_BYTES = 40
MAX_VALUE_CHARACTERS = 600
# Header fields whose values prove who somebody is, and the query of the request's target. What is looked ahead for is
# not looked for again where a value is missing, so that the time follows the length of the head.
_CREDENTIALS = re.compile(
    rb"^(?!sec-websocket-(?:key|accept))(?=[^:\s]*(?:auth|cookie|token|secret|key|password|credential))[^:\s]*:"
    rb"[ \t]*+(?:\r?\n[ \t]++)*+([^\r\n]+(?:\r?\n[ \t][^\r\n]*)*)"
    rb"|^sec-websocket-protocol:[ \t]*([^\r\n]*[^\s,]{%d}[^\r\n]*)"
    rb"|\AGET [^\s?]*\?([^\s]+)" % (MAX_NAME_BYTES + 1),
    re.MULTILINE | re.IGNORECASE,
)

# What both sides draw for the upgrade alone, which nobody chose either.
_DRAWN = re.compile(rb"^sec-websocket-(?:key|accept):[^\r\n]*", re.MULTILINE | re.IGNORECASE)


def opening(client: bytes, server: bytes) -> Opening | None:
    """The upgrade, when both heads are there and agree on one."""
    if not client.startswith(METHOD):
        return None
    try:
        asking = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        asking.receive_data(client[:MAX_HEAD_BYTES])
        request = asking.next_event()
        if not isinstance(request, h11.Request) or not _names(request, b"upgrade", b"websocket"):
            return None
        answering = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        answering.send(request)
        answering.receive_data(server[:MAX_HEAD_BYTES])
        response = answering.next_event()
    except h11.ProtocolError:
        return None
    if not isinstance(response, h11.InformationalResponse) or response.status_code != 101:
        return None
    if not _names(response, b"upgrade", b"websocket"):
        return None
    before = (_head_bytes(asking, client), _head_bytes(answering, server))
    named = _value(response, b"sec-websocket-protocol")
    inner = named if named is not None and len(named) <= MAX_NAME_BYTES else None
    name = f", subprotocol {inner}" if inner else ""
    told = Told("chat", "protocol", "websocket", f"the connection was upgraded to WebSocket{name}", 0, before[1])
    hidden = _hidden(CLIENT_TO_SERVER, client[: before[0]]) + _hidden(SERVER_TO_CLIENT, server[: before[1]])
    return Opening(before, inner, _value(response, b"sec-websocket-extensions") or "", hidden, told)


def _head_bytes(connection: h11.Connection, data: bytes) -> int:
    return min(len(data), MAX_HEAD_BYTES) - len(connection.trailing_data[0])


def _names(event: h11.Request | h11.InformationalResponse, field: bytes, word: bytes) -> bool:
    values = (value for name, value in event.headers if name == field)
    return any(word == part.strip().lower() for value in values for part in value.split(b","))


def _value(event: h11.InformationalResponse, field: bytes) -> str | None:
    """The values of a header field, as short text that can be shown."""
    values = [value.decode("ascii", "replace") for name, value in event.headers if name == field]
    return ", ".join(values)[:MAX_VALUE_CHARACTERS] or None


def _hidden(direction: int, head: bytes) -> tuple[HiddenBytes, ...]:
    spans = [found.span(found.lastindex or 0) for found in _CREDENTIALS.finditer(head)]
    # Other fields name addresses and programs, which may have one inside. Latin-1: a character for each byte.
    text = _DRAWN.sub(lambda drawn: b" " * len(drawn[0]), head).decode("latin-1")
    spans += secret_spans(text)
    return tuple(HiddenBytes(direction, *span) for span in _apart(spans))


def _apart(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Rising; what lies within one before it is left out."""
    behind = 0
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if end > behind:
            yield max(start, behind), end
            behind = end

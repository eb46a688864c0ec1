"""Request and response headers: the bytes behind a frame's size in, API, version, correlation and body position out.

Request headers: version 1 has a client id, version 2 (flexible) tagged fields behind it, version 0 neither; only
ControlledShutdown 0 uses it. Response headers: a correlation id, in version 1 (flexible) tagged fields behind it.
Sources: RequestHeader.json and ResponseHeader.json of Apache Kafka; KIP-482; KIP-511 for ApiVersions.
"""

from __future__ import annotations

import struct
from typing import Any

from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS
from wirewitness.dissectors.kafka.schema.compile import decoder
from wirewitness.dissectors.kafka.schema.primitives import skip_tags, text

CONTROLLED_SHUTDOWN = 7
API_VERSIONS = 18
UNSUPPORTED_VERSION = 35

# Text or a bare SASL token read as a header shows versions far above this; then its client id is none either.
MAX_VERSION = 1000
_NEVER = 1 << 15  # above any int16
_FLEXIBLE = {key: _NEVER if known.flexible is None else known.flexible for key, known in API_KEYS.items()}
_FLEXIBLE_RESPONSE = {**_FLEXIBLE, API_VERSIONS: _NEVER}
_read_request = struct.Struct(">hhih").unpack_from
_read_int32 = struct.Struct(">i").unpack_from
_read_int16 = struct.Struct(">h").unpack_from


def request_header(buf: bytes, pos: int, end: int) -> tuple[int, int, int, str | None, int]:
    """(api_key, version, correlation_id, client_id, body position) of the request at `pos`, just behind its size.

    For an API key that is not known the body position is behind the client id: whether tagged fields follow there,
    nobody can tell. Raises DecodeError; the bytes up to `end` <= len(buf) belong to the frame.
    """
    try:
        api_key, version, correlation_id, size = _read_request(buf, pos)
        client_id = None
        if api_key == CONTROLLED_SHUTDOWN and version == 0:
            body = pos + 8
        elif size < 0:
            body = pos + 10
        else:
            body = pos + 10 + size
            raw = buf[pos + 10 : body]
            client_id = raw.decode() if raw.isascii() else text(raw)
        if version >= _FLEXIBLE.get(api_key, _NEVER):
            count = buf[body]
            body += 1
            if count and body <= end:
                body = skip_tags(buf, body, count, end)
    except (IndexError, struct.error):
        raise DecodeError("the frame ends inside the request header") from None
    if body > end:
        raise DecodeError("the frame ends inside the request header")
    return api_key, version, correlation_id, client_id, body


def response_header(api_key: int, version: int, buf: bytes, pos: int, end: int) -> tuple[int, int]:
    """(correlation_id, body position) of the response at `pos`, just behind its size, to a request of that version.

    ApiVersions answers always have header 0, so that a client can read them before it knows the broker. Raises
    DecodeError.
    """
    try:
        (correlation_id,) = _read_int32(buf, pos)
        body = pos + 4
        if version >= _FLEXIBLE_RESPONSE.get(api_key, _NEVER):
            count = buf[body]
            body += 1
            if count and body <= end:
                body = skip_tags(buf, body, count, end)
    except (IndexError, struct.error):
        raise DecodeError("the frame ends inside the response header") from None
    if body > end:
        raise DecodeError("the frame ends inside the response header")
    return correlation_id, body


def correlation_id(buf: bytes, pos: int, end: int) -> int:
    """The correlation id of a response whose request is not known yet. Raises DecodeError."""
    if end - pos < 4 or end > len(buf):
        raise DecodeError("the frame ends inside the response header")
    (found,) = _read_int32(buf, pos)
    return int(found)


def decode_response(
    api_key: int, version: int, buf: bytes, pos: int, end: int, *, fields: frozenset[str] | None = None
) -> tuple[dict[str, Any], int, int] | None:
    """(value, position behind it, version of its form) of a response body, None where no schema covers the version.

    The form is that of the request's version, except that a broker which does not know the version of an ApiVersions
    request answers with error 35 in the form of version 0 (KIP-511). Raises DecodeError.
    """
    if api_key == API_VERSIONS and version > 0 and end - pos >= 2 and _read_int16(buf, pos)[0] == UNSUPPORTED_VERSION:
        answered = _decode_whole(buf, pos, end)
        if answered is not None:
            return answered, end, 0
    decode = decoder(api_key, version, "response", fields)
    if decode is None:
        return None
    value, behind = decode(buf, pos, end)
    return value, behind, version


def _decode_whole(buf: bytes, pos: int, end: int) -> dict[str, Any] | None:
    """The ApiVersions response at `pos` if version 0 describes all its bytes."""
    decode = decoder(API_VERSIONS, 0, "response")
    if decode is None:
        return None
    try:
        value, behind = decode(buf, pos, end)
    except DecodeError:
        return None
    return value if behind == end else None

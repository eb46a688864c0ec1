"""Who a certificate is for, by whom, and for how long. In: its DER bytes. Out: `Certificate`, None where unreadable.

Only these fields are looked at, so that a capture with certificates need not import all that reads them whole (a tenth
of a second). Sources: RFC 5280, 4.1 (fields), 4.2.1.6 (names), RFC 4514 (a name as text), X.690 (DER).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import NamedTuple

_SEQUENCE, _SET, _OID, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0x31, 0x06, 0xA0, 0x17, 0x18
_WIDE = 0x1E
_NAMES = {b"\x55\x04\x03": "CN", b"\x55\x04\x06": "C", b"\x55\x04\x07": "L", b"\x55\x04\x08": "ST",
          b"\x55\x04\x0a": "O", b"\x55\x04\x0b": "OU"}  # fmt: skip
_EXTENSIONS, _ALTERNATIVE_NAMES, _DNS_NAME, _ADDRESS = 0xA3, b"\x55\x1d\x11", 0x82, 0x87
_MOST_CHARACTERS = 300
# A certificate of a shared front has a hundred names.
MOST_NAMES = 200
_MOST_NAME_BYTES = 255
_NS = 1_000_000_000


class Certificate(NamedTuple):
    """subject, issuer: such as CN=broker1,O=Example. begins_ns, expires_ns: Unix ns.

    names: DNS names and addresses it is for: those of its extension, else the subject's common name. None where there
    are more than MOST_NAMES.
    """

    subject: str
    issuer: str
    begins_ns: int
    expires_ns: int
    names: tuple[str, ...] | None


def certificate(der: bytes) -> Certificate | None:
    """None for bytes that are no certificate."""
    try:
        body = list(_values(_one(_one(der, _SEQUENCE), _SEQUENCE)))
        at = 1 if body[0][0] == _VERSION else 0  # version 1 is left out
        issuer, validity, subject = body[at + 2][1], list(_values(body[at + 3][1])), body[at + 4][1]
        extensions = next((value for kind, value in body[at + 5 :] if kind == _EXTENSIONS), b"")
        return Certificate(
            _text_of(subject), _text_of(issuer), _time(*validity[0]), _time(*validity[1]), _names(subject, extensions)
        )
    except (IndexError, KeyError, ValueError, OverflowError):
        return None


def _one(data: bytes, kind: int) -> bytes:
    found, value = next(_values(data), (0, b""))
    if found != kind:
        raise ValueError("another kind")
    return value


def _values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and content of the values that follow each other. ValueError where one is cut."""
    at = 0
    while at + 2 <= len(data):
        kind, size, at = data[at], data[at + 1], at + 2
        if size & 0x80:
            length_bytes = size & 0x7F
            size, at = int.from_bytes(data[at : at + length_bytes]), at + length_bytes
        if at + size > len(data):
            raise ValueError("cut")
        yield kind, data[at : at + size]
        at += size


def _text_of(name: bytes) -> str:
    """The last part first, as people write it."""
    return ",".join(f"{kind}={text}" for kind, text in reversed(_parts(name)))[:_MOST_CHARACTERS]


def _parts(name: bytes) -> list[tuple[str, str]]:
    """Kind and text of each part of a name."""
    parts = []
    for _, relative in _values(name):
        for _, pair in _values(relative):
            (kind, oid), (form, value) = list(_values(pair))[:2]
            if kind == _OID and oid in _NAMES:
                parts.append((_NAMES[oid], value.decode("utf-16-be" if form == _WIDE else "utf-8", "replace")))
    return parts


def _names(subject: bytes, extensions: bytes) -> tuple[str, ...] | None:
    """RFC 6125, 6.4.4: the common name counts only where there is no other name."""
    found: list[str] = []
    for _, extension in _values(_one(extensions, _SEQUENCE) if extensions else b""):
        fields = list(_values(extension))
        if fields[0][1] != _ALTERNATIVE_NAMES:
            continue
        for kind, value in _values(_one(fields[-1][1], _SEQUENCE)):
            if kind == _DNS_NAME and len(value) <= _MOST_NAME_BYTES:
                found.append(value.decode("ascii", "backslashreplace"))
            elif kind == _ADDRESS and len(value) in (4, 16):
                found.append(str(ip_address(value)))
            if len(found) > MOST_NAMES:
                return None
    return tuple(found or [text[:_MOST_NAME_BYTES] for kind, text in _parts(subject) if kind == "CN"])


def _time(kind: int, value: bytes) -> int:
    text = value.decode("ascii", "replace")
    if kind == _UTC_TIME:  # RFC 5280, 4.1.2.5.1: two digits of the year, from 1950 on
        text = ("20" if text[:2] < "50" else "19") + text
    elif kind != _GENERALIZED_TIME:
        raise ValueError("no time")
    found = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return max(min(int(found.timestamp()) * _NS, (1 << 63) - 1), -(1 << 63))

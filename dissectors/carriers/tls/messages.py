"""Handshake messages of one direction.

In: the content of handshake records. Out: the messages at which keys change; facts on the way.

Sources: RFC 8446, 4; RFC 5246, 7.4; RFC 5077, 3.3 (tickets).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import NamedTuple

from wirewitness.dissectors.carriers.tls.hello import CLIENT_HELLO, MESSAGE_HEADER_BYTES, encrypted_extensions
from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT

# Who a certificate is for, by whom, and for how long. In: its DER bytes. Out: `Certificate`, None where unreadable.
#
# Only these fields are looked at, so that a capture with certificates need not import all that reads them whole (a
# tenth of a second). Sources: RFC 5280, 4.1 (fields), 4.2.1.6 (names), RFC 4514 (a name as text), X.690 (DER).

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
    found = found or [text[:_MOST_NAME_BYTES] for kind, text in _parts(subject) if kind == "CN"]
    return None if len(found) > MOST_NAMES else tuple(found)


def _time(kind: int, value: bytes) -> int:
    text = value.decode("ascii", "replace")
    if kind == _UTC_TIME:  # RFC 5280, 4.1.2.5.1: two digits of the year, from 1950 on
        text = ("20" if text[:2] < "50" else "19") + text
    elif kind != _GENERALIZED_TIME:
        raise ValueError("no time")
    found = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return max(min(int(found.timestamp()) * _NS, (1 << 63) - 1), -(1 << 63))


_NEW_SESSION_TICKET, _LIFETIME_BYTES = 4, 4
HELLO_REQUEST, END_OF_EARLY_DATA, FINISHED, KEY_UPDATE = 0, 5, 20, 24
_ENCRYPTED_EXTENSIONS, _CERTIFICATE, _CERTIFICATE_REQUEST, _SERVER_HELLO_DONE = 8, 11, 13, 14
# A chain of certificates is far smaller.
MOST_MESSAGE_BYTES = 1 << 18
TURNS = frozenset({HELLO_REQUEST, CLIENT_HELLO, END_OF_EARLY_DATA, FINISHED, KEY_UPDATE})


class Messages:
    """Puts messages together and notes what they tell. is_13: they are those of TLS 1.3.

    full: the server sent all that belongs to a handshake which is not resumed (TLS 1.2).
    unreadable: a certificate came that is none.
    """

    def __init__(self, direction: int, is_13: bool, facts: Encryption) -> None:
        self._direction, self._is_13, self._facts = direction, is_13, facts
        self._held = b""
        self.full = False
        self.unreadable = False

    @property
    def is_inside(self) -> bool:
        """A message is not whole yet."""
        return bool(self._held)

    def forget(self) -> None:
        """Bytes are missing: what was held is of no use."""
        self._held = b""

    def feed(self, content: bytes) -> Iterator[int]:
        """The types among TURNS of the messages that are whole now."""
        self._held += content
        while len(self._held) >= MESSAGE_HEADER_BYTES:
            kind, end = self._held[0], MESSAGE_HEADER_BYTES + int.from_bytes(self._held[1:4])
            if end > MOST_MESSAGE_BYTES:
                self.forget()
                return
            if len(self._held) < end:
                return
            body, self._held = self._held[MESSAGE_HEADER_BYTES:end], self._held[end:]
            self._note(kind, body)
            if kind in TURNS:
                yield kind

    def _note(self, kind: int, body: bytes) -> None:
        if kind == _CERTIFICATE:
            self._certificate(body)
        elif kind == _ENCRYPTED_EXTENSIONS:
            alpn, early = encrypted_extensions(body)
            self._facts.alpn = alpn or self._facts.alpn
            self._facts.early_data = early
            self._facts.client_asked = False  # unless a request follows
        elif kind == _CERTIFICATE_REQUEST:
            self._facts.client_asked = True
        elif kind == _NEW_SESSION_TICKET and len(body) > _LIFETIME_BYTES and self._direction == SERVER_TO_CLIENT:
            self._facts.tickets = (self._facts.tickets or 0) + 1
            self._facts.ticket_lifetime_s = int.from_bytes(body[:_LIFETIME_BYTES])
        elif kind == _SERVER_HELLO_DONE:
            self.full = True
            self._facts.client_asked = bool(self._facts.client_asked)

    def _certificate(self, body: bytes) -> None:
        """The first one of the chain, which is the sender's own."""
        at = 1 + body[0] if self._is_13 and body else 0  # a context stands first
        start = at + 6
        is_client = self._direction == CLIENT_TO_SERVER
        sent = body[start : start + int.from_bytes(body[at + 3 : start])]
        if is_client:
            self._facts.client_sent = bool(sent)
        found = certificate(sent)
        self.unreadable = self.unreadable or (found is None and bool(sent))
        if found is not None:
            self._facts.certificates[self._direction] = found

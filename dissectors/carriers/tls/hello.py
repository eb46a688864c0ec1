"""How a TLS connection begins: ClientHello and ServerHello. In: the first bytes of both directions. Out: `Hellos`.

Sources: RFC 8446, 4.1 and 4.2; RFC 5246, 7.4.1; RFC 6066 (server_name), RFC 7301 (ALPN), RFC 7366 (encrypt-then-MAC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

HANDSHAKE, CHANGE_CIPHER_SPEC, ALERT, APPLICATION_DATA = 22, 20, 21, 23
CLIENT_HELLO, SERVER_HELLO = 1, 2
RECORD_HEADER_BYTES, MESSAGE_HEADER_BYTES = 5, 4
TLS_12, TLS_13 = 0x0303, 0x0304
VERSIONS = {0x0300: "SSL 3.0", 0x0301: "TLS 1.0", 0x0302: "TLS 1.1", TLS_12: "TLS 1.2", TLS_13: "TLS 1.3"}
_RANDOM_BYTES = 32
_SERVER_NAME, _ALPN, _MAC_LAST, _TICKET, _PRE_SHARED_KEY, _EARLY_DATA, _SUPPORTED_VERSIONS = 0, 16, 22, 35, 41, 42, 43
_HOST_NAME = 0
_MAX_NAME_BYTES = 255
# The random of a ServerHello that asks for another ClientHello: RFC 8446, 4.1.3.
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


class ClientHello(NamedTuple):
    """sni: None where there is none, or it is damaged. early_data: the client means to send data before the answer.

    offered: versions that the client takes, as text. resumption: it wants an earlier session to go on.
    """

    random: bytes
    session_id: bytes
    sni: str | None
    early_data: bool
    offered: str
    resumption: bool


class ServerHello(NamedTuple):
    """version, cipher: as chosen. mac_last: encrypt-then-MAC. psk: with a key of before (TLS 1.3)."""

    random: bytes
    session_id: bytes
    version: int
    cipher: int
    compression: int
    alpn: str | None
    mac_last: bool
    psk: bool

    @property
    def is_13(self) -> bool:
        """TLS 1.3, whose handshake is encrypted behind this message."""
        return self.version == TLS_13


class Hellos(NamedTuple):
    """What both sides agreed on. retried: the server asked for another ClientHello first (RFC 8446, 4.1.4)."""

    client: ClientHello
    server: ServerHello
    retried: bool = False


def hellos(client: bytes, server: bytes) -> Hellos | None:
    """Both hellos, once both are there."""
    asked = next((client_hello(body) for kind, body in first_messages(client) if kind == CLIENT_HELLO), None)
    if asked is None:
        return None
    for number, (kind, body) in enumerate(first_messages(server)):
        answered = server_hello(body) if kind == SERVER_HELLO else None
        if answered is None:
            return None
        if answered.random != _RETRY:
            return Hellos(asked, answered, number > 0)
    return None


def first_messages(head: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of the handshake messages at the start of a direction, put together from their records."""
    held = b""
    at = 0
    while at + RECORD_HEADER_BYTES <= len(head) and head[at] in (HANDSHAKE, CHANGE_CIPHER_SPEC):
        size = int.from_bytes(head[at + 3 : at + 5])
        if head[at] == HANDSHAKE:
            held += head[at + RECORD_HEADER_BYTES : at + RECORD_HEADER_BYTES + size]
        while len(held) >= MESSAGE_HEADER_BYTES:
            end = MESSAGE_HEADER_BYTES + int.from_bytes(held[1:4])
            if len(held) < end:
                break
            yield held[0], held[MESSAGE_HEADER_BYTES:end]
            held = held[end:]
        at += RECORD_HEADER_BYTES + size


def client_hello(body: bytes) -> ClientHello | None:
    """None where the message is too short to be one."""
    found = _start(body)
    if found is None:
        return None
    random, session_id, at = found
    for length_bytes in (2, 1):  # cipher suites, compression methods
        at += length_bytes + int.from_bytes(body[at : at + length_bytes])
    extensions = _extensions(body, at)
    versions = _versions(extensions.get(_SUPPORTED_VERSIONS, b""))
    by_session_id = bool(session_id) and TLS_13 not in versions  # with TLS 1.3 it is there for what lies between
    return ClientHello(
        random,
        session_id,
        _server_name(extensions.get(_SERVER_NAME)),
        _EARLY_DATA in extensions,
        ", ".join(VERSIONS[version] for version in versions) or f"up to {version_name(int.from_bytes(body[:2]))}",
        _PRE_SHARED_KEY in extensions or bool(extensions.get(_TICKET)) or by_session_id,
    )


def version_name(version: int) -> str:
    """Such as TLS 1.2."""
    return VERSIONS.get(version, f"0x{version:04X}")


def _versions(value: bytes) -> list[int]:
    """Those that have a name, the oldest first; others are there to keep servers used to them (RFC 8701)."""
    listed = {int.from_bytes(value[at : at + 2]) for at in range(1, len(value) - 1, 2)}
    return sorted(listed & VERSIONS.keys())


def server_hello(body: bytes) -> ServerHello | None:
    """None where the message is too short to be one."""
    found = _start(body)
    if found is None or len(body) < found[2] + 3:
        return None
    random, session_id, at = found
    extensions = _extensions(body, at + 3)
    chosen = extensions.get(_SUPPORTED_VERSIONS, b"")
    return ServerHello(
        random,
        session_id,
        int.from_bytes(chosen) if len(chosen) == 2 else int.from_bytes(body[:2]),
        int.from_bytes(body[at : at + 2]),
        body[at + 2],
        alpn_of(extensions),
        _MAC_LAST in extensions,
        _PRE_SHARED_KEY in extensions,
    )


def encrypted_extensions(body: bytes) -> tuple[str | None, bool]:
    """Of EncryptedExtensions (TLS 1.3): the protocol chosen by ALPN, and whether early data is taken."""
    extensions = _extensions(body, 0)
    return alpn_of(extensions), _EARLY_DATA in extensions


def alpn_of(extensions: Mapping[int, bytes]) -> str | None:
    """The one protocol that a server chose."""
    value = extensions.get(_ALPN, b"")
    return _text(value[3 : 3 + value[2]]) if len(value) > 3 else None


def _start(body: bytes) -> tuple[bytes, bytes, int] | None:
    """Random and session id, with which both hellos begin behind the version, and where they end."""
    at = 2 + _RANDOM_BYTES
    if len(body) <= at or len(body) < at + 1 + body[at]:
        return None
    return body[2:at], body[at + 1 : at + 1 + body[at]], at + 1 + body[at]


def _extensions(body: bytes, at: int) -> dict[int, bytes]:
    """By type, the first of each; what is cut is left out."""
    end = min(len(body), at + 2 + int.from_bytes(body[at : at + 2]))
    at += 2
    found: dict[int, bytes] = {}
    while at + 4 <= end:
        size = int.from_bytes(body[at + 2 : at + 4])
        if at + 4 + size <= end:
            found.setdefault(int.from_bytes(body[at : at + 2]), body[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def _server_name(value: bytes | None) -> str | None:
    if value is None or value[2:3] != bytes([_HOST_NAME]):
        return None
    return _text(value[5 : 5 + int.from_bytes(value[3:5])])


def _text(name: bytes) -> str | None:
    """A name as ASCII; None for what is none."""
    return name.decode("ascii") if 0 < len(name) <= _MAX_NAME_BYTES and name.isascii() else None

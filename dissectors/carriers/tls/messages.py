"""Handshake messages of one direction.

In: the content of handshake records. Out: the messages at which keys change; facts on the way.

Sources: RFC 8446, 4; RFC 5246, 7.4; RFC 5077, 3.3 (tickets).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.dissectors.carriers.tls.certificate import certificate
from wirewitness.dissectors.carriers.tls.hello import CLIENT_HELLO, MESSAGE_HEADER_BYTES, encrypted_extensions
from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT

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

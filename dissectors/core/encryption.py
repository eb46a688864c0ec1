"""What is known of the TLS around a flow. Filled by what reads the handshake, read by whoever makes rows of flows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

# What became of a direction's records, the gravest last.
DECRYPTED, LOST = "decrypted", "records lost"
UNSUPPORTED, UNSUPPORTED_VERSION = "cipher suite not supported", "version not supported"
# Open before the capture; begun in it, with packets of the handshake lost, or cut by the snap length.
NO_START, START_LOST, SNAPPED = "start not captured", "start lost", "cut by snap length"
NO_KEY, WRONG_KEY = "no key", "wrong key"
_GRAVITY = (DECRYPTED, LOST, UNSUPPORTED, UNSUPPORTED_VERSION, NO_START, START_LOST, SNAPPED, NO_KEY, WRONG_KEY)


class CertificateFacts(Protocol):
    """What a certificate says of itself. Times are Unix ns. names: those it is for; None where they are too many."""

    @property
    def subject(self) -> str: ...
    @property
    def issuer(self) -> str: ...
    @property
    def begins_ns(self) -> int: ...
    @property
    def expires_ns(self) -> int: ...
    @property
    def names(self) -> tuple[str, ...] | None: ...


@dataclass(slots=True)
class Encryption:
    """TLS around one flow. Fields are None while they are not known.

    sni: the server name that the client asked for. version: such as TLS 1.3. cipher: the suite's name. alpn: the
    protocol that the server chose. offered: versions that the client offers. resumption_offered: it wants an earlier
    session to go on. resumed: one does. retried: the server asked for another ClientHello. early_data: the server takes
    data that the client sends before its answer. early_data_offered: the client means to send some. certificates: the
    own ones of client and server. client_asked, client_sent: the server asked for a certificate, the client sent one.
    tickets: how many the server gave for later sessions, None where that cannot be read; ticket_lifetime_s: that of the
    last one.
    alerts: level and name of the last fatal alert of each side, else of its first one. sides: what became of the
    records of client and server, one of the words above. opened: some record of either side was.
    client_random, session_id: what keys are found by, which is no secret. tried: the kinds of secrets that were there
    for a side that has no key, as bits (`KeyRing.kinds`).
    """

    sni: str | None = None
    version: str | None = None
    cipher: str | None = None
    alpn: str | None = None
    offered: str | None = None
    resumption_offered: bool | None = None
    resumed: bool | None = None
    retried: bool | None = None
    early_data: bool | None = None
    early_data_offered: bool | None = None
    client_asked: bool | None = None
    client_sent: bool | None = None
    tickets: int | None = None
    ticket_lifetime_s: int | None = None
    certificates: list[CertificateFacts | None] = field(default_factory=lambda: [None, None])
    alerts: list[str | None] = field(default_factory=lambda: [None, None])
    sides: list[str | None] = field(default_factory=lambda: [None, None])
    opened: bool = False
    client_random: bytes | None = None
    session_id: bytes | None = None
    tried: int = 0

    @property
    def decryption(self) -> str | None:
        """What became of the flow's records, by the direction that came off worse; None while there were none."""
        found = [_GRAVITY.index(side) for side in self.sides if side is not None]
        return _GRAVITY[max(found)] if found else None

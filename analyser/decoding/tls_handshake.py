"""How a TLS handshake came out, told by the records of both sides: without keys too.

In: the first records of both sides, the version, the suite. Out: `Handshake`. What is encrypted has a length: an alert
is two bytes, Finished has the size of the suite's hash, a Certificate without a certificate eight bytes. Sources:
RFC 8446, 4 (order of messages), 4.4, 5.2, 6; RFC 5246, 7.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wirewitness.analyser.tcp.tls_records import MOST_RECORDS, TlsRecord
from wirewitness.dissectors.carriers.tls.hello import (
    CLIENT_HELLO,
    HANDSHAKE,
    RECORD_HEADER_BYTES,
    SERVER_HELLO,
    ClientHello,
    client_hello,
    first_messages,
)

# TLS on a flow: is it there, and what does the client ask for? Nothing is decrypted here.
#
# In: the first bytes of both directions. Out: `Encryption`, or None. Sources: RFC 8446 (records, ClientHello), RFC
# 6066 (server_name).

_MAX_RECORD_BYTES = (1 << 14) + 2048
_HELLOS = (bytes([CLIENT_HELLO]), bytes([SERVER_HELLO]))


class Encryption(NamedTuple):
    """hello: the ClientHello, None while it is not whole. complete: more bytes would tell no more.

    from_first: the first of the two directions sent the ClientHello; None when it was not seen. starts_late: a hello
    was not captured, or not from its first byte on.
    """

    hello: ClientHello | None
    complete: bool
    from_first: bool | None
    starts_late: bool


def encryption(
    first: bytes, second: bytes, first_unseen: bool = False, second_unseen: bool = False
) -> Encryption | None:
    """TLS, if the bytes of at least one direction say so and the other does not speak against it.

    unseen: the direction's first bytes were not captured, so what is there may be the middle of a record: it says
    nothing against a hello of the other direction.
    """
    if first_unseen and _is_hello(second) and _record_kind(first) is None:
        first = b""
    elif second_unseen and _is_hello(first) and _record_kind(second) is None:
        second = b""
    late = any(unseen and not _is_hello(head) for unseen, head in ((first_unseen, first), (second_unseen, second)))
    kinds = _record_kind(first), _record_kind(second)
    spoken = [kind for kind, head in zip(kinds, (first, second), strict=True) if head]
    if not spoken or None in spoken:
        return None
    for from_first, head in ((True, first), (False, second)):
        if head[:1] == bytes([HANDSHAKE]) and head[5:6] == bytes([CLIENT_HELLO]):
            message = next(first_messages(head), None)
            hello = None if message is None else client_hello(message[1])
            return Encryption(hello, message is not None, from_first, late)
    return Encryption(None, len(spoken) == len(kinds), None, True)


def _is_hello(head: bytes) -> bool:
    return _record_kind(head) == HANDSHAKE and head[5:6] in _HELLOS


def _record_kind(head: bytes) -> int | None:
    """Content type of the record that starts here; None when none can start here."""
    if len(head) < RECORD_HEADER_BYTES:
        return None
    kind, major, minor = head[0], head[1], head[2]
    size = int.from_bytes(head[3:5])
    if not 20 <= kind <= 23 or major != 3 or minor > 4 or not 0 < size <= _MAX_RECORD_BYTES:
        return None
    after = head[RECORD_HEADER_BYTES + size :]
    if after and not (20 <= after[0] <= 23 and after[1:2] in (b"", b"\x03")):
        return None
    if kind == HANDSHAKE and head[5:6] in _HELLOS:
        return kind
    return kind if kind != HANDSHAKE or after else None


COMPLETE, BROKEN_OFF = "complete", "broken off"
REFUSED = ("refused by client", "refused by server")
_CCS, _ALERT, _HANDSHAKE, _DATA = 20, 21, 22, 23
_ALERT_BYTES = 2
# TLS 1.3: the type that ends what is encrypted, and the tag.
_TYPE_BYTES, _TAG_BYTES, _SHORT_TAG_BYTES = 1, 16, 8
# What is put behind the type to hide lengths: nothing, or 16 bytes, as Java does.
_PADDINGS = (0, 16)
_MESSAGE_HEADER_BYTES, _EMPTY_CERTIFICATE_BYTES = 4, 8
# A certificate with what proves that the key to it is there is larger.
_LEAST_CERTIFICATE_BYTES = 150
# Later than that an encrypted alert is the end of a connection that worked.
_SOON_NS = 5_000_000_000


class Handshake(NamedTuple):
    """state: one of the words above, None while it goes on or is not known. ms: from the client's first record until
    both sides can send data. answer_ms: of this until the server's first record. client_asked, client_sent: was a
    certificate of the client asked for, and sent?
    """

    state: str | None = None
    ms: float | None = None
    answer_ms: float | None = None
    client_asked: bool | None = None
    client_sent: bool | None = None


class Seen(NamedTuple):
    """What is known besides the records. fatal: each side sent a fatal alert that could be read. closed_ns: when the
    first of them closed or reset the connection, None while open. early: the client means to send early data.
    decrypted: all records were opened, so an alert that could not be read is the orderly end.
    """

    is_13: bool
    cipher: str | None
    fatal: tuple[bool, bool]
    closed_ns: int | None
    early: bool
    decrypted: bool


def handshake(client: Sequence[TlsRecord], server: Sequence[TlsRecord], seen: Seen) -> Handshake:
    """client, server: their first records, from the beginning on; at least one of the client."""
    answer_ms = _ms(client[0], server[0]) if server else None
    read = _of_13 if seen.is_13 else _of_12
    return read(client, server, seen)._replace(answer_ms=answer_ms)


def _of_12(client: Sequence[TlsRecord], server: Sequence[TlsRecord], seen: Seen) -> Handshake:
    """TLS 1.2 and older, and what failed before the server chose a version."""
    turns = [next((one for one in side if one.kind == _CCS), None) for side in (client, server)]
    if turns[0] is not None and turns[1] is not None:
        last = max(turns[0], turns[1], key=lambda one: one.ts_ns)
        return Handshake(COMPLETE, _ms(client[0], last))
    return Handshake(_failed(seen))


def _failed(seen: Seen) -> str | None:
    for refused, fatal in zip(REFUSED, seen.fatal, strict=True):
        if fatal:
            return refused
    return None if seen.closed_ns is None else BROKEN_OFF


def _of_13(client: Sequence[TlsRecord], server: Sequence[TlsRecord], seen: Seen) -> Handshake:
    if any(one.kind == _ALERT for one in (*client, *server)):  # in the clear: before there were keys
        return Handshake(_failed(seen))
    mine, theirs = ([one for one in side if one.kind == _DATA] for side in (client, server))
    if not mine or not theirs:
        return Handshake(_failed(seen))
    if seen.early:  # what the client sent first is data
        return Handshake(COMPLETE if len(mine) > 1 and seen.closed_ns is None else None)
    around = _TYPE_BYTES + (_SHORT_TAG_BYTES if (seen.cipher or "").endswith("CCM_8_SHA256") else _TAG_BYTES)
    alerts = {around + _ALERT_BYTES + padding for padding in _PADDINGS}
    if mine[0].size in alerts:
        return Handshake(REFUSED[0])
    asked, sent = _own_certificate(mine[0].size - around, 48 if (seen.cipher or "").endswith("384") else 32)
    found = Handshake(COMPLETE, _ms(client[0], mine[0]), None, asked, sent)
    after = [one for one in theirs if one.ts_ns >= mine[0].ts_ns]
    is_alone = len(after) == 1 and len(server) < MOST_RECORDS and after[0].size in alerts
    if not is_alone or (seen.decrypted and not seen.fatal[1]):
        return found
    is_first = all(one.size not in alerts or one.ts_ns > after[0].ts_ns for one in mine)
    soon = after[0].ts_ns - mine[0].ts_ns < _SOON_NS
    before_the_end = seen.closed_ns is None or after[0].ts_ns <= seen.closed_ns
    if is_first and soon and (before_the_end or seen.fatal[1]):
        return found._replace(state=REFUSED[1], ms=None)
    return found


def _own_certificate(size: int, hash_bytes: int) -> tuple[bool | None, bool | None]:
    """Asked, sent: by how long the client's first encrypted handshake message is, or all of them in one record."""
    finished = _MESSAGE_HEADER_BYTES + hash_bytes
    if size - finished in _PADDINGS:
        return False, False
    if {size - _EMPTY_CERTIFICATE_BYTES, size - _EMPTY_CERTIFICATE_BYTES - finished} & {*_PADDINGS}:
        return True, False
    return (True, True) if size >= _LEAST_CERTIFICATE_BYTES else (None, None)


def _ms(first: TlsRecord, last: TlsRecord) -> float:
    return max(last.ts_ns - first.ts_ns, 0) / 1e6

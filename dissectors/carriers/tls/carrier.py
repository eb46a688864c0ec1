"""The carrier TLS (RFC 5246, RFC 8446). In: a ring of keys, which may be empty. Out: a `Carrier`.

Without a key the handshake is read as far as it is in the clear. Nothing is imported before a connection speaks TLS,
and what opens records not before there is a key for one.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.carrier import Carrier, Opening, Unwrapper
from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.limits import Limits

if TYPE_CHECKING:
    from wirewitness.dissectors.carriers.tls.keylog import KeyRing
    from wirewitness.dissectors.core.lockstep.frames import Bytes, Flags

NAME = "tls"
# A record with the beginning of a ClientHello.
_CLIENT_HELLO = re.compile(rb"\x16\x03[\x00-\x04]..\x01", re.DOTALL)
_TELLS_BYTES = 6
_HANDSHAKE = 0x16


def tls(ring: KeyRing | None = None) -> Carrier:
    """TLS with these keys; None for none."""
    again = None if ring is None else partial(_again, ring)
    return Carrier(NAME, _may_open, _opening, _looks_like, partial(_unwrapper, ring), again, _opens)


def _may_open(client: bytes) -> bool:
    return len(client) >= _TELLS_BYTES and _CLIENT_HELLO.match(client) is not None


def _opens(heads: Bytes) -> Flags:
    found: Flags = heads[:, 0] == _HANDSHAKE
    return found


def _opening(client: bytes, server: bytes) -> Opening | None:
    if not _may_open(client) or not server:
        return None
    from wirewitness.dissectors.carriers.tls.hello import hellos, version_name
    from wirewitness.dissectors.carriers.tls.suite_names import name_of

    found = hellos(client, server)
    if found is None:
        return None
    asked, answered, retried = found
    facts = Encryption(
        sni=asked.sni,
        version=version_name(answered.version),
        cipher=name_of(answered.cipher),
        alpn=answered.alpn,
        resumed=answered.psk if answered.is_13 else None,
        offered=asked.offered,
        resumption_offered=asked.resumption,
        retried=retried,
        early_data=None if asked.early_data else False,
        early_data_offered=asked.early_data,
        client_random=asked.random,
        session_id=answered.session_id,
    )
    return Opening((0, 0), answered.alpn, "", (), None, facts, found)


def _looks_like(_: bytes) -> None:
    """In the middle of a connection nobody knows which keys its records are under."""


def _unwrapper(ring: KeyRing | None, direction: int, opened: Opening | None, limits: Limits) -> Unwrapper:
    from wirewitness.dissectors.carriers.tls.hello import Hellos
    from wirewitness.dissectors.carriers.tls.keylog import KeyRing
    from wirewitness.dissectors.carriers.tls.unwrapping import TlsUnwrapper

    if opened is None or opened.encryption is None or not isinstance(opened.agreed, Hellos):
        raise ValueError("TLS is read from its hellos on")
    return TlsUnwrapper(direction, opened.agreed, opened.encryption, KeyRing() if ring is None else ring, limits)


def _again(ring: KeyRing, unwrapper: Unwrapper) -> None:
    from wirewitness.dissectors.carriers.tls.unwrapping import TlsUnwrapper

    if isinstance(unwrapper, TlsUnwrapper):
        unwrapper.use(ring)


TLS = tls()

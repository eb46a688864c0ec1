"""Keys from secrets. In: what a key log holds. Out: bytes for ciphers.

Sources: RFC 5246, 5 and 6.3 (the PRF and key block of TLS 1.2); RFC 5869 and RFC 8446, 7.1 to 7.3 (TLS 1.3).
"""

from __future__ import annotations

import hmac
from hashlib import new
from typing import NamedTuple

from wirewitness.dissectors.carriers.tls.suites import CBC, CHACHA, Suite


class KeyBytes(NamedTuple):
    """What one direction's cipher needs: MAC key (CBC of TLS 1.2), key, and the fixed part of nonces."""

    mac: bytes
    key: bytes
    iv: bytes


def key_block(master: bytes, randoms: tuple[bytes, bytes], suite: Suite) -> tuple[KeyBytes, KeyBytes]:
    """TLS 1.2: the keys of client and server. randoms: of client and server."""
    iv_bytes = {CBC: 0, CHACHA: 12}.get(suite.mode, 4)
    sizes = (suite.mac_bytes, suite.mac_bytes, suite.key_bytes, suite.key_bytes, iv_bytes, iv_bytes)
    block = _prf(master, b"key expansion" + randoms[1] + randoms[0], sum(sizes), suite.prf)
    parts, at = [], 0
    for size in sizes:
        parts.append(block[at : at + size])
        at += size
    return KeyBytes(*parts[::2]), KeyBytes(*parts[1::2])


def traffic_keys(secret: bytes, suite: Suite) -> KeyBytes:
    """TLS 1.3: the keys of a traffic secret."""
    key = expand_label(secret, b"key", suite.key_bytes, suite.prf)
    return KeyBytes(b"", key, expand_label(secret, b"iv", 12, suite.prf))


def next_secret(secret: bytes, suite: Suite) -> bytes:
    """TLS 1.3: the traffic secret behind a KeyUpdate."""
    return expand_label(secret, b"traffic upd", len(secret), suite.prf)


def expand_label(secret: bytes, label: bytes, size: int, name: str) -> bytes:
    """HKDF-Expand-Label with an empty context; at most one block, which is all that TLS asks for."""
    told = b"tls13 " + label
    info = size.to_bytes(2) + bytes([len(told)]) + told + b"\0"
    return hmac.digest(secret, info + b"\x01", name)[:size]


def unpadded(secret: bytes, suite: Suite) -> bytes:
    """Some programs log secrets of TLS 1.3 in a field of fixed size, with zeros behind them."""
    size = new(suite.prf).digest_size
    return secret[:size] if not any(secret[size:]) else secret


def _prf(secret: bytes, seed: bytes, size: int, name: str) -> bytes:
    found, chained = b"", seed
    while len(found) < size:
        chained = hmac.digest(secret, chained, name)
        found += hmac.digest(secret, chained + seed, name)
    return found[:size]

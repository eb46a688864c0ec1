"""Ciphers of TLS records, by `cryptography`.

In: keys, and one record. Out: its content, or None where the tag is wrong.

One object for each direction and key; a record is one call. Imported when there is a key for a connection.
Sources: RFC 5246, 6.2.3; RFC 5288, 3; RFC 7905, 2; RFC 7366 (encrypt-then-MAC); RFC 8446, 5.2 and 5.3.
"""

from __future__ import annotations

import hmac
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES

from wirewitness.dissectors.carriers.tls.derive import KeyBytes
from wirewitness.dissectors.carriers.tls.suites import CBC, CCM, CHACHA, Suite

_VERSION_12 = b"\x03\x03"
_NONCE_BYTES, _BLOCK_BYTES = 8, 16
# Measured with short records, the loop over numbers included: 2 to 3, 3.5 and 8.5 us.
_TRY_BYTES, _TRY_BYTES_OF_A_MAC, _TRY_BYTES_OF_A_MAC_INSIDE = 500, 700, 1600


class RecordKeys(Protocol):
    """Opens the records of one direction under one key. lead: bytes of a record before those that become content.
    try_bytes: what a try costs beyond the bytes of the record, in bytes of a long one: 5 ns each."""

    lead: int
    try_bytes: int

    def open(self, number: int, kind: int, record: bytes | memoryview) -> bytes | None:
        """The content of record `number` (from 0), without its header; None when it is not that one, or damaged."""
        ...


class _Aead13:
    """TLS 1.3: the nonce is the record's number; type and padding are inside."""

    lead = 0
    try_bytes = _TRY_BYTES

    def __init__(self, suite: Suite, keys: KeyBytes) -> None:
        self._decrypt = _aead(suite, keys.key).decrypt
        self._iv = int.from_bytes(keys.iv)

    def open(self, number: int, kind: int, record: bytes | memoryview) -> bytes | None:
        """See `RecordKeys`."""
        try:
            return self._decrypt((self._iv ^ number).to_bytes(12), record, b"\x17\x03\x03" + len(record).to_bytes(2))
        except (InvalidTag, ValueError):
            return None


class _Aead12:
    """TLS 1.2: part of the nonce stands in front of the record, but for ChaCha20."""

    try_bytes = _TRY_BYTES

    def __init__(self, suite: Suite, keys: KeyBytes) -> None:
        self._cipher = _aead(suite, keys.key)
        self._iv = keys.iv
        self._tag_bytes = suite.tag_bytes
        self.lead = 0 if suite.mode == CHACHA else _NONCE_BYTES

    def open(self, number: int, kind: int, record: bytes | memoryview) -> bytes | None:
        """See `RecordKeys`."""
        lead = self.lead
        size = len(record) - lead - self._tag_bytes
        if size < 0:
            return None
        told = number.to_bytes(8)
        nonce = self._iv + record[:lead] if lead else (int.from_bytes(self._iv) ^ number).to_bytes(12)
        try:
            return self._cipher.decrypt(
                nonce, record[lead:] if lead else record, told + bytes([kind]) + _VERSION_12 + size.to_bytes(2)
            )
        except (InvalidTag, ValueError):
            return None


class _Cbc:
    """TLS 1.2: CBC with an HMAC, over the content or (RFC 7366) over what was made of it."""

    lead = _BLOCK_BYTES

    def __init__(self, suite: Suite, keys: KeyBytes, mac_last: bool) -> None:
        self._algorithm = AES(keys.key)
        self._mac_key, self._hash, self._mac_bytes = keys.mac, suite.mac, suite.mac_bytes
        self._mac_last = mac_last
        self.try_bytes = _TRY_BYTES_OF_A_MAC if mac_last else _TRY_BYTES_OF_A_MAC_INSIDE

    def open(self, number: int, kind: int, record: bytes | memoryview) -> bytes | None:
        """See `RecordKeys`."""
        sealed = record
        if self._mac_last:
            sealed = record[: -self._mac_bytes]
            if not self._is_mac(number, kind, sealed, record[-self._mac_bytes :]):
                return None
        if len(sealed) < 2 * _BLOCK_BYTES or len(sealed) % _BLOCK_BYTES:
            return None
        decryptor = Cipher(self._algorithm, modes.CBC(sealed[:_BLOCK_BYTES])).decryptor()
        plain = decryptor.update(sealed[_BLOCK_BYTES:]) + decryptor.finalize()
        padding = plain[-1] + 1
        if padding > len(plain) or plain[-padding:].count(plain[-1]) != padding:
            return None
        content = plain[:-padding]
        if self._mac_last:
            return content
        if len(content) < self._mac_bytes:
            return None
        content, mac = content[: -self._mac_bytes], content[-self._mac_bytes :]
        return content if self._is_mac(number, kind, content, mac) else None

    def _is_mac(self, number: int, kind: int, told: bytes | memoryview, mac: bytes | memoryview) -> bool:
        head = number.to_bytes(8) + bytes([kind]) + _VERSION_12 + len(told).to_bytes(2)
        return hmac.digest(self._mac_key, head + told, self._hash) == mac


def keys_of(suite: Suite, keys: KeyBytes, *, is_13: bool, mac_last: bool) -> RecordKeys:
    """What opens one direction's records. mac_last: both sides agreed on encrypt-then-MAC."""
    if is_13:
        return _Aead13(suite, keys)
    return _Cbc(suite, keys, mac_last) if suite.mode == CBC else _Aead12(suite, keys)


def _aead(suite: Suite, key: bytes) -> AESGCM | AESCCM | ChaCha20Poly1305:
    if suite.mode == CHACHA:
        return ChaCha20Poly1305(key)
    return AESCCM(key, tag_length=suite.tag_bytes) if suite.mode == CCM else AESGCM(key)

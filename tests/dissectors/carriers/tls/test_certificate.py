"""What is read of a certificate is what `cryptography` reads, and bytes that are none cost nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dissectors.carriers.tls.reading import read
from tests.support.timing import takes_less_than
from tests.support.tls_certificates import Authority
from tests.support.tls_twin import TLS_12, Pair, Sides
from wirewitness.dissectors.carriers.tls.messages import MOST_NAMES, Messages, certificate
from wirewitness.dissectors.core.encryption import Encryption
from wirewitness.dissectors.core.model import SERVER_TO_CLIENT

AUTHORITY = Authority("Prüf-CA")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def der_of(path: str) -> bytes:
    return x509.load_pem_x509_certificate(Path(path).read_bytes()).public_bytes(Encoding.DER)


NAMED = der_of(AUTHORITY.issue("broker 1", ["a.example", "*.b.example", "10.0.0.9", "fd00::9"], now=NOW).certificate)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.example", "*.b.example", "10.0.0.9", "fd00::9"], ("a.example", "*.b.example", "10.0.0.9", "fd00::9")),
        ([], ("broker 1",)),
        ([f"{number}.example" for number in range(MOST_NAMES)], tuple(f"{n}.example" for n in range(MOST_NAMES))),
        ([f"{number}.example" for number in range(MOST_NAMES + 1)], None),
    ],
    ids=["names", "no names", "many", "too many"],
)
@pytest.mark.parametrize("years", [1, 40], ids=["soon", "behind 2050"])
def test_what_cryptography_reads(names: list[str], expected: tuple[str, ...] | None, years: int) -> None:
    der = der_of(AUTHORITY.issue("broker 1", names, expires_days=365 * years, now=NOW).certificate)
    found, known = certificate(der), x509.load_der_x509_certificate(der)
    assert found is not None
    assert (found.subject, found.issuer) == ("CN=broker 1,O=Example", "CN=Prüf-CA,O=Example")
    assert found.begins_ns == known.not_valid_before_utc.timestamp() * 1e9
    assert found.expires_ns == known.not_valid_after_utc.timestamp() * 1e9
    assert found.names == expected


@given(st.integers(0, len(NAMED)), st.binary(max_size=20))
@settings(max_examples=300)
def test_damage_raises_nothing(at: int, patch: bytes) -> None:
    for damaged in (NAMED[:at], NAMED[:at] + patch + NAMED[at + len(patch) :], patch):
        found = certificate(damaged)
        assert found is None or len(found.subject) <= 300


def test_a_certificate_made_of_nothing_but_names_costs_little() -> None:
    """A message may have 256 KiB: as many names as fit are counted, not kept."""
    many = der_of(AUTHORITY.issue("x", [f"{n}.example" for n in range(12_000)], now=NOW).certificate)

    def reads() -> None:
        found = certificate(many)
        assert found is not None
        assert found.names is None

    assert takes_less_than(1, reads)


@pytest.mark.parametrize(("many", "expected"), [(MOST_NAMES, MOST_NAMES), (MOST_NAMES + 1, None)], ids=["many", "more"])
def test_common_names_are_no_more_than_other_names(many: int, expected: int | None) -> None:
    """A subject may have any number of them, as far as DER goes."""
    own, key = x509.load_der_x509_certificate(NAMED), ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{n}.example") for n in range(many)])
    times = own.not_valid_before_utc, own.not_valid_after_utc
    made = x509.CertificateBuilder(own.issuer, subject, key.public_key(), 1, *times).sign(key, hashes.SHA256())
    found = certificate(made.public_bytes(Encoding.DER))
    assert found is not None
    assert (None if found.names is None else len(found.names)) == expected


def test_a_certificate_that_is_none_is_remarked_once() -> None:
    pair = Pair(Sides(TLS_12)).handshake()
    whole = pair.stream(False)
    at = whole.index(b"\x30\x82")  # the server's certificate begins
    damaged = whole[:at] + b"\x31" + whole[at + 1 :]
    found = read(pair, b"", server=[damaged])
    assert found.codes() == ["tls_certificate"]
    assert found.facts.certificates == [None, None]


def test_an_empty_certificate_of_a_server_is_none() -> None:
    messages, facts = Messages(SERVER_TO_CLIENT, False, Encryption()), Encryption()
    list(messages.feed(bytes.fromhex("0b000003000000")))
    assert (messages.unreadable, facts.certificates) == (False, [None, None])

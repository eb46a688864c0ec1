"""Certificates for tests, as somebody's own authority would issue them. In: who and for how long. Out: PEM files."""

from __future__ import annotations

import ipaddress
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Paths(NamedTuple):
    """PEM files: the certificate, and its key."""

    certificate: str
    key: str


class Authority:
    """Issues certificates. path: PEM file of its own."""

    def __init__(self, name: str = "Lab CA", folder: Path | None = None) -> None:
        self._held = None if folder is not None else tempfile.TemporaryDirectory(prefix="tls-")
        self._folder = folder if folder is not None else Path(self._held.name)  # type: ignore[union-attr]
        self._folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        now = datetime.now(UTC)
        built = _builder(self._name, self._name, self._key, now - timedelta(days=4000), now + timedelta(days=4000))
        own = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._made = 0
        self.path = str(self._folder / "ca.pem")
        Path(self.path).write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(
        self,
        subject: str,
        names: Sequence[str] = (),
        begins_days: float = -60,
        expires_days: float = 300,
        now: datetime | None = None,
    ) -> Paths:
        """names: DNS names and addresses. Days are counted from now."""
        now = datetime.now(UTC) if now is None else now
        key = ec.generate_private_key(ec.SECP256R1())
        begins, expires = now + timedelta(days=begins_days), now + timedelta(days=expires_days)
        built = _builder(_name(subject), self._name, key, begins, expires)
        if names:
            built = built.add_extension(x509.SubjectAlternativeName([_other_name(name) for name in names]), False)
        made = built.sign(self._key, hashes.SHA256())
        self._made += 1
        paths = Paths(*(str(self._folder / f"{self._made}-{part}.pem") for part in ("cert", "key")))
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        Path(paths.certificate).write_bytes(made.public_bytes(serialization.Encoding.PEM))
        Path(paths.key).write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
        return paths


def _name(text: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example"), x509.NameAttribute(NameOID.COMMON_NAME, text)]
    )


def _other_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begins: datetime, expires: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(expires)
    )

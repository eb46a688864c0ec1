"""Clear captures made into encrypted ones, by OpenSSL through Python's `ssl`: the same bytes, times and connections.

In: packets of TCP over IPv4 and Ethernet. Out: packets whose data went through TLS, with a handshake in front, and the
key log of all connections. Each segment's data is written at once, so it ends in a packet of the same time.
"""

from __future__ import annotations

import ssl
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.support.packets import ACK, FIN, PSH, RST, SYN, Captured, ethernet, ipv4, tcp

TLS_12, TLS_13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
SUBJECT = "CN=broker1.example,O=Example"
# Of TLS 1.2, as OpenSSL names them, one for each way of protecting records; those without elliptic curves need RSA.
SUITES_12 = (
    "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305", "AES128-CCM",
    "AES256-CCM8", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384", "AES256-SHA256", "AES128-SHA256",
    "ECDHE-ECDSA-AES128-CCM8", "ECDHE-ECDSA-AES256-GCM-SHA384",
)  # fmt: skip
_MOST_PAYLOAD_BYTES = 60_000


@cache
def certificate(kind: str = "rsa", days: int = 30) -> tuple[str, str]:
    """Paths of a new certificate and its key, for broker1.example."""
    key = ec.generate_private_key(ec.SECP256R1()) if kind == "ecdsa" else rsa.generate_private_key(65537, 2048)
    parts = ((NameOID.ORGANIZATION_NAME, "Example"), (NameOID.COMMON_NAME, "broker1.example"))
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=60))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    folder = Path(tempfile.mkdtemp(prefix="tls-"))
    form = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return str(folder / "cert.pem"), str(folder / "key.pem")


class Sides:
    """Contexts of both sides. suite: of TLS 1.2, or None for what both like best."""

    def __init__(
        self, version: ssl.TLSVersion = TLS_13, suite: str | None = None, *, mutual: bool = False, alpn: str = ""
    ) -> None:
        kind = "ecdsa" if suite is not None and "ECDSA" in suite else "rsa"
        self._folder = tempfile.TemporaryDirectory()
        self._log = Path(self._folder.name) / "keys.log"
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.check_hostname, self.client.verify_mode = False, ssl.CERT_NONE
        self.server.load_cert_chain(*certificate(kind))
        if mutual:
            self.client.load_cert_chain(*certificate(kind))
            self.server.load_verify_locations(certificate(kind)[0])
            self.server.verify_mode = ssl.CERT_REQUIRED
        for context in (self.client, self.server):
            with warnings.catch_warnings(action="ignore"):  # of old versions
                context.minimum_version = context.maximum_version = version
            if suite is not None:
                context.set_ciphers(f"{suite}:@SECLEVEL=0")
            if alpn:
                context.set_alpn_protocols([alpn])
        self.client.keylog_filename = str(self._log)

    @property
    def keylog(self) -> bytes:
        """What was logged so far."""
        return self._log.read_bytes() if self._log.exists() else b""


class Sent(NamedTuple):
    """Bytes that one side put on the wire."""

    from_client: bool
    data: bytes


class Pair:
    """One TLS connection in memory."""

    def __init__(self, sides: Sides, session: ssl.SSLSession | None = None) -> None:
        self._bios = [ssl.MemoryBIO() for _ in range(4)]
        to_client, from_client, to_server, from_server = self._bios
        self.client = sides.client.wrap_bio(to_client, from_client, server_hostname="broker1.example", session=session)
        self.server = sides.server.wrap_bio(to_server, from_server, server_side=True)
        self.wire: list[Sent] = []

    def handshake(self) -> Pair:
        """Both hellos and what belongs to them, session tickets too. SSLError when one side refuses."""
        done = {True: False, False: False}
        while not all(done.values()):
            for from_client, side in ((True, self.client), (False, self.server)):
                with suppress(ssl.SSLWantReadError):
                    try:
                        side.do_handshake()
                        done[from_client] = True
                    finally:
                        self._deliver(from_client)
        for reader in (self.client, self.server):
            with suppress(ssl.SSLWantReadError):
                reader.read(1)
        return self

    def send(self, from_client: bool, data: bytes) -> bytes:
        """What this data becomes on the wire."""
        start = len(self.wire)
        writer, reader = (self.client, self.server) if from_client else (self.server, self.client)
        at = 0
        while at < len(data):
            at += writer.write(data[at:])
            self._deliver(from_client)
            with suppress(ssl.SSLWantReadError):
                while reader.read(1 << 16):
                    pass
        return b"".join(one.data for one in self.wire[start:] if one.from_client == from_client)

    def close(self, from_client: bool) -> bytes:
        """close_notify."""
        start = len(self.wire)
        with suppress(ssl.SSLError):
            (self.client if from_client else self.server).unwrap()
        self._deliver(from_client)
        return b"".join(one.data for one in self.wire[start:])

    def _deliver(self, from_client: bool) -> None:
        source, target = (self._bios[1], self._bios[2]) if from_client else (self._bios[3], self._bios[0])
        data = source.read()
        if data:
            self.wire.append(Sent(from_client, data))
            target.write(data)

    def stream(self, from_client: bool) -> bytes:
        """All that one side put on the wire."""
        return b"".join(one.data for one in self.wire if one.from_client == from_client)


@dataclass
class _Twin:
    """One connection. Offsets are those of the clear stream (read) and of the encrypted one (written)."""

    pair: Pair
    client: tuple[str, int]
    isns: dict[bool, int]
    read: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    written: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    is_open: bool = False
    packets: int = 0


def twin(packets: Sequence[Captured], sides: Sides) -> tuple[list[Captured], list[Captured]]:
    """The encrypted twin of a capture, and the same in clear text, packet for packet.

    Of a connection whose start is not there nothing comes, of others what came in order; in clear text a packet of the
    handshake is an empty one.
    """
    found: tuple[list[Captured], list[Captured]] = [], []
    known: dict[frozenset[tuple[str, int]], _Twin] = {}
    for packet in packets:
        for encrypted, clear in _twin_packets(packet, known, sides):
            found[0].append(encrypted)
            found[1].append(clear)
    return found


def _twin_packets(
    packet: Captured, known: dict[frozenset[tuple[str, int]], _Twin], sides: Sides
) -> Iterator[tuple[Captured, Captured]]:
    data = packet.data
    if data[12:14] != b"\x08\x00" or data[23] != 6:
        return
    at = 14 + (data[14] & 15) * 4
    ends = tuple(
        (".".join(map(str, data[a : a + 4])), int.from_bytes(data[p : p + 2])) for a, p in ((26, at), (30, at + 2))
    )
    seq, flags = int.from_bytes(data[at + 4 : at + 8]), data[at + 13]
    payload = data[at + (data[at + 12] >> 4) * 4 : 14 + int.from_bytes(data[16:18])]
    if flags & SYN and not flags & ACK:
        known[frozenset(ends)] = _Twin(Pair(sides), ends[0], {True: seq})
    one = known.get(frozenset(ends))
    if one is None:
        return
    from_client = ends[0] == one.client
    if flags & SYN:
        one.isns.setdefault(from_client, seq)
        yield packet, packet
        return
    if len(one.isns) < 2:
        return

    def one_packet(by_client: bool, part: bytes, bits: int, at: dict[bool, int]) -> Captured:
        source, target = (ends[0], ends[1]) if by_client == from_client else (ends[1], ends[0])
        segment = tcp(
            part, source_port=source[1], destination_port=target[1], flags=bits,
            seq=(one.isns[by_client] + 1 + at[by_client]) & 0xFFFFFFFF,
            ack=(one.isns[not by_client] + 1 + at[not by_client]) & 0xFFFFFFFF,
        )  # fmt: skip
        at[by_client] += len(part)
        one.packets += 1
        return Captured(packet.ts_ns, ethernet(ipv4(segment, source[0], target[0], ip_id=one.packets // 2 & 0xFFFF)))

    def made(by_client: bool, content: bytes, clear: bytes, bits: int) -> Iterator[tuple[Captured, Captured]]:
        starts = range(0, max(len(content), 1), _MOST_PAYLOAD_BYTES)
        for start in starts:
            part = content[start : start + _MOST_PAYLOAD_BYTES]
            shown = clear if start == starts[-1] else b""
            yield one_packet(by_client, part, bits, one.written), one_packet(by_client, shown, bits, one.read)

    offset = (seq - one.isns[from_client] - 1) & 0xFFFFFFFF
    if offset + len(payload) <= one.read[from_client] or offset > one.read[from_client]:
        payload = b""  # sent again; behind a gap nothing is known
    fresh = payload[one.read[from_client] - offset :] if payload else b""
    if fresh and not one.is_open:
        one.is_open = True
        for sent in one.pair.handshake().wire:
            yield from made(sent.from_client, sent.data, b"", PSH | ACK)
    if fresh:
        yield from made(from_client, one.pair.send(from_client, fresh), fresh, flags & ~(FIN | RST) | PSH | ACK)
    if flags & (FIN | RST):
        yield from made(from_client, b"", b"", flags & (FIN | RST | ACK))

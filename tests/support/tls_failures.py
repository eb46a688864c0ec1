"""TLS handshakes by OpenSSL that come out well or badly, as packets. In: contexts of both sides. Out: a `Talk`."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.support.tls_certificates import Authority, Paths
from tests.support.wire import ACK, FIN, Talk

NAME = "broker1.example"


class Sent(NamedTuple):
    """Bytes that one side put on the wire."""

    from_client: bool
    data: bytes


@dataclass
class Ends:
    """Contexts of both sides, which trust one authority. own: the client's certificate."""

    version: ssl.TLSVersion
    authority: Authority
    server: Paths
    own: Paths | None = None
    wants_own: bool = False
    trusts: Authority | None = None
    client_version: ssl.TLSVersion | None = None
    checks: bool = True
    keylog: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="tls-")) / "keys.log")

    def contexts(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        """Of client and server."""
        client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client.load_verify_locations((self.trusts or self.authority).path)
        if not self.checks:
            client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        server.load_cert_chain(*self.server)
        if self.own is not None:
            client.load_cert_chain(*self.own)
        if self.wants_own:
            server.load_verify_locations(self.authority.path)
            server.verify_mode = ssl.CERT_REQUIRED
        server.minimum_version = server.maximum_version = self.version
        client.minimum_version = client.maximum_version = self.client_version or self.version
        client.keylog_filename = str(self.keylog)
        return client, server


def spoken(ends: Ends, name: str = NAME, session: ssl.SSLSession | None = None) -> list[Sent]:
    """What goes over the wire until the handshake is over, one side refuses, and 64 bytes of data each way if not."""
    client, server = ends.contexts()
    bios = [ssl.MemoryBIO() for _ in range(4)]
    sides = {
        True: client.wrap_bio(bios[0], bios[1], server_hostname=name, session=session),
        False: server.wrap_bio(bios[2], bios[3], server_side=True),
    }
    wire: list[Sent] = []

    def deliver(from_client: bool) -> None:
        data = (bios[1] if from_client else bios[3]).read()
        if data:
            wire.append(Sent(from_client, data))
            (bios[2] if from_client else bios[0]).write(data)

    def steps() -> Iterator[bool]:
        done: set[bool] = set()
        for _ in range(8):
            for from_client in (True, False):
                if from_client not in done:
                    with suppress(ssl.SSLWantReadError):
                        try:
                            sides[from_client].do_handshake()
                            done.add(from_client)
                        finally:
                            deliver(from_client)
                yield True
        assert len(done) == 2
        for from_client in (True, False, True):
            with suppress(ssl.SSLWantReadError):
                sides[from_client].read(1 << 16)
            sides[from_client].write(b"x" * 64)
            deliver(from_client)

    with suppress(ssl.SSLError):
        for _ in steps():
            pass
    for from_client in (True, False):
        with suppress(ssl.SSLError):
            sides[from_client].read(1)
        deliver(from_client)
    return wire


def talk_of(
    wire: list[Sent], closed_by: str | None = None, talk: Talk | None = None, delays: dict[int, float] | None = None
) -> Talk:
    """The packets of one connection. closed_by: client or server. delays: seconds before the n-th part."""
    made = (talk or Talk()).handshake()
    sent = [0, 0]
    for number, (from_client, data) in enumerate(wire):
        if delays and number in delays:
            made.wait(delays[number])
        made.send(from_client, sent[from_client], data, ack=sent[not from_client])
        sent[from_client] += len(data)
    if closed_by is not None:
        by_client = closed_by == "client"
        for side in (by_client, not by_client):
            made.send(side, sent[side], flags=FIN | ACK, ack=sent[not side])
    return made

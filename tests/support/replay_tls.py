"""A replayed capture through TLS 1.3 (AES-256-GCM, as OpenSSL likes best), with the key log that opens it.

In: a capture of whole connections over Ethernet and IPv4. Out: the same exchanges encrypted, and the keys.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.packets import pcap
from tests.support.tls_twin import Sides, twin
from tests.support.wire import packets_of


def encrypt(capture: Path, encrypted: Path, keylog: Path) -> None:
    """Write the encrypted twin of the capture, and the key log of its connections."""
    sides = Sides()
    encrypted.write_bytes(pcap(twin(packets_of(capture), sides)[0], nanoseconds=True))
    keylog.write_bytes(sides.keylog)

"""Is a flow MQTT? CONNECT says so by itself; a connection that is open already shows it by several packets in a row.

In: the first bytes of both directions. Out: certainty of the probe.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.mqtt.framing import CHAIN, chain, is_first_byte

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.frames import Bytes, Flags

_CONNECT = re.compile(
    rb"\x10(?:[\x00-\x7f]|[\x80-\xff][\x00-\x7f]|[\x80-\xff]{2}[\x01-\x7f]|[\x80-\xff]{3}[\x01-\x7f])"
    rb"(?:\x00\x04MQTT|\x00\x06MQIsdp)",
    re.DOTALL,
)
_SURE, _CHAINED, _PAIRED, _WEAK = 100, 80, 60, 30
# A capture may begin inside a packet: so many later places are tried.
MAX_PROBED_STARTS = 500
# And reads so much of the packets that may begin there.
MAX_PROBED_BYTES = 1 << 18
_INSIDE_CHAIN = CHAIN + 1
_STARTS = re.compile(rb"(?=[\x30-\x35\x3a-\x3d\x40\x50\x62\x70\x82\x90\xa2\xb0\xc0\xd0])")
# First bytes of packets of a client.
_FIRST_BYTES = [byte for byte in range(256) if is_first_byte(byte, CLIENT_TO_SERVER)]


def opens(heads: Bytes) -> Flags:
    """See `Dissector.opens`: a type that a client sends, with the flags that it has."""
    first = heads[:, 0]
    found: Flags = first < 0
    for byte in _FIRST_BYTES:
        found |= first == byte
    return found


def probe(client: bytes, server: bytes, whole: bool) -> int:
    """How sure it is that these are MQTT packets, 0 to 100; `whole`: both streams are seen from their first byte.

    Packets count only when they follow each other without a rest and nothing about them is wrong. A few of them, or one
    of each side, decide; a single one is a hint that needs the port's support.
    """
    if _CONNECT.match(client):
        return _SURE
    of_client, fits = _count(client, CLIENT_TO_SERVER)
    of_server, server_fits = _count(server, SERVER_TO_CLIENT)
    if not (fits and server_fits):
        return 0 if whole else _inside(client, server)
    if of_client + of_server >= CHAIN:
        return _CHAINED
    if of_client and of_server:
        return _PAIRED
    return _WEAK if of_client or of_server else 0


def _count(data: bytes, direction: int) -> tuple[int, bool]:
    """Packets at the start, and False when something else follows them."""
    count, fits = chain(data, 0, direction, None, CHAIN, Judged())
    return count, fits is not False


def _inside(client: bytes, server: bytes) -> int:
    """The same for streams that may begin inside a packet: a longer chain is wanted."""
    for data, direction in ((client, CLIENT_TO_SERVER), (server, SERVER_TO_CLIENT)):
        starts = (match.start() for match in _STARTS.finditer(data))
        judged = Judged()
        for position in itertools.islice(starts, MAX_PROBED_STARTS):
            if chain(data, position, direction, None, _INSIDE_CHAIN, judged)[0] >= _INSIDE_CHAIN:
                return _CHAINED
            if judged.size > MAX_PROBED_BYTES:
                break
    return 0

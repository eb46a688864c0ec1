"""WebSocket around a protocol, broken at its own level: heads of the upgrade, frames, masks, fragments, compression.

In: bytes; every string is a connection: pieces as in `pieces.py`, whose payload goes on the wire as it is. Out: made-up
connections as such bytes.
"""

from __future__ import annotations

import zlib
from random import Random

from tests.dissectors.carriers.test_upgrade import END, REQUEST, RESPONSE
from tests.dissectors.carriers.test_websocket import MASK, frame
from tests.fuzz import mqtt_fields
from tests.fuzz.mutate import broken
from tests.fuzz.pieces import FROM_CLIENT, LOST, MID_STREAM, TOGETHER, Piece, joined

_HEADERS = [
    b"",
    b"",
    b"Sec-WebSocket-Protocol: mqtt\r\n",
    b"Authorization: Basic dTpw\r\n",
    b"Cookie: a=b;\r\n c=d\r\n",
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n",
    b"Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n",
    b"Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=8\r\n",
    b"Sec-WebSocket-Extensions: permessage-deflate; =\r\n",
    b"X: " + b"y" * 3000 + b"\r\n",
    b"\xff\xfe: \x80\r\n",
    b"Content-Length: 5\r\n",
]


def _frames(payload: bytes, mask: bytes | None, deflater: zlib._Compress | None, dice: Random) -> bytes:
    """The payload in one frame or several, between control frames, compressed or not."""
    first_bits = 0
    if deflater is not None and dice.random() < 0.7:
        payload = (deflater.compress(payload) + deflater.flush(zlib.Z_SYNC_FLUSH))[:-4]
        first_bits = 0x40
    edges = sorted({0, len(payload), *(dice.randrange(len(payload) + 1) for _ in range(dice.choice([0, 0, 1, 3])))})
    found = b""
    for number, (start, end) in enumerate(zip(edges, edges[1:] or [len(payload)], strict=False)):
        made = frame(payload[start:end], opcode=0 if number else 2, fin=end == len(payload), mask=mask)
        if number == 0 and first_bits:
            made = bytes([made[0] | first_bits]) + made[1:]
        found += made
        if dice.random() < 0.1:
            found += frame(b"p" * dice.choice([0, 5, 126]), opcode=dice.choice([8, 9, 10, 11]), mask=mask)
    return broken(found, dice) if dice.random() < 0.1 else found


def connection(dice: Random) -> bytes:
    """A connection: the upgrade, then MQTT in frames."""
    request = REQUEST + dice.choice(_HEADERS) + dice.choice(_HEADERS) + END
    response = RESPONSE + dice.choice(_HEADERS) + END
    pieces = [Piece(FROM_CLIENT, _maybe(request, dice)), Piece(0, _maybe(response, dice))]
    is_compressed = b"permessage-deflate" in response
    deflaters = [zlib.compressobj(wbits=-15) if is_compressed else None for _ in range(2)]
    for what, body in mqtt_fields.talk(dice):
        side = bool(what & FROM_CLIENT)
        mask = (MASK if side else None) if dice.random() < 0.97 else dice.choice([MASK, None, bytes(4)])
        payload = _frames(mqtt_fields.framed(body), mask, deflaters[side], dice)
        lost = LOST if dice.random() < 0.05 else 0
        pieces.append(Piece(int(side) | lost, payload))
    if dice.random() < 0.15:
        pieces = pieces[2:]
    options = dice.choice([0, 0, 0, TOGETHER, MID_STREAM])
    return joined(options, _cut_anywhere(pieces, dice) if dice.random() < 0.3 else pieces)


def _maybe(head: bytes, dice: Random) -> bytes:
    return broken(head, dice) if dice.random() < 0.1 else head


def _cut_anywhere(pieces: list[Piece], dice: Random) -> list[Piece]:
    found = []
    for what, payload in pieces:
        edge = dice.randrange(len(payload) + 1)
        found += [Piece(what, payload[:edge]), Piece(what, payload[edge:])]
    return found


def change(data: bytes, dice: Random) -> bytes:
    """A connection made anew, or broken bytes."""
    return connection(dice) if dice.random() < 0.6 else broken(data, dice)

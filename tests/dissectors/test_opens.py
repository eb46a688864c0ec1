"""What `opens` rules out by the first bytes of many connections, the probe rules out, too, whatever follows."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.mutated import PROTOCOLS as SPOKEN
from tests.support.mutated import decoders
from tests.support.shares import RUNS_THE_REST
from wirewitness.dissectors.core.lockstep.frames import Bytes
from wirewitness.dissectors.core.lockstep.streams import HEAD_BYTES
from wirewitness.dissectors.core.protocol import Dissector
from wirewitness.dissectors.registry import CARRIERS, PROTOCOLS

TRIES = 20_000 if RUNS_THE_REST else 2_000
OPENING = [dissector for dissector in PROTOCOLS.values() if dissector.opens is not None]


def beginnings() -> list[bytes]:
    """What the clients of connections say first."""
    found = [next((turn.data for turn in talked.turns if turn.data), b"") for talked in decoders()]
    return [data for data in found if data]


def spoilt(data: bytes, dice: random.Random) -> bytes:
    """Some bytes otherwise, or fewer of them."""
    changed = bytearray(data[: dice.choice((1, 3, 4, 8, 13, 15, 16, 17, 40, 1 << 20))])
    for _ in range(dice.randrange(4)):
        changed[dice.randrange(min(len(changed), 20))] = dice.choice(
            (0, 1, 0x10, 0x7F, 0x80, 0xFF, dice.randrange(256))
        )
    return bytes(changed)


def heads(clients: list[bytes]) -> Bytes:
    return np.frombuffer(b"".join(data[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0") for data in clients), np.uint8).reshape(
        -1, HEAD_BYTES
    )


def tried() -> list[bytes]:
    dice, known = random.Random(5), beginnings()
    made = [dice.randbytes(dice.randrange(1, 40)) for _ in range(TRIES // 4)]
    return known + made + [spoilt(dice.choice(known), dice) for _ in range(TRIES)]


@pytest.mark.parametrize("dissector", OPENING, ids=[one.name for one in OPENING])
def test_what_is_ruled_out_is_none_of_the_protocol(dissector: Dissector) -> None:
    clients = tried()
    assert dissector.opens is not None
    may = dissector.opens(heads(clients))
    assert [
        data for data, is_so in zip(clients, may, strict=True) if not is_so and dissector.probe(data, b"", True)
    ] == []
    assert np.count_nonzero(~may) > len(clients) // 10


@pytest.mark.parametrize("dissector", OPENING, ids=[one.name for one in OPENING])
def test_what_is_said_first_may_begin_the_protocol(dissector: Dissector) -> None:
    own = {name for name, protocol in SPOKEN.items() if protocol == dissector.name}
    said = [
        next(turn.data for turn in talked.turns if turn.data)
        for talked in decoders()
        if talked.whole and talked.name.partition("_")[0] in own and talked.turns[0].direction == 0
        if "websocket" not in talked.name
    ]
    assert len(said) > 2
    assert dissector.opens is not None
    assert dissector.opens(heads(said)).all()


def test_carriers() -> None:
    clients = tried()
    for carrier in CARRIERS.values():
        assert carrier.opens is not None
        may = carrier.opens(heads(clients))
        assert [data for data, is_so in zip(clients, may, strict=True) if not is_so and carrier.may_open(data)] == []
        assert np.count_nonzero(~may) > len(clients) // 10

"""Connections that a reset ends give the tables of those that are taken packet by packet, whatever follows it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tests.support.mutated_captures import tables
from tests.support.packets import ACK, FIN, RST, SYN, Captured
from tests.support.shares import pairs, share, turns
from tests.support.whole_connections import (
    BLOCK,
    CLIENT,
    HEARTBEAT,
    LATE,
    NOTHING,
    ONE_BLOCK,
    SERVER,
    SIZE,
    alike,
    answered,
    asked,
    counted,
    ends,
    exchange,
    later_block,
    least,
    tick,
)
from tests.support.wire import Talk
from wirewitness.dissectors.core.limits import Limits

ANSWER = len(HEARTBEAT.response)


def said() -> Talk:
    """Two exchanges, and nothing behind them."""
    return exchange(exchange(Talk().handshake()), 1)


def waits() -> Talk:
    """Two exchanges, and a request without its response."""
    return said().send(CLIENT, 2 * SIZE, asked(2), ack=2 * ANSWER)


# How resets end connections, and how many are taken whole then.
RESETS: dict[str, tuple[Callable[[], Talk], int]] = {
    "by the client": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST), 1),
    "by the server": (lambda: said().send(SERVER, 2 * ANSWER, flags=RST | ACK, ack=2 * SIZE), 1),
    "behind both ends": (lambda: ends(said(), 2).send(CLIENT, 2 * SIZE + 1, flags=RST), 1),
    "behind one end": (
        lambda: said().send(CLIENT, 2 * SIZE, flags=FIN | ACK, ack=2 * ANSWER).send(SERVER, 2 * ANSWER, flags=RST), 1,
    ),
    "its own end": (
        lambda: said().send(CLIENT, 2 * SIZE, flags=FIN | ACK, ack=2 * ANSWER).send(CLIENT, 2 * SIZE + 1, flags=RST), 1,
    ),
    "nothing was said": (lambda: Talk().handshake().send(CLIENT, 0, flags=RST | ACK, ack=0), 1),
    "a request waits": (lambda: waits().send(CLIENT, 3 * SIZE, flags=RST), 1),
    "a window is told": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST, window=0), 1),
    "within a request": (lambda: said().send(CLIENT, 2 * SIZE, asked(2)[:-3]).send(CLIENT, 3 * SIZE - 3, flags=RST), 0),
    "confirms too much": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST | ACK, ack=2 * ANSWER + 1), 0),
    "bytes are missing": (lambda: said().send(CLIENT, 2 * SIZE + 5, asked(2)).send(CLIENT, 9 * SIZE, flags=RST), 0),
    "with bytes": (lambda: said().send(CLIENT, 2 * SIZE, b"bye", flags=RST), 0),
    "twice": (lambda: said().send(CLIENT, 2 * SIZE, flags=RST).send(SERVER, 2 * ANSWER, flags=RST), 0),
    "bytes follow": (lambda: waits().send(CLIENT, 3 * SIZE, flags=RST).send(SERVER, 2 * ANSWER, answered(2)), 0),
    "refused": (lambda: Talk().send(CLIENT, -1, flags=SYN).send(SERVER, -1, flags=RST | ACK, ack=0), 0),
}  # fmt: skip
BEHIND_RESETS: dict[str, Callable[[Talk], Talk]] = {
    **LATE,
    "the answer": lambda talk: talk.send(SERVER, 2 * ANSWER, answered(2), ack=3 * SIZE),
    "one more request": lambda talk: talk.send(CLIENT, 3 * SIZE, asked(3), ack=2 * ANSWER),
    "the rest": lambda talk: talk.send(SERVER, 2 * ANSWER, answered(2)).send(CLIENT, 3 * SIZE, asked(3)),
    "far ahead": lambda talk: talk.send(CLIENT, 9 * SIZE, asked(9)),
    "an end": lambda talk: talk.send(SERVER, 2 * ANSWER, flags=FIN | ACK, ack=3 * SIZE),
    "one more reset": lambda talk: talk.send(SERVER, 2 * ANSWER, flags=RST, ip_id=9),
}


@pytest.mark.parametrize(("talk", "taken"), RESETS.values(), ids=RESETS)
def test_connections_that_a_reset_ends(talk: Callable[[], Talk], taken: int) -> None:
    """At the capture's end and, by a packet of another one, when their time is up."""
    for more in ([], tick(30), tick(65)):
        with least(1, 1):
            found, counts = alike(later_block(talk().packets, more), BLOCK)
        assert (found, counts[1]) == (None, taken)


GONE_ON = ("a request waits", "by the client", "behind both ends", "nothing was said")


@pytest.mark.parametrize("seconds", share([0.01, 59, 70], [59]))
@pytest.mark.parametrize(("reset", "late"), pairs(product(GONE_ON, BEHIND_RESETS), turns(GONE_ON, BEHIND_RESETS)))
def test_what_comes_behind_a_reset(reset: str, late: str, seconds: float) -> None:
    """Bytes of a connection that was reset are read, whoever sent the reset."""
    talk = RESETS[reset][0]()
    first = list(talk.packets)
    more = BEHIND_RESETS[late](talk.wait(seconds)).packets[len(first) :]
    for between in ([], tick(65)):
        found, counts = alike(later_block(later_block(first, between), more), BLOCK)
        assert found is None
        assert counts[1] <= 2


@pytest.mark.parametrize("limits", [Limits(max_open_flows=100), Limits(max_held_bytes=200_000)], ids=["flows", "bytes"])
def test_what_is_set_aside_counts_as_open(limits: Limits) -> None:
    """Where there is room for few, their time is up at once, which is told."""
    packets = [one for port in range(300) for one in _reset_at(port)]
    with least(1), counted() as found:
        told = tables(packets, ONE_BLOCK, limits)
    assert found == [300, 300]
    texts = [text for text in told["expert_infos"]["text"].to_pylist() if "ended with their resets" in text]
    assert len(texts) == 1
    assert "300 connections" in texts[0]


def _reset_at(port: int) -> list[Captured]:
    talk = Talk(client=("10.1.1.1", 20_000 + port), ts_ns=NOTHING.ts_ns + port * 1_000_000).handshake()
    return exchange(exchange(talk), 1).send(CLIENT, 2 * SIZE, flags=RST).packets

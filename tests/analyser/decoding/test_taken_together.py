"""What a carrier gives of many segments at once is what it gives of one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.dissectors.carriers.tls.reading import ring_of
from tests.support.shares import examples
from tests.support.tls_sealed import HANDSHAKE, Sealer
from tests.support.tls_twin import SUITES_12, TLS_12, TLS_13, Pair, Sides
from wirewitness.analyser.decoding.inner_streams import CarriedStream
from wirewitness.analyser.tcp.chunks import Gap, Run, Segments, together
from wirewitness.dissectors.carriers.tls.carrier import tls
from wirewitness.dissectors.carriers.tls.unwrapping import TlsUnwrapper
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER
from wirewitness.dissectors.core.protocol import Sink

DICE = random.Random(3)
# What a client may say; the first few in the ordinary course.
Say = Callable[[Sealer], bytes]
SAYS: Sequence[Say] = (
    lambda sealer: sealer.seal(DICE.randbytes(DICE.randrange(1, 60))),
    lambda sealer: sealer.seal(DICE.randbytes(DICE.randrange(1, 3000))),
    lambda sealer: sealer.seal(b"x" * 16384),
    lambda sealer: sealer.seal(b"padded\0", padding=DICE.randrange(300)),
    lambda sealer: sealer.seal(b""),
    lambda sealer: sealer.seal(b"", padding=9),
    lambda sealer: sealer.seal(b"\4\0\0\1\0", HANDSHAKE),
    Sealer.key_update,
    lambda sealer: sealer.seal(b"damaged")[:-1] + b"\0",
    lambda _: DICE.randbytes(DICE.randrange(1, 300)),
    lambda _: b"\x14\x03\x03\0\1\1",
)  # fmt: skip
ORDINARY = 4


class Talk(NamedTuple):
    """What client and server sent, and the keys."""

    client: bytes
    server: bytes
    keylog: bytes


def talk(says: Sequence[int]) -> Talk:
    """A connection of TLS 1.3 on which the client says this, in records that no library would send in this order."""
    sides = Sides(TLS_13)
    pair = Pair(sides).handshake()
    sealer = Sealer(pair, sides.keylog)
    said = b"".join(SAYS[one](sealer) for one in says)
    return Talk(pair.stream(True) + said, pair.stream(False), sides.keylog)


def segments_of(stream: bytes, cuts: Sequence[int]) -> Run:
    """One run of all; each segment in a packet of its own, some readable later than they came."""
    starts = sorted({0, *(cut % len(stream) for cut in cuts)})
    packets = [10 * number for number in range(1, len(starts) + 1)]
    order = [packet + 3 * (packet % 40 == 0) for packet in packets]
    return Run([stream], len(stream), Segments(starts, packets, [packet * 1000 for packet in packets], order))


def parts(run: Run, sizes: Sequence[int]) -> Iterator[Run]:
    """The run in runs of so many segments each, again and again."""
    at, number = 0, 0
    data, many = b"".join(run.pieces), len(run.segments.positions)
    while at < many:
        until = min(at + sizes[number % len(sizes)], many)
        start, end = run.segments.positions[at], run.end_of(until - 1)
        yield Run([data[start:end]], end - start, run.segments.part(at, until, start))
        at, number = until, number + 1


def given_of(made: Talk, items: Sequence[Run | Gap]) -> dict[str, Any]:
    """All that comes of it: pieces by segment, gaps, remarks, places, what is held."""
    carrier, out = tls(ring_of(made.keylog)), Sink(["expert_infos"])
    opening = carrier.opening(made.client, made.server)
    assert opening is not None
    stream = CarriedStream(CLIENT_TO_SERVER, carrier.unwrapper(CLIENT_TO_SERVER, opening, Limits()))
    inner: list[Any] = []
    data = b""
    for item in items:
        for found in stream.take(item, out):
            if isinstance(found, Gap):
                inner.append(found)
                continue
            start = len(data)
            data += b"".join(found.pieces)
            assert len(data) == start + found.size
            inner += [(start + at, *rest) for at, *rest in zip(*found.segments, strict=True)]
    assert stream.fault is None
    return {
        "data": data, "inner": inner, "remarks": out.rows("expert_infos"), "held": stream.held_bytes,
        "spans": [stream.places.spans(at, 700) for at in range(0, len(data), max(len(data) // 50, 1))],
        "outer": [stream.places.outer(at) for at in range(0, len(data), 97)],
    }  # fmt: skip


def compare(made: Talk, run: Run, sizes: Sequence[int], lost: Sequence[int] = ()) -> dict[str, Any]:
    """Whole runs against single segments. lost: which segments are gaps."""
    one_by_one: list[Run | Gap] = []
    for number, part in enumerate(parts(run, [1])):
        order = part.segments.order[0]
        one_by_one.append(Gap(part.size, order, part.segments.ts_ns[0]) if number in lost else part)
    in_runs: list[Run | Gap] = []
    for item in one_by_one:
        last = in_runs[-1] if in_runs else None
        if isinstance(item, Gap) or not isinstance(last, Run):
            in_runs.append(item)
        else:
            in_runs[-1] = together([last, item])
    in_runs = [part for item in in_runs for part in ([item] if isinstance(item, Gap) else parts(item, sizes))]
    expected = given_of(made, one_by_one)
    assert given_of(made, in_runs) == expected
    return expected


@examples(150, suppress_health_check=[HealthCheck.too_slow])
@given(
    says=st.lists(st.integers(0, ORDINARY - 1) | st.integers(0, len(SAYS) - 1), max_size=60),
    seed=st.integers(0, 1000),
    mean=st.sampled_from([20, 150, 1448, 9000]),
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=4),
    lost=st.lists(st.integers(2, 60), max_size=2),
)
def test_whatever_the_client_says(says: list[int], seed: int, mean: int, sizes: list[int], lost: list[int]) -> None:
    made, dice = talk(says), random.Random(seed)
    cuts = [dice.randrange(len(made.client)) for _ in range(min(len(made.client) // mean, 3000))]
    compare(made, segments_of(made.client, cuts), sizes, lost)


@pytest.mark.parametrize(("version", "suite"), [(TLS_13, None), *((TLS_12, suite) for suite in SUITES_12)])
def test_every_suite(version: Any, suite: str | None) -> None:
    sides = Sides(version, suite)
    pair = Pair(sides).handshake()
    said = b"".join(pair.send(True, data := DICE.randbytes(DICE.randrange(1, 5000))) and data for _ in range(40))
    made = Talk(pair.stream(True), pair.stream(False), sides.keylog)
    cuts = range(0, len(made.client), 1000)
    found = compare(made, segments_of(made.client, cuts), [400])
    assert found["data"] == said
    assert found["remarks"] == []


def test_records_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the ordinary course hardly a segment is fed alone; a key update in the middle costs a few."""
    fed: list[int] = []
    feed = TlsUnwrapper.feed
    monkeypatch.setattr(TlsUnwrapper, "feed", lambda own, data, offset: fed.append(1) or feed(own, data, offset))
    made = talk([1] * 200 + [7] + [1] * 200)
    run = segments_of(made.client, range(0, len(made.client), 1000))
    found = given_of(made, [run])
    assert len(run.segments.positions) > 400
    assert len(found["inner"]) > 400
    assert len(fed) < 40

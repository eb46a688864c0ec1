"""What a flow delivers is decoded in parts: nothing is lost or moved, and of tiny messages few are in memory."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, chain, pairwise

import pytest

from tests.conftest import SAMPLES
from tests.support import mqtt_encode as mqtt
from tests.support.attacks import MQTT_SERVER, answer, kafka, spoken
from tests.support.packets import pcap
from tests.support.websocket import WebSocketTalk
from tests.support.wire import decode
from wirewitness.analyser.decoding.stream_portions import Items, in_parts, in_slices
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.analyser.tcp.chunks import Gap, Run, Segments

FEW, MANY = 3_000, 12_000
# Of a message: its bytes, in blocks and in parts.
MOST_BYTES = 60


def delivered(dice: random.Random) -> Items:
    """Both sides' runs and gaps, the packets of both mixed; several segments may be readable at one packet."""
    found: Items = []
    for side in (False, True):
        order = 0
        for _ in range(dice.randint(0, 4)):
            sizes = [dice.randint(1, 30) for _ in range(dice.randint(1, 40))]
            orders = [order := order + dice.randint(0, 2) for _ in sizes]
            starts = [0, *accumulate(sizes)]
            segments = Segments(starts[:-1], [*orders], [one * 10 for one in orders], orders)
            found.append((side, Run([dice.randbytes(size) for size in sizes], starts[-1], segments)))
            found.append((side, Gap(dice.randint(0, 9), order, order * 10)))
    return found


def flat(items: Items) -> dict[bool, list[tuple[int, ...] | bytes]]:
    """What each side delivered, segment by segment."""
    found: dict[bool, list[tuple[int, ...] | bytes]] = {False: [], True: []}
    for side, item in items:
        if isinstance(item, Gap):
            found[side].append(tuple(item))
            continue
        data = b"".join(item.pieces)
        for at, (start, *rest) in enumerate(zip(*item.segments, strict=True)):
            found[side] += [tuple(rest), data[start : item.end_of(at)]]
    return found


def orders(items: Items) -> list[int]:
    return [*chain.from_iterable([i.order] if isinstance(i, Gap) else i.segments.order for _, i in items)]


def test_parts_are_the_whole_in_the_order_of_the_packets() -> None:
    several = 0
    for seed in range(300):
        items = delivered(random.Random(seed))
        parts = list(in_parts(items, 100))
        assert flat([one for part in parts for one in part]) == flat(items)
        edges = [(min(orders(part)), max(orders(part))) for part in parts if part]
        assert all(before[1] < after[0] for before, after in pairwise(edges))
        several += len(parts) > 2
    assert several > 100
    assert list(in_parts([])) == [[]]


def test_slices_are_the_whole_and_cut_large_segments() -> None:
    for seed in range(300):
        items = delivered(random.Random(seed))
        for first in (False, True):
            parts = list(in_slices(items, first, 10))
            runs = [(side, item) for part in parts for side, item in part if isinstance(item, Run)]
            assert all(item.end_of(at) - max(start, 0) <= 10 for _, item in runs for at, start in _starts(item))
            for side in (False, True):
                joined = b"".join(bytes(b"".join(item.pieces)) for one, item in runs if one == side)
                whole = b"".join(b"".join(i.pieces) for one, i in items if one == side and isinstance(i, Run))
                assert joined == whole
                gaps = [i for part in parts for one, i in part if one == side and isinstance(i, Gap)]
                assert gaps == [i for one, i in items if one == side and isinstance(i, Gap)]
            # A segment that is cut begins once, and the first side is read first of what one packet made readable.
            begun = Counter(side for side, item in runs for _, start in _starts(item) if start >= 0)
            assert begun == Counter(side for side, item in items if isinstance(item, Run) for _ in item.segments.order)
            read = [sorted(_read(part, first)) for part in parts]
            assert all(before[-1] <= after[0] for before, after in pairwise(filter(None, read)))


def _starts(run: Run) -> list[tuple[int, int]]:
    return list(enumerate(run.segments.positions))


def _read(part: Items, first: bool) -> list[tuple[int, bool]]:
    return [(order, side != first) for side, item in part if isinstance(item, Run) for order in item.segments.order]


@pytest.mark.parametrize("sample", ["kafka_fenced_commit", "mqtt_websocket", "mongo_compressed"])
def test_parts_change_no_row(sample: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> dict[str, object]:
        store = decode(SAMPLES / f"{sample}.pcapng", list(TABLES)).store
        return {
            name: [row for batch in table.batches() for row in batch.to_pylist()]
            for name, table in store.tables.items()
        }

    whole = rows()
    monkeypatch.setattr("wirewitness.analyser.decoding.stream_portions.PART_BYTES", 1000)
    monkeypatch.setattr("wirewitness.analyser.decoding.observed_order.FED_FRAMES", 7)
    monkeypatch.setattr("wirewitness.dissectors.core.deferred.MAX_FRAMES", 10)
    monkeypatch.setattr("wirewitness.dissectors.core.protocol.MAX_HELD_ROWS", 20)
    for name, table in rows().items():
        assert table == whole[name], name


def tiny_publishes(count: int) -> bytes:
    begin = ((True, mqtt.connect(4, "c")), (False, mqtt.connack(properties=None)))
    return spoken(*begin, (True, mqtt.publish("t", b"") * count), server=MQTT_SERVER)


def tiny_publishes_in_one_frame(count: int) -> bytes:
    talk = WebSocketTalk().open().binary(True, mqtt.connect(4, "c")).binary(False, mqtt.connack(properties=None))
    data = mqtt.publish("t", b"") * count
    return pcap(talk.binary(True, data, cut=range(1400, len(data), 1400)).packets, nanoseconds=True)


def tiny_requests(count: int) -> bytes:
    asked = b"".join(kafka(18, 0, number, b"", b"") for number in range(count))
    return spoken((True, asked), (False, b"".join(answer(number, bytes(6)) for number in range(count))))


@pytest.mark.parametrize(
    ("capture", "table"),
    [(tiny_publishes, "mqtt_publishes"), (tiny_publishes_in_one_frame, "mqtt_publishes"), (tiny_requests, "exchanges")],
)
def test_tiny_messages_of_a_block_take_no_memory_each(
    capture: Callable[[int], bytes], table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block is one flow's. Limits are as much smaller as the capture is; without them a message takes 300 bytes."""
    monkeypatch.setattr("wirewitness.analyser.decoding.stream_portions.PART_BYTES", 1 << 13)
    monkeypatch.setattr("wirewitness.analyser.decoding.observed_order.FED_FRAMES", 100)
    monkeypatch.setattr("wirewitness.dissectors.core.protocol.MAX_HELD_ROWS", 300)
    monkeypatch.setattr("wirewitness.dissectors.core.deferred.MAX_FRAMES", 200)

    def peak(count: int) -> int:
        data = capture(count)
        tracemalloc.start()
        decoded = decode(data, [table], block_bytes=8 << 20)
        found = tracemalloc.get_traced_memory()[1] - len(data)
        tracemalloc.stop()
        rows = decoded.store.tables[table]
        rows.pack()
        assert rows.total_rows >= count
        return found

    peak(FEW)  # what is made once
    assert (peak(MANY) - peak(FEW)) / (MANY - FEW) < MOST_BYTES

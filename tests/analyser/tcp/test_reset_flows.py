"""Connections that are set aside come back packet by packet as they were."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from wirewitness.analyser.capture import PacketBatch
from wirewitness.analyser.tcp.reset_flows import Part, SetAside

COLUMNS = [name for name in PacketBatch.__slots__ if name != "data"]


def batch(pairs: list[int]) -> PacketBatch:
    """A packet of each of these pairs, with three bytes of payload at odd places."""
    count = len(pairs)
    told: dict[str, Any] = {name: np.arange(count) + 7 for name in COLUMNS}
    sizes = np.arange(count) % 2 * 3
    told |= {"pair": np.array(pairs, np.int32), "payload_bytes": sizes, "payload_start": 5 * np.arange(count)}
    return PacketBatch(memoryview(bytes(range(5 * count))), **told)


def part(pairs: list[int], clock: int) -> Part:
    return Part.of(batch(pairs), 1, np.arange(len(pairs)) + clock, np.arange(len(pairs)))


def rows(found: Part) -> list[tuple[Any, ...]]:
    """What each packet says, and its payload."""
    of = found.batch
    spans = zip(of.payload_start.tolist(), of.payload_bytes.tolist(), strict=True)
    payloads = [bytes(of.data[start : start + size]) for start, size in spans]
    return list(zip(of.pair.tolist(), of.seq.tolist(), found.clock.tolist(), payloads, strict=True))


def test_pairs_leave_with_their_packets() -> None:
    aside, pairs = SetAside(), [3, 4, 3, 5, 4]
    aside.put(part(pairs, 100))
    aside.put(part([8, 9], 200))
    aside = pickle.loads(pickle.dumps(aside))
    assert (len(aside), sorted(aside.pairs)) == (5, [3, 4, 5, 8, 9])
    expected = rows(part(pairs, 100))
    (found,) = aside.take([4, 77])
    assert rows(found) == [one for one in expected if one[0] == 4]
    assert not list(aside.take([4]))
    (rest,) = aside.take_old(150)
    assert rows(rest) == [one for one in expected if one[0] != 4]
    assert [rows(one) for one in aside.take_old()] == [rows(part([8, 9], 200))]
    assert (len(aside), aside.held_bytes, aside.pairs) == (0, 0, [])


def test_a_pair_may_be_set_aside_anew() -> None:
    aside = SetAside()
    aside.put(part([3, 3], 100))
    assert len(list(aside.take([3]))) == 1
    aside.put(part([3, 3, 6], 200))
    assert not list(aside.take_old(150))
    assert len(list(aside.take([3, 6]))) == 1
    assert aside.held_bytes == 0

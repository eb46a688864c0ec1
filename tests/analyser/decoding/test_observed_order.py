"""A listener cuts what follows a gap in few parts, and keeps nothing of the loss once the frames behind it were fed."""

from __future__ import annotations

from itertools import accumulate

import pytest

from tests.dissectors.test_framer import heartbeat
from wirewitness.analyser.decoding.cutting import StreamCutter
from wirewitness.analyser.decoding.observed_order import Listener
from wirewitness.analyser.tcp.chunks import Gap, Run, Segments
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.kafka.decoder import KafkaDecoder
from wirewitness.dissectors.kafka.framing import framer

LOSSES = 20
SEGMENTS = 400


def _listener() -> tuple[Listener, StreamCutter]:
    limits = Limits()
    client, server = (
        StreamCutter(direction, framer(direction, True, limits)) for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT)
    )
    return Listener((client, server), KafkaDecoder(limits, DecodeOptions())), client


def test_what_follows_a_gap_is_cut_in_few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    cut, take = list[int](), StreamCutter._cut

    def counted(self, data, segments, *others):  # type: ignore[no-untyped-def]
        cut.append(len(segments.positions))
        return take(self, data, segments, *others)

    monkeypatch.setattr(StreamCutter, "_cut", counted)
    listener, _ = _listener()
    out = Sink(["messages", "expert_infos"])
    pieces = [heartbeat(number) for number in range(SEGMENTS)]
    positions = list(accumulate(map(len, pieces), initial=0))
    packets = [*range(SEGMENTS)]
    run = Run([*pieces], positions.pop(), Segments(positions, packets, packets, packets))
    listener.take([Gap(100, 0, 0), run], [], out)
    assert len(out.rows("messages") or ()) == SEGMENTS
    assert sum(cut) == SEGMENTS
    assert len(cut) <= 4


def test_losses_are_forgotten() -> None:
    out = Sink(["messages", "expert_infos"])
    listener, client = _listener()
    for number in range(LOSSES):
        data = heartbeat(number)
        run = Run([data], len(data), Segments([0], [number], [number], [number]))
        listener.take([run, Gap(100, number, number)], [], out)
    assert len(out.rows("messages") or ()) == LOSSES
    assert client.after_loss == set()

"""A listener keeps nothing of what was lost once the frames behind it were fed."""

from __future__ import annotations

from analyser.decoding.cutting import StreamCutter
from analyser.decoding.listening import Listener
from analyser.flows.runs import Gap, Run, Segments
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Sink
from dissectors.kafka.conversation import KafkaConversation
from dissectors.kafka.framing import framer
from tests.dissectors.test_framer import heartbeat

LOSSES = 20


def test_losses_are_forgotten() -> None:
    limits, out = Limits(), Sink(["messages", "expert_infos"])
    client, server = (
        StreamCutter(direction, framer(direction, True, limits)) for direction in (CLIENT_TO_SERVER, SERVER_TO_CLIENT)
    )
    listener = Listener((client, server), KafkaConversation(limits, DecodeOptions()))
    for number in range(LOSSES):
        data = heartbeat(number)
        run = Run([data], len(data), Segments([0], [number], [number], [number]))
        listener.take([run, Gap(100, number, number)], [], out)
    assert len(out.rows("messages") or ()) == LOSSES
    assert client.after_loss == set()

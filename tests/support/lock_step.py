"""Messages that are read in lock-step wherever they can be, or nowhere: tests compare both.

In: from how many on they are read together. Out: how many were, by protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from wirewitness.analyser.tcp import complete_connections
from wirewitness.dissectors.core import batch_backoff
from wirewitness.dissectors.core.batch_backoff import Rests, Worth, try_together
from wirewitness.dissectors.kafka import decoder as kafka_decoder
from wirewitness.dissectors.kafka.lockstep import groups
from wirewitness.dissectors.mongo import decoder as mongo_decoder
from wirewitness.dissectors.mongo.lockstep import batch_decode
from wirewitness.dissectors.mqtt import decoder as mqtt_decoder
from wirewitness.dissectors.mqtt.lockstep import batch_decode as mqtt_together

NEVER = 1 << 62
_DECODERS = (kafka_decoder, mqtt_decoder, mongo_decoder)
# From how many on: frames in all, of a connection, of one kind.
_LEAST = [
    *((module, "LEAST_FRAMES") for module in _DECODERS),
    *((module, "MANY_FRAMES") for module in _DECODERS),
    (groups, "LEAST"),
    (mqtt_together, "LEAST"),
    (batch_decode, "LEAST"),
]
# What was tried in vain is tried again at once.
_RESTS = [(batch_backoff, "_FIRST_REST"), (batch_backoff, "_LONGEST_REST")]


@contextmanager
def lock_step(least: int) -> Iterator[Counter[str]]:
    """From so many messages on: 1 for wherever it is possible, NEVER for nowhere."""
    read: Counter[str] = Counter()

    def counted(
        many: Iterable[tuple[Any, Any]], read_them: Callable[[Any], Sequence[Any]], rests: Rests, worth: Worth
    ) -> None:
        tried = list(many)
        try_together(tried, read_them, rests, worth)
        read[worth.protocol] += sum(left.prepared.taken for _, left in tried if left.prepared is not None)

    with pytest.MonkeyPatch.context() as patch:
        for module, name in _LEAST:
            patch.setattr(module, name, least)
        for module, name in _RESTS:
            patch.setattr(module, name, 0)
        patch.setattr(complete_connections, "LEAST", NEVER)  # connections that are taken whole are read together, too
        for module in _DECODERS:
            patch.setattr(module, "try_together", counted)
        yield read

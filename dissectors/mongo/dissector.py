"""The line by which MongoDB enters the table of contents."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.inspect import Asked, Inspected
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Decoder, Dissector, Sink
from wirewitness.dissectors.mongo.error_codes import ERROR_NAMES
from wirewitness.dissectors.mongo.framing import framer, opens, probe
from wirewitness.dissectors.mongo.rows import MONGO_ROWS

if TYPE_CHECKING:
    from wirewitness.dissectors.core.lockstep.streams import Streams, WholeRead


def _decoder(limits: Limits, options: DecodeOptions) -> Decoder:
    from wirewitness.dissectors.mongo.decoder import MongoDecoder

    return MongoDecoder(limits, options)


def _whole(streams: Streams, limits: Limits, options: DecodeOptions, out: Sink) -> WholeRead:
    from wirewitness.dissectors.mongo.decoder import MongoDecoder
    from wirewitness.dissectors.mongo.lockstep.complete_connections import read_whole

    return read_whole(streams, limits, partial(MongoDecoder, limits, options), out, not options.payload)


def _inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    from wirewitness.dissectors.mongo.inspect import inspect

    return inspect(data, asked, options)


def _may_hide(asked: Asked) -> bool:
    from wirewitness.dissectors.mongo.inspect import may_hide

    return may_hide(asked)


MONGO = Dissector(
    name="mongo",
    title="MongoDB",
    colour="#1d9a74",
    letters="MON",
    ports=(27017, 27018, 27019, 27020),
    server_names=("docdb",),
    probe=probe,
    framer=framer,
    decoder=_decoder,
    rows=MONGO_ROWS,
    error_names=ERROR_NAMES,
    inspect=_inspect,
    opens=opens,
    whole=_whole,
    may_hide=_may_hide,
    timed_waits=False,  # an awaitable hello is answered when news come, and after maxAwaitTimeMS without any
    left_open=frozenset({"getMore", "hello", "isMaster", "ismaster"}),
)

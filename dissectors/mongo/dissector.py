"""The line by which MongoDB enters the table of contents."""

from __future__ import annotations

from dissectors.core.protocol import Dissector
from dissectors.mongo.conversation import conversation
from dissectors.mongo.error_codes import ERROR_NAMES
from dissectors.mongo.framing import framer, probe
from dissectors.mongo.inspect import inspect, may_hide
from dissectors.mongo.rows import MONGO_ROWS

MONGO = Dissector(
    name="mongo",
    title="MongoDB",
    colour="#1d9a74",
    letters="MON",
    ports=(27017, 27018, 27019, 27020),
    probe=probe,
    framer=framer,
    conversation=conversation,
    rows=MONGO_ROWS,
    error_names=ERROR_NAMES,
    inspect=inspect,
    may_hide=may_hide,
    timed_waits=False,  # an awaitable hello is answered when news come, and after maxAwaitTimeMS without any
)

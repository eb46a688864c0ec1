"""The line by which the example enters the table of contents."""

from __future__ import annotations

from dissectors.core.protocol import Dissector
from dissectors.example.conversation import conversation
from dissectors.example.framing import framer, probe
from dissectors.example.inspect import inspect, may_hide

EXAMPLE = Dissector(
    name="example",
    title="Example",
    colour="#b59a00",
    letters="EXA",
    ports=(),
    probe=probe,
    framer=framer,
    conversation=conversation,
    rows={},
    error_names={},
    inspect=inspect,
    may_hide=may_hide,
)

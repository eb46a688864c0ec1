"""Topic names of the PUBLISH packets of one connection: read once, and found again by their aliases.

In: bytes of a topic name, or an alias. Out: the topic and the rules that it breaks.
"""

from __future__ import annotations

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.output import Output
from wirewitness.dissectors.mqtt.remarks import Remarks
from wirewitness.dissectors.mqtt.text import string, topic_problems

# Topic names that need not be read and judged again.
_MAX_CACHED, _MAX_CACHED_BYTES = 10_000, 1 << 20

# A topic name, and the rules that it breaks.
Topic = tuple[str, tuple[str, ...]]


def topic_of(text: str, problems: tuple[str, ...]) -> Topic:
    """What is remembered of a topic name."""
    return text, problems + topic_problems(text)


class Topics:
    """Topics by their bytes, and aliases by direction. Picklable."""

    __slots__ = ("_alias_bytes", "_aliases", "_connection", "_known", "_known_bytes", "_limits", "_remarks")

    def __init__(self, limits: Limits, connection: Connection, remarks: Remarks) -> None:
        self._limits = limits
        self._connection = connection
        self._remarks = remarks
        self._aliases: tuple[dict[int, str], dict[int, str]] = ({}, {})
        self._alias_bytes = 0
        self._known: dict[bytes, Topic] = {}
        self._known_bytes = 0

    def topic(self, raw: bytes) -> Topic:
        """The text of a topic name and the rules it breaks, remembered for the next PUBLISH."""
        known = self._known.get(raw)
        if known is None:
            text, problems = string(raw)
            known = topic_of(text, problems)
            self._known_bytes += len(raw)
            if self._known_bytes > _MAX_CACHED_BYTES or len(self._known) >= _MAX_CACHED:
                self._known.clear()
                self._known_bytes = len(raw)
            self._known[raw] = known
        return known

    def resolved(self, frame: Frame, out: Output, topic: str | None, alias: int | None) -> str | None:
        """The topic that a PUBLISH of 5.0 means, by its alias where it has none itself."""
        direction = frame.direction
        aliases = self._aliases[direction]
        add = self._remarks.add
        if alias is None:
            add(frame, out, "empty_topic", "PUBLISH with neither topic name nor topic alias")
            return None
        if alias == 0:
            add(frame, out, "topic_alias_zero", "topic alias 0")
            return topic or None
        maximum = self._connection.topic_alias_maximum[direction]
        if maximum is not None and alias > maximum:
            add(frame, out, "topic_alias_too_high", f"topic alias {alias}, the other side takes {maximum}")
        if not topic:
            if alias not in aliases:
                code = "topic_alias_unknown" if self._connection.all_seen else "topic_alias_not_seen"
                add(frame, out, code, f"topic alias {alias} stands for no topic that was sent")
            return aliases.get(alias)
        self._alias_bytes += len(topic) - len(aliases.pop(alias, ""))
        if self._alias_bytes > self._limits.max_topic_bytes:
            self._alias_bytes -= len(topic)
            self._remarks.limit(frame, out, "topic_aliases")
        else:
            aliases[alias] = topic
        return topic

"""The table of contents: every protocol, in the order in which they are asked about a flow."""

from __future__ import annotations

from dissectors.core.protocol import Dissector
from dissectors.kafka.dissector import KAFKA

PROTOCOLS: dict[str, Dissector] = {dissector.name: dissector for dissector in (KAFKA,)}

"""The table of contents: every protocol, in the order in which they are asked about a flow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from wirewitness.dissectors.carriers.tls.carrier import TLS
from wirewitness.dissectors.carriers.websocket import WEBSOCKET
from wirewitness.dissectors.core.carrier import Carrier
from wirewitness.dissectors.core.protocol import Dissector
from wirewitness.dissectors.example.dissector import EXAMPLE
from wirewitness.dissectors.kafka.dissector import KAFKA
from wirewitness.dissectors.mongo.dissector import MONGO
from wirewitness.dissectors.mqtt.dissector import MQTT

if TYPE_CHECKING:
    from wirewitness.dissectors.core.log_reader import LogReader
    from wirewitness.dissectors.core.segment_reader import SegmentReader

PROTOCOLS: dict[str, Dissector] = {dissector.name: dissector for dissector in (KAFKA, MQTT, MONGO)}
# Off unless somebody switches them on.
OPTIONAL: dict[str, Dissector] = {dissector.name: dissector for dissector in (EXAMPLE,)}
# Which of these a server is to be expected to speak, by its port.
USUAL_PORTS: dict[int, str] = {port: name for name, dissector in PROTOCOLS.items() for port in dissector.ports}

# Streams around a protocol's own, in the order in which they are asked about a flow.
CARRIERS: dict[str, Carrier] = {carrier.name: carrier for carrier in (TLS, WEBSOCKET)}


def log_reader(protocols: Iterable[str]) -> tuple[str, LogReader] | None:
    """The protocol among these whose servers log what they were asked, and what reads it; None where none is there."""
    if KAFKA.name not in protocols:
        return None
    from wirewitness.dissectors.kafka.request_log.reader import READER

    return KAFKA.name, READER


# Whose servers write log segments.
SEGMENTS_OF = KAFKA.name


def segment_reader(protocols: Iterable[str]) -> SegmentReader | None:
    """What reads log segments, of the protocol among these whose servers write them; None where none is there."""
    if SEGMENTS_OF not in protocols:
        return None
    from wirewitness.dissectors.kafka.segment import READER

    return READER


def read_all_files() -> None:
    """Read what protocols have in files beside their modules, so that none of them is opened later."""
    for dissector in (*PROTOCOLS.values(), *OPTIONAL.values()):
        dissector.read_files()


def dissectors(enabled: Iterable[str] = ()) -> dict[str, Dissector]:
    """PROTOCOLS and those of OPTIONAL that are enabled. ValueError for a name that OPTIONAL has not."""
    found = dict(PROTOCOLS)
    for name in enabled:
        if name not in OPTIONAL:
            raise ValueError(f"no optional dissector {name}; there are {', '.join(OPTIONAL)}")
        found[name] = OPTIONAL[name]
    return found


def dissector_of(protocol: str | None) -> Dissector | None:
    """The dissector of that name, optional or not; None when there is none."""
    return PROTOCOLS.get(protocol or "") or OPTIONAL.get(protocol or "")


def titles_of(found: Iterable[Dissector], last: str) -> str:
    """Their titles as `A, B or C`, where `last` is `or`."""
    *others, end = [dissector.title for dissector in found]
    return f"{', '.join(others)} {last} {end}" if others else end

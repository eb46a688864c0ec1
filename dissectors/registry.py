"""The table of contents: every protocol, in the order in which they are asked about a flow."""

from __future__ import annotations

from collections.abc import Iterable

from dissectors.carriers.websocket import WEBSOCKET
from dissectors.core.carrier import Carrier
from dissectors.core.protocol import Dissector
from dissectors.example.dissector import EXAMPLE
from dissectors.kafka.dissector import KAFKA
from dissectors.mongo.dissector import MONGO
from dissectors.mqtt.dissector import MQTT

PROTOCOLS: dict[str, Dissector] = {dissector.name: dissector for dissector in (KAFKA, MQTT, MONGO)}
# Off unless somebody switches them on.
OPTIONAL: dict[str, Dissector] = {dissector.name: dissector for dissector in (EXAMPLE,)}

# Streams around a protocol's own, in the order in which they are asked about a flow.
CARRIERS: dict[str, Carrier] = {carrier.name: carrier for carrier in (WEBSOCKET,)}


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

"""One MQTT packet as a tree: fields with byte spans, credentials and payloads kept back.

In: the bytes of one packet, and what it is. Out: see `dissectors/core/inspect.py`.
"""

from __future__ import annotations

from dissectors.core.inspect import MAX_NODES, Asked, Hidden, Inspected, Node
from dissectors.core.limits import Limits
from dissectors.core.options import DecodeOptions
from dissectors.mqtt.levels import VERSIONS
from dissectors.mqtt.packet_types import AUTH, CONNACK, CONNECT, NUMBERS
from dissectors.mqtt.walk import MASKED, walk

_LEVELS = {version: level for level, version in VERSIONS.items()}
_WITH_SECRETS = frozenset({CONNECT, CONNACK, AUTH})
_LIMITS = Limits(max_filters=MAX_NODES // 3, max_properties=MAX_NODES // 3)


def inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    """The tree of one packet; see `Inspect`."""
    level = None if asked.version is None else _LEVELS.get(asked.version)
    found = walk(data, 0, len(data), level, _LIMITS)
    hidden = [one for one in found.hidden if one.kind == "secret" or not options.payload]
    nodes = found.nodes
    error, at = found.error, found.pos
    if error is None and found.problems:
        _, at, error = found.problems[0]
    if found.pos < len(data):
        # Behind a break nobody knows what the bytes are.
        kind = "secret" if found.type in _WITH_SECRETS else "payload"
        nodes.append(Node("undecoded", found.pos, len(data)))
        if kind == "secret" or not options.payload:
            hidden = [one for one in hidden if one.end <= found.pos]
            hidden.append(Hidden(found.pos, len(data), "secret" if kind == "secret" else "payload"))
    for node in nodes:
        _mask(node, data, {one.kind for one in hidden})
    return Inspected(nodes, sorted(hidden), error, None if error is None else at)


def may_hide(asked: Asked) -> bool:
    """Whether `inspect` could find credentials in such a packet; see `MayHide`."""
    number = NUMBERS.get(asked.operation or "")
    return number is None or number in _WITH_SECRETS


def _mask(node: Node, data: bytes, kinds: set[str]) -> None:
    """Payloads by their bytes, or None where they are kept back."""
    if node.name in ("payload", "will_payload", "correlation_data"):
        node.value = None if "payload" in kinds else data[node.start : node.end]
    for child in node.children:
        _mask(child, data, kinds)


__all__ = ["MASKED", "inspect", "may_hide"]

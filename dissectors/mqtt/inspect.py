"""One MQTT packet as a tree: fields with byte spans, credentials and payloads kept back.

In: the bytes of one packet, and what it is. Out: see `dissectors/core/inspect.py`.
"""

from __future__ import annotations

from wirewitness.dissectors.core.closed import close, closed_pair, closed_text, closed_user
from wirewitness.dissectors.core.inspect import MAX_NODES, Asked, Hidden, Inspected, Node
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.mqtt.layout import FLAG_BITS
from wirewitness.dissectors.mqtt.levels import LEVEL_50, VERSIONS
from wirewitness.dissectors.mqtt.packet_types import AUTH, CONNACK, CONNECT, NUMBERS, operation_name
from wirewitness.dissectors.mqtt.walk import walk

_LEVELS = {version: level for level, version in VERSIONS.items()}
_WITH_SECRETS = frozenset({CONNECT, CONNACK, AUTH})
_CLOSED = {
    "user_name": closed_user,
    "reason_string": closed_text,
    "response_information": closed_text,
    "user_property": closed_pair,
}
_PAYLOADS = ("payload", "will_payload", "correlation_data")
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
        _show(node, data, {one.kind for one in hidden})
    if options.closed and found.type == CONNECT:
        # Of a CONNECT all that applications sent is its will.
        hidden = [one._replace(kind="secret") for one in found.hidden]
    if not options.opens:
        # Of a pair the name stays, so only what stands behind it is closed.
        hidden += close(nodes, _CLOSED)
    if nodes and isinstance(nodes[0].value, int):
        nodes[0].value = f"{operation_name(found.type)} {found.flags:04b}"
    return Inspected(nodes, sorted(hidden), error, None if error is None else at)


def may_hide(asked: Asked) -> bool:
    """Whether `inspect` could find credentials in such a packet; see `MayHide`. Of 5.0 any may have properties."""
    number = NUMBERS.get(asked.operation or "")
    return number is None or number in _WITH_SECRETS or asked.version in (None, VERSIONS[LEVEL_50])


def _show(node: Node, data: bytes, kinds: set[str]) -> None:
    """Values for people: payloads by their bytes, or None where they are kept back; flags that are set; pairs."""
    if node.name in _PAYLOADS:
        node.value = None if "payload" in kinds else data[node.start : node.end]
    elif node.name in FLAG_BITS and isinstance(node.value, dict):
        node.value = " ".join(name if value == 1 else f"{name}={value}" for name, value in node.value.items() if value)
    elif node.name == "user_property" and node.value is not None:
        node.value = ": ".join(node.value)
    for child in node.children:
        _show(child, data, kinds)

"""Record batches in the tree of a message: their headers as fields, what applications sent as spans to keep back.

Layouts: see `dissectors/kafka/records/batches.py`.
"""

from __future__ import annotations

from wirewitness.dissectors.core.inspect import Node
from wirewitness.dissectors.kafka.records.batches import BatchHeader, batch_headers

# Field, first byte and byte behind it; the value is the BatchHeader's of that name, else the number as it stands there.
_V2 = (
    ("base_offset", 0, 8),
    ("batch_length", 8, 12),
    ("partition_leader_epoch", 12, 16),
    ("magic", 16, 17),
    ("crc", 17, 21),
    ("attributes", 21, 23),
    ("last_offset_delta", 23, 27),
    ("base_timestamp", 27, 35),
    ("max_timestamp", 35, 43),
    ("producer_id", 43, 51),
    ("producer_epoch", 51, 53),
    ("base_sequence", 53, 57),
    ("records_count", 57, 61),
)
_V1 = (
    ("offset", 0, 8),
    ("message_size", 8, 12),
    ("crc", 12, 16),
    ("magic", 16, 17),
    ("attributes", 17, 18),
    ("timestamp", 18, 26),
)
_LAYOUTS = {0: _V1[:-1], 1: _V1, 2: _V2}
_UNSIGNED = ("crc",)


def record_nodes(node: Node, data: bytes) -> list[tuple[int, int]]:
    """Give the node of a records field (value: position, size) a child for each batch; the spans of the records."""
    start, size = node.value
    end = min(start + size, len(data))
    spans: list[tuple[int, int]] = []
    at = start
    for header in batch_headers(data, start, end - start):
        at = min(header.start + max(header.batch_bytes, 0), end) if not header.partial else end
        child = Node(f"[{len(node.children)}]", header.start, at, None, _header_nodes(header, data, at))
        node.children.append(child)
        first = child.children[-1].end if child.children else header.start
        if first < at:
            child.children.append(Node("records", first, at))
            spans.append((first, at))
    if at < end:
        node.children.append(Node("incomplete", at, end))
        spans.append((at, end))
    return spans


def _header_nodes(header: BatchHeader, data: bytes, end: int) -> list[Node]:
    """The fields of a batch's header that are there whole."""
    if header.error is not None or header.magic is None:
        return []
    nodes = []
    for name, first, behind in _LAYOUTS[header.magic]:
        if header.start + behind > end:
            break
        raw = data[header.start + first : header.start + behind]
        value: object = int.from_bytes(raw, "big", signed=name not in _UNSIGNED)
        if name == "attributes":
            value = f"{value} ({header.codec})"
        nodes.append(Node(name, header.start + first, header.start + behind, value))
    return nodes

"""One Kafka message as a tree: header and body fields with byte spans, credentials and record data kept back.

In: the bytes of one frame with its size, and what it is. Out: see `dissectors/core/inspect.py`. Where the meaning of
bytes is not known although its API carries credentials or records, they are kept back as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from wirewitness.dissectors.core.closed import close
from wirewitness.dissectors.core.errors import DecodeError
from wirewitness.dissectors.core.inspect import MAX_NODES, Asked, Hidden, HiddenKind, Inspected, Node
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.kafka.closed_fields import closed_fields
from wirewitness.dissectors.kafka.headers import API_VERSIONS, CONTROLLED_SHUTDOWN, request_header, response_header
from wirewitness.dissectors.kafka.operation import TOKEN
from wirewitness.dissectors.kafka.records.batches import BatchHeader, batch_headers
from wirewitness.dissectors.kafka.schema import definitions as schema
from wirewitness.dissectors.kafka.schema.api_keys import API_KEYS, api_name
from wirewitness.dissectors.kafka.schema.definitions import Direction, Field
from wirewitness.dissectors.kafka.schema.secret_settings import shown
from wirewitness.dissectors.kafka.schema.walk import Walked, walk

# Record batches in the tree of a message: their headers as fields, what applications sent as spans to keep back.
#
# Layouts: see `dissectors/kafka/records/batches.py`.

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


ENVELOPE = 58
# Settings of these may be passwords.
_WITH_SETTINGS = frozenset({19, 32, 33, 44, ENVELOPE})
_NAMES = ("name", "config_name")
_VALUES = ("value", "config_value")


def inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    """The tree of one frame; see `Inspect`."""
    tree = _Tree(data, options)
    if len(data) >= 4:
        tree.add("size", 4, int.from_bytes(data[:4], "big", signed=True))
    try:
        if asked.operation == TOKEN.name:
            tree.rest("token", "secret")
        elif asked.role == "request":
            _request(tree)
        else:
            _response(tree, asked)
    except DecodeError as error:
        tree.fail(str(error), tree.pos)
        tree.rest("undecoded", "payload")
    return tree.inspected()


def may_hide(asked: Asked) -> bool:
    """Whether `inspect` could find credentials in such a message, or what it cannot decode; see `MayHide`."""
    key = None if asked.operation is None else _keys_by_name().get(asked.operation)
    if key is None or _kind_of_unknown(key) == "secret" or closed_fields(key):
        return True
    api, version = schema.api(key), asked.version or ""
    return api is None or not version.isdecimal() or not api.versions.has(int(version))


class _Tree:
    """The nodes of the top level while they are found; `pos` is where the last one ends."""

    def __init__(self, data: bytes, options: DecodeOptions) -> None:
        self.data = data
        self.payload, self.opens = options.payload, options.opens
        self.pos = 0
        self._nodes: list[Node] = []
        self._hidden: list[Hidden] = []
        self._error: tuple[str, int] | None = None

    def add(self, name: str, end: int, value: object) -> None:
        """A field from where the last one ended to `end`."""
        self._nodes.append(Node(name, self.pos, end, value))
        self.pos = end

    def hide(self, start: int, end: int, kind: HiddenKind) -> None:
        if end > start and (kind == "secret" or not self.payload):
            self._hidden.append(Hidden(start, end, kind))

    def rest(self, name: str, kind: HiddenKind) -> None:
        """What is left, as one node."""
        if self.pos < len(self.data):
            self.hide(self.pos, len(self.data), kind)
            self.add(name, len(self.data), None)

    def fail(self, error: str, at: int) -> None:
        self._error = self._error or (error, at)

    def body(self, nodes: Sequence[Node], end: int) -> None:
        self._nodes += nodes
        self.pos = end

    def inspected(self) -> Inspected:
        error, at = self._error or (None, None)
        return Inspected(self._nodes, sorted(self._hidden), error, at)


def _request(tree: _Tree) -> None:
    data = tree.data
    api_key, version, correlation_id, client_id, body = request_header(data, 4, len(data))
    tree.add("api_key", 6, api_key)
    tree.add("api_version", 8, version)
    tree.add("correlation_id", 12, correlation_id)
    if (api_key, version) != (CONTROLLED_SHUTDOWN, 0):
        size = int.from_bytes(data[12:14], "big", signed=True)
        tree.add("client_id", 14 + max(0, size), client_id)
    if body > tree.pos:
        tree.add("tagged_fields", body, data[tree.pos])
    _body(tree, api_key, version, "request")


def _response(tree: _Tree, asked: Asked) -> None:
    data = tree.data
    known = _api(asked)
    if known is None:
        if len(data) < 8:
            raise DecodeError("the frame ends inside the response header")
        tree.add("correlation_id", 8, int.from_bytes(data[4:8], "big", signed=True))
        tree.fail("the request is not in the capture, so nobody can tell what this answers", 8)
        tree.rest("undecoded", "payload")
        return
    correlation_id, body = response_header(*known, data, 4, len(data))
    tree.add("correlation_id", 8, correlation_id)
    if body > 8:
        tree.add("tagged_fields", body, data[8])
    _body(tree, *known, "response")


def _api(asked: Asked) -> tuple[int, int] | None:
    """(API key, version) of a response's request, as the messages table names them."""
    if asked.operation is None or asked.version is None or not asked.version.lstrip("-").isdecimal():
        return None
    key = _keys_by_name().get(asked.operation)
    if key is None and asked.operation.startswith("Key "):
        number = asked.operation.removeprefix("Key ")
        key = int(number) if number.lstrip("-").isdecimal() else None
    return None if key is None else (key, int(asked.version))


@cache
def _keys_by_name() -> dict[str, int]:
    return {api_name(key): key for key in API_KEYS}


def _body(tree: _Tree, api_key: int, version: int, direction: Direction) -> None:
    walked = _walk(tree, api_key, version, direction)
    tree.body(walked.nodes, walked.pos)
    for start, end in walked.secret:
        if end <= walked.pos:  # one that is cut belongs to what is left over below
            tree.hide(start, end, "secret")
    for node in walked.nodes:
        for start, end in _secret_settings(node):
            tree.hide(start, end, "secret")
    for start, end, kind in () if tree.opens else close(walked.nodes, closed_fields(api_key)):
        tree.hide(start, end, kind)
    for node in _records(walked.nodes):
        if api_key == ENVELOPE:
            start, size = node.value
            tree.hide(start, start + size, "secret")
        else:
            for start, end in record_nodes(node, tree.data):
                tree.hide(start, end, "payload")
        node.value = None
    if walked.error is not None:
        tree.fail(walked.error, walked.error_at if walked.error_at is not None else walked.pos)
        tree.rest("undecoded", _kind_of_unknown(api_key))
    else:
        tree.rest("trailing_bytes", _kind_of_unknown(api_key))


def _walk(tree: _Tree, api_key: int, version: int, direction: Direction) -> Walked:
    end = len(tree.data)
    walked = walk(api_key, version, direction, tree.data, tree.pos, end, MAX_NODES)
    if api_key == API_VERSIONS and direction == "response" and version > 0 and (walked.error or walked.pos < end):
        # A broker that does not know the version answers in the form of version 0 (KIP-511).
        oldest = walk(api_key, 0, direction, tree.data, tree.pos, end, MAX_NODES)
        if oldest.error is None and oldest.pos == end:
            return oldest
    return walked


def _records(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes of records fields: only their values are a position and a size."""
    for node in nodes:
        if isinstance(node.value, tuple):
            yield node
        yield from _records(node.children)


def _secret_settings(node: Node) -> Iterator[tuple[int, int]]:
    """Values of settings whose name says that they are secret; masked in the tree, their bytes yielded."""
    fields = {child.name: child for child in node.children}
    name = next((fields[key].value for key in _NAMES if key in fields), None)
    value = next((fields[key] for key in _VALUES if key in fields), None)
    if isinstance(name, str) and value is not None and isinstance(value.value, str):
        text = shown(name, value.value)
        if text != value.value:
            size = len(value.value.encode("utf-8", "surrogateescape"))
            yield max(value.start, value.end - size), value.end
            value.value = text
    for child in node.children:
        yield from _secret_settings(child)


@cache
def _kind_of_unknown(api_key: int) -> HiddenKind:
    """What bytes of this API may be that cannot be decoded: anything, so nobody sees them who did not ask."""
    api = schema.api(api_key)
    if api is None:
        return "payload"
    is_secret = api_key in _WITH_SETTINGS or any(one.secret for one in _all_fields((*api.request, *api.response)))
    return "secret" if is_secret else "payload"


def _all_fields(fields: Sequence[Field]) -> Iterator[Field]:
    for one in fields:
        yield one
        yield from _all_fields(one.fields)

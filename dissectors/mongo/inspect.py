"""One MongoDB message as a tree: header, sections and documents with byte spans.

In: the bytes of one frame, and what it is. Out: see `dissectors/core/inspect.py`. Credentials are kept back always,
values of documents unless payload is asked for; keys, and values of fields that belong to the protocol, are shown. What
is inside a compressed message has no bytes of its own in the frame: its nodes are empty spans behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.inspect import MAX_NODES, Asked, Hidden, HiddenKind, Inspected, Node
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.mongo.bson_fields import document
from wirewitness.dissectors.mongo.bson_tree import DocumentWalker
from wirewitness.dissectors.mongo.compressed import COMPRESSED_HEADER_BYTES, COMPRESSORS, open_compressed
from wirewitness.dissectors.mongo.opcodes import (
    CHECKSUM_PRESENT,
    HEADER_BYTES,
    OP_COMMAND,
    OP_COMMANDREPLY,
    OP_COMPRESSED,
    OP_DELETE,
    OP_GET_MORE,
    OP_INSERT,
    OP_KILL_CURSORS,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    OP_UPDATE,
    opcode_name,
)
from wirewitness.dissectors.mongo.secrets import is_closed, is_secret, may_hold_secrets
from wirewitness.dissectors.mongo.shown_fields import is_shown

_int32 = struct.Struct("<i").unpack_from
_uint32 = struct.Struct("<I").unpack_from
_int64 = struct.Struct("<q").unpack_from


def inspect(data: bytes, asked: Asked, options: DecodeOptions) -> Inspected:
    """The tree of one frame; see `Inspect`."""
    tree = _Tree(data, asked, options, MAX_NODES)
    opcode = _header(tree)
    if opcode == OP_COMPRESSED:
        _compressed(tree, asked, options)
    elif opcode is not None:
        _body(tree, opcode)
    return tree.inspected()


def may_hide(_asked: Asked) -> bool:
    """Whether `inspect` could find credentials; see `MayHide`. A field named password may be in any document."""
    return True


class _Tree:
    """The nodes of the top level while they are found; `pos` is where the last one ends."""

    def __init__(self, data: bytes, asked: Asked, options: DecodeOptions, max_nodes: int) -> None:
        self.data = data
        self.end = len(data)
        self.pos = 0
        self.nodes: list[Node] = []
        self.hidden: list[Hidden] = []
        self.error: tuple[str, int] | None = None
        self.unknown: HiddenKind = "secret" if may_hold_secrets(asked.operation) else "payload"
        # Of a legacy opcode that carries no command, documents are an application's from their first key on.
        command = asked.operation is not None and not asked.operation.startswith("OP_")
        self.keys: tuple[str, ...] = () if command else ("document",)
        self.payload = options.payload
        self.walker = DocumentWalker(data, _classifier(asked, options), max_nodes, payload=options.payload)

    def fail(self, error: str) -> None:
        self.error = self.error or (error, self.pos)

    def add(self, name: str, end: int, value: object) -> None:
        """A field from where the last one ended to `end`."""
        self.nodes.append(Node(name, self.pos, end, value))
        self.pos = end

    def int32(self, name: str, read: Callable[..., tuple[int, ...]] = _int32) -> int | None:
        """A number of four bytes; None where they are not there."""
        if self.error is not None or self.end - self.pos < 4:
            self.fail("the message ends early")
            return None
        value = read(self.data, self.pos)[0]
        self.add(name, self.pos + 4, value)
        return value

    def int64(self, name: str) -> None:
        if self.error is not None or self.end - self.pos < 8:
            self.fail("the message ends early")
        else:
            self.add(name, self.pos + 8, _int64(self.data, self.pos)[0])

    def cstring(self, name: str) -> str | None:
        end = self.data.find(0, self.pos, self.end)
        if self.error is not None or end < 0:
            self.fail("a name ends early")
            return None
        value = self.data[self.pos : end].decode("utf-8", "replace")
        self.add(name, end + 1, value)
        return value

    def document(self, name: str, limit: int, keys: tuple[str, ...] = ()) -> None:
        """A document; where it is broken, the tree ends."""
        if self.error is not None:
            return
        start = self.pos
        walked = self.walker.walk(start, limit, keys)
        self.nodes.append(Node(name, start, walked.pos, None, walked.nodes))
        self.hidden += walked.hidden
        self.pos = walked.pos
        if walked.error is not None:
            self.fail(walked.error)

    def documents(self, name: str, limit: int, keys: tuple[str, ...] = ()) -> None:
        """Documents that follow each other up to `limit`."""
        number = 0
        while self.pos < limit and self.error is None:
            self.document(f"{name}[{number}]", limit, keys)
            number += 1

    def hide(self, start: int, end: int, kind: HiddenKind) -> None:
        if end > start and (kind == "secret" or not self.payload):
            self.hidden.append(Hidden(start, end, kind))

    def inspected(self) -> Inspected:
        """The tree, with what was not decoded as its last node."""
        if self.pos < len(self.data):
            self.hide(self.pos, len(self.data), self.unknown)
            self.add("undecoded" if self.error else "trailing_bytes", len(self.data), None)
        error, at = self.error or (None, None)
        return Inspected(self.nodes, sorted(self.hidden), error, at)


def _classifier(asked: Asked, options: DecodeOptions) -> Callable[[tuple[str, ...]], HiddenKind | None]:
    command, asks = asked.operation, asked.role != "response"

    def classify(keys: tuple[str, ...]) -> HiddenKind | None:
        if keys and is_secret(command, keys):
            return "secret"
        if not options.opens and is_closed(command, keys, asks=asks):
            return "secret"
        return None if is_shown(command, keys) else "payload"

    return classify


def _header(tree: _Tree) -> int | None:
    """The four numbers of the header; the opcode."""
    for name in ("message_length", "request_id", "response_to"):
        tree.int32(name)
    opcode = tree.int32("opcode")
    if opcode is not None:
        tree.nodes[-1].value = opcode_name(opcode)
    return opcode


def _body(tree: _Tree, opcode: int) -> None:
    read = _BODIES.get(opcode)
    if read is None:
        tree.fail(f"{opcode_name(opcode)} is not known")
    else:
        read(tree)


def _compressed(tree: _Tree, asked: Asked, options: DecodeOptions) -> None:
    opcode = tree.int32("original_opcode")
    tree.int32("uncompressed_size")
    if opcode is None or tree.error is not None or tree.pos >= tree.end:
        tree.fail("the message ends early")
        return
    tree.nodes[-2].value = opcode_name(opcode)
    number = tree.data[tree.pos]
    tree.add("compressor_id", tree.pos + 1, COMPRESSORS.get(number, number))
    remarks: list[Remark] = []
    opened = open_compressed(tree.data, 0, tree.end, 0, 0, Allowance(Limits()), remarks)
    start = COMPRESSED_HEADER_BYTES
    if opened is None or opened.error is not None:
        tree.fail("the message ends early" if opened is None or opened.error is None else opened.error)
        if opened is None or len(opened.data) <= HEADER_BYTES:
            return
    inner = _Tree(opened.data, asked, options, MAX_NODES)
    inner.pos = HEADER_BYTES
    _body(inner, opened.opcode)
    found = inner.inspected()
    _without_bytes(found.nodes, tree.end)
    tree.nodes.append(Node("compressed_message", start, tree.end, None, found.nodes))
    tree.pos = tree.end
    if any(hidden.kind == "secret" for hidden in found.hidden):
        tree.hide(start, tree.end, "secret")
    else:
        tree.hide(start, tree.end, "payload")
    if found.error is not None:
        tree.fail(f"inside the compressed message: {found.error}")


def _without_bytes(nodes: list[Node], at: int) -> None:
    """Nodes of what was compressed: no byte of the frame is theirs alone."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        node.start = node.end = at
        waiting += node.children


# ----------------------------------------------------------------------------------------------------------------------


def _msg(tree: _Tree) -> None:
    flags = tree.int32("flag_bits", _uint32)
    if flags is None:
        return
    end = tree.end
    checksum = bool(flags & CHECKSUM_PRESENT) and end - tree.pos >= 4
    if checksum:
        tree.end -= 4
    while tree.pos < tree.end and tree.error is None:
        _section(tree)
    tree.end = end
    if checksum and tree.error is None:
        tree.int32("checksum", _uint32)


def _section(tree: _Tree) -> None:
    """One section as a node whose children are its kind and what follows."""
    section = Node("section", tree.pos, tree.pos)
    outer, tree.nodes = tree.nodes, section.children
    kind = tree.data[tree.pos]
    tree.add("kind", tree.pos + 1, kind)
    if kind == 0:
        tree.document("document", tree.end)
    elif kind == 1:
        _sequence(tree)
    elif kind == 2:
        _internal(tree)
    else:
        tree.pos -= 1
        tree.nodes.pop()
        tree.fail(f"a section of unknown kind {kind}")
    tree.nodes = outer
    section.end = tree.pos
    if section.children:
        outer.append(section)


def _sequence(tree: _Tree) -> None:
    start = tree.pos
    size = tree.int32("size")
    if size is None:
        return
    end = start + size
    if not 5 <= size <= tree.end - start:
        tree.fail("impossible size of a document sequence")
        end = tree.end
    name = tree.cstring("identifier")
    if name is not None:
        tree.documents("document", end, (name,))


def _internal(tree: _Tree) -> None:
    """A server's security token, a document or a string."""
    found = document(tree.data, tree.pos, tree.end)
    end = found.end if found.error is None else tree.data.find(0, tree.pos, tree.end) + 1
    if end <= tree.pos:
        tree.fail("a section of kind 2 ends early")
        return
    tree.hide(tree.pos, end, "secret")
    tree.add("security_token", end, None)


def _query(tree: _Tree) -> None:
    tree.int32("flags", _uint32)
    tree.cstring("full_collection_name")
    tree.int32("number_to_skip")
    tree.int32("number_to_return")
    tree.document("query", tree.end, tree.keys)
    if tree.pos < tree.end and tree.error is None:
        tree.document("return_fields_selector", tree.end, tree.keys)


def _reply(tree: _Tree) -> None:
    tree.int32("response_flags", _uint32)
    tree.int64("cursor_id")
    tree.int32("starting_from")
    tree.int32("number_returned")
    tree.documents("document", tree.end, tree.keys)


def _insert(tree: _Tree) -> None:
    tree.int32("flags", _uint32)
    tree.cstring("full_collection_name")
    tree.documents("document", tree.end, tree.keys)


def _update(tree: _Tree) -> None:
    tree.int32("zero")
    tree.cstring("full_collection_name")
    tree.int32("flags", _uint32)
    tree.document("selector", tree.end, tree.keys)
    tree.document("update", tree.end, tree.keys)


def _delete(tree: _Tree) -> None:
    tree.int32("zero")
    tree.cstring("full_collection_name")
    tree.int32("flags", _uint32)
    tree.document("selector", tree.end, tree.keys)


def _get_more(tree: _Tree) -> None:
    tree.int32("zero")
    tree.cstring("full_collection_name")
    tree.int32("number_to_return")
    tree.int64("cursor_id")


def _kill_cursors(tree: _Tree) -> None:
    tree.int32("zero")
    count = tree.int32("number_of_cursor_ids")
    for number in range(min(count or 0, (tree.end - tree.pos) // 8, MAX_NODES)):
        tree.int64(f"cursor_id[{number}]")
    if count is not None and not 0 <= count <= (tree.end - HEADER_BYTES - 8) // 8:
        tree.fail("more cursor ids than the message holds")


def _command(tree: _Tree) -> None:
    tree.cstring("database")
    tree.cstring("command_name")
    tree.document("command_args_or_metadata", tree.end)
    tree.document("metadata_or_command_args", tree.end)
    tree.documents("input_document", tree.end)


def _command_reply(tree: _Tree) -> None:
    tree.document("command_reply_or_metadata", tree.end)
    tree.document("metadata_or_command_reply", tree.end)
    tree.documents("output_document", tree.end)


_BODIES: dict[int, Callable[[_Tree], None]] = {
    OP_MSG: _msg,
    OP_QUERY: _query,
    OP_REPLY: _reply,
    OP_INSERT: _insert,
    OP_UPDATE: _update,
    OP_DELETE: _delete,
    OP_GET_MORE: _get_more,
    OP_KILL_CURSORS: _kill_cursors,
    OP_COMMAND: _command,
    OP_COMMANDREPLY: _command_reply,
}

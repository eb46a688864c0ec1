"""One message for people and programs. In: its row, bytes and tree. Out: lines of text, or a JSON value.

What must not be shown is masked in the tree and in the hex: `**` for credentials, `..` for what applications sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.analysis.evidence.bytes import MessageBytes, PacketBytes, message_bytes
from wirewitness.analyser.analysis.evidence.index import Index
from wirewitness.analyser.analysis.evidence.logged import is_logged, line_of
from wirewitness.analyser.analysis.evidence.rows import MessageRow
from wirewitness.analyser.base.words import count as counted
from wirewitness.analyser.decoding.faults import inspecting
from wirewitness.dissectors.core.inspect import Asked, Hidden, Inspected, Node, undecoded
from wirewitness.dissectors.core.model import split_packet
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.registry import dissector_of, log_reader
from wirewitness.reports.base.formats.printable import shortened, visible
from wirewitness.reports.base.formats.values import ms_text, time_text

_SHORT_BYTES = 32
_MASKS = {"secret": "**", "payload": ".."}
_NOTES = {
    "secret": "** are {} of credentials; never shown.",
    "payload": ".. are {} of application data; --payload shows them.",
}


class MessageView(NamedTuple):
    """All that is shown of a message. files: names by index. partner: the other message of its exchange.

    error_names: code -> name, of the protocol. client, server: who they are in words; empty where nobody says.
    """

    row: MessageRow
    content: MessageBytes
    tree: Inspected
    files: Sequence[str]
    partner: MessageRow | None
    error_names: dict[int, str]
    client: str = ""
    server: str = ""


class FieldLine(NamedTuple):
    """One field as a person reads it. depth: of nesting. start, end: its bytes in the message, equal without any.

    packet: number of the packet that its first byte came in, None without bytes. hidden: why its value is kept back.
    """

    depth: int
    name: str
    value: str
    start: int
    end: int
    packet: int | None
    hidden: str | None


def view_message(index: Index, row: MessageRow, *, payload: bool) -> MessageView:
    """Read and take apart one message. Raises `analyser.analysis.evidence.bytes.BytesGone` when the capture has
    changed."""
    dissector = dissector_of(row.flow.protocol)
    if is_logged(row, index.sources):
        return _view_logged(index, row)
    content = message_bytes(row, index.sources, index.places, index.keylogs)
    look = inspecting(dissector.inspect if dissector is not None else undecoded)
    tree = look(content.data, Asked(row.role, row.operation, row.version), DecodeOptions(payload=payload))
    names = dict(dissector.error_names) if dissector is not None else {}
    return MessageView(row, content, tree, [source.name for source in index.sources], index.partner(row), names)


def _view_logged(index: Index, row: MessageRow) -> MessageView:
    """A message of a request log: fields without bytes."""
    protocol = row.flow.protocol or ""
    found = log_reader([protocol])
    line = line_of(row, index.sources)
    tree = Inspected([], []) if found is None else found[1].inspect(line, row.role)
    dissector = dissector_of(protocol)
    names = dict(dissector.error_names) if dissector is not None else {}
    content = MessageBytes(b"", (PacketBytes(0, 0, row.packet_last),))
    return MessageView(row, content, tree, [source.name for source in index.sources], index.partner(row), names)


def text_lines(view: MessageView, width: int, hex_bytes: int) -> Iterator[str]:
    """For a terminal of `width` columns; at most `hex_bytes` bytes of hex."""
    yield from _head(view, width)
    yield ""
    if view.row.length_bytes is None:
        for line in field_lines(view):
            yield shortened(f"  {'  ' * line.depth}{line.name}  {line.value}".rstrip(), width)
        return
    yield from _tree(view, width)
    yield ""
    yield from _hex(view, width, hex_bytes)


def json_value(view: MessageView, hex_bytes: int) -> dict[str, Any]:
    """For programs; `end` is the first byte behind a span. Masked bytes stand as ** and .. in `hex`."""
    row, tree = view.row, view.tree
    if row.length_bytes is None:
        return _json_logged(view)
    shown = view.content.data[:hex_bytes]
    return {
        **_json_head(view),
        "stream_offset": row.stream_offset,
        "length_bytes": row.length_bytes,
        "complete": row.complete,
        "error": row.error,
        "partner_message_id": None if view.partner is None else view.partner.message_id().text(),
        "segments": [
            {"start": p.start, "end": p.end, "file": view.files[split_packet(p.packet)[0]],
             "packet": split_packet(p.packet)[1]}
            for p in view.content.pieces
        ],
        "fields": [_json_node(node, tree.hidden) for node in tree.nodes],
        "undecoded_from": tree.error_at,
        "undecoded_why": tree.error,
        "hidden": [hidden._asdict() for hidden in tree.hidden],
        "hex": "".join(_hex_of(shown, 0, len(shown), tree.hidden)),
    }  # fmt: skip


def _json_head(view: MessageView) -> dict[str, Any]:
    """What is told of a message wherever it was read."""
    row = view.row
    return {
        "message_id": row.message_id().text(),
        "flow_id": row.flow.flow_id,
        "protocol": row.flow.protocol,
        "direction": ("client_to_server", "server_to_client")[row.direction],
        "role": row.role,
        "operation": row.operation,
        "version": row.version,
        "ts": time_text(row.ts_ns),
        **{f"{name}_owner": who for name, who in (("client", view.client), ("server", view.server)) if who},
    }


def _json_logged(view: MessageView) -> dict[str, Any]:
    """A message of a request log for programs."""
    row = view.row
    file, line = split_packet(row.packet_last)
    return {
        **_json_head(view),
        "file": view.files[file],
        "line": line,
        "error": row.error,
        "partner_message_id": None if view.partner is None else view.partner.message_id().text(),
        "fields": [_json_node(node, []) for node in view.tree.nodes],
        "undecoded_why": view.tree.error,
    }


def _head(view: MessageView, width: int) -> Iterator[str]:
    row = view.row
    ends = [f"{address}:{port}" for address, port in (row.flow.client, row.flow.server)]
    sender, receiver = ends[:: -1 if row.direction else 1]
    number = row.version is not None and row.version[:1].isdecimal()
    version = "" if row.version is None else f" v{row.version}" if number else f" ({row.version})"
    yield f"message {row.message_id().text()}"
    what = f"{row.flow.protocol}  {row.operation or 'unknown operation'}{version} {row.role or ''}".rstrip()
    size = "" if row.length_bytes is None else f", {row.length_bytes} bytes"
    yield shortened(f"  what     {visible(what)}{size}", width)
    yield f"  from     {sender} to {receiver}" + (f" ({row.flow.encapsulation})" if row.flow.encapsulation else "")
    for name, who in (("client", view.client), ("server", view.server)):
        if who:
            yield shortened(f"  {name}   {visible(who)}", width)
    yield f"  time     {time_text(row.ts_ns)}"
    yield f"  {'line' if row.length_bytes is None else 'packets':7}  {packets_text(view)}"
    if view.partner is not None:
        took = f", {ms_text(abs(row.ts_ns - view.partner.ts_ns) / 1e6)} ms"
        yield f"  {view.partner.role or 'other':8} {view.partner.message_id().text()}{took}"
    if not row.complete:
        yield "  note     the capture lacks the rest of this message"
    if view.tree.error is not None:
        where = "" if row.length_bytes is None else f"from byte {view.tree.error_at} on "
        note = f"{where}not decoded: {visible(view.tree.error)}"
        yield f"  note     {note}"


def packets_text(view: MessageView) -> str:
    """The numbers of the message's packets by file; several in a row as a range."""
    by_file: dict[int, list[int]] = {}
    for piece in view.content.pieces:
        file, number = split_packet(piece.packet)
        by_file.setdefault(file, []).append(number)
    return ", ".join(
        f"{_ranges(sorted(set(numbers)))} of {visible(view.files[file])}" for file, numbers in by_file.items()
    )


def _ranges(numbers: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][-1] = number
        else:
            parts.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def field_lines(view: MessageView) -> Iterator[FieldLine]:
    """All fields, outer before inner, in the order of the bytes; texts without control characters."""
    starts = [piece.start for piece in view.content.pieces]
    waiting = [(node, 0) for node in reversed(view.tree.nodes)]
    while waiting:
        node, depth = waiting.pop()
        waiting += [(child, depth + 1) for child in reversed(node.children)]
        packet = None
        if starts and node.end > node.start:
            packet = split_packet(view.content.pieces[max(bisect_right(starts, node.start) - 1, 0)].packet)[1]
        hidden = _hidden_kind(node, view.tree.hidden)
        yield FieldLine(
            depth, visible(node.name), _value_text(node, hidden, view), node.start, node.end, packet, hidden
        )


def _tree(view: MessageView, width: int) -> Iterator[str]:
    spans = max(len(str(max(len(view.content.data) - 1, 0))) * 2 + 1, 5)
    packets = max([len("PACKET"), *(len(str(split_packet(p.packet)[1])) for p in view.content.pieces)])
    yield f"{'BYTES'.ljust(spans)}  {'PACKET'.rjust(packets)}  FIELD"
    for line in field_lines(view):
        span = f"{line.start}-{line.end - 1}" if line.end - line.start > 1 else str(line.start)
        if line.packet is None:
            span = "-"
        number = "" if line.packet is None else str(line.packet)
        left = f"{span.ljust(spans)}  {number.rjust(packets)}  {'  ' * line.depth}{line.name}"
        yield shortened(f"{left}  {line.value}".rstrip(), max(width, len(left)))


def _value_text(node: Node, kind: str | None, view: MessageView) -> str:
    size = node.end - node.start
    if kind == "payload":
        return f"({size} bytes, not shown)"
    if kind == "secret":
        return visible(node.value) if isinstance(node.value, str) else "***"
    value = node.value
    if isinstance(value, list):
        return f"({len(value)})"
    if isinstance(value, dict) or (value is None and node.children):
        return ""
    if value is None and node.name in ("undecoded", "trailing_bytes", "records", "incomplete", "token"):
        return f"({size} bytes)"
    if isinstance(value, bytes):
        more = f".. ({len(value)} bytes)" if len(value) > _SHORT_BYTES else ""
        return (value[:_SHORT_BYTES].hex() + more) or "(empty)"
    if isinstance(value, str):
        return visible(value) or "(empty)"
    if node.name == "error_code" and value in view.error_names:
        return f"{value} ({view.error_names[value]})"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _hidden_kind(node: Node, hidden: Sequence[Hidden]) -> str | None:
    """Why the value of a node without children is kept back."""
    if node.children:
        return None
    at = bisect_right(hidden, node.end, key=lambda one: one.start) - 1
    inside = at >= 0 and hidden[at].start >= node.start and node.start < hidden[at].end <= node.end
    return hidden[at].kind if inside else None


def _json_node(node: Node, hidden: Sequence[Hidden]) -> dict[str, Any]:
    kind = _hidden_kind(node, hidden)
    value = node.value
    if kind == "payload" or isinstance(value, dict | list):
        value = None
    elif kind == "secret":
        value = value if isinstance(value, str) else "***"
    elif isinstance(value, bytes):
        value = value.hex()
    made: dict[str, Any] = {"name": node.name, "start": node.start, "end": node.end, "value": value}
    if kind is not None:
        made["hidden"] = kind
    if node.children:
        made["fields"] = [_json_node(child, hidden) for child in node.children]
    return made


def _hex(view: MessageView, width: int, hex_bytes: int) -> Iterator[str]:
    data, hidden = view.content.data, view.tree.hidden
    shown = min(len(data), hex_bytes)
    digits = max(4, len(f"{max(len(data) - 1, 0):x}"))
    per_line = 16 if width >= digits + 2 + 16 * 3 + 2 + 16 else 8
    for start in range(0, shown, per_line):
        end = min(start + per_line, shown)
        pairs = _hex_of(data, start, end, hidden)
        letters = "".join(
            pair[0] if pair in _MASKS.values() else chr(byte) if 32 <= byte < 127 else "."
            for pair, byte in zip(pairs, data[start:end], strict=True)
        )
        yield f"{start:0{digits}x}  {' '.join(pairs).ljust(per_line * 3 - 1)}  {letters}"
    if shown < len(data):
        yield f"{len(data) - shown} more bytes; --bytes {len(data)} shows all."
    for kind, note in _NOTES.items():
        count = sum(min(one.end, shown) - one.start for one in hidden if one.kind == kind and one.start < shown)
        if count:
            yield note.format(counted(count, "byte"))


def hex_pairs(view: MessageView, hex_bytes: int) -> list[str]:
    """The first bytes of the message as two characters each, ** and .. where they are kept back."""
    return _hex_of(view.content.data, 0, min(hex_bytes, len(view.content.data)), view.tree.hidden)


def _hex_of(data: bytes, start: int, end: int, hidden: Sequence[Hidden]) -> list[str]:
    pairs = [f"{byte:02x}" for byte in data[start:end]]
    at = max(bisect_right(hidden, start, key=lambda one: one.start) - 1, 0)
    for one in hidden[at:]:
        if one.start >= end:
            break
        for place in range(max(one.start, start), min(one.end, end)):
            pairs[place - start] = _MASKS[one.kind]
    return pairs

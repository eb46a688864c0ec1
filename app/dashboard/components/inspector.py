"""The message inspector: field tree beside hex. In: views of messages. Out: a mounted component.

A field chosen in the tree marks its bytes, a byte chosen in the hex marks its field; that happens in the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Any

from wirewitness.app.dashboard.components.mounting import component
from wirewitness.dissectors.core.model import split_packet
from wirewitness.reports.base.formats.message_view import MessageView, field_lines, hex_pairs, packets_text
from wirewitness.reports.base.formats.printable import visible
from wirewitness.reports.base.formats.values import time_text
from wirewitness.reports.base.formats.words import display_filter

MAX_FIELDS = 2_000
MAX_BYTES = 4_096


def show_messages(views: Sequence[MessageView], key: str, command: Callable[[str], str]) -> None:
    """One panel for each message, a request and its response beside each other where there is room.

    command: what shows the message of that id on the command line.
    """
    told = [message_data(view, command(view.row.message_id().text())) for view in views]
    component("inspector")(data={"messages": told}, key=key)


def message_data(view: MessageView, command: str) -> dict[str, Any]:
    """What the component is told of one message: at most MAX_FIELDS fields and MAX_BYTES bytes."""
    row, flow = view.row, view.row.flow
    lines = list(islice(field_lines(view), MAX_FIELDS + 1))
    pairs = hex_pairs(view, MAX_BYTES)
    ends = [f"{address}:{port}" for address, port in (flow.client, flow.server)]
    sender, receiver = ends[:: -1 if row.direction else 1]
    number = row.version is not None and row.version[:1].isdecimal()
    version = f" v{row.version}" if number else f" {row.version}" if row.version else ""
    role, has_bytes = row.role or "message", row.length_bytes is not None
    notes = [] if row.complete else ["The capture lacks the rest of this message."]
    if view.tree.error is not None:
        where = f"From byte {view.tree.error_at} on not decoded" if has_bytes else "Not decoded"
        notes.append(f"{where}: {visible(view.tree.error)}")
    if len(lines) > MAX_FIELDS:
        notes.append(f"Only the first {MAX_FIELDS:,} fields are shown.")
    names = [PurePath(name).name for name in view.files]
    kinds = {hidden.kind for hidden in view.tree.hidden}
    notes += [text for kind, text in _KEPT_BACK.items() if kind in kinds]
    return {
        "title": visible(f"{row.operation or 'unknown operation'}{version} {role}"),
        "role": role,
        "facts": [
            ["message", row.message_id().text()],
            ["from", f"{sender} to {receiver}"],
            ["time", time_text(row.ts_ns)],
            ["packets" if has_bytes else "line", packets_text(view._replace(files=names))],
            *([["size", f"{row.length_bytes:,} bytes"]] if has_bytes else []),
        ],
        "fields": [
            [one.depth, one.name, one.value, one.start, one.end, bool(one.hidden)] for one in lines[:MAX_FIELDS]
        ],
        "hex": pairs,
        "letters": [_letter(pair, byte) for pair, byte in zip(pairs, view.content.data, strict=False)],
        "total": len(view.content.data),
        "copies": [*([["Copy Wireshark filter", _filter(view)]] if has_bytes else []), ["Copy command", command]],
        "notes": notes,
    }


def _filter(view: MessageView) -> str:
    """The packets of the message; of the first file, where it lies in two."""
    packets = [split_packet(piece.packet) for piece in view.content.pieces]
    return display_filter(sorted({number for file, number in packets if file == packets[0][0]}))


_KEPT_BACK = {
    "secret": "** are bytes of credentials; they are never shown.",
    "payload": ".. are bytes that applications sent; switch payloads on to see them.",
}


def _letter(pair: str, byte: int) -> str:
    if pair in ("**", ".."):
        return pair[0]
    return chr(byte) if 32 <= byte < 127 else "."

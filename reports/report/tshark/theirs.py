"""tshark's packets to messages, each by the reader of its protocol."""

from __future__ import annotations

from wirewitness.reports.report.tshark.message import Theirs
from wirewitness.reports.report.tshark.protocols import COMPARED
from wirewitness.reports.report.tshark.trees import MALFORMED, Packet

_READERS = {compared.layer: compared.read for compared in COMPARED.values()}


def messages(packet: Packet) -> list[Theirs]:
    """The messages that end in a packet, in the order of the stream."""
    found: list[Theirs] = []
    for place, (name, tree) in enumerate(packet.layers):
        if name == MALFORMED or not isinstance(tree, list):
            continue
        broken = place + 1 < len(packet.layers) and packet.layers[place + 1][0] == MALFORMED
        message = _READERS[name](packet, [*tree, (MALFORMED, "")] if broken else tree)
        if message is not None:
            found.append(message)
    return found

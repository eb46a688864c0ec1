"""What a capture tells of packets beside their bytes, kept in evidence. In: blocks as they are read. Out: options.

Owners stand on some packets of a connection, which need not be among those that are chosen: they go along to the next
one that the same end sends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wirewitness.analyser.analysis.evidence.write import COMMENT
from wirewitness.analyser.capture import CaptureStats
from wirewitness.analyser.capture.model import NOBODY
from wirewitness.analyser.capture.reader import Packets
from wirewitness.analyser.capture.workload_options import local_owner, options_of
from wirewitness.analyser.capture.workloads.workload import Owner

Option = tuple[int, bytes]


@dataclass(slots=True)
class EndsTold:
    """The owners at both ends of a flow, 0 for the client's: those that are known, and those that are written."""

    known: dict[int, Owner] = field(default_factory=dict)
    written: dict[int, Owner] = field(default_factory=dict)

    def see(self, packets: Packets, row: int, side: int) -> None:
        """A packet of the flow, chosen or not. side: who sent it."""
        told = packets.records.owners
        if told is not None:
            for end, code in ((side, int(told.sender[row])), (1 - side, int(told.receiver[row]))):
                if code != NOBODY:
                    self.known[end] = told.owners[code]

    def options(self, side: int) -> list[Option]:
        """For a chosen packet that this side sent: who that is, or who receives it where the sender is told already."""
        for end in (side, 1 - side):
            owner = self.known.get(end)
            if owner is not None and self.written.get(end) != owner:
                self.written[end] = owner
                return options_of(local_owner(owner), "<", sent=end == side)
        return []


def comments_of(stats: CaptureStats, packets: Packets) -> dict[int, list[Option]]:
    """What people wrote on packets of a block, by row."""
    first, count = packets.records.first_packet, len(packets.records.start)
    found: dict[int, list[Option]] = {}
    for one in stats.comments:
        if one.packet is not None and first <= one.packet < first + count:
            found.setdefault(one.packet - first, []).append((COMMENT, one.text.encode("utf-8", "replace")))
    return found

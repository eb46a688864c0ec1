"""What one side of a connection sent again: whether it had arrived before, and whether it ever arrived.

In: ranges of unwrapped sequence numbers (first, last + 1). Out: `SentAgain`. That a segment had arrived its receiver
says itself (D-SACK, RFC 2883).
"""

from __future__ import annotations

from dataclasses import dataclass, field

Range = tuple[int, int]

# So many ranges wait for a report in each direction. A report comes a round trip after its segment.
MOST_UNCONFIRMED = 64


@dataclass(slots=True)
class SentAgain:
    """Segments of one side that were sent again.

    spurious: those that had arrived before. unconfirmed: those that nobody reported so, the latest MOST_UNCONFIRMED.
    place: the sequence number from which bytes were sent again last, so many times in a row, from first_ns to last_ns.
    """

    spurious: int = 0
    unconfirmed: list[Range] = field(default_factory=list)
    place: int = -1
    times: int = 0
    first_ns: int = 0
    last_ns: int = 0

    def sent(self, start: int, size: int, ts_ns: int) -> None:
        """These bytes once more."""
        self.unconfirmed.append((start, start + size))
        del self.unconfirmed[:-MOST_UNCONFIRMED]
        if start != self.place:
            self.place, self.times, self.first_ns = start, 0, ts_ns
        self.times += 1
        self.last_ns = ts_ns

    def arrived_twice(self, report: Range) -> None:
        """Count what the report is about, each byte once: of what was sent again twice, the first may be lost."""
        about: list[Range] = []
        for sent in self.unconfirmed:
            if _overlap(sent, report) and not any(_overlap(sent, other) for other in about):
                about.append(sent)
        for sent in about:
            self.unconfirmed.remove(sent)
        self.spurious += len(about)


def _overlap(first: Range, second: Range) -> bool:
    return first[0] < second[1] and second[0] < first[1]

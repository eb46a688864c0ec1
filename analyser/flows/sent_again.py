"""Which of the segments that were sent again had arrived before: their receiver says so (D-SACK, RFC 2883).

In: ranges of unwrapped sequence numbers (first, last + 1). Out: those that a report is about.
"""

from __future__ import annotations

Range = tuple[int, int]

# So many ranges wait for a report in each direction. A report comes a round trip after its segment.
MOST_UNCONFIRMED = 64


def reported(unconfirmed: list[Range], report: Range) -> list[Range]:
    """Ranges that the report is about, each byte once: of what was sent again twice, the first may be lost."""
    about: list[Range] = []
    for sent in unconfirmed:
        if _overlap(sent, report) and not any(_overlap(sent, other) for other in about):
            about.append(sent)
    return about


def _overlap(first: Range, second: Range) -> bool:
    return first[0] < second[1] and second[0] < first[1]

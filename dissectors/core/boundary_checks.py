"""How much was read to find out where frames start; nobody may be made to read the same bytes again and again.

In: bytes that a judgement reads. Out: their sum, which whoever asks for judgements compares with what the stream had.
"""

from __future__ import annotations


class Judged:
    """Bytes that were read to judge places. Picklable."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

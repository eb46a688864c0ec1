"""Memory that connections draw from one budget: bytes, with what Python's objects take around them, roughly.

In: what a connection holds. Out: the sum over all, and whether it is more than there may be. Counting is cheap because
nobody counts per message: whoever holds something says how much when it is asked, once for each block of packets.
The weights were measured on CPython 3.11; each is at least what its object takes where it is small.
"""

from __future__ import annotations

# A connection, with both streams; what looks at its first bytes; a protocol's framers, queues and decoder; a
# carrier's frames; what decompresses in both directions (zlib keeps a window of 32 KiB each).
FLOW_BYTES, UNDECIDED_BYTES, PROTOCOL_BYTES, CARRIER_BYTES, INFLATE_BYTES = 3_000, 1_500, 8_000, 5_000, 80_000
# The columns of one segment whose bytes wait, and its piece of them; the run they came in.
SEGMENT_BYTES, RUN_BYTES = 200, 400
# A request that waits, beside its value; a byte of a body that was decoded: twelve of an array's element become a dict.
REQUEST_BYTES, BODY_TIMES = 200, 20
# A frame that waits, beside its bytes.
FRAME_BYTES = 300


class Budget:
    """How much all connections hold. most: beyond that `is_exceeded`, until it is down to `wanted`. Picklable."""

    __slots__ = ("held_bytes", "most_bytes")

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.held_bytes = 0

    @property
    def is_exceeded(self) -> bool:
        """Must somebody let go?"""
        return self.held_bytes > self.most_bytes

    @property
    def is_ample(self) -> bool:
        """Was enough let go of, so that nobody has to again at once?"""
        return self.held_bytes <= self.most_bytes * 3 // 4

    def change(self, before: int, after: int) -> None:
        """Somebody held so much and holds so much now."""
        self.held_bytes += after - before

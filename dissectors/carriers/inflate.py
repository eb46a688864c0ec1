"""permessage-deflate (RFC 7692) for reading along: a frame's payload is inflated when it is whole, within limits.

wsproto's own extension inflates without a limit, and loses its place when a control frame comes between the fragments
of a compressed message; only its reading of the agreed parameters is used.
"""

from __future__ import annotations

import zlib

from wsproto.extensions import Extension, PerMessageDeflate
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER

_TAIL = b"\x00\x00\xff\xff"
_NOTHING = RsvBits(False, False, False)


class Inflate(Extension):
    """One direction's compressed messages.

    compressed: the frame being read is. failure: why the payload of the last frame could not be inflated, empty when it
    could. Without its beginning a stream that keeps its context cannot be inflated any more.
    """

    name = PerMessageDeflate.name

    def __init__(self, direction: int, agreed: str, limits: Limits) -> None:
        self.compressed = False
        self.failure = ""
        self._limits = limits
        self._parts: list[bytes] = []
        self.held_bytes = 0
        self._inflater: zlib._Decompress | None = None
        self._taken = self._given = 0
        self._lost = False
        self._forgets = _forgets(direction, agreed)

    def offer(self) -> bool | str:
        """Nothing is offered: nobody is spoken to."""
        return False

    def lost(self) -> None:
        """Bytes are missing."""
        self._parts, self.held_bytes = [], 0
        self._inflater = None
        self._lost = not self._forgets

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        """Only the first frame of a message says whether it is compressed."""
        if opcode.iscontrol() or opcode is Opcode.CONTINUATION:
            return _NOTHING
        self.compressed = rsv.rsv1
        return RsvBits(True, False, False)

    def frame_inbound_payload_data(self, proto: FrameDecoder | FrameProtocol, data: bytes) -> bytes | CloseReason:
        """Keep compressed payload until its frame is whole."""
        if not self.compressed or _is_control(proto):
            return data
        self._parts.append(data)
        self.held_bytes += len(data)
        return b""

    def frame_inbound_complete(self, proto: FrameDecoder | FrameProtocol, fin: bool) -> bytes | CloseReason | None:
        """Inflate the frame."""
        if not self.compressed or _is_control(proto):
            return None
        data = b"".join(self._parts)
        self._parts, self.held_bytes, self.failure = [], 0, ""
        return self._inflated(data + (_TAIL if fin else b""), fin)

    def _inflated(self, data: bytes, fin: bool) -> bytes:
        if self._lost:
            self.failure = "it was compressed with what is not in the capture"
            return b""
        inflater = self._inflater or zlib.decompressobj(-zlib.MAX_WBITS)
        self._inflater = None if fin and self._forgets else inflater
        limits = self._limits
        self._taken += len(data)
        beyond = self._beyond
        slack = min(limits.carried_slack_bytes - beyond, limits.decompression_slack.left)
        allowed = max(limits.usual_compression_ratio * self._taken - self._given, 0) + slack
        most = max(min(limits.max_decompressed_bytes, allowed), 1)
        try:
            found = inflater.decompress(data, most)
        except zlib.error as error:
            self._fail(f"it cannot be decompressed: {error}")
            return b""
        self._given += len(found)
        limits.decompression_slack.spend(max(self._beyond - beyond, 0))
        if inflater.unconsumed_tail:
            self._fail(f"it gives more than {most} bytes")
        return found

    @property
    def _beyond(self) -> int:
        """How much more it gave than is usual."""
        return max(self._given - self._limits.usual_compression_ratio * self._taken, 0)

    def _fail(self, text: str) -> None:
        self.failure = text
        self._inflater = None
        self._lost = not self._forgets


def _is_control(proto: FrameDecoder | FrameProtocol) -> bool:
    header = getattr(proto, "header", None)
    return header is not None and bool(header.opcode.iscontrol())


def _forgets(direction: int, agreed: str) -> bool:
    """Does each message begin without what was sent before? As agreed for this direction."""
    from_client = direction == CLIENT_TO_SERVER
    parameters = PerMessageDeflate()
    try:
        parameters.finalize(agreed)
    except (ValueError, IndexError):
        return f"{'client' if from_client else 'server'}_no_context_takeover" in agreed
    return parameters.client_no_context_takeover if from_client else parameters.server_no_context_takeover

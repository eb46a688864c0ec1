"""WebSocket (RFC 6455) for reading along: the payload of data frames, with the place of each piece in the stream.

wsproto decodes the frames of each direction. Where one starts after a loss, or in a connection that was open before the
capture, it is not told: there a segment must begin with frames that follow each other up to the end of what is there.
"""

from __future__ import annotations

from collections import deque

from wsproto.frame_protocol import Frame, FrameDecoder, Header, Opcode, ParseFailed

from wirewitness.dissectors.carriers.frames import COMPRESSED, looks_like
from wirewitness.dissectors.carriers.inflate import Inflate
from wirewitness.dissectors.core.carrier import Carried, Interrupted, Item, Opening, Pieces, Told
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import SERVER_TO_CLIENT

# A frame header at most: two bytes, eight of length, four of mask.
MAX_HEADER_BYTES = 14
LEAST_HEADER_BYTES = 2
# What is kept while it is looked for a boundary, in bytes and segments.
MAX_SEARCH_BYTES, MAX_SEARCH_SEGMENTS = 1 << 16, 64
# So many frames that follow each other are proof.
CHAIN = 3
# Remarks that are made once each.
MAX_DIFFERENT_TEXTS = 20


class WebSocketUnwrapper:
    """One direction. `_decoder` is None while a frame boundary is looked for, which is so since `searched_from`."""

    headers: list[tuple[int, int]] | None = None
    over = False

    def __init__(self, direction: int, opened: Opening | None, limits: Limits) -> None:
        self._direction = direction
        self._limits = limits
        agreed = opened.compression if opened is not None else ""
        self._inflate = Inflate(direction, agreed, limits) if Inflate.name in agreed else None
        self._decoder: FrameDecoder | None = self._new_decoder() if opened is not None else None
        self._waiting: list[tuple[int, bytes]] = []
        self._waiting_bytes = 0
        self._frame_start = self._payload_start = 0
        self._in_message = False
        self._interrupted = False
        self._found: list[Item] = []
        self._told: set[str] = set()
        self._remarks = 0
        self.searched_from: int | None = None

    @property
    def held_bytes(self) -> int:
        """Outer bytes up to the latest that were not given out yet and still may be."""
        if self._decoder is None:
            return self._waiting_bytes
        return len(self._decoder.buffer) + (self._inflate.held_bytes + MAX_HEADER_BYTES if self._inflate else 0)

    def feed(self, data: bytes, offset: int) -> list[Item]:
        """See `Unwrapper.feed`."""
        todo = deque([(offset, data)])
        while todo:
            at, segment = todo.popleft()
            if self._decoder is not None:
                self._decode(self._decoder, segment, at + len(segment))
            else:
                todo.extendleft(reversed(self._search(at, segment)))
        return self._take()

    def feed_many(self, data: bytes, offset: int) -> Pieces | None:
        """See `Unwrapper.feed_many`."""
        return None

    def gap(self, size: int, offset: int) -> list[Item]:
        """See `Unwrapper.gap`. Inside an uncompressed frame it is known what is missing, and the mask goes on."""
        decoder = self._decoder
        header = None if decoder is None else decoder.header
        if decoder is not None and header is not None and not header.opcode.iscontrol() and not self._is_compressed:
            left = header.payload_len - decoder.payload_consumed
            if size <= left and not len(decoder.buffer):
                # The mask repeats every four bytes; the last ones go through the decoder, which ends the frame.
                last = (size - 1) % 4 + 1 if size else 0
                decoder.payload_consumed += size - last
                decoder.receive_bytes(bytes(last))
                decoder.process_buffer()
                if decoder.header is None:
                    self._in_message = not header.fin
                self._found.append(Interrupted(size))
                self._interrupted = False
                return self._take()
        self._lose(offset)
        self._waiting, self._waiting_bytes = [], 0
        return self._take()

    @property
    def _is_compressed(self) -> bool:
        return self._inflate is not None and self._inflate.compressed

    def _new_decoder(self) -> FrameDecoder:
        return FrameDecoder(self._direction == SERVER_TO_CLIENT, [self._inflate] if self._inflate is not None else [])

    def _take(self) -> list[Item]:
        found, self._found = self._found, []
        return found

    def _lose(self, offset: int) -> None:
        """Look for a boundary from here on."""
        if self._decoder is not None:
            self._decoder = None
            self._interrupt()
        self._in_message = False
        if self._inflate is not None:
            self._inflate.lost()

    def _decode(self, decoder: FrameDecoder, data: bytes, end: int) -> None:
        """Frames up to outer offset `end`."""
        decoder.receive_bytes(data)
        try:
            while decoder.header is not None or (len(decoder.buffer) and self._header(decoder, end)):
                header = decoder.header
                if header is None:
                    return
                before = end - len(decoder.buffer)
                frame = decoder.process_buffer()
                if frame is None:
                    return
                self._payload(header, frame, before, end - len(decoder.buffer))
        except ParseFailed as error:
            start, behind = self._frame_start, self._frame_start + LEAST_HEADER_BYTES
            self._tell(Told("error", "malformed", "malformed_frame", f"WebSocket frame: {error}", start, behind))
            self.searched_from = behind
            self._lose(end)

    def _header(self, decoder: FrameDecoder, end: int) -> bool:
        """Read the next frame's header; False while it is not all there."""
        start = self._frame_start = end - len(decoder.buffer)
        if not decoder.parse_header() or decoder.header is None:
            return False
        header = decoder.header
        self._payload_start = end - len(decoder.buffer)
        if self.headers is not None:
            self.headers.append((start, self._payload_start))
        if header.payload_len > self._limits.max_frame_bytes:
            raise ParseFailed(f"it claims {header.payload_len} bytes")
        if not header.opcode.iscontrol():
            if (header.opcode is Opcode.CONTINUATION) != self._in_message:
                text = "a frame goes on with no message" if not self._in_message else "a message is not finished"
                self._tell_once("warn", "protocol", "fragmentation", f"WebSocket: {text}", start, self._payload_start)
            if header.opcode is Opcode.TEXT:
                text = "WebSocket: data comes in text frames"
                self._tell_once("note", "protocol", "text_frame", text, start, self._payload_start)
        return True

    def _payload(self, header: Header, frame: Frame, start: int, end: int) -> None:
        payload = frame.payload if isinstance(frame.payload, bytes) else b""
        if header.opcode.iscontrol():
            if header.opcode is Opcode.CLOSE:
                code = f" with code {int.from_bytes(payload[:2])}" if len(payload) > 1 else ""
                self._tell_once("chat", "protocol", "websocket_close", f"the WebSocket was closed{code}", start, end)
            return
        if frame.frame_finished:
            self._in_message = not header.fin
        if not self._is_compressed:
            self._carry(payload, start, end)
            return
        self._carry(payload, self._payload_start, end)
        if frame.frame_finished and self._inflate is not None and self._inflate.failure:
            group = "limit" if "gives more" in self._inflate.failure else "undecoded"
            text = f"WebSocket message left out: {self._inflate.failure}"
            self._tell_once("warn", group, "compressed_message", text, self._payload_start, end)
            self._interrupt()

    def _carry(self, payload: bytes, start: int, end: int) -> None:
        if payload:
            self._found.append(Carried(payload, start, end))
            self._interrupted = False

    def _interrupt(self) -> None:
        """Inner bytes are missing, nobody knows how many: once, however many frames in a row are lost."""
        if not self._interrupted:
            self._found.append(Interrupted(0))
            self._interrupted = True

    def _tell_once(self, severity: str, group: str, code: str, text: str, start: int, end: int) -> None:
        if text not in self._told and len(self._told) < MAX_DIFFERENT_TEXTS:
            self._told.add(text)
            self._tell(Told(severity, group, code, text, start, end))

    def _tell(self, told: Told) -> None:
        """A remark, as long as there are not too many."""
        self._remarks += 1
        if self._remarks == self._limits.max_expert_infos:
            told = Told("note", "limit", "remarks", "further remarks on WebSocket frames are left out", *told[4:])
        if self._remarks <= self._limits.max_expert_infos:
            self._found.append(told)

    def _search(self, offset: int, data: bytes) -> list[tuple[int, bytes]]:
        """Keep a segment that may begin with a frame; give back the segments to decode once that is certain."""
        if self.searched_from is None:
            self.searched_from = offset
        if self._waiting or self._may_start(data):
            self._waiting.append((offset, data))
            self._waiting_bytes += len(data)
        while self._waiting:
            verdict = self._starts_here(b"".join(content for _, content in self._waiting))
            full = self._waiting_bytes > MAX_SEARCH_BYTES or len(self._waiting) > MAX_SEARCH_SEGMENTS
            if verdict is None and not full:
                return []
            if verdict:
                return self._begin()
            refused = self._waiting.pop(0)
            self._waiting_bytes -= len(refused[1])
            while self._waiting and not self._may_start(self._waiting[0][1]):
                self._waiting_bytes -= len(self._waiting.pop(0)[1])
        return []

    def _begin(self) -> list[tuple[int, bytes]]:
        """A frame starts with the first segment that waits."""
        segments, self._waiting, self._waiting_bytes = self._waiting, [], 0
        start, skipped_from = segments[0][0], self.searched_from
        if skipped_from is not None and start > skipped_from:
            text = f"{start - skipped_from} bytes skipped: no WebSocket frame boundary"
            self._tell(Told("warn", "framing", "skipped_bytes", text, skipped_from, start))
        self.searched_from = None
        self._decoder = self._new_decoder()
        return segments

    def _starts_here(self, data: bytes) -> bool | None:
        """Do frames follow each other from the first byte on? None: more bytes are needed to tell."""
        position = 0
        for found in range(CHAIN):
            size = self._frame_bytes(data[position : position + MAX_HEADER_BYTES])
            if size < 0:
                return False
            if size == 0 or position + size > len(data):
                return True if found > 1 or (found and size == 0) else None
            position += size
            if position == len(data):
                return True
        return True

    def _frame_bytes(self, head: bytes) -> int:
        """Size of the frame that begins with `head`, 0 when that is not enough to tell, -1 when none does."""
        extensions = [Inflate(self._direction, "", self._limits)] if self._inflate is not None else []
        decoder = FrameDecoder(self._direction == SERVER_TO_CLIENT, [*extensions])
        decoder.receive_bytes(head)
        try:
            if not decoder.parse_header() or decoder.header is None:
                return 0
        except ParseFailed:
            return -1
        size = decoder.header.payload_len
        return len(head) - len(decoder.buffer) + size if size <= self._limits.max_frame_bytes else -1

    def _may_start(self, data: bytes) -> bool:
        """Could this segment begin with a frame? Only compressed messages set a reserved bit."""
        if self._inflate is not None and data:
            data = bytes([data[0] & ~COMPRESSED]) + data[1:2]
        return looks_like(data) == self._direction

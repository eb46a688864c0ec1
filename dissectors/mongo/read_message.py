"""A frame's message: header, body, compression undone, and what is to be remarked on.

In: a frame. Out: the message with what its header says; what is wrong with it stands in `Message.error` and in remarks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.remarks import Remark, Remarks, place_of
from wirewitness.dissectors.core.rows import CUT
from wirewitness.dissectors.mongo.compressed import open_compressed
from wirewitness.dissectors.mongo.handshake import is_hello, must_not_be_compressed
from wirewitness.dissectors.mongo.messages import Message, read_header, read_message
from wirewitness.dissectors.mongo.opcodes import (
    HEADER_BYTES,
    MAX_MESSAGE_BYTES,
    OP_COMPRESSED,
    OP_MSG,
    OPCODES,
    REPLIES,
    opcode_name,
)


class Received(NamedTuple):
    """A frame's message with what its header says. compressor: None where it is not compressed."""

    frame: Frame
    request_id: int
    response_to: int
    message: Message
    compressor: str | None
    remarks: list[Remark]

    @property
    def is_ordinary(self) -> bool:
        """A whole OP_MSG, not compressed, of which there is nothing to say."""
        return self.message.opcode == OP_MSG and self.compressor is None and not self.remarks

    @property
    def uncompressed_bytes(self) -> int:
        """Size of the message as it was before compression."""
        return self.frame.size if self.compressor is None else len(self.message.data)


def receive(frame: Frame, allowance: Allowance) -> Received | None:
    """Read a frame; None where there is not even a header."""
    _, _, data, start, end, _, _, _, _, complete = frame
    if end - start < HEADER_BYTES:
        return None
    _, request_id, response_to, opcode = read_header(data, start)
    remarks: list[Remark] = []
    if end - start > MAX_MESSAGE_BYTES:
        text = f"a message of {end - start:,} bytes; servers take {MAX_MESSAGE_BYTES:,} at most"
        remarks.append(("warn", "protocol", "message_too_large", text))
    if opcode == OP_COMPRESSED:
        return _receive_compressed(frame, request_id, response_to, allowance, remarks)
    message = read_message(opcode, data, start, start + HEADER_BYTES, end, remarks, complete)
    if message.error is not None:
        message = _faulty(message, complete, remarks)
    return Received(frame, request_id, response_to, message, None, remarks)


def _receive_compressed(
    frame: Frame, request_id: int, response_to: int, allowance: Allowance, remarks: list[Remark]
) -> Received:
    _, _, data, start, end, _, _, _, _, complete = frame
    opened = open_compressed(data, start, end, request_id, response_to, allowance, remarks)
    if opened is None:
        message = Message(OP_COMPRESSED, 0, data, start, end, None, start, error="the message ends early")
        return Received(frame, request_id, response_to, _faulty(message, complete, remarks), None, remarks)
    whole = complete and opened.error is None
    inner = opened.data
    message = read_message(opened.opcode, inner, 0, HEADER_BYTES, len(inner), remarks, whole)
    if not complete:
        remarks.clear()
        message = message._replace(error=CUT)
    elif opened.error is not None:
        message = message._replace(error=opened.error)
    elif message.error is not None:
        message = _faulty(message, complete, remarks)
    return Received(frame, request_id, response_to, message, opened.compressor, remarks)


def _faulty(message: Message, complete: bool, remarks: list[Remark]) -> Message:
    """What is wrong with a message, as a remark; a cut one is no fault."""
    if not complete:
        remarks.clear()
        return message._replace(error=CUT)
    if message.opcode not in OPCODES:
        remarks.append(("note", "undecoded", "unknown_opcode", message.error or ""))
    else:
        text = f"{opcode_name(message.opcode)}: {message.error}"
        remarks.append(("error", "malformed", "malformed_message", text))
    return message


# Remarks of one decoder on its messages. In: what was read. Out: rows of `expert_infos`.

# What is said once for each connection when a limit was reached.
LIMIT_TEXTS: Mapping[str, str] = {
    "outstanding_requests": "too many requests wait for a reply; the oldest are given up, with no status",
    "unheard_requests": "no reply was captured so far; only the newest requests go on waiting for one",
    "early_responses": "too many replies wait for a request that may come later; the oldest are given as orphans",
    "exhaust_streams": "too many exhaust streams are open; the oldest are given as if they had ended",
    "held_payload": "too many documents wait for a reply; some are left out",
}


class MessageRemarks:
    """Counts what was remarked on one flow. Picklable."""

    __slots__ = ("_remarks", "_told")

    def __init__(self, limits: Limits) -> None:
        self._remarks = Remarks(limits)
        self._told: set[int] = set()

    def add(self, frame: Frame, out: Sink, remark: Remark) -> None:
        """Remark on a frame, as long as the flow has not too many remarks."""
        self._remarks.add(place_of(frame), out, remark)

    def limit(self, frame: Frame, out: Sink, code: str) -> None:
        """Say once that a limit was reached."""
        self._remarks.limit(place_of(frame), out, code, LIMIT_TEXTS[code])

    def finish(self, out: Sink) -> None:
        """Say how many remarks were left out."""
        self._remarks.finish(out)

    def judge(self, received: Received, command: str | None, out: Sink) -> None:
        """On a message of this command: what reading it told, and what a sender must not do."""
        frame, opcode = received.frame, received.message.opcode
        for remark in received.remarks:
            self.add(frame, out, remark)
        if opcode in OPCODES and opcode != OP_MSG and not is_hello(command or ""):
            self._tell_legacy(frame, opcode, command, out)

    def judge_compression(self, received: Received, command: str | None, out: Sink) -> None:
        """A client must not compress what carries credentials; a server may compress each reply (OP_COMPRESSED)."""
        if received.compressor is not None and must_not_be_compressed(command):
            text = f"{command} is compressed ({received.compressor}), which the specification forbids"
            self.add(received.frame, out, ("warn", "protocol", "compressed_forbidden", text))

    def _tell_legacy(self, frame: Frame, opcode: int, command: str | None, out: Sink) -> None:
        """Remarked once for each opcode of a flow; the answers to OP_QUERY need no remark of their own."""
        if opcode in REPLIES or opcode == OP_COMPRESSED or opcode in self._told:
            return
        self._told.add(opcode)
        text = f"{opcode_name(opcode)}, which MongoDB 5.1 removed, is used for {command or 'a request'}"
        self.add(frame, out, ("note", "protocol", "legacy_opcode", text))

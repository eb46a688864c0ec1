"""A frame's message: header, body, compression undone, and what is to be remarked on.

In: a frame. Out: the message with what its header says; what is wrong with it stands in `Message.error` and in remarks.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.remarks import Remark
from wirewitness.dissectors.core.rows import CUT
from wirewitness.dissectors.mongo.compressed import open_compressed
from wirewitness.dissectors.mongo.messages import Message, read_header, read_message
from wirewitness.dissectors.mongo.opcodes import (
    HEADER_BYTES,
    MAX_MESSAGE_BYTES,
    OP_COMPRESSED,
    OP_MSG,
    OPCODES,
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

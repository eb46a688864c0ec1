"""Remarks of one conversation on its messages. In: what was read. Out: rows of `expert_infos`."""

from __future__ import annotations

from collections.abc import Mapping

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.remarks import Remark, Remarks, place_of
from wirewitness.dissectors.mongo.handshake import is_hello, must_not_be_compressed
from wirewitness.dissectors.mongo.opcodes import OP_COMPRESSED, OP_MSG, OPCODES, REPLIES, opcode_name
from wirewitness.dissectors.mongo.read_message import Received

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

"""Requests of one connection while they wait for a reply, or for the end of their exhaust stream."""

from __future__ import annotations

from wirewitness.dissectors.mongo.commands import Command, awaits_news, wants_no_reply
from wirewitness.dissectors.mongo.legacy import wants_exhaust
from wirewitness.dissectors.mongo.messages import Message
from wirewitness.dissectors.mongo.opcodes import MORE_TO_COME, OP_MSG, OP_QUERY, opcode_name
from wirewitness.dissectors.mongo.read_message import Received
from wirewitness.dissectors.mongo.replies import Outcome, cursor_of
from wirewitness.dissectors.mongo.rows import Facts

_NO_OUTCOME = Outcome(None, None, None, "ok")


class Pending:
    """One request and what its replies told so far.

    Values of a request that nothing was heard of stand in the class: making them for each would take its time.
    declared: its length as its header has it, more than `length` where it is cut.
    answer: offset, packet and time of the first reply; last: time of the last one. quiet: w: 0 is asked for.
    """

    facts: Facts | None = None
    answer: tuple[int, int, int] | None = None
    last: int | None = None
    outcome = _NO_OUTCOME
    replies = reply_bytes = reply_uncompressed = 0
    awaitable = exhaust = quiet = False

    def __init__(self, received: Received, command: Command, client_id: str | None) -> None:
        frame, self.request_id, _, message, _, _ = received
        _, _, data, start, end, self.offset, _, self.packet, self.ts_ns, complete = frame
        self.length = end - start
        self.declared = self.length if complete else max(int.from_bytes(data[start : start + 4], "little"), self.length)
        self.name, self.operation, self.hello = command.name, command.operation, command.hello
        self.client_id = client_id
        self.opcode = opcode_name(message.opcode)
        if command.hello:
            self.awaitable = awaits_news(command.hello, command.fields)
        elif message.opcode == OP_QUERY:
            self.exhaust = wants_exhaust(message)
        elif b"writeConcern" in command.fields:
            self.quiet = wants_no_reply(command, message.data)

    def replied(self, received: Received, found: Outcome) -> None:
        """Count a reply."""
        frame = received.frame
        if self.answer is None:
            self.answer = (frame.stream_offset, frame.packet_last, frame.ts_ns)
        self.outcome, self.last = found, frame.ts_ns
        self.replies += 1
        self.reply_bytes += frame.end - frame.start
        self.reply_uncompressed += received.uncompressed_bytes

    def goes_on(self, reply: Message) -> bool:
        """Does the server announce another reply? Legacy exhaust cursors end with cursor id 0."""
        if reply.opcode == OP_MSG:
            return bool(reply.flags & MORE_TO_COME)
        return self.exhaust and bool(cursor_of(reply))

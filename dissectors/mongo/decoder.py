"""One MongoDB connection: frames of both directions in, messages, exchanges and rows of mongo_commands out.

A reply names the request that it answers (responseTo). In an exhaust stream every further reply names the reply before
it; the exchange is told when the stream ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.batch_backoff import Worth, try_together
from wirewitness.dissectors.core.decompression import Allowance
from wirewitness.dissectors.core.deferred import DeferredFrames, rests_of
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.outstanding import Outstanding
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import CUT, ORPHAN, message_row, orphan_row
from wirewitness.dissectors.mongo.command_facts import ConnectionFacts
from wirewitness.dissectors.mongo.commands import command_in
from wirewitness.dissectors.mongo.framing import plausible
from wirewitness.dissectors.mongo.messages import read_header
from wirewitness.dissectors.mongo.opcodes import HEADER_BYTES, MORE_TO_COME, ONE_WAY, OP_MSG
from wirewitness.dissectors.mongo.output import (
    Output,
    add_command,
    add_exchange,
    add_message,
    add_orphan_command,
    output,
    reply_line,
    request_line,
)
from wirewitness.dissectors.mongo.pending import Pending
from wirewitness.dissectors.mongo.read_message import MessageRemarks, Received, receive
from wirewitness.dissectors.mongo.replies import outcome
from wirewitness.dissectors.mongo.rows import Facts

if TYPE_CHECKING:
    from wirewitness.dissectors.mongo.lockstep.batch_decode import Together
    from wirewitness.dissectors.mongo.lockstep.hellos import Left

# From so many frames on those of a connection are read together with others, if these are so many in all: it pays from
# about 100 exchanges on, of one table from 200 on.
MANY_FRAMES = 8
LEAST_FRAMES = 256
LEAST_PART = 2
# Requests that want no reply, remembered in case that one comes nevertheless: at once, if ever. A reply to an older one
# is given as an orphan.
MAX_ONE_WAY = 64
# A request that waits, with its facts; its document and texts take some times its length.
PENDING_BYTES = 4_000


class MongoDecoder:
    """Pairs and decodes the messages of one flow. Picklable; holds no input or output.

    _chains: exhaust streams by the id of their newest reply, which the next one answers.
    """

    __slots__ = (
        "_allowance",
        "_chains",
        "_facts",
        "_left",
        "_limits",
        "_one_way",
        "_outstanding",
        "_remarks",
        "_shows_payload",
    )

    def __init__(self, limits: Limits, options: DecodeOptions | None = None) -> None:
        self._limits = limits
        self._allowance = Allowance(limits)
        self._outstanding: Outstanding[Pending, Output] = Outstanding(limits)
        self._chains: dict[int, Pending] = {}
        self._one_way: dict[int, Pending] = {}
        self._facts = ConnectionFacts(limits, options or DecodeOptions())
        self._remarks = MessageRemarks(limits)
        self._left: DeferredFrames[Together] = DeferredFrames()
        self._shows_payload = options is not None and options.payload

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; see `Conversation.feed`."""
        if out.later is None or self._shows_payload or not frames:
            self.one_by_one(frames, out)
        else:
            self._left.leave(self, frames, out)

    def settle(self, out: Sink) -> None:
        """Decode the frames that were left; see `core/deferred.py`."""
        frames, together = self._left.take()
        if together is None:
            self.one_by_one(frames, out)
        else:
            self._outstanding.heard = True
            together.follow(frames, self, out)

    def whole(self, frames: Sequence[Frame], together: Together | None, out: Sink) -> None:
        """All frames of a connection from its first one to its last. together: what was read of them with others."""
        if together is None:
            self.one_by_one(frames, out)
        else:
            self._outstanding.heard = True
            together.follow(frames, self, out)
        self.finish(out)

    @staticmethod
    def read_together(decoders: Sequence[MongoDecoder], out: Sink) -> None:
        """Prepare what these have left; `settle` of each gives its rows."""

        def read(many: list[MongoDecoder]) -> Sequence[Together | None]:
            from wirewitness.dissectors.mongo.lockstep.batch_decode import together

            return together([one._left_by() for one in many], many[0]._limits, out)

        many = [(one, one._left) for one in decoders if one._left.count >= MANY_FRAMES]
        try_together(many, read, rests_of(out), Worth("mongo", LEAST_FRAMES, LEAST_PART))

    def _left_by(self) -> Left:
        from wirewitness.dissectors.mongo.lockstep.hellos import Left
        from wirewitness.dissectors.mongo.lockstep.pairs import Waits

        outstanding = self._outstanding
        hellos = [key for key, request in (*outstanding.requests.items(), *self._chains.items()) if request.hello]
        waits = Waits(list(outstanding.requests), list(outstanding.early), outstanding.heard)
        return Left(self._left.frames, waits, self._facts.connection, frozenset(hellos))

    def knows(self, facts: Facts) -> None:
        """This is known of client and server, as a hello said that was read together with others."""
        self._facts.connection = facts

    def one_by_one(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given."""
        rows = output(out)
        for frame in frames:
            if frame.direction == CLIENT_TO_SERVER:
                self._request(frame, rows)
            else:
                self.respond(frame, rows)

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """See `Conversation.boundary`. A message is believed if it is well formed to its last byte, which needs nothing
        that the frames left for later would tell; where less is believed, they are decoded first."""
        return plausible(data, position, hinted, None if direction == CLIENT_TO_SERVER else self._waits)

    def _waits(self, request_id: int) -> bool:
        """Does this request wait for a reply, or for another one?"""
        self._left.settle(self)
        return request_id in self._outstanding.requests or request_id in self._chains

    @property
    def held_bytes(self) -> int:
        """See `HoldsRequests`. What was left for later is not in it."""
        waiting = (*self._outstanding.requests.values(), *self._chains.values())
        return sum(PENDING_BYTES + 2 * pending.length for pending in waiting) + self._outstanding.early_bytes

    def let_go(self, out: Sink) -> None:
        """See `HoldsRequests`."""
        self.settle(out)
        rows = output(out)
        self._outstanding.let_go(self, rows)
        self._end_chains(rows)

    def finish(self, out: Sink) -> None:
        """Give the requests that were never answered, and the exhaust streams that go on."""
        self.settle(out)
        rows = output(out)
        self._outstanding.finish(self, rows)
        self._end_chains(rows)
        self._remarks.finish(out)

    def _end_chains(self, out: Output) -> None:
        for pending in self._chains.values():
            self._over(pending, pending.outcome.status, out)
        self._chains = {}

    # Requests.

    def _request(self, frame: Frame, out: Output) -> None:
        received = self._received(frame, out)
        if received is None:
            return
        message = received.message
        command = command_in(message)
        if command.hello:
            self._facts.hello(command, received)
        pending = Pending(received, command, self._facts.connection.get("app_name"))
        if out.commands is not None:
            pending.facts, left_out = self._facts.of_request(received, command)
            if left_out:
                self.limit(frame, out, "held_payload")
        if not received.is_ordinary:
            self._remarks.judge(received, command.name, out.sink)
            self._remarks.judge_compression(received, command.name, out.sink)
        if out.messages is not None:
            line = request_line(command.operation, command.database(message.data))
            add_message(out.messages, received, "request", command.operation, pending.client_id, line)
        if message.opcode in ONE_WAY or (message.opcode == OP_MSG and message.flags & MORE_TO_COME):
            self._wants_no_reply(pending, out)
        else:
            self._outstanding.wait(pending.request_id, pending, frame, self, out)

    def _wants_no_reply(self, pending: Pending, out: Output) -> None:
        self._over(pending, "one_way", out)
        self._one_way[pending.request_id] = pending
        if len(self._one_way) > MAX_ONE_WAY:
            del self._one_way[next(iter(self._one_way))]

    # Replies.

    def respond(self, frame: Frame, out: Output) -> None:
        """A frame of the server; see also `Pairing.respond`."""
        if frame.size < HEADER_BYTES:
            self._received(frame, out)
            return
        response_to = read_header(frame.data, frame.start)[2]
        pending = self._outstanding.requests.pop(response_to, None) or self._chains.pop(response_to, None)
        if pending is not None:
            self._reply(pending, frame, out)
        elif response_to in self._one_way:
            self._unwanted(self._one_way.pop(response_to), frame, out)
        else:
            self._outstanding.hold_early(response_to, frame, self, out)

    def _reply(self, pending: Pending, frame: Frame, out: Output) -> None:
        """A reply to this request."""
        received = self._received(frame, out)
        if received is None:
            return
        self._outstanding.heard = True
        found = outcome(received.message, pending.name is not None)
        if not received.is_ordinary:
            self._remarks.judge(received, pending.name, out.sink)
        pending.replied(received, found)
        if pending.hello:
            self._facts.hello_answered(received, found)
        if pending.facts is not None:
            self._facts.add_reply(pending, pending.facts, received, found)
        if out.messages is not None:
            operation, client_id = pending.operation, pending.client_id
            add_message(out.messages, received, "response", operation, client_id, reply_line(found))
        if pending.goes_on(received.message):
            self._keep_chain(pending, received, out)
        else:
            self._over(pending, found.status, out)

    def _keep_chain(self, pending: Pending, received: Received, out: Output) -> None:
        """Another reply is announced."""
        pending.exhaust = True
        self._chains[received.request_id] = pending
        if len(self._chains) > self._limits.max_outstanding:
            oldest = self._chains.pop(next(iter(self._chains)))
            self._over(oldest, oldest.outcome.status, out)
            self.limit(received.frame, out, "exhaust_streams")

    def _unwanted(self, pending: Pending, frame: Frame, out: Output) -> None:
        """A reply to a request that wants none; its exchange was told already."""
        received = self._received(frame, out)
        if received is None:
            return
        line = reply_line(outcome(received.message, pending.name is not None))
        self._remarks.judge(received, pending.name, out.sink)
        text = f"{pending.operation} wants no reply (moreToCome) and got one: {line or 'not readable'}"
        self._remarks.add(frame, out.sink, ("note", "protocol", "unwanted_reply", text))
        if out.messages is not None:
            add_message(out.messages, received, "response", pending.operation, pending.client_id, line)

    def _over(self, pending: Pending, status: str | None, out: Output) -> None:
        """The rows of an exchange that is over."""
        if out.exchanges is not None:
            add_exchange(out.exchanges, pending, status)
        if out.commands is not None and pending.facts is not None:
            self._facts.let_go(pending.facts)
            add_command(out.commands, pending, status, {**self._facts.connection, **pending.facts})

    # What becomes of requests and replies without each other, see `Pairing`.

    def unanswered(self, request: Pending, out: Output) -> None:
        """A request that waits no longer."""
        self._over(request, "one_way" if request.quiet else "unanswered", out)

    def given_up(self, request: Pending, out: Output) -> None:
        """A request whose reply may still come."""
        self._over(request, "one_way" if request.quiet else None, out)

    def orphan(self, frame: Frame, out: Output) -> None:
        """A reply whose request is not in the capture."""
        received = self._received(frame, out)
        if received is None:
            return
        self._remarks.judge(received, None, out.sink)
        if out.messages is not None:
            add_message(out.messages, received, "response", None, None, None, ORPHAN)
        if out.exchanges is not None:
            out.exchanges.append(orphan_row(frame))
        if out.commands is not None:
            facts = {**self._facts.connection, **self._facts.of_orphan(received)}
            add_orphan_command(out.commands, received, facts)

    def limit(self, frame: Frame, out: Output, code: str) -> None:
        """A limit was reached: said once."""
        self._remarks.limit(frame, out.sink, code)

    # Every message.

    def _received(self, frame: Frame, out: Output) -> Received | None:
        """The frame's message; None where there is not even a header, which is told."""
        received = receive(frame, self._allowance)
        if received is None:
            text = "the frame ends inside the header" if frame.complete else CUT
            if out.messages is not None:
                role = "request" if frame.direction == CLIENT_TO_SERVER else "response"
                out.messages.append(message_row(frame, role=role, error=text))
            if frame.complete:
                self._remarks.add(frame, out.sink, ("error", "malformed", "malformed_message", text))
        return received

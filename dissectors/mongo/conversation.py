"""One MongoDB connection: frames of both directions in, messages, exchanges and rows of mongo_commands out.

A reply names the request that it answers (responseTo). In an exhaust stream every further reply names the reply before
it; the exchange is told when the stream ends. What a hello tells of client and server belongs to all later commands of
the connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dissectors.core.decompression import Allowance
from dissectors.core.early import EARLY_NS, EarlyFrames
from dissectors.core.limits import Limits
from dissectors.core.model import CLIENT_TO_SERVER, Frame, Row
from dissectors.core.options import DecodeOptions
from dissectors.core.protocol import Sink
from dissectors.core.remarks import Remark, Remarks, place_of
from dissectors.core.rows import CUT, ORPHAN, exchange_row, message_row, orphan_row
from dissectors.mongo.commands import Command, Facts, command_facts, command_in, is_awaitable, wants_no_reply
from dissectors.mongo.compressed import open_compressed
from dissectors.mongo.documents import document_json
from dissectors.mongo.framing import plausible
from dissectors.mongo.handshake import CONNECTION, hello_facts, is_hello, must_not_be_compressed, server_facts
from dissectors.mongo.legacy import legacy_facts, wants_exhaust
from dissectors.mongo.messages import Message, read_header, read_message
from dissectors.mongo.opcodes import (
    HEADER_BYTES,
    MAX_MESSAGE_BYTES,
    MORE_TO_COME,
    ONE_WAY,
    OP_COMPRESSED,
    OP_MSG,
    OP_QUERY,
    OP_REPLY,
    OPCODES,
    REPLIES,
    opcode_name,
)
from dissectors.mongo.replies import Outcome, cursor_of, error_message, outcome, reply_facts
from dissectors.mongo.rows import MONGO_COMMANDS

# Requests that want no reply, remembered in case that one comes nevertheless: at once, if ever. A reply to an older one
# is given as an orphan.
MAX_ONE_WAY = 64
# What is said once for each connection when a limit was reached.
LIMIT_TEXTS: Mapping[str, str] = {
    "outstanding_requests": "too many requests wait for a reply; the oldest are given as unanswered",
    "unheard_requests": "no reply was captured so far; only the newest requests go on waiting for one",
    "early_responses": "too many replies wait for a request that may come later; the oldest are given as orphans",
    "exhaust_streams": "too many exhaust streams are open; the oldest are given as if they had ended",
    "held_payload": "too many documents wait for a reply; some are left out",
}
_NS_PER_MS = 1e6
_NOT_LEGACY = frozenset({OP_MSG})
_NO_OUTCOME = Outcome(None, None, None, "ok")


class _Output(NamedTuple):
    """Where the rows of one feed go; None for tables nobody wants."""

    sink: Sink
    exchanges: list[Row] | None
    messages: list[Row] | None
    commands: list[Row] | None


class _Received(NamedTuple):
    """A frame's message with what its header says. compressor: None where it is not compressed."""

    frame: Frame
    request_id: int
    response_to: int
    message: Message
    compressor: str | None
    remarks: list[Remark]


class _Pending:
    """A request that waits for its reply, or for the end of its exhaust stream.

    Values of a request that nothing was heard of stand in the class: making them for each would take its time.
    answer: offset, packet and time of the first reply; last: time of the last one. quiet: w: 0 is asked for.
    """

    facts: Facts | None = None
    answer: tuple[int, int, int] | None = None
    last: int | None = None
    outcome = _NO_OUTCOME
    replies = reply_bytes = reply_uncompressed = 0
    awaitable = exhaust = quiet = False

    def __init__(self, received: _Received, command: Command, client_id: str | None) -> None:
        frame, self.request_id, _, message, _, _ = received
        _, _, _, start, end, self.offset, _, self.packet, self.ts_ns, _ = frame
        self.length = end - start
        self.name, self.operation, self.hello = command.name, command.operation, command.hello
        self.client_id = client_id
        self.opcode = opcode_name(message.opcode)
        if command.hello:
            self.awaitable = is_awaitable(command)
        elif message.opcode == OP_QUERY:
            self.exhaust = wants_exhaust(message)
        elif b"writeConcern" in command.fields:
            self.quiet = wants_no_reply(command, message.data)


class MongoConversation:
    """Pairs and decodes the messages of one flow. Picklable; holds no input or output."""

    __slots__ = (
        "_allowance",
        "_chains",
        "_connection",
        "_early",
        "_heard",
        "_held_payload",
        "_limits",
        "_one_way",
        "_options",
        "_outstanding",
        "_remarks",
        "_told",
    )

    def __init__(self, limits: Limits, options: DecodeOptions | None = None) -> None:
        self._limits = limits
        self._options = options or DecodeOptions()
        self._allowance = Allowance(limits)
        self._outstanding: dict[int, _Pending] = {}
        # Exhaust streams by the id of their newest reply, which the next one answers.
        self._chains: dict[int, _Pending] = {}
        self._one_way: dict[int, _Pending] = {}
        self._connection: Facts = {}
        self._early = EarlyFrames(limits)
        self._heard = False
        self._held_payload = 0
        self._remarks = Remarks(limits)
        self._told: set[int] = set()

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; see `Conversation.feed`."""
        output = _output(out)
        for frame in frames:
            if frame.direction == CLIENT_TO_SERVER:
                self._request(frame, output)
            else:
                self._response(frame, output)

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """See `Conversation.boundary`. A message is believed if it is well formed to its last byte."""
        if direction == CLIENT_TO_SERVER:
            return plausible(data, position, hinted, None)
        waited_for = self._outstanding.keys() | self._chains.keys()
        return plausible(data, position, hinted, waited_for)

    def finish(self, out: Sink) -> None:
        """Give the requests that were never answered, and the exhaust streams that go on."""
        output = _output(out)
        for _, frame in self._early.rest():
            self._orphan(frame, output)
        for pending in self._outstanding.values():
            self._unanswered(pending, output)
        for pending in self._chains.values():
            self._told_exchange(pending, pending.outcome.status, output)
        self._outstanding, self._chains = {}, {}
        self._remarks.finish(out)

    # ------------------------------------------------------------------------------------------------------------------

    def _request(self, frame: Frame, out: _Output) -> None:
        received = self._received(frame, out)
        if received is None:
            return
        message = received.message
        command = command_in(message)
        if command.hello:
            known = hello_facts(message.data, command.fields)
            self._connection = {**self._connection, **{k: v for k, v in known.items() if k in CONNECTION}}
        pending = _Pending(received, command, self._connection.get("app_name"))
        if out.commands is not None:
            pending.facts = self._request_facts(received, command, out)
        if received.remarks or received.compressor is not None or message.opcode not in _NOT_LEGACY:
            self._judge(received, command.name, out)
            self._judge_compression(received, command.name, out)
        if out.messages is not None:
            line = _line(command, message.data)
            _add_message(out.messages, received, "request", command.operation, pending.client_id, line)
        if message.opcode in ONE_WAY or (message.opcode == OP_MSG and message.flags & MORE_TO_COME):
            self._told_exchange(pending, "one_way", out)
            self._one_way[pending.request_id] = pending
            if len(self._one_way) > MAX_ONE_WAY:
                del self._one_way[next(iter(self._one_way))]
            return
        self._wait(pending, frame, out)
        if self._early.waiting:
            self._answer_early(received.request_id, pending.ts_ns, out)

    def _request_facts(self, received: _Received, command: Command, out: _Output) -> Facts:
        message = received.message
        facts = legacy_facts(message) if command.name is None else command_facts(command, message)
        facts["opcode"] = opcode_name(message.opcode)
        facts["compressor"] = received.compressor
        facts["checksum_ok"] = message.checksum_ok
        facts["request_uncompressed_bytes"] = _uncompressed(received)
        if self._options.payload:
            shown = document_json(message, command.name, self._limits.max_payload_bytes)
            if shown is not None and self._held_payload + len(shown) > self._limits.max_held_records_bytes:
                self._limit(received.frame, out, "held_payload")
            elif shown is not None:
                facts["request_document"] = shown
                self._held_payload += len(shown)
        return facts

    def _wait(self, pending: _Pending, frame: Frame, out: _Output) -> None:
        """Hold a request until its reply comes; those that were held longest go when there are too many."""
        outstanding = self._outstanding
        if pending.request_id in outstanding:
            self._unanswered(outstanding.pop(pending.request_id), out)
        elif not self._heard and len(outstanding) >= self._limits.max_unheard:
            self._unanswered(outstanding.pop(next(iter(outstanding))), out)
            self._limit(frame, out, "unheard_requests")
        elif len(outstanding) >= self._limits.max_outstanding:
            self._unanswered(outstanding.pop(next(iter(outstanding))), out)
            self._limit(frame, out, "outstanding_requests")
        outstanding[pending.request_id] = pending

    def _response(self, frame: Frame, out: _Output) -> None:
        _, _, data, start, end, _, _, _, _, _ = frame
        pending = None
        if end - start >= HEADER_BYTES:
            response_to = read_header(data, start)[2]
            pending = self._outstanding.pop(response_to, None) or self._chains.pop(response_to, None)
            if pending is None:
                unwanted = self._one_way.pop(response_to, None)
                if unwanted is not None:
                    self._unwanted(frame, unwanted, out)
                else:
                    self._keep_early(frame, out, response_to)
                return
        received = self._received(frame, out)
        if received is None or pending is None:
            return
        self._heard = True
        message = received.message
        found = outcome(message, pending.name is not None)
        if received.remarks or received.compressor is not None or message.opcode not in _NOT_LEGACY:
            self._judge(received, pending.name, out)
        self._add_reply(pending, received, found)
        if out.messages is not None:
            operation, client_id = pending.operation, pending.client_id
            _add_message(out.messages, received, "response", operation, client_id, _reply_line(found))
        if self._goes_on(pending, message):
            pending.exhaust = True
            self._chains[received.request_id] = pending
            if len(self._chains) > self._limits.max_outstanding:
                oldest = self._chains.pop(next(iter(self._chains)))
                self._told_exchange(oldest, oldest.outcome.status, out)
                self._limit(frame, out, "exhaust_streams")
            return
        self._told_exchange(pending, found.status, out)

    def _unwanted(self, frame: Frame, pending: _Pending, out: _Output) -> None:
        """A reply to a request that wants none; its exchange was told already."""
        received = self._received(frame, out)
        if received is None:
            return
        line = _reply_line(outcome(received.message, pending.name is not None))
        self._judge(received, pending.name, out)
        text = f"{pending.operation} wants no reply (moreToCome) and got one: {line or 'not readable'}"
        self._remark(frame, out, ("note", "protocol", "unwanted_reply", text))
        if out.messages is not None:
            _add_message(out.messages, received, "response", pending.operation, pending.client_id, line)

    def _goes_on(self, pending: _Pending, message: Message) -> bool:
        """Does the server announce another reply? Legacy exhaust cursors end with cursor id 0."""
        if message.opcode == OP_MSG:
            return bool(message.flags & MORE_TO_COME)
        return pending.exhaust and bool(cursor_of(message))

    def _add_reply(self, pending: _Pending, received: _Received, found: Outcome) -> None:
        """Add a reply to its exchange."""
        _, _, _, start, end, offset, _, packet, ts_ns, _ = received.frame
        message = received.message
        if pending.answer is None:
            pending.answer = (offset, packet, ts_ns)
        pending.outcome, pending.last = found, ts_ns
        pending.replies += 1
        pending.reply_bytes += end - start
        pending.reply_uncompressed += _uncompressed(received)
        if pending.hello and message.body is not None and found.ok:
            known = server_facts(message.data, message.body)
            self._connection = {**self._connection, **{k: v for k, v in known.items() if v is not None}}
        if pending.facts is not None:
            self._add_reply_facts(pending, pending.facts, received, found)

    def _add_reply_facts(self, pending: _Pending, facts: Facts, received: _Received, found: Outcome) -> None:
        message, first = received.message, pending.replies == 1
        new = reply_facts(facts.get("command"), message, found, pending.name is not None)
        for column in ("documents_returned", "n"):
            if not first and facts.get(column) is not None and new.get(column) is not None:
                new[column] += facts[column]
        facts.update(new)
        if message.checksum_ok is not None:
            facts["checksum_ok"] = message.checksum_ok and facts.get("checksum_ok") is not False
        if first:
            facts["response_compressor"] = received.compressor
        if self._options.payload:
            if first:
                limit = self._limits.max_payload_bytes
                facts["response_document"] = document_json(message, pending.name, limit)
            facts["error_message"] = error_message(message)

    # ------------------------------------------------------------------------------------------------------------------

    def _unanswered(self, pending: _Pending, out: _Output) -> None:
        self._told_exchange(pending, "one_way" if pending.quiet else "unanswered", out)

    def _told_exchange(self, pending: _Pending, status: str, out: _Output) -> None:
        """The rows of an exchange that is over."""
        found = pending.outcome
        offset, packet, ts_ns = pending.answer or (None, None, None)
        if out.exchanges is not None:
            out.exchanges.append(
                exchange_row(
                    request_offset=pending.offset,
                    request_packet=pending.packet,
                    request_bytes=pending.length,
                    ts=pending.ts_ns,
                    response_offset=offset,
                    response_packet=packet,
                    response_bytes=pending.reply_bytes or None,
                    ts_response=ts_ns,
                    operation=pending.operation,
                    version=pending.opcode,
                    client_id=pending.client_id,
                    status=status,
                    error_code=found.code,
                    error_name=found.name,
                    awaitable=pending.awaitable or None,
                )
            )
        if out.commands is None or pending.facts is None:
            return
        self._held_payload -= len(pending.facts.get("request_document") or "")
        latency = None if ts_ns is None or pending.awaitable else round((ts_ns - pending.ts_ns) / _NS_PER_MS, 6)
        facts = {
            **self._connection,
            **pending.facts,
            "request_offset": pending.offset,
            "response_offset": offset,
            "request_packet": pending.packet,
            "response_packet": packet,
            "ts": pending.ts_ns,
            "ts_response": ts_ns,
            "ts_last_response": pending.last,
            "status": status,
            "latency_ms": latency,
            "awaitable": pending.awaitable,
            "replies": pending.replies,
            "request_bytes": pending.length,
            "request_id": pending.request_id,
        }
        if pending.replies:
            facts["response_bytes"] = pending.reply_bytes
            facts["response_uncompressed_bytes"] = pending.reply_uncompressed
        if pending.replies > 1 or (pending.exhaust and pending.replies):
            facts["exhaust"] = True
        if status == "one_way":
            facts["unacknowledged"] = True
        out.commands.append(tuple(map(facts.get, MONGO_COMMANDS.names)))

    def _orphan(self, frame: Frame, out: _Output) -> None:
        """A reply whose request is not in the capture."""
        received = self._received(frame, out)
        if received is None:
            return
        message = received.message
        to_command = message.opcode != OP_REPLY or b"ok" in (message.body or {})
        self._judge(received, None, out)
        if out.messages is not None:
            _add_message(out.messages, received, "response", None, None, None, ORPHAN)
        _, _, _, start, end, offset, _, packet, ts_ns, _ = frame
        if out.exchanges is not None:
            out.exchanges.append(orphan_row(frame))
        if out.commands is None:
            return
        facts: dict[str, Any] = {
            **self._connection,
            **reply_facts(None, message, outcome(message, to_command), to_command),
            "opcode": opcode_name(message.opcode),
            "response_offset": offset,
            "response_packet": packet,
            "ts": ts_ns,
            "ts_response": ts_ns,
            "ts_last_response": ts_ns,
            "status": "orphan",
            "replies": 1,
            "checksum_ok": message.checksum_ok,
            "response_compressor": received.compressor,
            "response_bytes": end - start,
            "response_uncompressed_bytes": _uncompressed(received),
            "request_id": received.response_to,
        }
        if self._options.payload:
            facts["response_document"] = document_json(message, None, self._limits.max_payload_bytes)
        out.commands.append(tuple(map(facts.get, MONGO_COMMANDS.names)))

    def _keep_early(self, frame: Frame, out: _Output, response_to: int) -> None:
        """Hold a reply without request: a capture may hold it before its request (several receive queues)."""
        older = self._early.take(response_to)
        if older is not None:
            self._orphan(older, out)
        for _, gone in self._early.hold(response_to, frame):
            self._limit(frame, out, "early_responses")
            self._orphan(gone, out)

    def _answer_early(self, request_id: int, ts_ns: int, out: _Output) -> None:
        """The request whose reply may have come before it."""
        frame = self._early.take(request_id)
        if frame is None:
            return
        if abs(frame.ts_ns - ts_ns) <= EARLY_NS:
            self._response(frame, out)
        else:
            self._orphan(frame, out)

    # ------------------------------------------------------------------------------------------------------------------

    def _received(self, frame: Frame, out: _Output) -> _Received | None:
        """Decode a frame; None where there is not even a header."""
        _, direction, data, start, end, _, _, _, _, complete = frame
        if end - start < HEADER_BYTES:
            self._unreadable(frame, out, "request" if direction == CLIENT_TO_SERVER else "response")
            return None
        _, request_id, response_to, opcode = read_header(data, start)
        remarks: list[Remark] = []
        if end - start > MAX_MESSAGE_BYTES:
            text = f"a message of {end - start:,} bytes; servers take {MAX_MESSAGE_BYTES:,} at most"
            remarks.append(("warn", "protocol", "message_too_large", text))
        if opcode != OP_COMPRESSED:
            message = read_message(opcode, data, start, start + HEADER_BYTES, end, remarks, complete)
            if message.error is not None:
                message = self._faulty(message, complete, remarks)
            return _Received(frame, request_id, response_to, message, None, remarks)
        opened = open_compressed(data, start, end, request_id, response_to, self._allowance, remarks)
        if opened is None:
            message = Message(opcode, 0, data, start, end, None, start, error="the message ends early")
            return _Received(frame, request_id, response_to, self._faulty(message, complete, remarks), None, remarks)
        whole = complete and opened.error is None
        inner = opened.data
        message = read_message(opened.opcode, inner, 0, HEADER_BYTES, len(inner), remarks, whole)
        if not complete:
            remarks.clear()
            message = message._replace(error=CUT)
        elif opened.error is not None:
            message = message._replace(error=opened.error)
        elif message.error is not None:
            message = self._faulty(message, complete, remarks)
        return _Received(frame, request_id, response_to, message, opened.compressor, remarks)

    def _faulty(self, message: Message, complete: bool, remarks: list[Remark]) -> Message:
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

    def _judge(self, received: _Received, command: str | None, out: _Output) -> None:
        """Remarks on a message (of this command): what reading it told, and what a sender must not do."""
        frame, message = received.frame, received.message
        for remark in received.remarks:
            self._remark(frame, out, remark)
        if message.opcode in OPCODES and message.opcode != OP_MSG and not is_hello(command or ""):
            self._tell_legacy(frame, message.opcode, command, out)

    def _judge_compression(self, received: _Received, command: str | None, out: _Output) -> None:
        """A client must not compress what carries credentials; a server may compress each reply (OP_COMPRESSED)."""
        if received.compressor is not None and must_not_be_compressed(command):
            text = f"{command} is compressed ({received.compressor}), which the specification forbids"
            self._remark(received.frame, out, ("warn", "protocol", "compressed_forbidden", text))

    def _tell_legacy(self, frame: Frame, opcode: int, command: str | None, out: _Output) -> None:
        """Remarked once for each opcode of a flow; the answers to OP_QUERY need no remark of their own."""
        if opcode in REPLIES or opcode == OP_COMPRESSED or opcode in self._told:
            return
        self._told.add(opcode)
        text = f"{opcode_name(opcode)}, which MongoDB 5.1 removed, is used for {command or 'a request'}"
        self._remark(frame, out, ("note", "protocol", "legacy_opcode", text))

    def _unreadable(self, frame: Frame, out: _Output, role: str) -> None:
        """A frame without even a header."""
        text = "the frame ends inside the header" if frame.complete else CUT
        if out.messages is not None:
            out.messages.append(message_row(frame, role=role, error=text))
        if frame.complete:
            self._remark(frame, out, ("error", "malformed", "malformed_message", text))

    def _remark(self, frame: Frame, out: _Output, remark: Remark) -> None:
        """Remark on a frame, as long as the flow has not too many remarks."""
        self._remarks.add(place_of(frame), out.sink, remark)

    def _limit(self, frame: Frame, out: _Output, code: str) -> None:
        """Say once that a limit was reached."""
        self._remarks.limit(place_of(frame), out.sink, code, LIMIT_TEXTS[code])


def _output(sink: Sink) -> _Output:
    return _Output(sink, sink.rows("exchanges"), sink.rows("messages"), sink.rows("mongo_commands"))


def _uncompressed(received: _Received) -> int:
    """Size of the message as it was before compression."""
    frame, message = received.frame, received.message
    return frame.end - frame.start if received.compressor is None else len(message.data)


def _line(command: Command, data: bytes) -> str | None:
    """One line on a request: its command and database."""
    database = command.database(data)
    return None if database is None else f"{command.operation} on {database}"


def _reply_line(found: Outcome) -> str | None:
    if found.ok is None:
        return None
    if found.status == "ok":
        return "ok"
    words = (str(word) for word in ("error", found.code, found.name) if word is not None)
    return " ".join(words)


def _add_message(
    rows: list[Row],
    received: _Received,
    role: str,
    operation: str | None,
    client_id: str | None,
    line: str | None,
    error: str | None = None,
) -> None:
    rows.append(
        message_row(
            received.frame,
            role=role,
            operation=operation,
            version=opcode_name(received.message.opcode),
            correlation_id=received.request_id,
            client_id=client_id,
            error=error or received.message.error,
            summary=line,
        )
    )


def conversation(limits: Limits, options: DecodeOptions) -> MongoConversation:
    """A new conversation, see `Dissector.conversation`."""
    return MongoConversation(limits, options)

"""One MQTT connection: packets of both directions in, messages, exchanges and table rows out.

This file reads packets and judges their bytes; `inflight.py` and `requests.py` keep what waits for an answer. A
connection that begins before the capture has no known level at first: its packets wait until one of them proves it, or
too many wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wirewitness.dissectors.core.batch_backoff import Worth, try_together
from wirewitness.dissectors.core.boundary_checks import Judged
from wirewitness.dissectors.core.budget import FRAME_BYTES
from wirewitness.dissectors.core.deferred import DeferredFrames, rests_of
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.core.options import DecodeOptions
from wirewitness.dissectors.core.protocol import Sink
from wirewitness.dissectors.core.rows import CUT
from wirewitness.dissectors.mqtt.checks import header_problems
from wirewitness.dissectors.mqtt.connection import Connection, evidence
from wirewitness.dissectors.mqtt.framing import plausible
from wirewitness.dissectors.mqtt.gaps import Loss
from wirewitness.dissectors.mqtt.inflight import ACKNOWLEDGEMENTS
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.output import Output, add_message, output
from wirewitness.dissectors.mqtt.packet_types import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
    operation_name,
)
from wirewitness.dissectors.mqtt.properties import quick_properties
from wirewitness.dissectors.mqtt.publishing import NO_PROPERTIES, Publishing, publish_parts
from wirewitness.dissectors.mqtt.reason_codes import reason_name
from wirewitness.dissectors.mqtt.remarks import Remarks
from wirewitness.dissectors.mqtt.requests import Requests
from wirewitness.dissectors.mqtt.subscriptions import codes
from wirewitness.dissectors.mqtt.topics import topic_of
from wirewitness.dissectors.mqtt.walk import Walked, walk

if TYPE_CHECKING:
    from wirewitness.dissectors.mqtt.lockstep.batch_decode import Left, Together

# From so many frames on those of a connection are read together with others, if these are so many in all: for one table
# it pays from about 2,000 on, for all of them from 1,000 on.
MANY_FRAMES = 32
LEAST_FRAMES = 2048
LEAST_PART = 2

_SHORT_ACKNOWLEDGEMENTS = frozenset({PUBACK << 4, PUBREC << 4, PUBREL << 4 | 2, PUBCOMP << 4})
# Longest fixed header.
_HEADER_BYTES = 5
# How servers begin that speak no MQTT: a status line (RFC 9112, 4), a fatal alert (RFC 8446, 5.1).
_FOREIGN = {b"HTTP/": "HTTP", b"\x15\x03": "TLS"}


class MqttDecoder:
    """Pairs and decodes the packets of one flow. Picklable; holds no input or output."""

    __slots__ = (
        "_connection",
        "_flights",
        "_held",
        "_held_bytes",
        "_left",
        "_limits",
        "_looked",
        "_losses",
        "_publishing",
        "_remarks",
        "_requests",
        "_speaks",
        "_waiting",
        "judged",
    )

    def __init__(self, limits: Limits, options: DecodeOptions | None = None) -> None:
        options = options or DecodeOptions()
        self._limits = limits
        self._connection = Connection(options.transport, options.whole)
        self._remarks = Remarks(limits, self._connection)
        self._publishing = Publishing(limits, options, self._connection, self._remarks)
        self._flights = self._publishing.flights
        self._requests = Requests(limits, self._connection, self._remarks, self._flights)
        self.judged = Judged()
        self._held: list[Frame] = []
        self._held_bytes = 0
        self._waiting = True
        self._left: DeferredFrames[Together] = DeferredFrames()
        self._losses: list[Loss] = []
        self._looked = 0
        self._speaks: str | None = None

    def feed(self, frames: Sequence[Frame], out: Sink) -> None:
        """Decode frames in the order given; see `Conversation.feed`."""
        if out.later is None or self._publishing.shown_bytes is not None:
            self._one_by_one(frames, output(out))
            return
        if not self._left.count:
            frames = frames[self._until_steady(frames, output(out)) :]
        if frames:
            self._left.leave(self, frames, out)

    def settle(self, out: Sink) -> None:
        """Decode the frames that were left; see `core/deferred.py`."""
        frames, together = self._left.take()
        losses, self._losses, self._looked = self._losses, [], 0
        read = 0
        if together is not None:
            together.follow(self._left_by(frames), self, out)
            read = together.frames
        for at, direction in losses:
            if at >= read:
                self._one_by_one(frames[read:at], output(out))
                self.miss(direction, output(out))
                read = at
        self._one_by_one(frames[read:], output(out))

    def stretch(self, frames: Sequence[Frame], beside: tuple[int, int], out: Output) -> None:
        """Decode frames between others that are read together, of which so many messages are in flight."""
        self._flights.beside = beside
        self._one_by_one(frames, out)
        self._flights.beside = 0, 0

    def miss(self, direction: int, out: Output) -> None:
        """Bytes are missing here; see `lost`."""
        self._connection.lossy = True
        self._requests.lost(direction, out)

    def whole(self, frames: Sequence[Frame], out: Sink) -> None:
        """All frames of a connection, or its last ones."""
        self._one_by_one(frames, output(out))
        self.finish(out)

    def opened(self, frames: Sequence[Frame], out: Sink) -> Connection | None:
        """The first frames of a connection. What is known then; None if anything is going on beside messages."""
        self._one_by_one(frames, output(out))
        return self._connection if self._is_steady() and not self._requests.asked else None

    @staticmethod
    def read_together(decoders: Sequence[MqttDecoder], out: Sink) -> None:
        """Prepare what these have left; `settle` of each gives its rows."""

        def read(many: list[MqttDecoder]) -> Sequence[Together | None]:
            from wirewitness.dissectors.mqtt.lockstep.batch_decode import together

            return together([one._left_by(one._left.in_columns()) for one in many], many[0]._limits, out)

        many = [one for one in decoders if MANY_FRAMES <= one._left.count >= one._flights.count]
        try_together([(one, one._left) for one in many], read, rests_of(out), Worth("mqtt", LEAST_FRAMES, LEAST_PART))

    def _left_by(self, frames: Sequence[Frame]) -> Left:
        from wirewitness.dissectors.mqtt.lockstep.batch_decode import Left

        return Left(frames, self._losses, self._connection, self._flights, self._requests)

    def _until_steady(self, frames: Sequence[Frame], out: Output) -> int:
        """Decode frames until they may be read together with others; where that is."""
        at = 0
        while at < len(frames) and not self._is_steady():
            self._one(frames[at], out)
            at += 1
        return at

    def _one_by_one(self, frames: Sequence[Frame], out: Output) -> None:
        for frame in frames:
            self._one(frame, out)

    def _one(self, frame: Frame, out: Output) -> None:
        if frame.direction == SERVER_TO_CLIENT and self._is_foreign(frame, out):
            return
        if self._waiting:
            self._hold(frame, out)
        else:
            self._message(frame, out)

    def _is_foreign(self, frame: Frame, out: Output) -> bool:
        """Does the server speak something else? Told once; nothing of it is decoded."""
        if self._connection.messages[SERVER_TO_CLIENT]:
            return False
        is_first = self._connection.whole or self._requests.connect is not None
        if frame.stream_offset == 0 and is_first and self._speaks is None:
            head = frame.data[frame.start : frame.start + _HEADER_BYTES]
            self._speaks = next((name for begin, name in _FOREIGN.items() if head.startswith(begin)), None)
            if self._speaks is not None:
                text = f"the server responds in {self._speaks}; what it sends is not decoded as MQTT"
                self._remarks.add(frame, out, "other_protocol", text)
        return self._speaks is not None

    def boundary(self, direction: int, data: bytes, position: int, hinted: bool) -> bool | None:
        """See `Conversation.boundary`. What was left for later is decoded first only where it may change the level."""
        if self._may_change_level():
            self._left.settle(self)
        return plausible(data, position, direction, self._connection.level, hinted, self.judged)

    def lost(self, direction: int, out: Sink) -> None:
        """See `PairsByOrder.lost`: pings have nothing but their order, and what is missing from now on may be lost."""
        if self._left.count:
            self._losses.append(Loss(self._left.count, direction))
        else:
            self.miss(direction, output(out))

    @property
    def held_bytes(self) -> int:
        """See `HoldsRequests`. What was left for later is not in it."""
        undecided = self._held_bytes + FRAME_BYTES * len(self._held)
        return undecided + self._flights.held_bytes + self._requests.held_bytes

    def let_go(self, out: Sink) -> None:
        """See `HoldsRequests`. The level is not waited for any more, either."""
        self.settle(out)
        rows = output(out)
        if self._held:
            self._remarks.limit(self._held[-1], rows, "unknown_level")
            self._release(rows)
        self._flights.let_go(rows)
        self._requests.let_go(rows)

    def finish(self, out: Sink) -> None:
        """Give what is still open, and the row of the connection."""
        self.settle(out)
        rows = output(out)
        self._release(rows)
        self._flights.finish(rows)
        self._requests.finish(rows)
        self._remarks.finish(rows)
        if rows.connections is not None and self._connection.first_ts_ns is not None:
            rows.connections.append(self._connection.row())

    def _may_change_level(self) -> bool:
        """Did the client say CONNECT once more in what was left?"""
        left = self._left
        if self._looked == left.count:
            return False
        fresh, self._looked = left.count - self._looked, left.count
        for part in reversed(left.parts):
            if _has_connect(part[-fresh:]):
                return True
            fresh -= len(part)
            if fresh <= 0:
                break
        return False

    def _is_steady(self) -> bool:
        """Is nothing going on that may change what any packet means? Then they can be read together."""
        connection = self._connection
        return (
            connection.level is not None
            and not self._waiting
            and 0 not in connection.messages
            and not connection.restricted
            and self._requests.is_open
        )

    # The level of a connection that was open before the capture.

    def _hold(self, frame: Frame, out: Output) -> None:
        """Keep a packet until one of them proves the level, or too many wait."""
        if not self._proves(frame):
            copy = frame.data[frame.start : max(frame.end, frame.start + _HEADER_BYTES)]
            self._held.append(frame._replace(data=copy, start=0, end=frame.size))
            self._held_bytes += frame.size
            limits = self._limits
            if len(self._held) < limits.max_undecided_frames and self._held_bytes < limits.max_undecided_bytes:
                return
            self._release(out)
            self._remarks.limit(frame, out, "unknown_level")
        else:
            self._release(out)
            self._message(frame, out)

    def _proves(self, frame: Frame) -> bool:
        """Does this packet tell the level? Then it is noted. CONNECT ends the waiting in any case."""
        _, direction, data, start, end, *_ = frame
        if data[start] >> 4 == CONNECT and direction == CLIENT_TO_SERVER:
            return True
        found = evidence(data, start, end, direction) if frame.complete else None
        if found is not None:
            self._connection.at_level(*found)
        return found is not None

    def _release(self, out: Output) -> None:
        """Waiting is over."""
        held, self._held, self._waiting = self._held, [], False
        self._held_bytes = 0
        for frame in held:
            self._message(frame, out)

    # Every packet.

    def _message(self, frame: Frame, out: Output) -> None:
        _, direction, data, start, end, _, _, last, ts_ns, _ = frame
        connection = self._connection
        first_byte = data[start]
        packet_type = first_byte >> 4
        if connection.messages[direction] == 0:
            self._first(frame, packet_type, out)
        connection.saw(direction, ts_ns, last)
        if connection.level is None and packet_type != CONNECT:
            self._proves(frame)
        if end - start > connection.packet_limit[direction]:
            text = f"{end - start} bytes, the other side takes {connection.packet_limit[direction]}"
            self._remarks.add(frame, out, "packet_too_large", text)
        if not self._requests.connected or self._requests.disconnected[direction]:
            self._out_of_season(frame, packet_type, out)
        if packet_type == PUBLISH:
            self._publish(frame, out)
        elif first_byte in _SHORT_ACKNOWLEDGEMENTS and end - start == 4:
            identifier = data[start + 2] << 8 | data[start + 3]
            self._flights.acknowledged(frame, out, packet_type, identifier)
        else:
            self._other(frame, out)

    def _first(self, frame: Frame, packet_type: int, out: Output) -> None:
        """The first message of a direction."""
        direction, offset = frame.direction, frame.stream_offset
        connection = self._connection
        name = operation_name(packet_type)
        if connection.first_ts_ns is None:
            connection.began(frame.ts_ns, frame.packet_last)
        if direction == CLIENT_TO_SERVER:
            connection.note(first_operation=name)
        if not connection.whole or offset != 0:
            return
        if direction == CLIENT_TO_SERVER and packet_type != CONNECT:
            self._remarks.add(frame, out, "first_packet_not_connect", f"the client begins with {name}")
        elif direction == SERVER_TO_CLIENT and packet_type not in (CONNACK, AUTH):
            self._remarks.add(frame, out, "before_connack", f"the server begins with {name}")

    def _out_of_season(self, frame: Frame, packet_type: int, out: Output) -> None:
        """A packet between CONNECT and CONNACK, or after DISCONNECT."""
        direction = frame.direction
        name = operation_name(packet_type)
        if self._requests.disconnected[direction]:
            self._remarks.once(frame, out, "after_disconnect", f"{name} after DISCONNECT")
            return
        waits = direction == CLIENT_TO_SERVER and self._requests.connect is not None
        if waits and packet_type not in (CONNECT, AUTH):
            text = f"{name} is sent before CONNACK came, which a client may do"
            self._remarks.once(frame, out, "sent_before_connack", text)

    def _publish(self, frame: Frame, out: Output) -> None:
        _, _, data, start, end, *_ = frame
        parts = None
        if frame.complete and data[start] & 6 != 6:
            parts = publish_parts(data, start, end, self._connection.level == LEVEL_50)
        if parts is None:
            self._other(frame, out)
            return
        topic_start, topic_end, identifier, properties_start, payload = parts
        properties = NO_PROPERTIES
        if properties_start != payload:
            usual = quick_properties(data, properties_start, payload, PUBLISH, self._limits.max_properties)
            if usual is None:
                self._other(frame, out)
                return
            properties = usual
        if identifier is not None and frame.direction == CLIENT_TO_SERVER and self._requests.waits(identifier):
            text = f"packet identifier {identifier} waits for an answer already"
            self._remarks.add(frame, out, "packet_identifier_in_use", text)
        topic = self._publishing.topics.topic(data[topic_start:topic_end])
        self._publishing.published(frame, out, topic, identifier, properties, (payload, end), None)

    def _other(self, frame: Frame, out: Output) -> None:
        """Any packet that is read by its layout."""
        _, direction, data, start, end, *_ = frame
        found = walk(data, start, end, self._connection.level, self._limits)
        if (frame.complete and found.declared_end > end) or not found.body:
            self._impossible(frame, out)
            return
        if found.type == CONNECT and found.level is not None and direction == CLIENT_TO_SERVER:
            self._connection.at_level(found.level, "connect")
        error = self._judge(frame, found, out)
        handler = _HANDLERS.get(found.type)
        if handler is None:
            add_message(out, frame, self._connection, None, operation_name(found.type), None, error)
        else:
            handler(self, frame, found, error, out)

    def _impossible(self, frame: Frame, out: Output) -> None:
        """The first byte of a header that cannot be one, or what is left of a packet whose header is cut."""
        data, start, complete = frame.data, frame.start, frame.complete
        size = data[start + 1 : start + _HEADER_BYTES]
        error = CUT
        if complete and len(size) == _HEADER_BYTES - 1 and all(byte & 0x80 for byte in size):
            error = "the remaining length has more than 4 bytes"
            self._remarks.add(frame, out, "remaining_length_too_long", error)
        elif complete:
            error = f"the packet would be larger than {self._limits.max_frame_bytes} bytes"
            self._remarks.add(frame, out, "packet_too_long", error)
        add_message(out, frame, self._connection, None, operation_name(data[start] >> 4), None, error)

    def _judge(self, frame: Frame, found: Walked, out: Output) -> str | None:
        """Remark on what is wrong with the bytes of a packet; the text of `messages.error`."""
        name = operation_name(found.type)
        for code, text in header_problems(found, frame.direction):
            self._remarks.add(frame, out, code, text)
        for code, at, text in found.problems:
            self._remarks.add(frame, out, code, f"{name}: {text}", at)
        given = [found.value["reason_code"]] if "reason_code" in found.value else codes(found)
        for value in given:
            if found.level is not None and reason_name(found.type, value, found.level) is None:
                text = f"{name} with code {value:#04x}, which it does not have"
                self._remarks.add(frame, out, "undefined_reason_code", text)
        if found.error is None:
            return None
        if not frame.complete:
            return CUT
        code = "missing_packet_identifier" if found.error.endswith("inside packet_identifier") else "malformed_packet"
        if found.type in _HANDLERS:
            self._remarks.add(frame, out, code, f"{name}: {found.error}", found.pos)
        return found.error

    # Packets that were read by their layout, called through _HANDLERS.

    def _odd_publish(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        """A PUBLISH that is cut, broken, or unusual in its properties."""
        value = found.value
        payload = value.get("payload")
        span = None if payload is None else (payload[0], payload[0] + payload[1])
        topic = topic_of(value.get("topic_name") or "", ())
        identifier = value.get("packet_identifier")
        self._publishing.published(frame, out, topic, identifier, found.properties, span, error)

    def _acknowledgement(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        self._flights.acknowledged(frame, out, found.type, found.value.get("packet_identifier"), found, error)

    def _request(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        _REQUESTS[found.type](self._requests, frame, found, error, out)


def _has_connect(frames: Sequence[Frame]) -> bool:
    if isinstance(frames, list):
        return any(frame.data[frame.start] >> 4 == CONNECT for frame in frames)
    from wirewitness.dissectors.core.lockstep.cut_frames import CutFrames

    return bool((CutFrames.of(frames).first_octets() >> 4 == CONNECT).any())


_RequestHandler = Callable[[Requests, Frame, Walked, str | None, Output], None]
_REQUESTS: dict[int, _RequestHandler] = {
    CONNECT: Requests.on_connect,
    CONNACK: Requests.on_connack,
    SUBSCRIBE: Requests.on_request,
    UNSUBSCRIBE: Requests.on_request,
    SUBACK: Requests.on_answer,
    UNSUBACK: Requests.on_answer,
    PINGREQ: Requests.on_ping,
    PINGRESP: Requests.on_ping,
    DISCONNECT: Requests.on_disconnect,
    AUTH: Requests.on_auth,
}
_Handler = Callable[[MqttDecoder, Frame, Walked, str | None, Output], None]
_HANDLERS: dict[int, _Handler] = {
    PUBLISH: MqttDecoder._odd_publish,
    **dict.fromkeys(ACKNOWLEDGEMENTS, MqttDecoder._acknowledgement),
    **dict.fromkeys(_REQUESTS, MqttDecoder._request),
}

"""Messages of QoS 1 and 2 that are in flight on one connection, in both directions, and what acknowledges them.

In: PUBLISH packets and acknowledgements. Out: rows of messages, exchanges and publishes. A message is kept by direction
and packet identifier until its handshake is over.
"""

from __future__ import annotations

from typing import Any

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.handshake import (
    BEFORE_PUBCOMP,
    COMPLETE,
    FIRST,
    LEAPS,
    REFUSING,
    REPEATS,
    STEP_TIMES,
    STEPS,
    Flight,
)
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.output import ORPHAN, Output, add_message, answered, given_up, orphan, unanswered
from wirewitness.dissectors.mqtt.packet_types import PUBACK, PUBCOMP, PUBREC, PUBREL, operation_name
from wirewitness.dissectors.mqtt.publish_rows import add_landed
from wirewitness.dissectors.mqtt.reason_codes import FAILURE, reason_name
from wirewitness.dissectors.mqtt.remarks import Remarks
from wirewitness.dissectors.mqtt.subscriptions import Asked, answered_by, asked_by
from wirewitness.dissectors.mqtt.unmatched_acks import Completed, Early, EarlyAnswer, Unreleased
from wirewitness.dissectors.mqtt.walk import Walked

# A message in flight, beside its topic, properties and payload where that is shown.
FLIGHT_BYTES = 1_500
ACKNOWLEDGEMENTS = frozenset({PUBACK, PUBCOMP, PUBREC, PUBREL})


class Flights:
    """of: the messages in flight by packet identifier, the client's and the server's. beside: so many more are in
    flight, while others of the connection are read together. early: acknowledgements that were read before their
    PUBLISH. unreleased: messages whose PUBCOMP was read before their PUBREL. Picklable.
    """

    __slots__ = ("_connection", "_limits", "_released", "_remarks", "beside", "early", "of", "unreleased")

    def __init__(self, limits: Limits, connection: Connection, remarks: Remarks) -> None:
        self._limits = limits
        self._connection = connection
        self._remarks = remarks
        self.of: tuple[dict[int, Flight], dict[int, Flight]] = ({}, {})
        self.beside = (0, 0)
        # PUBREL without a PUBLISH on this connection, which wait for PUBCOMP.
        self._released: tuple[dict[int, Asked], dict[int, Asked]] = ({}, {})
        self.early = Early(limits)
        self.unreleased = Unreleased(limits)

    @property
    def held_bytes(self) -> int:
        """Memory of what is in flight, roughly."""
        flights = [flight for side in self.of for flight in side.values()]
        flights += [one.flight for side in self.unreleased.of for one in side.values()]
        return sum(FLIGHT_BYTES + 2 * flight.length for flight in flights) + self.early.held_bytes

    @property
    def count(self) -> int:
        """Messages in flight."""
        return len(self.of[0]) + len(self.of[1])

    @property
    def beside_flights(self) -> list[tuple[int, int]]:
        """Who publishes, and packet identifier, of what waits without being in flight."""
        ends = [(side, one) for held in (self._released, self.unreleased.of) for side in (0, 1) for one in held[side]]
        return ends + self.early.waiting()

    def uses(self, direction: int, identifier: int) -> bool:
        """Is a message of this direction in flight with this packet identifier?"""
        return identifier in self.of[direction]

    def in_order(self) -> None:
        """Have those that were sent first stand first; some were read together with others, some between them."""
        for flights in self.of:
            in_order = sorted(flights.items(), key=lambda item: item[1].offset)
            flights.clear()
            flights.update(in_order)

    def take_off(
        self, frame: Frame, out: Output, identifier: int, head: tuple[Any, ...], tail: tuple[Any, ...], qos: int
    ) -> None:
        """A PUBLISH that wants an acknowledgement is in flight from now on."""
        _, direction, _, start, end, offset, _, last, ts_ns, _ = frame
        connection = self._connection
        flights = self.of[direction]
        done = self.unreleased.take(direction, identifier)
        if done is not None:
            self._complete(out, direction, identifier, done)
        before = flights.pop(identifier, None)
        first_offset = None if before is None else self._again(frame, out, identifier, before)
        heard = connection.messages[1 - direction] > 0
        in_flight = len(flights) + self.beside[direction] + 1
        if in_flight > (self._limits.max_outstanding if heard else self._limits.max_unheard):
            flight = flights.pop(next(iter(flights)))
            add_landed(out, connection, direction, flight, f"no_{flight.waits_for}", None)
            self._remarks.limit(frame, out, "outstanding_requests" if heard else "unheard_requests")
            in_flight -= 1
        flights[identifier] = Flight(offset, end - start, last, ts_ns, FIRST[qos], head, tail, in_flight, first_offset)
        connection.max_in_flight[direction] = max(connection.max_in_flight[direction], in_flight)
        if in_flight > connection.receive_maximum[direction]:
            text = f"{in_flight} messages in flight, {connection.receive_maximum[direction]} are allowed"
            self._remarks.add(frame, out, "receive_maximum_exceeded", text)
        if ts_ns <= self.early.latest_ns:
            for early in self.early.take(direction, ACKNOWLEDGEMENTS, identifier, ts_ns):
                self.acknowledged(early.frame, out, early.key[1], identifier, early.found, early.error)

    def acknowledged(
        self,
        frame: Frame,
        out: Output,
        packet_type: int,
        identifier: int | None,
        found: Walked | None = None,
        error: str | None = None,
        final: bool = False,
    ) -> None:
        """PUBACK, PUBREC, PUBREL or PUBCOMP was read. found: None for the shortest form, which says success.

        final: its PUBLISH is not waited for any more.
        """
        code = 0 if found is None else found.value.get("reason_code", 0)
        publisher = frame.direction if packet_type == PUBREL else 1 - frame.direction
        flight = None if identifier is None else self.of[publisher].get(identifier)
        if flight is None and identifier and not final and not self._is_expected(packet_type, publisher, identifier):
            gone = self.early.hold((publisher, packet_type, identifier), frame, found, error)
            if gone:
                self._remarks.limit(frame, out, "early_responses")
                self._lost(gone, out)
            return
        if out.messages is not None:
            self._acknowledgement_message(frame, out, packet_type, identifier, code, flight is not None, error)
        if identifier is None:
            return
        if identifier == 0:
            text = f"{operation_name(packet_type)} with packet identifier 0"
            self._remarks.add(frame, out, "packet_identifier_zero", text)
        if flight is None:
            self._unknown(frame, out, packet_type, identifier, code)
        else:
            self._next_step(frame, out, packet_type, identifier, flight, code, found)

    def _next_step(
        self,
        frame: Frame,
        out: Output,
        packet_type: int,
        identifier: int,
        flight: Flight,
        code: int,
        found: Walked | None,
    ) -> None:
        """An acknowledgement of a message that is in flight."""
        publisher = frame.direction if packet_type == PUBREL else 1 - frame.direction
        following = STEPS.get((flight.waits_for, packet_type))
        if following is None:
            following = self._out_of_turn(frame, out, packet_type, identifier, flight)
            if following is None:
                return
        setattr(flight, STEP_TIMES[packet_type], frame.ts_ns)
        flight.last_packet = frame.packet_last
        if self._connection.level == LEVEL_50:
            flight.code, flight.code_of = code, packet_type
            if found is not None and found.properties:
                flight.reason_string = found.properties.get("reason_string")
        refused = code >= FAILURE and packet_type in REFUSING
        if following == COMPLETE or refused:
            del self.of[publisher][identifier]
            if packet_type == PUBCOMP and flight.ts_released is None:
                for oldest, done in self.unreleased.hold(publisher, identifier, flight, frame):
                    self._complete(out, publisher, oldest, done)
                return
            if packet_type == PUBCOMP:
                self._missing_steps(frame, out, identifier, flight)
            add_landed(out, self._connection, publisher, flight, "refused" if refused else COMPLETE, frame)
        else:
            flight.waits_for = following

    def finish(self, out: Output) -> None:
        """Give what is still in flight."""
        self._lost(self.early.rest(), out)
        self._complete_rest(out)
        for direction, (flights, released) in enumerate(zip(self.of, self._released, strict=True)):
            for flight in flights.values():
                add_landed(out, self._connection, direction, flight, f"no_{flight.waits_for}", None)
            flights.clear()
            for asked in released.values():
                unanswered(out, self._connection, direction, asked)
            released.clear()

    def let_go(self, out: Output) -> None:
        """Give what is in flight without saying how far it came: its acknowledgements may be on their way."""
        self._lost(self.early.rest(), out)
        self._complete_rest(out)
        for direction, (flights, released) in enumerate(zip(self.of, self._released, strict=True)):
            for flight in flights.values():
                add_landed(out, self._connection, direction, flight, None, None)
            flights.clear()
            for asked in released.values():
                given_up(out, self._connection, direction, asked)
            released.clear()

    def _is_expected(self, packet_type: int, publisher: int, identifier: int) -> bool:
        """Can this acknowledgement come without its PUBLISH: as a step of a message of an earlier connection?"""
        return packet_type == PUBREL or (packet_type == PUBCOMP and identifier in self._released[publisher])

    def _again(self, frame: Frame, out: Output, identifier: int, before: Flight) -> int | None:
        """A PUBLISH with an identifier that is in flight: the offset of the first one when it is sent again."""
        direction, resent = frame.direction, frame.data[frame.start] & 8
        add_landed(out, self._connection, direction, before, "resent" if resent else "replaced", None)
        if resent:
            code = "resent_on_connection" if self._connection.level == LEVEL_50 else "resent"
            self._remarks.add(frame, out, code, f"PUBLISH {identifier} is sent again on its connection")
            return before.offset if before.first_offset is None else before.first_offset
        text = f"packet identifier {identifier} is used again before {before.waits_for.upper()} came"
        self._remarks.add(frame, out, "packet_identifier_in_use", text)
        return None

    def _acknowledgement_message(
        self, frame: Frame, out: Output, packet_type: int, identifier: int | None, code: int, known: bool,
        error: str | None,
    ) -> None:  # fmt: skip
        connection = self._connection
        words = None
        if code:
            words = f"reason={code} {reason_name(packet_type, code, connection.level) or ''}".rstrip()
        role = "response"
        if packet_type == PUBREL:
            role = "request"
        elif not known and error is None and identifier not in self._released[1 - frame.direction]:
            error = ORPHAN
        add_message(out, frame, connection, role, operation_name(packet_type), identifier, error, words)

    def _lost(self, answers: list[EarlyAnswer], out: Output) -> None:
        """Acknowledgements whose PUBLISH is not in the capture."""
        for (_, packet_type, identifier), frame, found, error in answers:
            self.acknowledged(frame, out, packet_type, identifier, found, error, final=True)

    def _out_of_turn(self, frame: Frame, out: Output, packet_type: int, identifier: int, flight: Flight) -> str | None:
        """What follows when another packet comes than the one waited for; None: nothing changes."""
        name = operation_name(packet_type)
        step = (flight.waits_for, packet_type)
        if step in LEAPS:  # the step between may be read later, see `unmatched_acks.py`
            return LEAPS[step]
        time = STEP_TIMES[packet_type]
        if step in REPEATS and getattr(flight, time) is None:
            setattr(flight, time, frame.ts_ns)
        elif step in REPEATS:
            self._remarks.add(frame, out, "repeated_ack", f"{name} {identifier} comes again")
        else:
            text = f"{name} {identifier} comes while {flight.waits_for.upper()} is waited for"
            self._remarks.add(frame, out, "unexpected_ack", text)
        return None

    def _releases(self, frame: Frame, out: Output, identifier: int) -> bool:
        """Is this the PUBREL of a message whose PUBCOMP was read before it? One that was sent later ends the wait."""
        done = self.unreleased.take(frame.direction, identifier)
        if done is None:
            return False
        is_its_own = frame.ts_ns <= done.pubcomp.ts_ns
        if is_its_own:
            done.flight.ts_released = frame.ts_ns
        self._complete(out, frame.direction, identifier, done)
        return is_its_own

    def _complete(self, out: Output, publisher: int, identifier: int, done: Completed) -> None:
        """A message whose PUBREL was waited for, or came."""
        self._missing_steps(done.pubcomp, out, identifier, done.flight)
        add_landed(out, self._connection, publisher, done.flight, COMPLETE, done.pubcomp)

    def _complete_rest(self, out: Output) -> None:
        for publisher, identifier, done in self.unreleased.rest():
            self._complete(out, publisher, identifier, done)

    def _missing_steps(self, frame: Frame, out: Output, identifier: int, flight: Flight) -> None:
        for time, name in BEFORE_PUBCOMP.items():
            if getattr(flight, time) is None:
                text = f"PUBCOMP {identifier} although no {name} was seen"
                self._remarks.unpaired(frame, out, "unexpected_ack", text)

    def _unknown(self, frame: Frame, out: Output, packet_type: int, identifier: int, code: int) -> None:
        """One without its PUBLISH: of an earlier connection, or lost. PUBREL asks for PUBCOMP in any case."""
        direction = frame.direction
        if packet_type == PUBREL and self._releases(frame, out, identifier):
            return
        released = self._released[1 - direction]
        if packet_type == PUBCOMP and identifier in released:
            asked = released.pop(identifier)
            answered(out, self._connection, 1 - direction, asked, answered_by(frame, PUBCOMP), code)
            return
        text = f"{operation_name(packet_type)} {identifier} without its PUBLISH"
        self._remarks.unpaired(frame, out, "ack_without_publish", text)
        if packet_type != PUBREL:
            orphan(out, self._connection, frame, "PUBLISH", packet_type, code)
            return
        mine = self._released[direction]
        unanswered(out, self._connection, direction, mine.pop(identifier, None))
        if len(mine) >= self._limits.max_unheard:
            unanswered(out, self._connection, direction, mine.pop(next(iter(mine))))
        mine[identifier] = asked_by(frame, PUBREL, identifier)

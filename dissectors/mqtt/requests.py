"""Everything on one connection but publishing: CONNECT, subscriptions, pings, authentication, DISCONNECT.

In: packets that were read. Out: rows of messages, exchanges and subscriptions; the facts of the connection.
"""

from __future__ import annotations

from wirewitness.dissectors.core.budget import BODY_TIMES, REQUEST_BYTES
from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Frame
from wirewitness.dissectors.mqtt.checks import connack_problems, connect_problems, filter_list_problems
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.inflight import Flights
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.output import (
    ORPHAN,
    Output,
    add_message,
    answered,
    given_up,
    one_way,
    orphan,
    unanswered,
)
from wirewitness.dissectors.mqtt.packet_types import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
    operation_name,
)
from wirewitness.dissectors.mqtt.remarks import Remarks
from wirewitness.dissectors.mqtt.subscriptions import Asked, answered_by, asked_by, codes, first_error
from wirewitness.dissectors.mqtt.summary import summary
from wirewitness.dissectors.mqtt.unmatched_acks import Early, EarlyAnswer
from wirewitness.dissectors.mqtt.walk import Walked

_NS_PER_MS = 1e6
_UNPAIRED = {SUBACK: "suback_without_subscribe", UNSUBACK: "unsuback_without_unsubscribe"}
_REQUEST_OF = {SUBACK: SUBSCRIBE, UNSUBACK: UNSUBSCRIBE}
_ANSWER_OF = {SUBSCRIBE: SUBACK, UNSUBSCRIBE: UNSUBACK}


class Requests:
    """What waits for an answer on one connection. pings: PINGREQ without PINGRESP, the oldest first."""

    __slots__ = (
        "_asked",
        "_auth",
        "_connection",
        "_early",
        "_flights",
        "_limits",
        "_remarks",
        "connect",
        "connected",
        "disconnected",
        "pings",
    )

    def __init__(self, limits: Limits, connection: Connection, remarks: Remarks, flights: Flights) -> None:
        self._limits = limits
        self._connection = connection
        self._remarks = remarks
        self._flights = flights
        self._asked: dict[tuple[int, int], Asked] = {}
        self.pings: list[Asked] = []
        self._early = Early(limits)
        self._auth: Asked | None = None
        self.connect: Asked | None = None
        self.connected = False
        self.disconnected = [False, False]

    @property
    def is_open(self) -> bool:
        """Is the connection neither opening nor closing?"""
        return self.connect is None and True not in self.disconnected

    @property
    def asked(self) -> set[int]:
        """Packet identifiers of SUBSCRIBE and UNSUBSCRIBE that wait for their answers."""
        return {identifier for _, identifier in self._asked}

    @property
    def has_early(self) -> bool:
        """Was an answer read whose request may come later?"""
        return bool(self._early)

    def waits(self, identifier: int) -> bool:
        """Does a SUBSCRIBE or UNSUBSCRIBE with this packet identifier wait for its answer?"""
        return (SUBACK, identifier) in self._asked or (UNSUBACK, identifier) in self._asked

    @property
    def held_bytes(self) -> int:
        """Memory of what waits, roughly."""
        asked = sum(REQUEST_BYTES + BODY_TIMES * asked.length for asked in self._asked.values())
        return asked + REQUEST_BYTES * len(self.pings) + self._early.held_bytes

    def let_go(self, out: Output) -> None:
        """Give the requests whose answers nobody waits for; CONNECT and pings, which are few, wait on."""
        self._lost(self._early.rest(), out)
        for asked in self._asked.values():
            given_up(out, self._connection, CLIENT_TO_SERVER, asked)
        self._asked.clear()

    def finish(self, out: Output) -> None:
        """Give what is still open."""
        self._lost(self._early.rest(), out)
        waiting = [*self._asked.values()]
        self._asked.clear()
        self._remark_on_pings(out)
        for asked in (*waiting, *self.pings, self.connect, self._auth):
            unanswered(out, self._connection, CLIENT_TO_SERVER, asked)
        self.pings.clear()
        self.connect = self._auth = None

    def on_connect(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        """CONNECT."""
        direction = frame.direction
        asked = asked_by(frame, CONNECT, None, found)
        if direction == SERVER_TO_CLIENT:
            unanswered(out, self._connection, direction, asked)
        elif self.connected and frame.stream_offset == 0:
            # The capture has its answer before it: nothing else waits for one.
            self._connection.connect(found, frame.stream_offset, frame.ts_ns, frame.packet_last)
        elif self.connect is not None or self.connected:
            self._remarks.add(frame, out, "second_connect", "CONNECT on a connection that has one")
            unanswered(out, self._connection, direction, self.connect)
            self.connect = asked
        else:
            self._connection.connect(found, frame.stream_offset, frame.ts_ns, frame.packet_last)
            self.connect = asked
        for code, text in connect_problems(found):
            self._remarks.add(frame, out, code, text)
        add_message(out, frame, self._connection, "request", "CONNECT", None, error, summary(found))

    def on_connack(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        """CONNACK."""
        connection = self._connection
        code = found.value.get("reason_code")
        for problem, text in connack_problems(found, connection.clean_start):
            self._remarks.add(frame, out, problem, text)
        if frame.direction == CLIENT_TO_SERVER:
            add_message(out, frame, connection, "response", "CONNACK", None, error, summary(found))
            return
        answer = answered_by(frame, CONNACK, found)
        asked, self.connect = self.connect, None
        if not self.connected:
            connection.connack(found, None if asked is None else frame.stream_offset, frame.ts_ns, frame.packet_last)
        add_message(out, frame, connection, "response", "CONNACK", None, error, summary(found))
        if self._auth is not None:
            answered(out, connection, CLIENT_TO_SERVER, self._auth, answer, code)
            self._auth = None
        if asked is not None:
            answered(out, connection, CLIENT_TO_SERVER, asked, answer, code)
        else:
            problem = "second_connack" if self.connected else "connack_without_connect"
            self._remarks.unpaired(frame, out, problem, "CONNACK without a CONNECT that waits for it")
            orphan(out, connection, frame, "CONNECT", CONNACK, code)
        self.connected = True

    def on_request(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        """SUBSCRIBE or UNSUBSCRIBE."""
        direction = frame.direction
        connection = self._connection
        identifier = found.value.get("packet_identifier")
        name = operation_name(found.type)
        add_message(out, frame, connection, "request", name, identifier, error, summary(found))
        if identifier == 0:
            self._remarks.add(frame, out, "packet_identifier_zero", f"{name} with packet identifier 0")
        if frame.complete:
            for code, text in filter_list_problems(found):
                self._remarks.add(frame, out, code, text)
        asked = asked_by(frame, found.type, identifier, found)
        if direction == SERVER_TO_CLIENT or identifier is None:
            unanswered(out, connection, direction, asked)
            return
        key = (_ANSWER_OF[found.type], identifier)
        if self.waits(identifier) or self._flights.uses(direction, identifier):
            text = f"packet identifier {identifier} waits for an answer already"
            self._remarks.add(frame, out, "packet_identifier_in_use", text)
        unanswered(out, connection, direction, self._asked.pop(key, None))
        if len(self._asked) >= self._limits.max_outstanding:
            given_up(out, connection, direction, self._asked.pop(next(iter(self._asked))))
            self._remarks.limit(frame, out, "outstanding_requests")
        self._asked[key] = asked
        self._answer_early(_ANSWER_OF[found.type], identifier, frame.ts_ns, out)

    def on_answer(self, frame: Frame, found: Walked, error: str | None, out: Output, final: bool = False) -> None:
        """SUBACK or UNSUBACK. final: its request is not waited for any more."""
        connection = self._connection
        identifier = found.value.get("packet_identifier")
        name = operation_name(found.type)
        asked = None
        if frame.direction == SERVER_TO_CLIENT and identifier is not None:
            asked = self._asked.pop((found.type, identifier), None)
            if asked is None and not final:
                self._hold(frame, found, identifier, error, out)
                return
        missing = ORPHAN if asked is None and error is None else error
        add_message(out, frame, connection, "response", name, identifier, missing, summary(found))
        if asked is None:
            self._remarks.unpaired(frame, out, _UNPAIRED[found.type], f"{name} {identifier} answers nothing")
            operation = operation_name(_REQUEST_OF[found.type])
            orphan(out, connection, frame, operation, found.type, first_error(found))
            return
        filters = len(asked.found.value.get("each", ())) if asked.found is not None else 0
        whole = frame.complete and asked.found is not None and asked.found.error is None
        counted = whole and (found.type == SUBACK or found.level == LEVEL_50)
        if counted and len(codes(found)) != filters:
            text = f"{name} has {len(codes(found))} codes for {filters} filters"
            self._remarks.add(frame, out, "reason_code_count", text)
        answer = answered_by(frame, found.type, found)
        answered(out, connection, CLIENT_TO_SERVER, asked, answer, first_error(found))

    def on_ping(self, frame: Frame, found: Walked, error: str | None, out: Output, final: bool = False) -> None:
        """PINGREQ or PINGRESP. final: its request is not waited for any more."""
        connection = self._connection
        asks = found.type == PINGREQ
        if not asks and not self.pings and frame.direction == SERVER_TO_CLIENT and not final:
            self._hold(frame, found, 0, error, out)
            return
        role = "request" if asks else "response"
        add_message(out, frame, connection, role, operation_name(found.type), None, error, None)
        if (frame.direction == CLIENT_TO_SERVER) != asks:
            return  # the wrong direction, which was remarked on
        if asks:
            connection.count("pings")
            if len(self.pings) >= self._limits.max_unheard:
                unanswered(out, connection, CLIENT_TO_SERVER, self.pings.pop(0))
                connection.count("pings_unanswered")
                self._remarks.limit(frame, out, "unheard_requests")
            self.pings.append(asked_by(frame, PINGREQ))
            self._answer_early(PINGRESP, 0, frame.ts_ns, out)
        elif self.pings:
            answered(out, connection, CLIENT_TO_SERVER, self.pings.pop(0), answered_by(frame, PINGRESP), 0)
        else:
            self._remarks.unpaired(frame, out, "pingresp_without_pingreq", "PINGRESP without PINGREQ")
            orphan(out, connection, frame, "PINGREQ", PINGRESP, 0)

    def on_disconnect(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        """DISCONNECT."""
        direction = frame.direction
        self.disconnected[direction] = True
        self._connection.disconnect(found, direction, frame.ts_ns, frame.packet_last)
        add_message(out, frame, self._connection, "notification", "DISCONNECT", None, error, summary(found))
        one_way(out, self._connection, direction, asked_by(frame, DISCONNECT), found.value.get("reason_code"))

    def on_auth(self, frame: Frame, found: Walked, error: str | None, out: Output) -> None:
        """AUTH: the client's is answered by the server's, or by CONNACK; the server's alone is its challenge."""
        direction = frame.direction
        connection = self._connection
        connection.count("authentications")
        connect = self.connect.found if self.connect is not None else None
        if connect is not None and "authentication_method" not in connect.properties:
            text = "AUTH although CONNECT names no authentication method"
            self._remarks.add(frame, out, "auth_without_method", text)
        asked, self._auth = self._auth, None
        role = "request" if direction == CLIENT_TO_SERVER else "notification" if asked is None else "response"
        add_message(out, frame, connection, role, "AUTH", None, error, summary(found))
        if direction == CLIENT_TO_SERVER:
            unanswered(out, connection, direction, asked)
            self._auth = asked_by(frame, AUTH)
        elif asked is not None:
            code = found.value.get("reason_code", 0)
            answered(out, connection, CLIENT_TO_SERVER, asked, answered_by(frame, AUTH, found), code)

    def _answer_early(self, answer_type: int, identifier: int, ts_ns: int, out: Output) -> None:
        """The request whose answer may have been read before it."""
        if ts_ns <= self._early.latest_ns:
            for early in self._early.take(0, frozenset({answer_type}), identifier, ts_ns, most=1):
                self._replay(early, out, final=False)

    def _hold(self, frame: Frame, found: Walked, identifier: int, error: str | None, out: Output) -> None:
        """Keep an answer, as its request may be read later."""
        gone = self._early.hold((0, found.type, identifier), frame, found, error)
        if gone:
            self._remarks.limit(frame, out, "early_responses")
            self._lost(gone, out)

    def _lost(self, answers: list[EarlyAnswer], out: Output) -> None:
        """Answers whose requests are not in the capture."""
        for early in answers:
            self._replay(early, out, final=True)

    def lost(self, direction: int, out: Output) -> None:
        """Bytes of this direction are missing: whether a ping was answered in them, nobody knows."""
        if direction == SERVER_TO_CLIENT:
            for asked in self.pings:
                unanswered(out, self._connection, CLIENT_TO_SERVER, asked)
            self.pings.clear()

    def _replay(self, early: EarlyAnswer, out: Output, final: bool) -> None:
        if early.found is not None:
            handle = self.on_ping if early.key[1] == PINGRESP else self.on_answer
            handle(early.frame, early.found, early.error, out, final)

    def _remark_on_pings(self, out: Output) -> None:
        """Pings that got no answer although the connection went on."""
        last_ns = max((ts_ns for ts_ns in self._connection.last_ts_ns if ts_ns is not None), default=0)
        for asked in self.pings:
            self._connection.count("pings_unanswered")
            if last_ns > asked.ts_ns:
                waited_ms = (last_ns - asked.ts_ns) / _NS_PER_MS
                text = f"no PINGRESP within {waited_ms:.0f} ms, up to the last message"
                place = (CLIENT_TO_SERVER, asked.offset, asked.length, asked.packet, asked.ts_ns)
                self._remarks.add_at(place, out, "ping_unanswered", text)

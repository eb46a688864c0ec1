"""Remarks of one decoder: the rules that its packets broke, as rows of `expert_infos`.

In: the code of a rule and words about this case. Out: rows, no more than the limits allow.
"""

from __future__ import annotations

from typing import NamedTuple

from wirewitness.dissectors.core.limits import Limits
from wirewitness.dissectors.core.model import Frame
from wirewitness.dissectors.core.remarks import Place, place_of
from wirewitness.dissectors.core.rows import expert_row
from wirewitness.dissectors.mqtt.connection import Connection
from wirewitness.dissectors.mqtt.levels import LEVEL_31, LEVEL_50, LEVEL_311, VERSIONS
from wirewitness.dissectors.mqtt.output import Output

# The rules of MQTT that packets can break: severity, group, and the clause of each version.
#
# In: the code of a remark, level and direction. Out: `Rule`, and the clause as text. Clause ids belong to a version:
# [MQTT-3.1.2-24] is keep-alive in 3.1.1 and maximum packet size in 5.0. MQTT 3.1 has no ids, so its section is named;
# where 3.1.1 or 5.0 say a thing without an id, their section is.

# A clause id without brackets, a section, or (the client's, the server's).
Clause = str | tuple[str, str] | None


class Rule(NamedTuple):
    """severity and group as in `expert_infos`; where the rule stands in each version, None: it has no such rule."""

    severity: str
    group: str
    in_31: Clause = None
    in_311: Clause = None
    in_50: Clause = None


RULES: dict[str, Rule] = {
    # Bytes that do not make a packet.
    "malformed_packet": Rule("error", "malformed"),
    "trailing_bytes": Rule("warn", "malformed"),
    "missing_packet_identifier": Rule("error", "malformed", "2.4", "MQTT-2.3.1-1", ("MQTT-2.2.1-3", "MQTT-2.2.1-4")),
    "other_protocol": Rule("error", "protocol"),
    "remaining_length_too_long": Rule("error", "malformed", "2.1", "2.2.3", "1.5.5"),
    "packet_too_long": Rule("error", "limit"),
    "overlong_integer": Rule("note", "malformed", None, None, "MQTT-1.5.5-1"),
    "reserved_packet_type": Rule("error", "malformed", "2.1", "2.2.1", "2.1.2"),
    "reserved_flags": Rule("error", "malformed", "2.6", "MQTT-2.2.2-1", "MQTT-2.1.3-1"),
    "wrong_direction": Rule("error", "protocol", "3", "2.2.1", "2.1.2"),
    "invalid_utf8": Rule("error", "malformed", "2.5", "MQTT-1.5.3-1", "MQTT-1.5.4-1"),
    "null_character": Rule("error", "malformed", None, "MQTT-1.5.3-2", "MQTT-1.5.4-2"),
    "control_character": Rule("note", "malformed", None, "1.5.3", "1.5.4"),
    # Properties (5.0).
    "unknown_property": Rule("error", "malformed", None, None, "2.2.2.2"),
    "property_not_allowed": Rule("error", "malformed", None, None, "2.2.2.2"),
    "duplicate_property": Rule("error", "protocol", None, None, "2.2.2.2"),
    "property_value": Rule("error", "protocol", None, None, "2.2.2.2"),
    "too_many_properties": Rule("warn", "limit"),
    "too_many_filters": Rule("warn", "limit"),
    "subscription_identifier_from_client": Rule("error", "protocol", None, None, "MQTT-3.3.4-6"),
    # Connecting.
    "first_packet_not_connect": Rule("error", "protocol", "3.1", "MQTT-3.1.0-1", "MQTT-3.1.0-1"),
    "second_connect": Rule("error", "protocol", "3.1", "MQTT-3.1.0-2", "MQTT-3.1.0-2"),
    "unknown_protocol": Rule("error", "protocol", "3.1", "MQTT-3.1.2-1", "MQTT-3.1.2-1"),
    "unknown_protocol_level": Rule("error", "protocol", "3.1", "MQTT-3.1.2-2", "MQTT-3.1.2-2"),
    "connect_reserved_flag": Rule("error", "malformed", None, "MQTT-3.1.2-3", "MQTT-3.1.2-3"),
    "will_qos_without_will": Rule("error", "malformed", None, "MQTT-3.1.2-13", "MQTT-3.1.2-11"),
    "will_retain_without_will": Rule("error", "malformed", None, "MQTT-3.1.2-15", "MQTT-3.1.2-13"),
    "invalid_will_qos": Rule("error", "malformed", "3.1", "MQTT-3.1.2-14", "MQTT-3.1.2-12"),
    "password_without_user_name": Rule("error", "malformed", None, "MQTT-3.1.2-22", None),
    "client_id_length": Rule("note", "protocol", "3.1", None, None),
    "empty_client_id": Rule("error", "protocol", "3.1", "MQTT-3.1.3-7", None),
    "connack_without_connect": Rule("warn", "protocol", "3.2", "MQTT-3.2.0-1", "3.2"),
    "second_connack": Rule("error", "protocol", None, None, "MQTT-3.2.0-2"),
    "before_connack": Rule("error", "protocol", None, "MQTT-3.2.0-1", "MQTT-3.2.0-1"),
    "sent_before_connack": Rule("chat", "protocol", None, "MQTT-3.1.4-5", "3.1.4"),
    "acknowledge_flags": Rule("error", "malformed", None, "3.2.2.1", "MQTT-3.2.2-1"),
    "session_present_with_error": Rule("error", "protocol", None, "MQTT-3.2.2-4", "MQTT-3.2.2-6"),
    "session_present_after_clean_start": Rule("error", "protocol", None, "MQTT-3.2.2-1", "MQTT-3.2.2-2"),
    "undefined_reason_code": Rule("error", "protocol", "3.2", "3.2.2.3", "2.4"),
    "after_disconnect": Rule("error", "protocol", "3.14", "MQTT-3.14.4-2", "MQTT-3.14.4-1"),
    "auth_without_method": Rule("error", "protocol", None, None, ("MQTT-4.12.0-7", "MQTT-4.12.0-6")),
    # Publishing.
    "invalid_qos": Rule("error", "malformed", "2.1", "MQTT-3.3.1-4", "MQTT-3.3.1-4"),
    "dup_on_qos_0": Rule("error", "protocol", None, "MQTT-3.3.1-2", "MQTT-3.3.1-2"),
    "wildcard_in_topic": Rule("error", "protocol", "3.3", "MQTT-3.3.2-2", "MQTT-3.3.2-2"),
    "empty_topic": Rule("error", "protocol", "Appendix A", "MQTT-4.7.3-1", "MQTT-4.7.3-1"),
    "topic_alias_zero": Rule("error", "protocol", None, None, "MQTT-3.3.2-8"),
    "topic_alias_too_high": Rule("error", "protocol", None, None, ("MQTT-3.3.2-9", "MQTT-3.3.2-11")),
    "topic_alias_unknown": Rule("error", "protocol", None, None, "3.3.2.3.4"),
    "topic_alias_not_seen": Rule("note", "protocol", None, None, "3.3.2.3.4"),
    "packet_identifier_zero": Rule("error", "protocol", "2.4", "MQTT-2.3.1-1", ("MQTT-2.2.1-3", "MQTT-2.2.1-4")),
    "packet_identifier_in_use": Rule("error", "protocol", "2.4", "MQTT-2.3.1-2", ("MQTT-2.2.1-3", "MQTT-2.2.1-4")),
    "resent": Rule("chat", "protocol", "4.2", "4.4", None),
    "resent_on_connection": Rule("warn", "protocol", None, None, "MQTT-4.4.0-1"),
    "receive_maximum_exceeded": Rule("error", "protocol", None, None, ("MQTT-3.3.4-7", "MQTT-3.3.4-9")),
    "packet_too_large": Rule("error", "protocol", None, None, ("MQTT-3.2.2-15", "MQTT-3.1.2-24")),
    "qos_above_maximum": Rule("error", "protocol", None, None, "MQTT-3.2.2-11"),
    "retain_not_available": Rule("error", "protocol", None, None, "MQTT-3.2.2-14"),
    "ack_without_publish": Rule("warn", "protocol", "4.1", "MQTT-2.3.1-6", "MQTT-2.2.1-5"),
    "unexpected_ack": Rule("warn", "protocol", "4.1", "MQTT-3.3.4-1", "MQTT-3.3.4-1"),
    "repeated_ack": Rule("note", "protocol", "4.1", "4.3.3", "4.3.3"),
    # Subscribing.
    "no_filter": Rule("error", "protocol", "3.8", "3.8.3", "3.8.3"),
    "empty_filter": Rule("error", "protocol", "Appendix A", "MQTT-4.7.3-1", "MQTT-4.7.3-1"),
    "malformed_hash_filter": Rule("error", "protocol", "Appendix A", "MQTT-4.7.1-2", "MQTT-4.7.1-1"),
    "malformed_plus_filter": Rule("error", "protocol", "Appendix A", "MQTT-4.7.1-3", "MQTT-4.7.1-2"),
    "malformed_share": Rule("error", "protocol", None, None, "MQTT-4.8.2-2"),
    "empty_share_name": Rule("error", "protocol", None, None, "MQTT-4.8.2-1"),
    "no_local_on_share": Rule("error", "protocol", None, None, "MQTT-3.8.3-4"),
    "subscription_options": Rule("error", "malformed", None, "3.8.3", "MQTT-3.8.3-5"),
    "requested_qos": Rule("error", "malformed", "3.8", "3.8.3", "3.8.3.1"),
    "retain_handling": Rule("error", "protocol", None, None, "3.8.3.1"),
    "reason_code_count": Rule("error", "protocol", "3.9", "MQTT-3.8.4-5", "MQTT-3.8.4-6"),
    "suback_without_subscribe": Rule("warn", "protocol", "3.9", "MQTT-2.3.1-7", "MQTT-2.2.1-6"),
    "unsuback_without_unsubscribe": Rule("warn", "protocol", "3.11", "MQTT-2.3.1-7", "MQTT-2.2.1-6"),
    # Pinging.
    "ping_unanswered": Rule("warn", "protocol", "3.13", "MQTT-3.12.4-1", "MQTT-3.12.4-1"),
    "pingresp_without_pingreq": Rule("warn", "protocol", "3.13", "3.13", "3.13"),
    # Limits of this program.
    "outstanding_requests": Rule("note", "limit"),
    "unheard_requests": Rule("note", "limit"),
    "early_responses": Rule("note", "limit"),
    "topic_aliases": Rule("note", "limit"),
    "unknown_level": Rule("note", "limit"),
    "expert_infos": Rule("note", "limit"),
}

# What is said once for each connection when a limit was reached.
LIMIT_TEXTS: dict[str, str] = {
    "outstanding_requests": "too many messages wait for an answer; the oldest are given up, with no status",
    "unheard_requests": "no answer was captured so far; only the newest messages go on waiting for one",
    "early_responses": "too many answers wait for what they answer; the oldest are given as orphans",
    "topic_aliases": "topics of aliases are too long to remember; what an alias means may stay unknown",
    "unknown_level": "so many packets do not tell the protocol level; what depends on it stays unknown",
}


def clause(code: str, level: int | None, direction: int) -> str:
    """Where the rule stands in the document of this level, with a space in front; empty where nothing is known.

    direction: 0 when the client broke it.
    """
    rule = RULES[code]
    where = {LEVEL_31: rule.in_31, LEVEL_311: rule.in_311, LEVEL_50: rule.in_50}.get(level or 0)
    if isinstance(where, tuple):
        where = where[direction]
    if where is None:
        return ""
    return f" [{where}]" if where.startswith("MQTT-") else f" (MQTT {VERSIONS[level or 0]}, section {where})"


# Remarks of one kind for one flow; further ones would push out other kinds.
MAX_SAME_REMARKS = 20


class Remarks:
    """Counts what was remarked on one flow."""

    __slots__ = ("_all", "_connection", "_last", "_most", "_same")

    def __init__(self, limits: Limits, connection: Connection) -> None:
        self._most = limits.max_expert_infos
        self._connection = connection
        self._all = 0
        self._same: dict[str, int] = {}
        self._last: Place | None = None

    def add(self, frame: Frame, out: Output, code: str, text: str, at: int | None = None) -> None:
        """Remark on a packet, or on its bytes from position `at` of the frame's data on."""
        self.add_at(place_of(frame), out, code, text, moved=0 if at is None else at - frame.start)

    def once(self, frame: Frame, out: Output, code: str, text: str) -> None:
        """A remark that one flow gets once."""
        if code not in self._same:
            self.add(frame, out, code, text)

    def limit(self, frame: Frame, out: Output, code: str) -> None:
        """A limit of this program was reached: said once, however many other remarks there are."""
        if code not in self._same:
            self._same[code] = 1
            self._tell(place_of(frame), out, code, LIMIT_TEXTS[code])

    def finish(self, out: Output) -> None:
        """Say how many remarks were left out."""
        if self._last is not None:
            direction, _, _, packet, ts_ns = self._last
            rule = RULES["expert_infos"]
            text = f"{sum(self._same.values()) - self._all} further remarks on this connection were not kept"
            told = (rule.severity, rule.group, "expert_infos", text)
            out.sink.expert(expert_row(direction=direction, packet=packet, ts=ts_ns, remark=told))
            self._last = None

    def unpaired(self, frame: Frame, out: Output, code: str, text: str) -> None:
        """On an answer without its request: odd only where the capture holds all that went before."""
        expected = not self._connection.all_seen or bool(self._connection.session_present)
        self.add_at(place_of(frame), out, code, text, "note" if expected else None)

    def add_at(
        self, place: Place, out: Output, code: str, text: str, severity: str | None = None, moved: int = 0
    ) -> None:
        """Remark on a message, or on its bytes from the one at `moved` on."""
        same = self._same.get(code, 0)
        self._same[code] = same + 1
        if same >= MAX_SAME_REMARKS or self._all >= self._most:
            self._last = place
        else:
            self._tell(place, out, code, text, severity, moved)

    def _tell(
        self, place: Place, out: Output, code: str, text: str, severity: str | None = None, moved: int = 0
    ) -> None:
        self._all += 1
        direction, offset, length, packet, ts_ns = place
        rule = RULES[code]
        span = f"{offset + moved}-{offset + max(length, moved + 1) - 1}"
        told = (severity or rule.severity, rule.group, code, text + clause(code, self._connection.level, direction))
        out.sink.expert(
            expert_row(direction=direction, stream_offset=offset, packet=packet, ts=ts_ns, remark=told, span=span)
        )

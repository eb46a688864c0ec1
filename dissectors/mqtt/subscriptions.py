"""Rows of `mqtt_subscriptions`: one for each topic filter of a SUBSCRIBE or UNSUBSCRIBE.

In: the request that was read and its answer, if there is one. Out: rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from wirewitness.dissectors.core.model import Frame, Row
from wirewitness.dissectors.mqtt.connection import user_properties
from wirewitness.dissectors.mqtt.levels import LEVEL_50
from wirewitness.dissectors.mqtt.packet_types import SUBSCRIBE, UNSUBACK, UNSUBSCRIBE
from wirewitness.dissectors.mqtt.reason_codes import is_error, reason_name
from wirewitness.dissectors.mqtt.rows import SUBSCRIPTIONS
from wirewitness.dissectors.mqtt.text import split_filter
from wirewitness.dissectors.mqtt.walk import Walked

REQUESTS = (SUBSCRIBE, UNSUBSCRIBE)


class Asked(NamedTuple):
    """A request that waits for its answer."""

    type: int
    packet_identifier: int | None
    offset: int
    length: int
    packet: int
    ts_ns: int
    found: Walked | None = None


class Answered(NamedTuple):
    """The answer to it. found: None for the shortest acknowledgement, which has nothing to read."""

    type: int
    offset: int
    length: int
    packet: int
    ts_ns: int
    found: Walked | None = None


def asked_by(frame: Frame, packet_type: int, identifier: int | None = None, found: Walked | None = None) -> Asked:
    """The request that this frame is."""
    place = (frame.stream_offset, frame.size, frame.packet_last, frame.ts_ns)
    return Asked(packet_type, identifier, *place, found)


def answered_by(frame: Frame, packet_type: int, found: Walked | None = None) -> Answered:
    """The answer that this frame is."""
    return Answered(packet_type, frame.stream_offset, frame.size, frame.packet_last, frame.ts_ns, found)


def codes(answer: Walked) -> list[int]:
    """The codes of a SUBACK or UNSUBACK, one for each filter; none in an UNSUBACK below 5.0."""
    return [element["reason_code"] for element in answer.value.get("each", ()) if "reason_code" in element]


def first_error(answer: Walked) -> int:
    """The first code that says that something failed, else 0."""
    return next((code for code in codes(answer) if is_error(answer.type, code, answer.level)), 0)


def subscription_rows(
    asked: Asked, answer: Answered | None, client_id: str | None, version: str | None
) -> Iterator[Row]:
    """The rows of one request."""
    if asked.found is None:
        return
    subscribes = asked.type == SUBSCRIBE
    five = asked.found.level == LEVEL_50
    properties = asked.found.properties
    identifiers = properties.get("subscription_identifier") or [None]
    answer_found = None if answer is None else answer.found
    given = None if answer_found is None else codes(answer_found)
    names = user_properties(properties)
    reason_string = None if answer_found is None else answer_found.properties.get("reason_string")
    for position, element in enumerate(asked.found.value.get("each", ())):
        topic_filter = element.get("topic_filter")
        if topic_filter is None:
            continue
        share_name, matching = split_filter(topic_filter)
        options: dict[str, Any] = element.get("options") or {}
        code = given[position] if given is not None and position < len(given) else None
        error_code, granted, name = _outcome(asked, answer_found, code)
        yield SUBSCRIPTIONS.row(
            request_offset=asked.offset,
            response_offset=None if answer is None else answer.offset,
            ts=asked.ts_ns,
            ts_response=None if answer is None else answer.ts_ns,
            event="subscribe" if subscribes else "unsubscribe",
            client_id=client_id,
            packet_identifier=asked.packet_identifier,
            position=position,
            topic_filter=topic_filter,
            share_name=share_name,
            matching_filter=matching,
            requested_qos=options.get("requested_qos"),
            granted_qos=granted,
            no_local=bool(options["no_local"]) if five and options else None,
            retain_as_published=bool(options["retain_as_published"]) if five and options else None,
            retain_handling=options.get("retain_handling") if five else None,
            subscription_identifier=identifiers[0],
            error_code=error_code,
            error_name=name,
            reason_code=code,
            reason_string=reason_string,
            version=version,
            user_properties=names,
            request_packet=asked.packet,
            response_packet=None if answer is None else answer.packet,
        )


def _outcome(asked: Asked, answer: Walked | None, code: int | None) -> tuple[int | None, int | None, str | None]:
    """(error code, granted QoS, name of the code) for one filter."""
    if answer is None:
        return None, None, None
    level = answer.level
    if code is None:
        # An UNSUBACK below 5.0 says no more than that it was done; a SUBACK with too few codes says nothing.
        return (0 if answer.type == UNSUBACK and level != LEVEL_50 else None), None, None
    if is_error(answer.type, code, level):
        return code, None, reason_name(answer.type, code, level)
    granted = code if asked.type == SUBSCRIBE else None
    return 0, granted, reason_name(answer.type, code, level)

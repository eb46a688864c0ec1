"""What else is to be known of messages on a topic for a client, and over how much of the capture it was looked at.

In: what is known of both (`fates.py`). Out: remarks of a chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.times import moment_text, span_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.reports.base.why.asking import Asking, where
from wirewitness.reports.base.why.model import Link
from wirewitness.reports.protocols.mqtt.why.fates import Known, content, others_sent

# Subscriptions that are looked at for a retained message that did not come.
_COMPARED = 100
_WILLS = """
    select payload, epoch_ns(ts_closed) as at_ns from (
        select will_payload_bytes as payload, ts_closed from mqtt_connections where {which} and ts_closed is not null)
    order by at_ns limit 100"""


def is_complete(found: Known) -> bool:
    """Both directions of all its connections were seen, without gaps."""
    return all(
        not one["gap_bytes"] and one["client_messages"] and one["server_messages"] for one in found.accepted
    )  # fmt: skip


def remarks(ask: Asking, found: Known, link: Link) -> list[str]:
    """What else is to be known: retained messages and their flag, wills, and over what all of it was looked at."""
    told = [_flag_cleared(found), _retained(ask, found, link), _others(ask, found), _own(found), _looked_at(found)]
    return [sentence_start(one) for one in told if one]


def _flag_cleared(found: Known) -> str:
    retained = {one["message_id"] for one in found.published if one["retain"]}
    sent = {one["message_id"]: one for one in found.sent}
    cleared = sum(
        one["message_id"] in retained and not sent[one["delivered_message_id"]]["retain"]
        for one in found.deliveries.values() if one["delivered_message_id"] in sent
    )  # fmt: skip
    if not cleared:
        return ""
    return (
        f"{count(cleared, 'message')} published with RETAIN 1 came with RETAIN 0, as specified: a server clears the "
        "flag for subscriptions that exist and sets it for what a new one gets (3.1.1 and 5.0: 3.3.1.3)"
    )


def _retained(ask: Asking, found: Known, link: Link) -> str:
    """Retained messages that it got, and of one that it did not get with a new subscription what stands against it."""
    kept = link.facts["retained"]
    if kept:
        first = moment_text(kept[0]["at_ns"])
        return f"the server sent it {count(len(kept), 'retained message')} with RETAIN 1, the first at {first}"
    for one in found.subscriptions[:_COMPARED]:
        held = (
            f"{where(topic=found.topic, server_address=one['server_address'])} and epoch_ns(ts) <= {one['at_ns']} "
            f"and (ts_until is null or epoch_ns(ts_until) > {one['at_ns']}) and set_by <> 'will'"
        )
        if ask.one(f"select topic from mqtt_retained where {held} limit 1") is None:
            continue
        why = "and sent none"
        if one["retain_handling"]:
            why = f"and it asked for none (Retain Handling {one['retain_handling']}, 5.0: 3.8.3.1)"
        elif one["share_name"]:
            why = "and shared subscriptions get none (5.0: 4.8.2)"
        return f"at its SUBSCRIBE at {moment_text(one['at_ns'])} the server kept a retained message on it, {why}"
    return ""


def _others(ask: Asking, found: Known) -> str:
    """Live messages that are of no publish: wills that fit, else of somebody who was not captured."""
    counted = {content(one) for one in found.published}
    live = [one for one in others_sent(found) if not one["retain"] and content(one) not in counted]
    if not live or not found.published:
        return ""
    return f"the server also sent it {' and '.join(live_words(ask, found, live))}"


def live_words(ask: Asking, found: Known, live: Sequence[Mapping[str, Any]]) -> list[str]:
    """Messages without a publish: how many fit a will of a connection that had ended, and how many others there are."""
    wills = ask.rows(_WILLS.format(which=where(will_topic=found.topic)))
    fit = sum(
        any(will["payload"] == one["payload_bytes"] and will["at_ns"] <= one["at_ns"] for will in wills) for one in live
    )
    parts = [f"{count(fit, 'will')} of a client whose connection had ended"] if fit else []
    return [*parts, f"{count(len(live) - fit, 'message')} of somebody else"] if fit < len(live) else parts


def _own(found: Known) -> str:
    own = sum(one["flow_id"] in found.flows for one in found.published)
    return f"it published {own:,} of these messages itself" if own else ""


def _looked_at(found: Known) -> str:
    """From when to when, over how many connections, and whether both directions were there."""
    some = found.accepted or found.connections
    since, until = min(one["at_ns"] for one in some), max(one["seen_ns"] for one in some)
    seen = "both directions without gaps" if is_complete(found) else _lacks(found)
    matching = count(len(found.subscriptions), "matching subscription")
    return f"looked at {count(len(some), 'connection')} of it, {span_text(since, until)}, {seen}; {matching}"


def _lacks(found: Known) -> str:
    gaps = sum(bool(one["gap_bytes"]) for one in found.accepted)
    one_way = sum(not (one["client_messages"] and one["server_messages"]) for one in found.accepted)
    parts = [f"bytes of {gaps} are missing"] if gaps else []
    parts += [f"of {one_way} one direction is missing"] if one_way else []
    return " and ".join(parts) or "none accepted"

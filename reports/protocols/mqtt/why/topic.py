"""Why messages on a topic reached a client or not. In: what is known of both (`fates.py`). Out: links, remarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wirewitness.analyser.base.times import moment_text, ms_text
from wirewitness.analyser.base.words import count
from wirewitness.analyser.mqtt.rules.mqt118_no_messages import level_difference, plain_difference
from wirewitness.reports.base.why.asking import Asking, name, row
from wirewitness.reports.base.why.model import Causes, Link, Place, Row
from wirewitness.reports.protocols.mqtt.why.causes import delivery_causes, delivery_link, end_of
from wirewitness.reports.protocols.mqtt.why.fates import (
    FATES,
    Known,
    content,
    fates,
    is_connected,
    is_failure,
    others_sent,
)
from wirewitness.reports.protocols.mqtt.why.remarks import is_complete, live_words

TOPIC, FATE = "topic", "fate"
_FILTERS_TOLD, _COMPARED = 3, 100
_NO_FAULT_SEEN = "no fault was seen, but the capture is not complete: "
_TOPICS = """
    select distinct topic from mqtt_publishes where direction = 'client_to_server' and topic is not null limit 2000"""


def topic_link(ask: Asking, found: Known) -> Link:
    """What became of all messages on the topic, as one link; its causes are behind the fates."""
    told = fates(found)
    kept = [one for one in others_sent(found) if one["retain"]]
    facts = {"known": found, "fates": told, "retained": kept}
    what = _verdict(ask, found, told, kept)
    places = tuple(Place(one["file"], one["packet"], one["message_id"]) for one in found.published[:3])
    first = min((one["at_ns"] for one in (*found.published, *found.sent)), default=None)
    return Link(
        TOPIC,
        (found.client, found.topic),
        what,
        what,
        first,
        _seen_until(found),
        places,
        tuple(_rows(found)),
        facts=facts,
    )


def _rows(found: Known) -> list[Row]:
    """The rows of tables on which it rests."""
    rows = [row("mqtt_connections", client_id=found.client)]
    if found.published or found.sent:
        rows.append(row("mqtt_publishes", topic=found.topic))
    if found.deliveries:
        rows.append(row("mqtt_deliveries", topic=found.topic, subscriber_client_id=found.client))
    if found.filters:
        rows.append(row("mqtt_active_subscriptions", client_id=found.client))
    return rows


def is_healthy(link: Link) -> bool:
    """Every message that was owed to the client reached it, it got some or the retained one, and all of it was seen."""
    told = link.facts["fates"]
    got = "delivered" in told or link.facts["retained"]
    known = link.facts["known"]
    return bool(got and not any(map(is_failure, told)) and is_complete(known) and not known.is_accused)


def topic_causes(ask: Asking, link: Link) -> Causes:
    """What is behind each fate that is no delivery, that of most messages first; one fate stands in the verdict."""
    found, told = link.facts["known"], link.facts["fates"]
    if found.refused_only:
        return Causes(end="the server's settings and its log show why it refused it")
    links = tuple(_fate_link(found, kind, some) for kind, some in told.items() if kind != "delivered")
    if len(links) == 1:
        return fate_causes(ask, links[0])
    ends = "the server forwarded all of them" if told else "no message on it had to reach it in this capture"
    return Causes(links, "" if links else ends)


def _fate_link(found: Known, kind: str, some: Sequence[Mapping[str, Any]]) -> Link:
    first = some[0]
    told = found.deliveries.get(first["message_id"])
    what = f"{count(len(some), 'message')}{_when(some)} {_was(some)} {_explained(found, kind, some)}"
    places = tuple(Place(one["file"], one["packet"], one["message_id"]) for one in some[:6])
    rows = [row("mqtt_publishes", message_id=first["message_id"])]
    if told is not None:
        rows.append(row("mqtt_deliveries", message_id=told["message_id"], subscriber=told["subscriber"]))
    rows += [
        row("mqtt_active_subscriptions", exchange_id=one["exchange_id"], position=one["position"])
        for one in found.subscriptions[:1]
    ]
    return Link(FATE, (found.client, found.topic, kind), what, what, first["at_ns"], _seen_until(found), places,
                tuple(rows), facts={"known": found, "kind": kind, "message": first, "delivery": told})  # fmt: skip


def fate_causes(ask: Asking, link: Link) -> Causes:
    """Of a fate that a delivery tells, the causes of the first; of an absence, how its connection ended."""
    found, kind, told = link.facts["known"], link.facts["kind"], link.facts["delivery"]
    if told is not None and told["status"] != "not_kept":
        return delivery_causes(ask, delivery_link(told))
    if kind not in ("away_qos0", "away_sub0", "queued", "absent"):
        return Causes(end=_ENDS.get(kind, "its settings show which topics it wants"))
    at_ns = link.facts["message"]["at_ns"]
    before = [one for one in found.accepted if one["until_ns"] is not None and one["until_ns"] <= at_ns]
    away = end_of(ask, before[-1]["flow_id"]) if before else None
    if away is not None:
        return Causes((away,))
    first = moment_text(found.accepted[0]["at_ns"])
    return Causes(end=f"its first connection in this capture began at {first}")


_TESTED = (
    "not the cause, as these packets show: a filter that does not match, an absence, no local, a refusal, a shared "
    "subscription of others"
)
_ENDS = {
    "unexplained": f"{_TESTED}; the server's log and its access rules may show more",
    "not_granted": "the server's settings and its log show why",
    "earlier": "a capture that begins before its SUBSCRIBE would show what it subscribed to",
    "own": "it did not subscribe to it",
    "before": "a server sends what was published before only where it is retained (3.1.1: 3.3.1.3)",
    "after": "its program, or the end of its session, ended its subscription",
    "shared": "of a shared subscription each message goes to one member (5.0: 4.8.2)",
    "no_local": "it asked the server for that (5.0: 3.8.3.1)",
    "refused": "the server's settings and its log show why",
}


def _seen_until(found: Known) -> int:
    return max(int(one["seen_ns"]) for one in found.connections)


def _verdict(
    ask: Asking, found: Known, told: Mapping[str, Sequence[Mapping[str, Any]]], kept: Sequence[Mapping[str, Any]]
) -> str:
    if found.refused_only:
        refused = count(len(found.connections), "CONNECT")
        return f"the server refused {refused} of {found.who}: {name(found.connections[-1]['error_name'])}"
    total = len(found.published)
    if not total:
        return _unpublished(ask, found)
    messages = f"{'the first ' if found.more else ''}{count(total, 'message')} on {name(found.topic)}"
    reached = len(told.get("delivered", ()))
    kinds = [kind for kind in told if kind != "delivered"]
    healthy = (reached or kept) and not any(map(is_failure, told)) and not found.is_accused
    start = "" if not healthy else "nothing is wrong: " if is_complete(found) else _NO_FAULT_SEEN
    if reached == total:
        return f"{start}{messages} reached {found.who}{_times(found)}{_waited(found)}"
    if kinds == ["own"] and not reached:
        published = f"{found.who} published {'the ' + messages[2:] if total == 1 else 'all ' + messages} itself"
        return f"{published}; it subscribed to {', '.join(map(name, found.filters[:_FILTERS_TOLD])) or 'nothing'} here"
    parts = [
        f"{f'{len(told[kind]):,}' if len(kinds) > 1 or reached else 'it' if total == 1 else 'they'} "
        f"{_was(told[kind])} {_explained(found, kind, told[kind])}" for kind in kinds
    ]  # fmt: skip
    if reached:
        got = f"got {reached:,} of {messages}"
    elif kept:
        got = f"got the retained message at {moment_text(kept[0]['at_ns'])}, and none of {messages}"
    else:
        got = f"did not get {'the ' + messages[2:] if total == 1 else 'any of ' + messages}"
    return f"{start}{found.who} {got}: {'; '.join(parts)}"


def _was(some: Sequence[object]) -> str:
    return "was" if len(some) == 1 else "were"


def _when(some: Sequence[Mapping[str, Any]]) -> str:
    first, last = moment_text(some[0]["at_ns"]), moment_text(some[-1]["at_ns"])
    return f" at {first}" if first == last else f" between {first} and {last}"


def _times(found: Known) -> str:
    """How long the messages took."""
    took = sorted(one["latency_ms"] for one in found.deliveries.values() if one["latency_ms"] is not None)
    if not took:
        return ""
    if len(took) == 1:
        return f" {ms_text(took[0])} later"
    return f", {ms_text(took[len(took) // 2])} later in the median and {ms_text(took[-1])} at most"


def _waited(found: Known) -> str:
    """How many were published while it was away, and kept for it."""
    kept = sum(
        not is_connected(found, one) for one in found.published if one["message_id"] in found.deliveries
    )  # fmt: skip
    return f"; {kept:,} of them waited in its session while it was away" if kept else ""


def _explained(found: Known, kind: str, some: Sequence[Mapping[str, Any]]) -> str:
    """Why, as a participle behind `was` or `were`."""
    words = FATES[kind].words
    if kind == "not_subscribed":
        return _not_matched(found)
    if kind == "before":
        first = next((one for one in found.subscriptions if one["at_ns"] > some[0]["at_ns"]), None)
        return words if first is None else f"{words}, at {moment_text(first['at_ns'])}"
    if kind == "not_granted":
        one = found.not_granted[0]
        how = f"refused ({name(one['error_name'] or one['error_code'])})" if one["error_code"] else "did not answer"
        return f"published after the server {how} its SUBSCRIBE to {name(one['topic_filter'])}"
    if kind == "shared":
        to = {found.shared[one["message_id"]] for one in some} - {None, found.client}
        return words + (f" ({', '.join(sorted(map(name, to))[:_FILTERS_TOLD])})" if to else "")
    if kind == "sent" and sum(content(one) == content(some[0]) for one in found.published) == 1:
        on = {one["flow_id"] for one in found.sent if content(one) == content(some[0])}
        words += f", {'it' if len(some) == 1 else 'the first'} on {len(on)} connections" if len(on) > 1 else ""
    if kind in ("away_qos0", "away_sub0"):
        return f"{words}; a server need not keep those, and this one sent none later"
    return words + (_overtaken(found, some) if kind in ("missing", "left", "unexplained", "sent") else "")


def _overtaken(found: Known, some: Sequence[Mapping[str, Any]]) -> str:
    """Newer messages on the topic that were delivered."""
    last_ns = some[-1]["at_ns"]
    newer = sum(one["status"] == "delivered" and one["at_ns"] > last_ns for one in found.deliveries.values())
    return f", while {newer:,} newer {'one was' if newer == 1 else 'ones were'} delivered" if newer else ""


def _not_matched(found: Known) -> str:
    if not found.filters:
        return "not asked for: no subscription of it was granted in this capture"
    listed = ", ".join(map(name, found.filters[:_FILTERS_TOLD]))
    more = f" and {len(found.filters) - _FILTERS_TOLD:,} more" if len(found.filters) > _FILTERS_TOLD else ""
    near = next(
        (f"; {name(one)} differs by {difference}" for one in found.filters[:_COMPARED]
         if (difference := plain_difference(one, found.topic) or level_difference(one, found.topic))), "",
    )  # fmt: skip
    return f"not matched by what it subscribed to ({listed}{more}{near})"


def _unpublished(ask: Asking, found: Known) -> str:
    """Nobody in the capture published on the topic."""
    if found.sent:
        kept = sum(bool(one["retain"]) for one in found.sent)
        parts = [f"{count(kept, 'retained message')}"] if kept else []
        parts += live_words(ask, found, [one for one in found.sent if not one["retain"]])
        return f"nobody in this capture published on {name(found.topic)}; {found.who} got {' and '.join(parts)} there"
    topics = [str(one["topic"]) for one in ask.rows(_TOPICS)]
    near = next(
        (f"; {name(one)} is published on and differs by {difference}" for one in topics
         if (difference := plain_difference(found.topic, one) or level_difference(found.topic, one))), "",
    )  # fmt: skip
    filters = [one for one in found.filters if found.subscriptions]
    asks = f"{found.who} subscribed to it" if filters else f"{found.who} did not subscribe to it"
    return f"nobody in this capture published on {name(found.topic)}{near}; {asks}"

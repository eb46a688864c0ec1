"""MQT118 no-messages: a subscription gets nothing, because what it waits for goes to another topic.

Finds
    Subscriptions that were granted and that no message matched, while somebody publishes on a topic that differs only
    by case, a slash or one level; and publishers whose messages nobody subscribes to.

Why it matters
    Nothing fails: the server grants the filter and takes the messages. Only nobody gets them.

How it decides
    A filter was in force for at least 10 s (wait_s, mqtt_active_subscriptions), nothing was sent to that client for it,
    and meanwhile another client published on a topic that would match but for upper and lower case, an empty level (a
    slash too many or too few) or blanks. A topic with one level more or less, or one that is spelled in another way
    (two letters at most, no digits, which are ids), counts when no live subscription matched its messages. Or a server
    of 5.0 said No matching subscribers (0x10) to one client and topic 5 times (unheard_least): info unless such a
    filter is there. The first 100 filters and 2,000 topics of a server are compared. Bytes missing from the
    subscriber's connection make it silent.

False alarms
    Two programs whose topics differ by case or a level on purpose, of which one has nobody to talk to.

References
    MQTT 3.1.1 and 5.0: section 4.7 (case-sensitive, a slash at the beginning or end makes another topic); 5.0: section
    3.4.2.1 (0x10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, period_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.counted_matches import count_names
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short
from wirewitness.dissectors.mqtt.filters import matches

# Topics that somebody meant to be one: which topic filter would match a topic but for case, a slash or one level.
#
# In: a topic filter and a topic name. Out: words for the difference, or None.

# Shorter names of a level differ by two letters without being meant to be the same.
_LONG_LEVEL = 5
_MOST_LETTERS = 2
_MOST_LEVEL_CHARS = 64
# Nobody counts more levels by hand, and comparing them takes their square.
_MOST_LEVELS = 32


def plain_difference(topic_filter: str, topic: str) -> str | None:
    """What nobody does on purpose: other case, a slash too many or too few, blanks."""
    if topic.startswith("$"):
        return None
    if matches(topic_filter.casefold(), topic.casefold()):
        return None if matches(topic_filter, topic) else "upper and lower case"
    levels, wanted = _without_empty(topic), _without_empty(topic_filter)
    if matches(wanted.casefold(), levels.casefold()):
        return "a slash" if matches(wanted, levels) else "a slash and case"
    return None


def level_difference(topic_filter: str, topic: str) -> str | None:
    """One level more or less, or one spelled in another way; ids of devices are no other way to spell."""
    if topic.startswith("$") or matches(topic_filter, topic):
        return None
    wanted, levels = topic_filter.split("/", _MOST_LEVELS), topic.split("/", _MOST_LEVELS)
    if max(len(wanted), len(levels)) > _MOST_LEVELS:
        return None
    if len(wanted) == len(levels):
        apart = [(w, t) for w, t in zip(wanted, levels, strict=True) if w not in ("+", t)]
        if len(apart) == 1 and "#" not in wanted and _misspelled(*apart[0]):
            return f"one level ({apart[0][0]} and {apart[0][1]})"
        return None
    if 1 < len(wanted) == len(levels) - 1 and any(matches(topic_filter, shorter) for shorter in _shorter(levels)):
        return "one level more in the topic"
    if 1 < len(levels) == len(wanted) - 1 and any(matches(shorter, topic) for shorter in _shorter(wanted)):
        return "one level more in the filter"
    return None


def _shorter(levels: list[str]) -> list[str]:
    """The name without one of its levels, each in turn; `#` is no level."""
    return ["/".join(levels[:n] + levels[n + 1 :]) for n in range(len(levels)) if levels[n] != "#"]


def _without_empty(name: str) -> str:
    return "/".join(level.strip() for level in name.split("/") if level.strip())


def _misspelled(one: str, other: str) -> bool:
    if min(len(one), len(other)) < _LONG_LEVEL or max(len(one), len(other)) > _MOST_LEVEL_CHARS:
        return False
    if any(letter.isdigit() for letter in one + other):
        return False
    return _distance(one.casefold(), other.casefold()) <= _MOST_LETTERS


def _distance(one: str, other: str) -> int:
    """Letters to insert, delete or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        corner, row[0] = row[0], number
        for place, against in enumerate(other, 1):
            corner, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, corner + (letter != against))
    return row[-1]


NO_MATCHING_SUBSCRIBERS = 0x10
MOST_FILTERS, MOST_TOPICS = 100, 2000


class _Topic(NamedTuple):
    """A topic's first and last publish, and those that the server said nobody wants."""

    first: Row
    last: Row
    unheard: list[Row]


def detect(frames: Frames, *, wait_s: float = 10.0, unheard_least: int = 5) -> Iterator[Finding]:
    """One finding for each client and filter, and for each client and topic that is not heard."""
    topics = _topics(row for row in rows_of(frames["mqtt_publishes"]) if row["direction"] == "client_to_server")
    seen: dict[str, Row] = {row["flow_id"]: row for row in rows_of(frames["mqtt_connections"])}
    told: set[tuple[str | None, str]] = set()
    filters: dict[tuple[str | None, str], Row] = {}
    for row in rows_of(frames["mqtt_active_subscriptions"]):
        filters.setdefault((row["client_id"] or row["flow_id"], row["matching_filter"]), row)
    for wanted in list(filters.values())[:MOST_FILTERS]:
        if (found := _meant(wanted, topics, seen, wait_s)) is not None:
            topic, difference = found
            told.add((topic.last["client_id"], topic.last["topic"]))
            yield _apart(wanted, topic, difference)
    for topic in topics:
        if len(topic.unheard) >= unheard_least and (topic.last["client_id"], topic.last["topic"]) not in told:
            yield _unheard(topic)


def _topics(rows: Iterable[Row]) -> list[_Topic]:
    found: dict[tuple[str | None, str], _Topic] = {}
    for row in rows:
        key = (row["client_id"] or row["flow_id"], row["topic"])
        known = found.get(key)
        if known is None and len(found) >= MOST_TOPICS:
            continue
        unheard = known.unheard if known else []
        if row["reason_code"] == NO_MATCHING_SUBSCRIBERS:
            unheard.append(row)
        found[key] = _Topic(known.first if known else row, row, unheard)
    return list(found.values())


def _meant(wanted: Row, topics: list[_Topic], seen: dict[str, Row], wait_s: float) -> tuple[_Topic, str] | None:
    """The topic that this filter was meant for, and how they differ."""
    connection = seen.get(wanted["flow_id"])
    granted = wanted["ts"]
    if connection is None or connection["gap_bytes"] or connection["observed_until"] is None:
        return None
    until = connection["observed_until"] if wanted["ts_until"] is None else wanted["ts_until"]
    if until - granted < wait_s * NS_PER_S:
        return None
    others = [
        topic for topic in topics
        if topic.last["ts"] > granted and topic.first["ts"] < until and topic.last["flow_id"] != wanted["flow_id"]
        and (topic.last["client_id"] is None or topic.last["client_id"] != wanted["client_id"])
    ]  # fmt: skip
    compared(len(topics))
    for topic in others:
        count_names(wanted["matching_filter"], topic.last["topic"])
        if (difference := plain_difference(wanted["matching_filter"], topic.last["topic"])) is not None:
            return topic, difference
    for topic in others:
        if topic.last["expected_deliveries"] != 0 or topic.first["ts"] == topic.last["ts"]:
            continue
        count_names(wanted["matching_filter"], topic.last["topic"])
        if (difference := level_difference(wanted["matching_filter"], topic.last["topic"])) is not None:
            return topic, difference
    return None


def _apart(wanted: Row, topic: _Topic, difference: str) -> Finding:
    granted, publisher = wanted["ts"], topic.last
    wants, goes = printable(wanted["matching_filter"], 80), printable(publisher["topic"], 80)
    return RULE.finding(
        confidence="medium" if "level" in difference else "high",
        subject={"server": wanted["server_address"], "client_id": wanted["client_id"], "filter": wants},
        title=f"Filter {short(wants)} of {client_title(wanted)} gets nothing: the topic is {short(goes)}",
        sentence=(
            f"{sentence_start(client_text(wanted))} gets nothing on its filter {wants} at {server_text(wanted)}: "
            f"{client_text(publisher)} publishes on {goes}. They differ by {printable(difference, 160)}, "
            f"{period_text(granted, max(publisher['ts'], granted))}."
        ),
        next_step="Make filter and topic the same; topics are compared letter by letter, and each slash counts.",
        proof=Proof(
            granted,
            publisher["ts"],
            (
                Evidence(wanted["file"], wanted["packet"], wanted["exchange_id"]),
                *(Evidence(row["file"], row["packet"], row["message_id"]) for row in (topic.first, publisher)),
            ),
        ),
        numbers={
            "server": server_of(wanted),
            "topic_filter": wants,
            "topics": [goes],
            "difference": difference,
            "stood_still_ms": round(max(publisher["ts"] - granted, 0) / NS_PER_MS, 3),
            "where": goes,
            "clients": [client_numbers(wanted), client_numbers(publisher)],
        },
    )


def _unheard(topic: _Topic) -> Finding:
    row = topic.last
    return RULE.finding(
        severity="info",
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["topic"]},
        title=f"Nobody subscribes to {short(row['topic'])}: {client_title(row)} publishes on it",
        sentence=(
            f"{sentence_start(client_text(row))} publishes on {printable(row['topic'], 80)}, to which nobody "
            f"subscribes: {server_text(row)} said so (0x10) for {count(len(topic.unheard), 'message')} or more."
        ),
        next_step="Look at whether somebody should get these messages: its filter may be spelled in another way.",
        proof=Proof(
            topic.unheard[0]["ts"],
            topic.unheard[-1]["ts"],
            (Evidence(one["file"], one["packet"], one["message_id"]) for one in topic.unheard),
        ),
        numbers={
            "server": server_of(row),
            "topics": [printable(row["topic"], 80)],
            "where": printable(row["topic"], 80),
            "clients": [client_numbers(row)],
        },
    )


# Subscriptions of which their client got nothing, on any of its connections.
_SILENT = """
    matching_filter IS NOT NULL
    AND coalesce(client_id, flow_id) || ' ' || matching_filter NOT IN (
        SELECT coalesce(subscriber_client_id, subscriber_flow_id) || ' ' || topic_filter FROM mqtt_deliveries
        WHERE subscriber_flow_id IS NOT NULL AND topic_filter IS NOT NULL)"""
# The first and the last message of each client and topic, and the first that nobody wanted.
_PUBLISHES = f"""
    direction = 'client_to_server' AND topic IS NOT NULL AND message_id IN (
        SELECT unnest([arg_min(message_id, (ts, message_id)), arg_max(message_id, (ts, message_id))])
        FROM mqtt_publishes WHERE direction = 'client_to_server' AND topic IS NOT NULL
        GROUP BY server_address, coalesce(client_id, flow_id), topic
        UNION ALL
        SELECT unnest(list(message_id ORDER BY ts)[:5]) FROM mqtt_publishes
        WHERE reason_code = {NO_MATCHING_SUBSCRIBERS} AND topic IS NOT NULL
        GROUP BY server_address, coalesce(client_id, flow_id), topic)"""

RULE = Rule(
    code="MQT118",
    question="stalled",
    name="no-messages",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": ("ts", "flow_id", "observed_until", "gap_bytes"),
        "mqtt_active_subscriptions": (
            "ts", "ts_until", "exchange_id", "flow_id", "client_id", "client_address", "client_port", "server_port",
            "version", "matching_filter", "file", "packet",
        ),
        "mqtt_publishes": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "direction",
            "topic", "reason_code", "expected_deliveries", "message_id", "file", "packet",
        ),
    },
    asks=("mqtt_deliveries",),  # in what says which subscriptions are silent
    partition_by=("server_address",),
    detect=detect,
    rows={
        "mqtt_connections": f"flow_id IN (SELECT flow_id FROM mqtt_active_subscriptions WHERE {_SILENT})",
        "mqtt_active_subscriptions": _SILENT,
        "mqtt_publishes": _PUBLISHES,
    },
    suspects=(
        "SELECT server_address FROM r_mqtt_active_subscriptions WHERE coalesce(ts_until - ts >= 10_000_000_000, true) "
        f"UNION SELECT server_address FROM r_mqtt_publishes WHERE reason_code = {NO_MATCHING_SUBSCRIBERS}"
    ),
)  # fmt: skip

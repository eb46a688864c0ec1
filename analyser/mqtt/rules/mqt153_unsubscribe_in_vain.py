"""MQT153 unsubscribe-in-vain: a client unsubscribes from a filter that it does not have, and its messages go on.

Finds
    Clients whose UNSUBSCRIBE names a filter under which the session has no subscription, while nearly the same one is
    in force. Question: what is repeated without effect.

Why it matters
    UNSUBSCRIBE takes back the subscription whose filter is the same, character by character; wildcards match nothing
    there. The server answers with UNSUBACK either way, in 3.1.1 without a word about it, and the messages that the
    program takes for stopped go on coming.

How it decides
    An answered UNSUBSCRIBE (5.0: with reason code 17, no subscription existed) whose filter the session does not have.
    A subscription of it is in force then and ever after, whose filter is the same but for case, outer slashes, blanks
    and a share name, or covers it, or is covered by it. The server sent least messages or more on that connection
    after the answer, whose topics match both, or the subscription where the two are nearly the same.

False alarms
    A library that gives up single topics below a wildcard although the program still wants all of them.

What it cannot tell
    Of a session that was there before the capture its subscriptions are not known: only those made in it count.

References
    MQTT 3.1.1: section 3.10.4 (compared character by character), 3.11; 5.0: section 3.10.4, 3.11.3 (reason code 0x11).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import moment_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.counted_matches import Matches
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

ASKED, HELD, PUBLISHED = "mqtt_subscriptions", "mqtt_active_subscriptions", "mqtt_publishes"


def detect(frames: Frames, *, least: int = 5) -> Iterator[Finding]:
    """One finding for each connection and filter of the UNSUBSCRIBE."""
    asked: dict[tuple[str, str], list[Row]] = {}
    for row in rows_of(frames[ASKED]):
        asked.setdefault((row["flow_id"], row["topic_filter"]), []).append(row)
    sent: dict[str, list[Row]] = {}
    for row in rows_of(frames[PUBLISHED]):
        sent.setdefault(row["flow_id"], []).append(row)
    held = [one for one in rows_of(frames[HELD]) if one["ts_until"] is None]
    known = Matches()
    for (flow_id, _), own in asked.items():
        first = own[0]
        later = [row for row in sent.get(flow_id, ()) if row["ts"] > first["ts_response"]]
        before = [one for one in held if one["ts"] < first["ts"]]
        for one in before:
            came = [
                row for row in later
                if _goes_on(known, row["topic"], one["matching_filter"], first["matching_filter"])
            ]  # fmt: skip
            if len(came) >= least:
                yield _finding(own, one, came)
                break


def _goes_on(known: Matches, topic: str, held: str, wanted: str) -> bool:
    """A message of the subscription, which the client takes for given up."""
    return known.match(held, topic) and (_plain(held) == _plain(wanted) or known.match(wanted, topic))


def _plain(name: str) -> str:
    return name.strip("/ ").casefold()


def _finding(own: Sequence[Row], held: Row, came: Sequence[Row]) -> Finding:
    first, last = own[0], came[-1]
    wanted, there = printable(first["topic_filter"], 80), printable(held["topic_filter"], 80)
    told = " (UNSUBACK: 17, no subscription existed)" if first["reason_code"] else ""
    return RULE.finding(
        provisional=True,
        subject={"server": first["server_address"], "client_id": first["client_id"], "filter": first["topic_filter"]},
        title=f"UNSUBSCRIBE without effect: {client_title(first)}, {short(first['topic_filter'])}",
        sentence=(
            f"{sentence_start(client_text(first))} unsubscribed {times(len(own))} from {wanted} at "
            f"{server_text(first)}, at {moment_text(first['ts'])} first, and has no such subscription{told}; it has "
            f"{there}. So {count(len(came), 'message')} came to it afterwards."
        ),
        next_step="Unsubscribe with the very filter of the SUBSCRIBE, character by character: wildcards in UNSUBSCRIBE "
        "match no other filters. In 5.0 look at the reason codes of UNSUBACK.",
        proof=Proof(
            first["ts"],
            last["ts"],
            evidence_of_ids([held["exchange_id"], *(row["exchange_id"] for row in own[:10])]),
        ),
        numbers={
            "client_id": first["client_id"],
            "address": first["client_address"],
            "server": server_of(first),
            "unsubscribes": len(own),
            "messages": len(came),
            "topic_filters": [wanted, there],
            "topics": [printable(came[0]["topic"], 80)],
            "where": wanted,
            "clients": [client_numbers(first, unsubscribes=len(own))],
        },
    )


_FILTER = "(coalesce(server_address, ''), coalesce(client_id, ''), topic_filter)"
_VAIN = f"""
    event = 'unsubscribe' AND coalesce(error_code, 0) = 0 AND ts_response IS NOT NULL AND topic_filter IS NOT NULL
    AND matching_filter IS NOT NULL AND (reason_code = 17 OR coalesce(version, '') <> '5.0')
    AND {_FILTER} NOT IN (SELECT {_FILTER} FROM {HELD} WHERE topic_filter IS NOT NULL)"""
RULE = Rule(
    code="MQT153",
    question="repeated",
    name="unsubscribe-in-vain",
    severity="warning",
    confidence="high",
    reads={
        ASKED: (
            "ts", "ts_response", "flow_id", "client_address", "client_port", "server_port", "topic_filter",
            "matching_filter", "reason_code", "exchange_id",
        ),
        HELD: ("ts", "ts_until", "topic_filter", "matching_filter", "exchange_id"),
        PUBLISHED: ("ts", "flow_id", "topic"),
    },
    partition_by=("server_address", "client_id"),
    detect=detect,
    rows={
        ASKED: _VAIN,
        HELD: "matching_filter IS NOT NULL AND topic_filter IS NOT NULL",
        PUBLISHED: f"""
            direction = 'server_to_client' AND topic IS NOT NULL
            AND flow_id IN (SELECT flow_id FROM {ASKED} WHERE event = 'unsubscribe')""",
    },
    suspects=AnyRow(ASKED),
)  # fmt: skip

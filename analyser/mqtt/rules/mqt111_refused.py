"""MQT111 refused: the server said no.

Finds
    Connections, subscriptions and messages that the server refused, subscriptions granted with a lower QoS than
    asked for, and connections that the server ended with an error.

Why it matters
    Many clients do not look at these answers: a subscription that was refused looks like a topic without messages.

How it decides
    CONNACK not 0, SUBACK 128 and above, a granted QoS below the requested one (info), in 5.0 any reason code of 128
    and above in PUBACK, PUBREC, UNSUBACK and DISCONNECT of the server. One finding for each client and code
    (refused_least times); six clients or more of one address with the same code are one. Whether a code heals by
    itself, by a later try or never, and who has to act, is one table (`dissectors/mqtt/reason_classes.py`). A
    connection or a filter that the server takes later from the same client is info. Ten tries or more (tries_least)
    with less than a second between them, in the median, are told. A server that shuts down (0x8B) is info. Codes that
    have a rule of their own are left to it: 0x8E, 0x93, 0x94, 0x95.

False alarms
    A client that asks for something to learn whether it may.

References
    MQTT 3.1.1: section 3.2.2.3 and 3.9.3; 5.0: section 2.4 and those of the packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from wirewitness.analyser.base.addresses import server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, ms_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import MOST_APART, client_numbers, client_text, client_title, short
from wirewitness.dissectors.mqtt.reason_classes import ReasonClass, reason_class

_OTHER_RULES = (0x8E, 0x93, 0x94, 0x95)
_ERRORS = 0x80
_SHUTTING_DOWN = 0x8B


class _Refusal(NamedTuple):
    """what: the thing refused. place: topic or filter. ts, row: of the request that was refused."""

    what: str
    code: int
    name: str | None
    place: str | None
    ts: int
    evidence: Evidence
    row: Row


# The same code means different things: what to do depends on what was refused.
_NEXT = {
    "connection": "Look at user, password, client id and protocol version of this client, and at the server's log.",
    "subscription": "Look at the server's access rules for this filter; the client gets nothing from it.",
    "lower QoS": "Expect messages with the granted QoS, or raise the server's limit.",
    "message": "Look at the server's access rules and limits for this topic.",
    "unsubscription": "Look at which filters the client thinks it has.",
    "session": "Look at the server's log for this client at that time.",
}


def detect(frames: Frames, *, refused_least: int = 1, tries_least: int = 10) -> Iterator[Finding]:
    """One finding for each kind of refusal and code that a client of this address met `refused_least` times."""
    by_kind: dict[tuple[str, int], dict[str | None, list[_Refusal]]] = {}
    for refusal in (*_connections(frames), *_subscriptions(frames), *_publishes(frames)):
        clients = by_kind.setdefault((refusal.what, refusal.code), {})
        clients.setdefault(refusal.row["client_id"], []).append(refusal)
    taken = _taken(frames)
    for (what, code), clients in by_kind.items():
        groups = [*clients.values()]
        if len(groups) > MOST_APART:
            groups = [[one for own in groups for one in own]]
        for refusals in groups:
            if len(refusals) >= refused_least:
                yield _finding(what, code, sorted(refusals, key=lambda r: r.ts), taken, tries_least)


# When the server took something like it: what was asked, who asked, which filter.
_Taken = Mapping[tuple[str, str | None, str | None], int]


def _taken(frames: Frames) -> _Taken:
    found: dict[tuple[str, str | None, str | None], int] = {}
    for row in rows_of(frames["mqtt_connections"]):
        if row["error_code"] == 0:
            found["connection", row["client_id"], None] = row["ts"]
    for row in rows_of(frames["mqtt_subscriptions"]):
        if row["event"] == "subscribe" and row["error_code"] == 0 and row["granted_qos"] is not None:
            found["subscription", row["client_id"], row["topic_filter"]] = row["ts"]
    return found


def _is_taken_later(refusal: _Refusal, taken: _Taken) -> bool:
    return taken.get((refusal.what, refusal.row["client_id"], refusal.place), refusal.ts) > refusal.ts


def _connections(frames: Frames) -> Iterator[_Refusal]:
    for row in rows_of(frames["mqtt_connections"]):
        if row["error_code"]:
            proof = Evidence(row["file"], row["packet"], row["exchange_id"])
            yield _Refusal("connection", row["error_code"], row["error_name"], None, row["ts"], proof, row)
        code = row["disconnect_reason_code"] or 0
        if row["disconnected_by"] == "server" and code >= _ERRORS and code not in _OTHER_RULES:
            proof = Evidence(row["file"], row["disconnect_packet"], None)
            yield _Refusal("session", code, row["disconnect_reason_name"], None, row["ts_disconnect"], proof, row)


def _subscriptions(frames: Frames) -> Iterator[_Refusal]:
    for row in rows_of(frames["mqtt_subscriptions"]):
        proof = Evidence(row["file"], row["request_packet"], row["exchange_id"])
        if row["error_code"]:
            what = "subscription" if row["event"] == "subscribe" else "unsubscription"
            yield _Refusal(what, row["error_code"], row["error_name"], row["topic_filter"], row["ts"], proof, row)
        elif row["granted_qos"] is not None and row["granted_qos"] < (row["requested_qos"] or 0):
            yield _Refusal("lower QoS", row["granted_qos"], None, row["topic_filter"], row["ts"], proof, row)


def _publishes(frames: Frames) -> Iterator[_Refusal]:
    for row in rows_of(frames["mqtt_publishes"]):
        proof = Evidence(row["file"], row["packet"], row["message_id"])
        yield _Refusal("message", row["reason_code"], row["reason_name"], row["topic"], row["ts"], proof, row)


def _finding(what: str, code: int, refusals: list[_Refusal], taken: _Taken, tries_least: int) -> Finding:
    row = refusals[0].row
    clients = list(dict.fromkeys(one.row["client_id"] for one in refusals))
    kind = reason_class(code, row["version"], connack=what == "connection")
    healed = what in _HEAL and all(_is_taken_later(one, taken) for one in refusals)
    places = list(dict.fromkeys(printable(str(r.place), 60) for r in refusals if r.place is not None))
    name = refusals[0].name
    harmless = healed or what in ("lower QoS", "unsubscription") or (what, code) == ("session", _SHUTTING_DOWN)
    severity: Severity = "info" if harmless else "warning"
    return RULE.finding(
        severity=severity,
        subject={
            "server": row["server_address"],
            "client_id": row["client_id"] if len(clients) == 1 else f"{len(clients)} clients",
            "address": row["client_address"],
            "what": what,
            "code": code,
        },
        title=_title(what, code, name, refusals, row),
        sentence=(
            f"{_sentence(what, code, name, refusals, row)}{_on(places)}."
            f"{'' if what == 'lower QoS' else _outlook(kind, healed)}{_tries(what, refusals, tries_least)}"
        ),
        next_step=_NEXT[what],
        proof=Proof(refusals[0].ts, refusals[-1].ts, (refusal.evidence for refusal in refusals)),
        numbers={
            "what": what,
            "code": code,
            "code_name": name,
            "heals": None if what == "lower QoS" else kind.heals,
            "who_acts": None if what == "lower QoS" else kind.who,
            "healed": healed,
            "count": len(refusals),
            "requests_refused": len(refusals),
            "where": places[0] if places else server_text(row),
            "topics": places[:20],
            "clients": [
                client_numbers(own[0].row, count=len(own))
                for own in ([one for one in refusals if one.row["client_id"] == name] for name in clients[:20])
            ],
        },
    )


# What may be asked for again.
_HEAL = ("connection", "subscription")
_OUTLOOK = {
    "heals": "This heals by itself once the server is well again.",
    "retry": "A later try may do.",
    "never": "No later try heals that, only a change of the {who}.",
}


def _outlook(kind: ReasonClass, healed: bool) -> str:
    if healed:
        return " Later the server took the same from it."
    return f" {_OUTLOOK[kind.heals].format(who=kind.who)}"


def _tries(what: str, refusals: list[_Refusal], least: int) -> str:
    """Whether it tries again and again without a pause."""
    gaps = [after.ts - before.ts for before, after in pairwise(refusals)]
    if what not in _HEAL or len(refusals) < least or median(gaps) >= NS_PER_S:
        return ""
    return f" It tries again without a pause: {len(refusals):,} times, {ms_text(median(gaps) / NS_PER_MS)} apart."


def _title(what: str, code: int, name: str | None, refusals: list[_Refusal], row: Row) -> str:
    places = list(dict.fromkeys(short(r.place) for r in refusals if r.place is not None))
    whose = f"{names_text(places, 1)} of {client_title(row)}" if places else client_title(row)
    if what == "lower QoS":
        return f"QoS lowered to {code}: {whose}"
    done = "ended by the server" if what == "session" else "refused"
    thing = count(len(refusals), "connection" if what == "session" else what)
    return f"{thing} {done}: {whose}, {f'{short(name)} ({code})' if name else f'code {code}'}"


def _sentence(what: str, code: int, name: str | None, refusals: list[_Refusal], row: Row) -> str:
    server, client = f"The server {server_text(row)}", client_text(row)
    others = len({one.row["client_id"] for one in refusals}) - 1
    if others >= MOST_APART:
        client = f"{client} and {others} other clients there"
    reason = f"{name} ({code})" if name else f"code {code}"
    if what == "lower QoS":
        return f"{server} granted {client} QoS {code} where it asked for more, {_filters(len(refusals))}"
    if what == "session":
        return f"{server} ended {count(len(refusals), 'connection')} of {client} with {reason}"
    return f"{sentence_start(server)} refused {count(len(refusals), what)} of {client}: {reason}"


def _filters(number: int) -> str:
    return count(number, "filter")


def _on(places: list[str]) -> str:
    if not places:
        return ""
    more = f" and {len(places) - 4} more" if len(places) > 4 else ""
    return f", on {', '.join(places[:4])}{more}"


_CLIENT = "coalesce(client_id, '') || chr(10) || coalesce(client_address, '')"
RULE = Rule(
    code="MQT111",
    question="refused",
    name="refused",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_connections": (
            "ts", "exchange_id", "client_id", "client_port", "server_port", "version", "error_code", "error_name",
            "disconnected_by",
            "disconnect_reason_code", "disconnect_reason_name", "disconnect_packet", "ts_disconnect", "file", "packet",
        ),
        "mqtt_subscriptions": (
            "ts", "exchange_id", "client_id", "client_port", "server_port", "version", "event", "topic_filter",
            "requested_qos", "granted_qos", "error_code", "error_name", "file", "request_packet",
        ),
        "mqtt_publishes": (
            "ts", "client_id", "client_port", "server_port", "version", "topic", "reason_code", "reason_name",
            "message_id", "file", "packet",
        ),
    },
    partition_by=("server_address", "client_address"),
    detect=detect,
    rows={
        "mqtt_connections": f"""error_code <> 0 OR (disconnected_by = 'server' AND disconnect_reason_code >= 128)
            OR (error_code = 0 AND {_CLIENT} IN (SELECT {_CLIENT} FROM mqtt_connections WHERE error_code <> 0))""",
        "mqtt_subscriptions": f"""error_code <> 0 OR granted_qos < requested_qos
            OR (error_code = 0 AND (topic_filter, {_CLIENT}) IN (
                SELECT (topic_filter, {_CLIENT}) FROM mqtt_subscriptions WHERE error_code <> 0))""",
        "mqtt_publishes": "reason_code >= 128 AND direction = 'client_to_server'",
    },
)  # fmt: skip

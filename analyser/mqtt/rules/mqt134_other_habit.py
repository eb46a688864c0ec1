"""MQT134 other-habit: one client publishes in another way than before, or than its likes.

Finds
    Clients that leave a topic for one that differs by case or a slash, or is without their id, or whose topic differs
    so from those of all their likes; that no longer set RETAIN, or do so since; that publish each message twice; that
    publish many times as often as they did; and whose payloads are JSON that ends too early, or of another kind since.
    Question: whose content differs.

Why it matters
    It is what an update of one program or device does, and nothing fails: subscribers with the old filter get no more,
    those who come later get an old retained value, and a stream that is ten times as dense fills queues.

How it decides
    By the fact `mqtt_publisher_habits`. Topic: `messages_least` messages on one topic, then as many on another one that
    is the same but for upper and lower case or empty levels, or for its own id, which is empty now, and none on the
    first one any more; or the shape of a
    client's topic (digits and its id aside) is that of `likes_least` other clients but for these. RETAIN: it was set on
    each of `messages_least` messages or more, and on none since, as many; a retained value is left behind. Or it is set
    since, where no like does; a warning with `likes_least` of them, else info. Twice: ten messages or more have the
    payload of the one before and follow it in a third of the usual time, or the client has `likes_least` likes that
    send half as often, so that half of all are copies (two fifths at least, three fifths at most), which no like does.
    Rate: the middle gap of a client on a topic in the last quarter of its time is a tenth (rate) of that of the first
    quarter or less, while two other clients at least go on as before, or a fifth where these are its likes,
    `likes_least` of them. A warning where it changed at one moment, from regular to regular (at most a tenth of its
    gaps lie well between both), and it has such likes, two for each that changed, or then sends half of all that
    clients publish; else info: events come as they come, and a load that all share rises bit by bit. Payload:
    `messages_least` payloads or more begin as an object or array of JSON and do not end as one, where as many others of
    this client and topic, or all those of `likes_least` likes, are whole; or their kind (JSON, text, binary) changed
    once, with `messages_least` before and since; a warning where `likes_least` likes kept the old one, else info.

False alarms
    A program that was changed on purpose, with all who listen to it.

What it cannot tell
    What the payload says: its size, checksum and kind are kept, the kind by its first and last bytes.

References
    MQTT 3.1.1 and 5.0: section 4.7 (topics are compared letter by letter, and each slash counts), 3.3.1.3 (RETAIN).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, moment_text, ms_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

HABITS = "mqtt_publisher_habits"
# Others that publish as before, and what is as before.
_PEERS, _STEADY = 2, 2.0
# Such a share of gaps between those before and those after is chance.
_BETWEEN = 0.1
# So many copies are no chance.
_COPIES = 10


def detect(frames: Frames, *, messages_least: int = 5, likes_least: int = 3, rate: float = 10.0) -> Iterator[Finding]:
    """At most one finding of each kind for a client and topic of this server."""
    rows = rows_of(frames[HABITS])
    for row in rows:
        if row["topic_before"] is not None and row["messages"] >= messages_least:
            yield _moved(row)
        elif _is_apart(row, likes_least):
            yield _apart(row)
        if _turned_retain(row, messages_least):
            yield _retain(row) if not row["retains_now"] else _retains_now(row, likes_least)
        if _is_twice(row, likes_least) and not row["likes_again"]:
            yield _twice(row)
        cut = row["json_cut"] if row["ts_cut"] is not None else 0
        if cut >= messages_least and (row["json"] >= messages_least or (row["likes_json"] or 0) >= likes_least):
            yield _cut(row)
        elif _turned_kind(row) and min(_around(row)) >= messages_least:
            yield _other_kind(row, likes_least)
    steady = {row["client_id"] for row in rows if row["began_gap_ms"] is not None and not _is_faster(row, _STEADY)}
    kept: dict[str, set[str]] = {}
    changed: dict[str, set[str]] = {}
    for row in rows:
        if row["client_id"] in steady:
            kept.setdefault(row["shape"], set()).add(row["client_id"])
        if _is_faster(row, _STEADY):
            changed.setdefault(row["shape"], set()).add(row["client_id"])
    in_all = sum(map(_each_second, rows))
    for row in rows:
        likes, own = kept.get(row["shape"], set()), row["client_id"] in steady
        alike = len(likes) - own >= max(likes_least, 2 * len(changed.get(row["shape"], ())))
        others = len(steady) - own
        if others >= _PEERS and _is_faster(row, rate / 2 if alike else rate):
            yield _rate(row, in_all, others, alike=alike)


def _is_apart(row: Row, likes_least: int) -> bool:
    """It is alone with its shape, and others agree on another one."""
    if row["usual_shape"] is None or row["usual_shape"] == row["shape"]:
        return False
    return bool(row["likes"] == 0 and row["usual_clients"] >= likes_least)


def _is_twice(row: Row, likes_least: int) -> bool:
    """Each payload comes two times, the copy soon after it, or beside likes that send half as often."""
    again = row["same_again"] or 0
    if again < _COPIES or not 0.4 <= again / row["messages"] <= 0.6:
        return False
    if row["same_gap_ms"] is None or not row["other_gap_ms"]:
        return False
    half_as_often = row["likes"] >= likes_least and 1.5 <= row["usual_gap_ms"] / row["gap_ms"] <= 2.5
    return bool(row["same_gap_ms"] <= row["other_gap_ms"] / 3 or half_as_often)


def _turned_retain(row: Row, least: int) -> bool:
    if (
        row["retain_turns"] != 1
        or None in (row["before_turn"], row["ts_turned"])
        or (row["retains_now"] and row["likes_retained"])
    ):
        return False
    return bool(row["before_turn"] >= least and row["messages"] - row["before_turn"] >= least)


def _is_faster(row: Row, rate: float) -> bool:
    if row["began_gap_ms"] is None or not row["ended_gap_ms"]:
        return False
    return bool(row["began_gap_ms"] >= rate * row["ended_gap_ms"])


def _moved(row: Row) -> Finding:
    before, now = printable(row["topic_before"], 80), printable(row["topic"], 80)
    return _finding(
        "topic",
        row,
        f"{client_title(row)} publishes on {short(row['topic'])} since, on {short(row['topic_before'])} before",
        f"{sentence_start(client_text(row))} published on {before} at {server_text(row)} and since "
        f"{moment_text(row['ts'])} only on {now}, {count(row['messages'], 'message')}. These are two topics: they "
        f"differ by {_difference(before, now)}.",
        "Look at what changed in this client at that time; who subscribes to the old name gets nothing of the new one.",
        since=row["ts"],
    )


def _apart(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    usual = printable(row["usual_shape"], 80)
    return _finding(
        "topic of its likes",
        row,
        f"{client_title(row)} publishes on {short(row['topic'])}, {row['usual_clients']} others on {short(usual)}",
        f"{sentence_start(client_text(row))} publishes on {topic} at {server_text(row)}, "
        f"{count(row['messages'], 'message')}. {count(row['usual_clients'], 'other client')} publish on topics like "
        f"{usual}, which differ by {_difference(usual, row['shape'])}.",
        "Look at the configuration of this client; filters for the others do not match its topic.",
        since=row["ts"],
    )


def _difference(one: str, other: str) -> str:
    plain = [name.replace("//", "/").strip("/") for name in (one, other)]
    if plain[0] == plain[1]:
        return "a slash"
    if one.count("/") == other.count("/") and "" in other.split("/"):
        return "an empty level"
    return "upper and lower case" if len(one) == len(other) else "a slash and case"


def _retain(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    return _finding(
        "retain",
        row,
        f"{client_title(row)} no longer sets RETAIN on {short(row['topic'])}",
        f"{sentence_start(client_text(row))} set RETAIN on each of {count(row['before_turn'], 'message')} on {topic} "
        f"at {server_text(row)}, and since {moment_text(row['ts_turned'])} on none of "
        f"{count(row['messages'] - row['before_turn'], 'message')}. Who subscribes from now on gets the last retained "
        "one as if it were new.",
        "Look at what changed in this client at that time; let it set RETAIN again, or clear the retained message.",
        since=row["ts_turned"],
    )


def _retains_now(row: Row, likes_least: int) -> Finding:
    topic = printable(row["topic"], 80)
    return _finding(
        "retain",
        row,
        f"{client_title(row)} sets RETAIN on {short(row['topic'])} since",
        f"{sentence_start(client_text(row))} set RETAIN on none of {count(row['before_turn'], 'message')} on {topic} "
        f"at {server_text(row)}, and since {moment_text(row['ts_turned'])} on each of "
        f"{count(row['messages'] - row['before_turn'], 'message')}; none of its likes does "
        f"({count(row['likes'], 'other client')}). The server keeps the last one for all who come later.",
        "Look at what changed in this client at that time; where it should not retain, clear the message, too.",
        since=row["ts_turned"],
        severity="warning" if row["likes"] >= likes_least else "info",
    )


def _twice(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    return _finding(
        "twice",
        row,
        f"{client_title(row)} publishes each message twice on {short(row['topic'])}",
        f"{sentence_start(client_text(row))} published {count(row['messages'], 'message')} on {topic} at "
        f"{server_text(row)}, {row['same_again']:,} of them with the same payload as the one just before, "
        f"{ms_text(row['same_gap_ms'])} later and without DUP: each is there twice, and every subscriber gets both. "
        f"{sentence_start(count(row['likes'], 'other client'))} like it did so never.",
        "Look for two loops or two handlers in this client that publish the same, or for a retry without DUP.",
        since=row["ts"],
    )


def _turned_kind(row: Row) -> bool:
    """Did its kind change once, and are both kinds and the moment known?"""
    return row["kind_turns"] == 1 and all(
        row[name] is not None for name in ("first_kind", "last_kind", "before_kind_turn", "ts_kind_turned")
    )


def _around(row: Row) -> tuple[int, int]:
    """Return how many messages were of the old kind, and of the new one."""
    return row["before_kind_turn"], row["messages"] - row["before_kind_turn"]


def _cut(row: Row) -> Finding:
    topic = printable(row["topic"], 80)
    likes = f", {count(row['likes_json'], 'other client')} like it sent whole ones only" if row["likes_json"] else ""
    return _finding(
        "payload",
        row,
        f"{client_title(row)} publishes JSON that ends too early on {short(row['topic'])}",
        f"{sentence_start(client_text(row))} published {count(row['messages'], 'message')} on {topic} at "
        f"{server_text(row)}; from {moment_text(row['ts_cut'])} on {row['json_cut']:,} began as JSON and ended too "
        f"early, {row['json']:,} were whole{likes}. Who parses them fails.",
        "Look at what builds these payloads, such as a buffer of a fixed size or a new version.",
        since=row["ts_cut"],
        at=row["cut_message_id"],
    )


_KIND_WORDS = {"json": "JSON", "json_cut": "JSON that ends too early", "text": "text", "binary": "binary data"}


def _other_kind(row: Row, likes_least: int) -> Finding:
    topic = printable(row["topic"], 80)
    before, since = _around(row)
    old, new = _KIND_WORDS[row["first_kind"]], _KIND_WORDS[row["last_kind"]]
    return _finding(
        "payload",
        row,
        f"{client_title(row)} publishes {new} on {short(row['topic'])} since, {old} before",
        f"{sentence_start(client_text(row))} published {count(before, 'message')} on {topic} at {server_text(row)} as "
        f"{old}, and from {moment_text(row['ts_kind_turned'])} on {count(since, 'message')} as {new}; "
        f"{count(row['likes_of_kind'], 'other client')} like it kept to {old}. Who parses {old} fails on these.",
        "Look at what changed in this client at that time: firmware, serialiser, compression, encryption.",
        since=row["ts_kind_turned"],
        severity="warning" if row["likes_of_kind"] >= likes_least else "info",
        at=row["kind_turned_message_id"],
    )


def _each_second(row: Row) -> float:
    gap = row["ended_gap_ms"] or row["gap_ms"]
    return 1000 / gap if gap else 0.0


def _rate(row: Row, in_all: float, steady: int, *, alike: bool) -> Finding:
    topic = printable(row["topic"], 80)
    share = _each_second(row) / max(in_all, 1e-9)
    at_once = row["between_gaps"] is not None and row["between_gaps"] <= _BETWEEN
    return _finding(
        "rate",
        row,
        f"{client_title(row)} publishes {row['began_gap_ms'] / row['ended_gap_ms']:,.0f} times as often on "
        f"{short(row['topic'])}",
        f"{sentence_start(client_text(row))} published on {topic} at {server_text(row)} each "
        f"{ms_text(row['began_gap_ms'])} at first, and each {ms_text(row['ended_gap_ms'])} at the end. That is "
        f"{share:.0%} of the messages that clients publish there then; {count(steady, 'other client')} did not change "
        "so.",
        "Look at what changed in this client: a debug setting, a loop without a pause, a sensor that flickers.",
        since=row["ts"],
        severity="warning" if at_once and (alike or share >= 0.5) else "info",
    )


def _finding(
    kind: str,
    row: Row,
    title: str,
    sentence: str,
    next_step: str,
    *,
    since: int,
    severity: Severity = "warning",
    at: str | None = None,
) -> Finding:
    return RULE.finding(
        severity=severity,
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["topic"], "kind": kind},
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids((row["message_id"], row["turned_message_id"], at, row["last_message_id"])),
        ),
        numbers={
            "kind": kind,
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "published": row["messages"],
            **({"records_again": row["same_again"]} if kind == "twice" else {"breaches": row["messages"]}),
            "likes": max(row["likes"], row["usual_clients"] if kind.startswith("topic") else 0),
            "lasted_s": round((row["ts_last"] - since) / NS_PER_S, 3),
            "topics": [printable(one, 80) for one in (row["topic"], row["topic_before"]) if one is not None],
            "where": printable(row["topic"], 80),
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT134",
    question="differs",
    name="other-habit",
    severity="warning",
    confidence="medium",
    reads={
        HABITS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic", "topic_before", "shape",
            "usual_shape", "usual_clients", "likes", "messages", "retain_turns", "before_turn", "retains_now",
            "ts_turned", "gap_ms", "usual_gap_ms", "began_gap_ms", "ended_gap_ms", "between_gaps", "same_again",
            "same_gap_ms", "other_gap_ms", "likes_retained", "likes_again", "message_id", "last_message_id",
            "turned_message_id", "server_port", "first_kind", "last_kind", "kind_turns", "before_kind_turn",
            "ts_kind_turned", "kind_turned_message_id", "json", "json_cut", "ts_cut", "cut_message_id",
            "likes_of_kind", "likes_json",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(
        HABITS,
        "topic_before IS NOT NULL OR usual_shape <> shape OR retain_turns = 1 OR began_gap_ms >= 5 * "
        "ended_gap_ms OR same_again >= 10 OR json_cut >= 5 OR kind_turns = 1",
    ),
)  # fmt: skip

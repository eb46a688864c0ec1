"""MQT121 stale-retained: what the server keeps for a topic is not what should be there.

Finds
    Retained messages that are older than what is published live on their topic, retained commands that a client gets
    anew at each connect, retained messages of a topic that its publisher has left, and retained messages that another
    client cleared.

Why it matters
    Whoever subscribes gets the retained message first and takes it for the present state. A retained command is carried
    out again at every reconnect; one that is cleared by somebody else is missing for those who come later.

How it decides
    Stale: the server sends a retained message after three others (live_least) were published on that topic without
    RETAIN, of other content, the last of them 10 s (stale_s) or more after the retained one was set; a topic whose
    publisher sets a retained message now and then is left alone. Command: a level of the topic is a word like cmd,
    command, set, action, reboot, and one client id gets the same retained message on three connections
    (connects_least). Left: by the fact mqtt_publisher_habits a client set RETAIN on this topic, and publishes on
    another one since, while nothing came here for five times its longest gap; nobody cleared the message, and the
    server sends it to a subscriber after that. Gone: its client never came back, another one of nearly the same id and
    topic came to its address when it was gone and is there to the end, no third one did, it is away for longer than it
    was seen, and subscribers get the message on three connections (connects_least). Cleared: an empty retained message
    from another client than the one that had set it in the capture; info. What was set, replaced and cleared is read
    from mqtt_retained.

False alarms
    A topic whose retained message is a default and whose live messages mean something else.

References
    MQTT 3.1.1: section 3.3.1.3 (RETAIN), [MQTT-3.3.1-6], [MQTT-3.3.1-10]; 5.0: section 3.3.1.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start, times
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.limits import compared
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

HABITS = "mqtt_publisher_habits"
COMMANDS = frozenset({
    "action", "cmd", "cmds", "cmnd", "command", "commands", "control", "do", "execute", "ota", "reboot", "reset",
    "restart", "set", "trigger",
})  # fmt: skip


# Retained messages of the topic (rows of mqtt_retained) with the publish that set each.
Sets = Sequence[tuple[Row, Row]]


def detect(frames: Frames, *, live_least: int = 3, stale_s: float = 10.0, connects_least: int = 3) -> Iterator[Finding]:
    """At most one finding of each kind for this topic."""
    rows, kept = rows_of(frames["mqtt_publishes"]), rows_of(frames["mqtt_retained"])
    by_id = {row["message_id"]: row for row in rows}
    sets = [(one, by_id[one["message_id"]]) for one in kept if one["message_id"] in by_id]
    yield from _stale(rows, sets, live_least, int(stale_s * NS_PER_S))
    yield from _commands(rows, sets, connects_least)
    yield from _left(rows, rows_of(frames[HABITS]), connects_least)
    yield from _cleared(sets, by_id)


def _content(row: Row) -> tuple[object, object]:
    return row["payload_crc32"], row["payload_bytes"]


def _is_kept(row: Row) -> bool:
    return bool(row["direction"] == "server_to_client" and row["retain"] and row["payload_bytes"])


def _stale(rows: list[Row], kept_ones: Sets, live_least: int, stale_ns: int) -> Iterator[Finding]:
    if sum(kept["sets"] for kept, _ in kept_ones) > 1:
        return
    sets = [row for _, row in kept_ones]
    since = sets[0]["ts"] if sets else None
    live: list[Row] = []
    got: list[tuple[Row, int]] = []
    for row in rows:
        if _is_kept(row):
            compared(len(live))
            others = [one for one in live if _content(one) != _content(row)]
            began = since if since is not None else rows[0]["ts"]
            if len(others) >= live_least and live[-1] in others and live[-1]["ts"] - began >= stale_ns:
                got.append((row, len(others)))
        elif row["direction"] == "client_to_server" and not row["retain"] and (since is None or row["ts"] > since):
            live.append(row)
    if not got:
        return
    kept, newer = got[0]
    last = max((one for one in live if one["ts"] < kept["ts"]), key=lambda one: one["ts"])
    before = "before the capture"
    if sets:
        before = f"{seconds_text(kept['ts'] - sets[0]['ts'])} before by {client_text(sets[0])}"
    yield _finding(
        "stale",
        "warning",
        kept,
        f"Stale retained message on {short(kept['topic'])}: {newer:,} newer without RETAIN by {client_title(last)}",
        f"{sentence_start(client_text(kept))} got a retained message on {_topic(kept)} from {server_text(kept)} at "
        f"{moment_text(kept['ts'])} that is out of date. It was set {before}; since then {client_text(last)} "
        f"published {count(newer, 'newer message')} without RETAIN.",
        "Let this publisher set RETAIN, or clear the retained message with an empty one.",
        [*sets[:1], last, *(row for row, _ in got)],
        [last, *sets[:1], kept],
        len(got),
    )


def _commands(rows: list[Row], sets: Sets, connects_least: int) -> Iterator[Finding]:
    if not rows or not COMMANDS & {level.casefold() for level in str(rows[0]["topic"]).split("/")}:
        return
    by_client: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        if _is_kept(row) and row["client_id"]:
            by_client.setdefault((row["client_id"], *_content(row)), {}).setdefault(row["flow_id"], row)
    for flows in by_client.values():
        if len(flows) < connects_least:
            continue
        got = list(flows.values())
        setters = [row for _, row in sets if _content(row) == _content(got[0])]
        by = f" {client_text(setters[0])} had set it." if setters else " It was set before the capture."
        yield _finding(
            "command",
            "warning",
            got[0],
            f"Retained command on {short(got[0]['topic'])}: {client_title(got[0])} got it at {len(got)} connects",
            f"{sentence_start(client_text(got[0]))} got the same retained command on {_topic(got[0])} "
            f"{times(len(got))}, at each connect to {server_text(got[0])}.{by}",
            "Publish commands without RETAIN, and clear this one with an empty retained message.",
            [*setters[:1], *got],
            [*setters[:1], got[0]],
            len(got) - 1,
        )


def _of_gone(rows: list[Row], habit: Row, connects_least: int) -> Iterator[Finding]:
    """Its client is gone for good, and another one is in its place."""
    got = [row for row in rows if _is_kept(row) and row["ts"] > habit["ts_last"]]
    if habit["successor"] is None or len({row["flow_id"] for row in got}) < connects_least:
        return
    if any(row["direction"] == "client_to_server" and row["ts"] > habit["ts_last"] for row in rows):
        return
    kept, successor = got[0], printable(habit["successor"], 80)
    yield _finding(
        "gone",
        "warning",
        kept,
        f"Retained message of a client that is gone: {short(kept['topic'])} of {client_title(habit)}",
        f"{server_text(kept)} still sends the old retained message on {_topic(kept)}, {times(len(got))}, last to "
        f"{client_text(got[-1])} at {moment_text(got[-1]['ts'])}. {sentence_start(client_text(habit))} had set it, was "
        f"gone after {moment_text(habit['ts_last'])}, and never cleared it; client {successor} at the same address "
        "publishes in its place.",
        "Clear it with an empty retained message, and let a client that is replaced do so before it goes.",
        got,
        [habit, kept],
        len(got),
    )


def _left(rows: list[Row], habits: list[Row], connects_least: int) -> Iterator[Finding]:
    for habit in habits:
        if not habit["retains_now"]:
            continue
        if habit["topic_after"] is None:
            yield from _of_gone(rows, habit, connects_least)
            continue
        if habit["ts_after"] is None:
            continue
        later = [row for row in rows if row["ts"] > habit["ts_after"]]
        got = [row for row in later if _is_kept(row)]
        if not got or any(row["direction"] == "client_to_server" for row in rows if row["ts"] > habit["ts_last"]):
            continue
        kept, after = got[0], printable(habit["topic_after"], 80)
        yield _finding(
            "left",
            "warning",
            kept,
            f"Retained message of a topic that was left: {short(kept['topic'])} of {client_title(habit)}",
            f"{server_text(kept)} still sends the retained message on {_topic(kept)}, {times(len(got))}, first to "
            f"{client_text(kept)} at {moment_text(kept['ts'])}. {sentence_start(client_text(habit))}, which had set "
            f"it, publishes on {after} instead since {moment_text(habit['ts_after'])} and did not clear it.",
            "Clear it with an empty retained message there, and let the client do so when its topic changes.",
            got,
            [habit, kept],
            len(got),
        )


def _cleared(sets: Sets, by_id: Mapping[str, Row]) -> Iterator[Finding]:
    for kept, setter in sets:
        row = by_id.get(kept["next_message_id"]) if kept["ended_by"] == "cleared" else None
        if row is None or not setter["client_id"] or row["client_id"] in (None, setter["client_id"]):
            continue
        before = seconds_text(row["ts"] - (kept["ts_last"] or setter["ts"]))
        yield _finding(
            "cleared",
            "info",
            row,
            f"Retained message cleared: {short(row['topic'])} of {client_title(setter)}, by {client_title(row)}",
            f"{sentence_start(client_text(row))} cleared the retained message on {_topic(row)} that "
            f"{client_text(setter)} had set {before} before, at {server_text(row)}.",
            "Look at whether this client should do so: who subscribes from now on gets nothing at first.",
            [setter, row],
            [row, setter],
        )
        return


def _topic(row: Row) -> str:
    return printable(row["topic"], 80)


def _finding(
    kind: str,
    severity: Severity,
    row: Row,
    title: str,
    sentence: str,
    next_step: str,
    proof: list[Row],
    clients: list[Row],
    again: int = 0,
) -> Finding:
    ordered = sorted(proof, key=lambda one: one["ts"])
    return RULE.finding(
        severity=severity,
        confidence="medium" if kind == "stale" else "high",
        subject={"server": row["server_address"], "topic": row["topic"], "kind": kind, "client_id": row["client_id"]},
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=Proof(ordered[0]["ts"], ordered[-1]["ts"], evidence_of(ordered)),
        numbers={
            "kind": kind,
            **({"records_again": again} if again else {}),
            "server": server_of(row),
            "topics": [_topic(row)],
            "where": _topic(row),
            "clients": [client_numbers(one) for one in clients],
        },
    )


RULE = Rule(
    code="MQT121",
    question="went back",
    name="stale-retained",
    severity="warning",
    confidence="high",
    reads={
        "mqtt_publishes": (
            "ts", "flow_id", "client_id", "client_address", "client_port", "server_port", "version", "direction",
            "retain", "payload_bytes", "payload_crc32", "message_id", "file", "packet",
        ),
        "mqtt_retained": ("ts", "ts_last", "ended_by", "sets", "message_id", "next_message_id"),
        HABITS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic_after", "ts_after",
            "retains_now", "successor",
        ),
    },
    partition_by=("server_address", "topic"),
    detect=detect,
    rows={
        "mqtt_publishes": "topic IS NOT NULL AND (direction = 'client_to_server' OR retain)",
        "mqtt_retained": "set_by = 'publish'",
    },
    suspects=f"""
        SELECT server_address, topic FROM r_mqtt_publishes GROUP BY server_address, topic
        HAVING bool_or(retain AND direction = 'client_to_server' AND payload_bytes = 0)
            OR (bool_or(direction = 'server_to_client')
                AND count(*) FILTER (direction = 'client_to_server' AND NOT retain) >= 3)
            OR count(*) FILTER (direction = 'server_to_client') >= 3
        UNION SELECT server_address, topic FROM r_{HABITS}
        WHERE (topic_after IS NOT NULL OR successor IS NOT NULL) AND retains_now""",
)  # fmt: skip

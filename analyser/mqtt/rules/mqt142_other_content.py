"""MQT142 other-content: one client repeats an old payload, or sends payloads of another size since it came back.

Finds
    Clients whose payloads changed with each message and are all the same since, and clients whose payloads are longer
    or shorter since a new connection than all before, while their likes go on as they did. Question: whose content
    differs.

Why it matters
    The stream goes on at its usual rate, so nothing that counts messages sees it: a reading that comes from a cache, a
    sensor that is stuck, a clock that begins anew, a field that an update left out.

How it decides
    By the fact `mqtt_publisher_contents`. Likes are other clients whose topic has the same shape, digits and own ids
    aside. The same: the last `run_least` messages or more have one payload. Before them at least `messages_least` came,
    no two alike, and of `likes_least` likes or more, each with as many messages, none ever sent one payload twice and
    all went on meanwhile: such payloads have a time or a count in them, so they differ even where a value stands
    still. Size: since a new connection all payloads are longer, or all shorter, than all before, `messages_least` of
    each or more, by `bytes_least` and three times as much as sizes differ within each of these times and within each
    like. A warning from `sure_bytes` on, else info: a count or an uptime that begins anew loses a few digits.

False alarms
    A client that was changed on purpose, with all who listen to it.

What it cannot tell
    What the payload says: its size and checksum are kept.

References
    MQTT 3.1.1 and 5.0: section 3.3.3 (the content of the payload is up to the application).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import NS_PER_S, moment_text, seconds_text
from wirewitness.analyser.base.words import count, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import AnyRow, Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Besides
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

CONTENTS = "mqtt_publisher_contents"
_WIDER = 3
# What a row has of the turn of its sizes, all of it or none.
_TURN = ("before_turn", "ts_turned", "turned_message_id", "least_before", "most_before", "least_since", "most_since")


def detect(
    frames: Frames,
    *,
    run_least: int = 10,
    messages_least: int = 10,
    likes_least: int = 2,
    bytes_least: int = 4,
    sure_bytes: int = 7,
) -> Iterator[Finding]:
    """At most one finding of each kind for a client and topic of this server."""
    shapes: dict[str, list[Row]] = {}
    for row in rows_of(frames[CONTENTS]):
        shapes.setdefault(row["shape"], []).append(row)
    for rows in shapes.values():
        every = _Alike(rows, messages_least)
        for row in rows:
            if len(every.rows_of) - 1 < likes_least:
                break
            likes = len(rows) - every.rows_of[row["client_id"]]
            if _is_stuck(row, every, run_least, messages_least):
                yield _stuck(row, likes)
            if _is_resized(row, every, messages_least, bytes_least):
                yield _resized(row, likes, is_sure=_turned_by(row) >= sure_bytes)


class _Alike:
    """Clients and topics of one shape. What is asked is of all but one client, of which there are others.

    rows_of: so many each client has. repeats: whether some payload came twice, or too few are there to say. until and
    ends: when their last messages came, the latest and the earliest (below 0). spread: of their sizes.
    """

    def __init__(self, rows: Sequence[Row], messages_least: int) -> None:
        self.rows_of = Counter(row["client_id"] for row in rows)
        self.repeats = Besides(
            (row["client_id"], not row["contents"] == row["messages"] >= messages_least) for row in rows
        )
        self.until = Besides((row["client_id"], row["ts_last"]) for row in rows)
        self.ends = Besides((row["client_id"], -row["ts_last"]) for row in rows)
        self.spread = Besides((row["client_id"], row["spread"]) for row in rows)


def _is_stuck(row: Row, every: _Alike, run_least: int, messages_least: int) -> bool:
    """It repeats one payload, and nothing else of its kind ever came twice."""
    before = row["messages"] - row["last_run"]
    if row["last_run"] < run_least or before < messages_least or row["contents"] != before + 1:
        return False
    client, run = row["client_id"], row["ts_run"]
    if every.repeats.most(client) or -(every.ends.most(client) or 0) <= run:
        return False
    return bool((every.until.most(client) or 0) - run >= (row["ts_last"] - run) / 2)


def _is_resized(row: Row, every: _Alike, messages_least: int, bytes_least: int) -> bool:
    """Its sizes turned by more than they, and those of its likes, differ otherwise."""
    if any(row[one] is None for one in _TURN):
        return False
    if min(row["before_turn"], row["messages"] - row["before_turn"]) < messages_least:
        return False
    spread = max(
        row["most_before"] - row["least_before"],
        row["most_since"] - row["least_since"],
        every.spread.most(row["client_id"]) or 0,
    )
    return bool(_turned_by(row) >= max(bytes_least, _WIDER * spread))


def _turned_by(row: Row) -> int:
    """Return the least bytes between a payload before and one since."""
    return int(max(row["least_since"] - row["most_before"], row["least_before"] - row["most_since"]))


def _stuck(row: Row, likes: int) -> Finding:
    topic, before = printable(row["topic"], 80), row["messages"] - row["last_run"]
    return _finding(
        "same",
        row,
        likes,
        f"{client_title(row)} publishes the same payload again and again on {short(row['topic'])}",
        f"{sentence_start(client_text(row))} published {count(row['messages'], 'message')} on {topic} at "
        f"{server_text(row)}; since {moment_text(row['ts_run'])} the last {row['last_run']:,} have the same payload, "
        f"for {seconds_text(row['ts_last'] - row['ts_run'])}. No two of the {before:,} before were alike, nor any of "
        f"{count(likes, 'other client')} like it, which went on.",
        "Look at what this client reads from: a cache, a queue or a sensor that gives the last value again.",
        since=row["ts_run"],
        at=row["run_message_id"],
    )


def _resized(row: Row, likes: int, *, is_sure: bool) -> Finding:
    topic = printable(row["topic"], 80)
    shorter = row["least_before"] > row["most_since"]
    size, since = "shorter" if shorter else "longer", row["messages"] - row["before_turn"]
    step = (
        "Look at what this client did at its start: a clock that begins anew has fewer digits, and a field may be "
        "missing."
        if shorter
        else "Look at what this client did at its start: an update, another format, or a field that was added."
    )
    return _finding(
        "size",
        row,
        likes,
        f"{client_title(row)} publishes {size} payloads on {short(row['topic'])} since it came back",
        f"{sentence_start(client_text(row))} published {count(row['before_turn'], 'message')} on {topic} at "
        f"{server_text(row)} with payloads of {_sizes(row, 'before')}, and {since:,} with {_sizes(row, 'since')} since "
        f"its new connection at {moment_text(row['ts_turned'])}. Payloads of {count(likes, 'other client')} like "
        "it did not change so.",
        step,
        since=row["ts_turned"],
        at=row["turned_message_id"],
        severity="warning" if is_sure else "info",
    )


def _sizes(row: Row, when: str) -> str:
    least, most = row[f"least_{when}"], row[f"most_{when}"]
    return count(least, "byte") if least == most else f"{least:,} to {count(most, 'byte')}"


def _finding(
    kind: str,
    row: Row,
    likes: int,
    title: str,
    sentence: str,
    next_step: str,
    *,
    since: int,
    at: str,
    severity: Severity = "warning",
) -> Finding:
    topic = printable(row["topic"], 80)
    return RULE.finding(
        severity=severity,
        subject={"server": row["server_address"], "client_id": row["client_id"], "topic": row["topic"], "kind": kind},
        title=title,
        sentence=sentence,
        next_step=next_step,
        proof=Proof(since, row["ts_last"], evidence_of_ids((at, row["last_message_id"]))),
        numbers={
            "kind": kind,
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "published": row["messages"],
            "repeated": row["last_run"],
            **({"records_again": row["last_run"]} if kind == "same" else {"breaches": row["messages"]}),
            "likes": likes,
            "lasted_s": round((row["ts_last"] - since) / NS_PER_S, 3),
            "topics": [topic],
            "where": topic,
            "clients": [client_numbers(row)],
        },
    )


RULE = Rule(
    code="MQT142",
    question="differs",
    name="other-content",
    severity="warning",
    confidence="medium",
    reads={
        CONTENTS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "topic", "shape", "messages",
            "contents", "spread", "last_run", "ts_run", "run_message_id", "before_turn", "ts_turned",
            "turned_message_id", "least_before", "most_before", "least_since", "most_since", "last_message_id",
            "server_port",
        ),
    },
    partition_by=("server_address",),
    detect=detect,
    suspects=AnyRow(CONTENTS, "last_run >= 10 OR before_turn IS NOT NULL"),
)  # fmt: skip

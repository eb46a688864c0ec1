"""MQT139 shared-work-twice: a worker gets all messages itself that a group of a shared subscription shares out.

Finds
    Clients that do the same work as the members of a shared subscription, but subscribe to its filter without $share,
    or under another group name. Question: who acts on one thing at the same time.

Why it matters
    The server sends such a client every message, and the group each of them once more: all work is done twice. Nothing
    fails, and only the results are doubled.

How it decides
    By the fact `mqtt_workers`: at least `members_least` members of one shared subscription publish one result for each
    message that they get (nine tenths to eleven tenths), on topics of one shape, digits and their own ids aside. The
    other client has the same filter, got at least `got_least` messages and half of what all members got together, and
    publishes one for each on topics of that shape as well. It is not part of that group: it has no $share, or is alone
    under another name.

False alarms
    A second program of another kind that handles the same messages and names its results alike.

What it cannot tell
    Whether the results of both are equal, and which of them is used.

References
    MQTT 5.0: section 4.8.2 (each group gets a copy; so does each subscription that is not shared).
"""

from __future__ import annotations

from collections.abc import Iterator

from wirewitness.analyser.base.addresses import server_of, server_text
from wirewitness.analyser.base.times import period_text
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof, evidence_of_ids
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.mqtt.rules.rows import client_numbers, client_text, client_title, short

WORKERS = "mqtt_workers"
# One for one, but for what is under way at an end of the capture.
_FEWEST, _MOST = 0.9, 1.1


def detect(frames: Frames, *, members_least: int = 2, got_least: int = 10) -> Iterator[Finding]:
    """One finding for each client beside a group of this filter."""
    groups: dict[str | None, list[Row]] = {}
    for row in rows_of(frames[WORKERS]):
        groups.setdefault(row["share_name"], []).append(row)
    for share, members in groups.items():
        shapes = {row["result_shape"] for row in members if is_one_for_one(row)}
        if share is None or len(members) < members_least or len(shapes) != 1 or None in shapes:
            continue
        if not all(is_one_for_one(row) for row in members):
            continue
        shared = sum(row["got"] for row in members)
        names = {row["client_id"] for row in members}
        for other, outside in groups.items():
            if other == share or (other is not None and len(outside) > 1):
                continue
            for row in outside:
                works = is_one_for_one(row) and row["result_shape"] in shapes and row["client_id"] not in names
                if works and row["got"] >= max(got_least, shared / 2):
                    yield _finding(row, members, shared)


def is_one_for_one(row: Row) -> bool:
    """It publishes a result for each message that it gets."""
    return bool(_FEWEST <= row["results"] / row["got"] <= _MOST)


def _finding(row: Row, members: list[Row], shared: int) -> Finding:
    wanted, group = printable(row["topic_filter"], 80), printable(members[0]["share_name"], 60)
    results = printable(row["result_shape"], 80)
    own = "without $share" if row["share_name"] is None else f"in the group {printable(row['share_name'], 60)}, alone"
    names = names_text([printable(one["client_id"], 40) for one in members], 3)
    return RULE.finding(
        subject={"server": row["server_address"], "client_id": row["client_id"], "filter": wanted},
        title=f"{client_title(row)} does all the work of group {short(group)} once more",
        sentence=(
            f"{sentence_start(client_text(row))} subscribes to {wanted} at {server_text(row)} {own}, and got "
            f"{count(row['got'], 'message')}; {count(len(members), 'member')} of the group {group} ({names}) share the "
            f"same filter and got {shared:,} together. All of them publish one result for each message, on topics like "
            f"{results}: each message is handled twice, {period_text(row['ts'], row['ts_last'])}."
        ),
        next_step=f"Let this client subscribe to $share/{group}/{wanted}, letter by letter as the others do.",
        proof=Proof(
            row["ts"],
            row["ts_last"],
            evidence_of_ids((row["message_id"], row["result_message_id"], members[0]["message_id"])),
        ),
        numbers={
            "client_id": row["client_id"],
            "address": row["client_address"],
            "server": server_of(row),
            "got": row["got"],
            "results": row["results"],
            "records_again": row["got"],
            "share_name": row["share_name"],
            "group": group,
            "group_got": shared,
            "topic_filters": [wanted],
            "where": wanted,
            "clients": [client_numbers(one, got=one["got"]) for one in (row, *members)][:20],
        },
    )


RULE = Rule(
    code="MQT139",
    question="concurrent",
    name="shared-work-twice",
    severity="warning",
    confidence="high",
    reads={
        WORKERS: (
            "ts", "ts_last", "client_id", "client_address", "client_port", "version", "share_name", "got",
            "result_shape", "results", "message_id", "result_message_id", "server_port",
        ),
    },
    partition_by=("server_address", "topic_filter"),
    detect=detect,
    suspects=f"""
        SELECT server_address, topic_filter FROM r_{WORKERS} GROUP BY server_address, topic_filter
        HAVING count(DISTINCT coalesce(share_name, '')) > 1 AND count(*) > 2""",
)  # fmt: skip

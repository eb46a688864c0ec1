"""KAF309 admin-change: somebody changed topics, groups, offsets, rights, settings, quotas or credentials.

Finds
    Admin requests that change something, and offsets that are set from outside a group. One finding for each client and
    kind of change.

Why it matters
    Brokers do not log who deleted a topic or reset a group. When consumers read again or skip, or producers are
    refused, the request that did it stands here, with its client and time.

How it decides
    Changes that were accepted count; where all were refused, the finding says so. Offsets are set from outside when a
    commit has neither member nor generation, and its client commits each partition of the group once in the capture
    (kafka-consumer-groups.sh --reset-offsets, alterConsumerGroupOffsets); consumers without a group commit again.
    info. A warning for `refused_least` requests of one kind that were refused, the last one with an error that no later
    try heals (`dissectors/kafka/error_classes.py`); for `churn_least` topics that one client made and deleted both; for
    an internal topic that was deleted, with the offsets or transactions of all; and for deletes and resets that others
    then met: a group that began to read somewhere else than at its stored offset, or on a topic that was deleted, and
    producers that were refused because the topic was gone.
    Confidence high: the request is on the wire, and so is its answer.

    The next step sets what was stored before, where a group that begins anew shows it.

    Not told: a broker has its internal topics made when the first client needs them, under its node id as client id
    (AutoTopicCreationManager).

False alarms
    None about who did it. Whether it was intended nobody can tell from the wire.

What it cannot tell
    Which person it was: the wire has an address, a client id and, where the login is in the clear, a user. Changes
    before the capture, and those that went over TLS.

References
    Kafka's message definitions and AutoTopicCreationManager; KIP-396 (offsets), KIP-546 (quotas), KIP-554
    (credentials).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wirewitness.analyser.base.severity import Severity
from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.titles import client_title, first_of
from wirewitness.analyser.base.words import count, names_text, printable, sentence_start
from wirewitness.analyser.engine.rules.evidence import Proof
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.names import (
    ADMIN_KINDS,
    MAX_NAME,
    OTHER_KIND,
    Stored,
    client_numbers,
    client_text,
    error_text,
    place,
    put_back_text,
)
from wirewitness.analyser.kafka.rules.producers import REFUSED, batches_of, evidence_of, records_in
from wirewitness.dissectors.kafka.error_classes import error_class

CHANGES, COMMITS, RUNS = "kafka_admin_changes", "kafka_offset_commits", "kafka_fetch_ranges"
KEYS = ("cluster_id",)
MAX_LISTED = 50
# Characters of a title, but for what stands between names and client.
_TITLE_ROOM = 86
_RESET = "OffsetReset"
_TOPIC_GONE = (3, 100)
_CHURN = ("CreateTopics", "DeleteTopics")
_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
# A node id as client id is in the log of the controller, and on the wire between brokers.
_BY_A_BROKER = f"""
    operation = 'CreateTopics' AND coalesce(TRY_CAST(client_id AS INTEGER) >= 0, false)
    AND resource_name IN {_INTERNAL}"""
# What was stored before can be stored again: the records are still there.
_MOVES_OFFSETS = (_RESET, "OffsetDelete", "DeleteGroups")


class _Met(NamedTuple):
    """Who met a change: groups that began elsewhere, refused batches; records that these groups skipped, read again."""

    runs: list[Row]
    batches: Sequence[Row]
    skipped: int
    again: int


def detect(
    frames: Frames, *, changes_least: int = 1, refused_least: int = 3, churn_least: int = 10
) -> Iterator[Finding]:
    """One finding for each client and kind of change, from `changes_least` changes on."""
    kinds: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(frames[CHANGES]):
        kinds.setdefault((row["client_address"], row["client_id"], row["operation"]), []).append(row)
    for row in rows_of(frames[COMMITS]):
        kinds.setdefault((row["client_address"], row["client_id"], _RESET), []).append(_as_change(row))
    runs, refused = rows_of(frames[RUNS]), rows_of(frames[REFUSED])
    for (address, client_id, operation), rows in kinds.items():
        if len(rows) < changes_least:
            continue
        done = [row for row in rows if row["error_code"] in (0, None)] or rows
        warns = _is_hopeless(done, refused_least)
        churn = _made_and_deleted(kinds, address, client_id) if operation in _CHURN else set()
        if operation == "DeleteTopics" and len(churn) >= churn_least:
            done = [row for row in done if row["resource_name"] not in churn]
            if not done:
                continue  # CreateTopics tells it
        extra = _churn_text(churn) if operation == "CreateTopics" and len(churn) >= churn_least else ""
        warns |= operation == "DeleteTopics" and _deleted_internal(done)
        yield _finding(
            operation, done, len(rows) - len(done), _met(operation, done, runs, refused), extra,
            warns=bool(extra) or warns,
        )  # fmt: skip


def _is_hopeless(rows: Sequence[Row], least: int) -> bool:
    """All were refused, and no later try will have success."""
    code = rows[-1]["error_code"]
    return len(rows) >= least and code not in (0, None) and error_class(code, rows[-1]["operation"]).heals == "never"


def _deleted_internal(rows: Sequence[Row]) -> bool:
    """What all groups, or all transactions, have stored is gone."""
    return any(row["error_code"] in (0, None) and row["resource_name"] in _INTERNAL for row in rows)


def _made_and_deleted(kinds: Mapping[tuple[Any, ...], Sequence[Row]], address: str, client_id: str) -> set[str]:
    made, deleted = (
        {row["resource_name"] for row in kinds.get((address, client_id, one), ()) if row["error_code"] in (0, None)}
        for one in _CHURN
    )
    return made & deleted


def _churn_text(names: Collection[str]) -> str:
    return (
        f" It deleted {len(names):,} of them again: each costs the controller, all brokers and all clients that hold "
        "metadata work."
    )


def _as_change(commit: Row) -> Row:
    return {
        **commit,
        "operation": _RESET,
        "resource_type": "group",
        "resource_name": commit["group_id"],
        "change": f"{place(commit)} to {commit['committed_offset']}",
    }


def _met(operation: str, done: Sequence[Row], runs: Sequence[Row], refused: Sequence[Row]) -> _Met:
    exchanges = {row["exchange_id"] for row in done}
    own = [run for run in runs if run["change_exchange_id"] in exchanges and _is_elsewhere(run)]
    moves = [run["first_offset"] - run["stored_offset"] for run in own if _moved(run)]
    batches: Sequence[Row] = ()
    if operation == "DeleteTopics":
        deleted = {row["resource_name"]: row["ts"] for row in done}
        batches = batches_of([row for row in refused if row["ts"] >= deleted.get(row["topic"], row["ts"] + 1)])
    return _Met(own, batches, sum(max(0, move) for move in moves), sum(max(0, -move) for move in moves))


def _is_elsewhere(run: Row) -> bool:
    return run["change"] == "topic deleted" or (_moved(run) and run["first_offset"] != run["stored_offset"])


def _moved(run: Row) -> bool:
    """Old and new position are known, and of the same log."""
    known = run["first_offset"] is not None and run["stored_offset"] is not None
    return known and run["change"] != "topic deleted"


def _finding(
    operation: str, rows: Sequence[Row], in_vain: int, met: _Met, extra: str = "", *, warns: bool = False
) -> Finding:
    first, last = rows[0], rows[-1]
    kind = ADMIN_KINDS.get(operation, OTHER_KIND)
    refused = first["error_code"] not in (0, None)
    severity: Severity = "warning" if warns or (kind.harmful and not refused and (met.runs or met.batches)) else "info"
    names = list(dict.fromkeys(row["resource_name"] or row["resource_type"] for row in rows))
    key = {
        "cluster": first["cluster_id"],
        "address": first["client_address"],
        "client_id": first["client_id"],
        "operation": operation,
    }
    groups = sorted({row["resource_name"] for row in rows if row["resource_type"] == "group" and row["resource_name"]})
    groups = groups or sorted({run["group_id"] for run in met.runs if run["group_id"]})
    topics = sorted({row["resource_name"] for row in rows if row["resource_type"] == "topic" and row["resource_name"]})
    before = _before(met.runs) if operation in _MOVES_OFFSETS else []
    return RULE.finding(
        severity=severity,
        subject=key,
        title=_title(kind.verb, names, client_title(first), refused=refused),
        sentence=_sentence(kind.verb, rows, names, refused, in_vain) + extra + _met_text(met),
        next_step=_next_step(operation, first, before, refused=refused, churn=bool(extra)),
        proof=Proof(first["ts"], last["ts"], evidence_of(rows)),
        numbers={
            **key,
            "clients": [client_numbers(first)],
            "changes": len(rows),
            "refused": in_vain,
            "error_code": first["error_code"] if refused else None,
            "group": groups[0] if len(groups) == 1 else None,
            "groups": groups[:MAX_LISTED],
            "topic": topics[0] if len(topics) == 1 else None,
            "topics": topics[:MAX_LISTED],
            "what": [f"{row['resource_name'] or row['resource_type']}: {row['change']}" for row in rows[:MAX_LISTED]],
            "where": names_text(names, 3),
            "victims": _victims(met),
            "records_lost": met.skipped or None,
            "records_again": met.again or None,
            "since": time_text(first["ts"]),
            "until": time_text(last["ts"]),
        },
    )


def _next_step(operation: str, first: Row, before: Sequence[Stored], *, refused: bool, churn: bool) -> str:
    if churn:
        return "Look why it makes topics for each task: keep one topic, and tell tasks apart by key or header."
    if refused:
        return error_class(first["error_code"], operation).next_step or ADMIN_KINDS.get(operation, OTHER_KIND).next_step
    return put_back_text(before) if before else ADMIN_KINDS.get(operation, OTHER_KIND).next_step


def _title(verb: str, names: Sequence[str], client: str, *, refused: bool) -> str:
    """Without the client where there is no room: the subject names it."""
    title = f"{'Refused: ' if refused else ''}{sentence_start(verb)} {first_of(names)}"
    return f"{title}, by {client}" if len(title) + len(client) < _TITLE_ROOM else title


def _before(runs: Sequence[Row]) -> list[Stored]:
    """Where the groups that met it had stood, each partition once, in order."""
    known = [run for run in runs if _moved(run) and run["group_id"] and run["topic"] and run["partition"] is not None]
    places = {(run["group_id"], run["topic"], run["partition"]): run["stored_offset"] for run in reversed(known)}
    return [Stored(*place, offset) for place, offset in sorted(places.items())]


def _sentence(verb: str, rows: Sequence[Row], names: Sequence[str], refused: bool, in_vain: int) -> str:
    first = rows[0]
    shown = names_text([printable(name, MAX_NAME) for name in names], 3)
    what = f" In detail: {names_text([printable(row['change'], MAX_NAME) for row in rows], 2)}."
    if len(names) == len(rows) > 1 and len({row["change"] for row in rows}) == 1:
        what = ""
    head = f"{sentence_start(client_text(first))} {verb} {shown} {period_text(first['ts'], rows[-1]['ts'])}"
    if refused:
        error = error_text(first["error_code"], first["error_name"])
        times = f"refused {len(rows):,} times" if len(rows) > 1 else "refused"
        return f"{head}: {times} with error {error}, nothing changed.{what}"
    more = f"; {count(in_vain, 'more request was', 'more requests were')} refused" if in_vain else ""
    return f"{head}{more}.{what}"


def _met_text(met: _Met) -> str:
    text = ""
    if met.runs:
        readers = sorted({f"{run['group_id'] or '?'} ({client_text(run)})" for run in met.runs})
        text += f" These groups then began to read elsewhere than at their stored offsets: {names_text(readers, 3)}"
        parts = [f"{met.skipped:,} records were skipped"] if met.skipped else []
        parts += [f"{count(met.again, 'record was', 'records were')} delivered again"] if met.again else []
        text += f"; {' and '.join(parts)}." if parts else "."
    if met.batches:
        writers = sorted({client_text(row) for row in met.batches})
        text += (
            f" {count(len(met.batches), 'batch', 'batches')} with {count(records_in(met.batches), 'record')} of "
            f"{names_text(writers, 3)} were refused because the topic was gone."
        )
    return text


def _victims(met: _Met) -> list[Row]:
    found = {(row["client_address"], row["client_id"]): row for row in [*met.runs, *met.batches]}
    return [client_numbers(row, member_id=row.get("member_id")) for row in found.values()][:MAX_LISTED]


# Of commits without a member those whose client commits each partition once: tools, not consumers without a group.
_WHO = "(coalesce(cluster_id, ''), coalesce(group_id, ''), coalesce(client_address, ''), coalesce(client_id, ''))"
_SET_ONCE = f"""
    error_code = 0 AND generation = -1 AND coalesce(member_id, '') = '' AND api = 'OffsetCommit'
    AND {_WHO} NOT IN (
        SELECT {_WHO} FROM {COMMITS} WHERE generation = -1 AND coalesce(member_id, '') = ''
        GROUP BY cluster_id, group_id, client_address, client_id, coalesce(topic, topic_id), partition
        HAVING count(*) > 1)"""

RULE = Rule(
    code="KAF309",
    question="went back",
    name="admin-change",
    severity="warning",
    confidence="high",
    reads={
        CHANGES: (
            "ts", "exchange_id", "client_id", "client_address", "operation", "resource_type", "resource_name", "change",
            "error_code", "error_name", "file", "request_packet",
        ),
        COMMITS: (
            "ts", "exchange_id", "client_id", "client_address", "group_id", "topic", "partition", "committed_offset",
            "error_code", "error_name", "file", "request_packet",
        ),
        RUNS: (
            "ts", "exchange_id", "client_id", "client_address", "group_id", "member_id", "topic", "partition",
            "first_offset", "stored_offset", "change", "change_exchange_id",
        ),
        REFUSED: (
            "ts", "exchange_id", "client_id", "client_address", "topic", "partition", "records_count", "batch_bytes",
            "base_timestamp", "producer_id", "producer_epoch", "base_sequence", "error_code",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={
        CHANGES: f"NOT validate_only AND NOT ({_BY_A_BROKER})",
        COMMITS: _SET_ONCE,
        RUNS: "change IS NOT NULL",
        REFUSED: f"error_code IN {_TOPIC_GONE}",
    },
)  # fmt: skip

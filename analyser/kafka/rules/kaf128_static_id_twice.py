"""KAF128 static-id-twice: two processes use one group.instance.id and throw each other out.

Finds
    One static name in a group that two clients claim alternately: each that joins fences the other (82
    FENCED_INSTANCE_ID), or is refused while the other is a member (111 UNRELEASED_INSTANCE_ID, KIP-848).

Why it matters
    A static member is one process: whoever joins last gets the partitions of the name, and the other is fenced in the
    middle of its work. Messages that both have fetched are handled twice, and commits of the fenced one are refused.

How it decides
    Members of the name are thrown out with 82, or its requests are answered with 111, at least `fenced` times, and the
    name is claimed by two clients (address, client id) or, from one host, by members that live at the same time. A
    member is thrown out once, however many of its requests are answered with 82. 111 counts only while another member
    of the name is heard of before and after it: a restarted process is refused until the session of the dead one is
    over. warning; critical from `often` times on.
    Confidence high: errors and names are on the wire. Where no such answer is in the capture (requests alone), `fenced`
    claims of the name by a client while another one is heard of before and after it say the same: warning, confidence
    medium. Of answers alone nothing is said, since these do not name what they answer.

False alarms
    A pod that moves to another host while the old one still runs is fenced once: that is no finding.

What it cannot tell
    Requests alone are judged with confidence medium, answers alone not at all. A capture that begins late lacks the
    claims from before: a fight that goes on is found from the next ones on.

References
    KIP-345 (static membership), KIP-848 (111), KIP-1026 and KIP-814 for leaders. Kafka protocol errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirewitness.analyser.base.times import period_text, time_text
from wirewitness.analyser.base.words import printable, sentence_start, times
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.engine.rules.sweeps import Spans
from wirewitness.analyser.kafka.rules.members import (
    KEYS,
    MEMBER_COLUMNS,
    MEMBERS,
    culprit,
    partitions_of,
    partitions_text,
    proof,
    who,
)
from wirewitness.analyser.kafka.rules.names import MAX_NAME, client_text, group_text, short_clients, title_text

EVENTS = "kafka_group_events"
FENCED, UNRELEASED = 82, 111
_MOST_CLIENTS, _MOST_NAMED = 20, 3


def detect(frames: Frames, *, fenced: int = 2, often: int = 5) -> Iterator[Finding]:
    """One finding per static name."""
    by_name: dict[str, list[Row]] = {}
    for row in rows_of(frames[MEMBERS]):
        if row["group_instance_id"]:
            by_name.setdefault(row["group_instance_id"], []).append(row)
    refused = rows_of(frames[EVENTS])
    of_name: dict[str, list[Row]] = {}
    for row in refused:
        of_name.setdefault(row["group_instance_id"], []).append(row)
    for name, own in by_name.items():
        alive = Spans((row["ts"], row["ts_last"], row["member_id"]) for row in own)
        errors = _once_each([
            row for row in of_name.get(name, ())
            if row["error_code"] == FENCED or alive.meets(row["ts"], row["ts"], besides=row["member_id"])
        ])  # fmt: skip
        claims = [] if errors else _claims(own)
        if len(errors) >= fenced and (len(_clients(own)) > 1 or _at_once(own)):
            yield _finding(name, own, errors, often)
        elif len(claims) >= fenced:
            yield _finding(name, own, claims, often)


def _once_each(errors: Sequence[Row]) -> list[Row]:
    """Without further 82s of a member: it is thrown out once. Where some members are not known, clients count."""
    fenced = [row for row in errors if row["error_code"] == FENCED]
    whose = ("member_id",) if all(row["member_id"] for row in fenced) else ("client_address", "client_id")
    first = {tuple(row[name] for name in whose): id(row) for row in reversed(fenced)}
    kept = {*first.values()}
    return [row for row in errors if row["error_code"] != FENCED or id(row) in kept]


def _clients(members: Sequence[Row]) -> dict[tuple[str | None, str | None], Row]:
    """The newest member of each client, in the order in which the clients came."""
    return {_client(row): row for row in members}


def _client(member: Row) -> tuple[str | None, str | None]:
    return member["client_address"], member["client_id"]


def _at_once(members: Sequence[Row]) -> bool:
    there = Spans((row["ts"], row["ts_last"], place) for place, row in enumerate(members))
    return any(there.meets(row["ts"], row["ts"], besides=place) for place, row in enumerate(members))


def _claims(members: Sequence[Row]) -> list[Row]:
    """Members that began while one of another client was heard of before and after."""
    there = Spans((row["ts"], row["ts_last"], _client(row)) for row in members)
    return [row | {"error_code": None} for row in members if there.meets(row["ts"], row["ts"], besides=_client(row))]


def _finding(name: str, members: Sequence[Row], errors: Sequence[Row], often: int) -> Finding:
    clients = _clients(members)
    newest = list(clients.values())[-1]  # who came last to a name that was taken
    key = {"cluster": newest["cluster_id"], "group": newest["group_id"]}
    first_ns, last_ns = min(row["ts"] for row in errors), max(row["ts"] for row in errors)
    refused = any(row["error_code"] is not None for row in errors)
    codes = " and ".join(
        text
        for code, text in (
            (FENCED, "fenced (82 FENCED_INSTANCE_ID)"),
            (UNRELEASED, "refused (111 UNRELEASED_INSTANCE_ID)"),
        )
        if any(row["error_code"] == code for row in errors)
    )
    names = sorted({one for row in members for one in partitions_of(row)})
    named = " and ".join(client_text(one) for one in list(clients.values())[-_MOST_NAMED:])
    short = short_clients([*clients][-2:])
    both = [who(one) for one in clients.values()][::-1]
    said = f"requests of theirs were {codes} {times(len(errors))}. {_cost(errors, names)}"
    if not refused:
        said = f"it was claimed {times(len(errors))} while the other one was active. No responses are in the capture."
    return RULE.finding(
        severity="critical" if refused and len(errors) >= often else "warning",
        confidence="high" if refused else "medium",
        subject={**key, "instance": name},
        title=title_text(
            "One group.instance.id, several processes: {}, " + " and ".join("{}" for _ in short),
            name,
            *short,
        ),
        sentence=(
            f"{group_text(newest['group_id'])}: {named} use the same group.instance.id {printable(name, MAX_NAME)}. "
            f"{sentence_start(period_text(first_ns, last_ns))}, {said}"
        ),
        next_step=(
            f"Give each process its own group.instance.id (a StatefulSet's pod name, for example); end "
            f"{client_text(newest)} or the other one first. Look for a copied configuration or a second deployment."
        ),
        proof=proof(first_ns, last_ns, [row["exchange_id"] for row in errors]),
        numbers={
            **culprit(key, newest),
            "instance_id": name,
            "fenced": sum(row["error_code"] == FENCED for row in errors),
            "requests_refused": len(errors) if refused else None,
            "memberships": len(members),
            "error_code": errors[-1]["error_code"],
            "partitions": names,
            "since": time_text(first_ns),
            "until": time_text(last_ns),
            "clients": both[:_MOST_CLIENTS],
        },
    )


def _cost(errors: Sequence[Row], names: Sequence[str]) -> str:
    if all(row["error_code"] == UNRELEASED for row in errors):
        return f"While the one is a member the other gets nothing of {partitions_text(names, 3)}."
    return f"They take {partitions_text(names, 3)} from each other."


RULE = Rule(
    code="KAF128",
    question="concurrent",
    name="static-id-twice",
    severity="critical",
    confidence="high",
    reads={
        MEMBERS: MEMBER_COLUMNS,
        EVENTS: (
            "ts",
            "exchange_id",
            "group_instance_id",
            "member_id",
            "client_id",
            "client_address",
            "error_code",
        ),
    },
    partition_by=KEYS,
    detect=detect,
    rows={MEMBERS: "group_instance_id IS NOT NULL", EVENTS: f"error_code IN ({FENCED}, {UNRELEASED})"},
    suspects=f"""
        SELECT cluster_id, group_id FROM r_{EVENTS}
        UNION
        SELECT cluster_id, group_id FROM r_{MEMBERS} GROUP BY cluster_id, group_id, group_instance_id
        HAVING count(DISTINCT concat(client_address, chr(10), client_id)) > 1""",
)

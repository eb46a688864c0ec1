"""KAF127 zombie-overlap: a member comes back after its partitions were given to others, so records are handled twice.

Finds
    A client that commits a partition, or goes on fetching it, `back_ms` or more after another reader of the group began
    to read it, and that had been given the partition before.

Why it matters
    A process that was frozen or paused (SIGSTOP, a long garbage collection, a suspended virtual machine) does not know
    that it is out of the group: it handles what it had fetched, beside the one that took over.

How it decides
    By the runs of reading (`kafka_fetch_ranges`) of one partition and the group's commits: a run that began before
    another client's run, a commit of that client behind the begin of the other run, above where that began, accepted or
    refused. Records that two members handled: from where the other began to the late commit, as far as the first
    client had fetched. Where no fetch of that client is in the capture, a refused commit is enough, with confidence
    medium. A commit that is refused in the moment of a rebalance is everyday, hence `back_ms`.
    What paused it, `kafka_members.idle_side` tells of its silence: network, process, or not known.
    Warning; critical when the late commit was accepted over the other's.

False alarms
    A group whose members are told apart by nothing (one client id at one address) is not looked at.
    Where more than 20 others began to read before one late commit, the last 20 of them are told.

What it cannot tell
    Of one direction alone nothing is said: requests do not tell whether a commit was accepted, answers not whose it is.
    What a member fetched before the capture began is not known: records handled twice are then counted from what is
    seen, and are at least so many.

References
    Kafka's error codes 22, 25, 27, 82, 110, 113; max.poll.interval.ms, session.timeout.ms.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from wirewitness.analyser.base.times import NS_PER_MS, NS_PER_S, moment_text, seconds_text, time_text
from wirewitness.analyser.base.words import count, sentence_start
from wirewitness.analyser.engine.rules.findings import Evidence, Finding
from wirewitness.analyser.engine.rules.frame_rows import Row, first_value, rows_of
from wirewitness.analyser.engine.rules.rule import Frames, Rule
from wirewitness.analyser.kafka.rules.commits import COMMITS
from wirewitness.analyser.kafka.rules.fetch_ranges import MAX_NAMED, RUN_COLUMNS, RUNS, Client, proof_of_runs
from wirewitness.analyser.kafka.rules.idle_members import side_step, side_text
from wirewitness.analyser.kafka.rules.members import MEMBERS
from wirewitness.analyser.kafka.rules.names import (
    group_text,
    member_name,
    partition_names,
    partition_text,
    short_clients,
    title_text,
    who_numbers,
    who_text,
)
from wirewitness.analyser.kafka.rules.overlaps import LateCommit, Overlap, Read, ToldOverlap, where_somebody_is_late

KEYS = ("cluster_id", "group_id")
# The broker does not take the sender for a member that may commit.
FENCED = (22, 25, 27, 82, 110, 113)
# A late commit is compared with so many runs that began before it, the last ones.
MOST_OTHERS = 20
_BACK_NS = 2 * NS_PER_S
_BY_CLIENT = "cluster_id, group_id, topic, partition, client_id, client_address"


def detect(frames: Frames, *, back_ms: float = 2000.0) -> Iterator[Finding]:
    """One finding per client that came back, and the one that had taken over."""
    back_ns = int(back_ms * NS_PER_MS)
    rows = where_somebody_is_late(frames[RUNS], frames[COMMITS], back_ns)
    found: dict[tuple[Client, Client], list[Overlap]] = {}
    for place in rows.places():
        for overlap in _overlaps(place.reads, place.commits, back_ns):
            found.setdefault((overlap.own.client, overlap.other.client), []).append(overlap)
    silences: dict[Client, list[Row]] = {}
    for row in rows_of(frames[MEMBERS]) if found else ():
        silences.setdefault((row["client_address"], row["client_id"]), []).append(row)
    for overlaps in found.values():
        told = rows.told(overlaps)
        silence = _silence(told, silences.get(told[-1].own.client, ()))
        yield _finding(first_value(frames[RUNS], "cluster_id"), told, silence)


def _overlaps(runs: Sequence[Read], commits: Mapping[Client, Sequence[LateCommit]], back_ns: int) -> list[Overlap]:
    """Each run that took over from another client, with what that one did later, before it began anew itself.

    runs: of one partition, by time; commits: of it, those of each client by time. In the order of the runs that took
    over, for each in the order in which the others came up.
    """
    begins = [run.ts for run in runs]
    own_runs: dict[Client, list[int]] = {}
    for number, run in enumerate(runs):
        own_runs.setdefault(run.client, []).append(number)
    found: list[tuple[int, int, Overlap | None]] = []
    for rank, (client, numbers) in enumerate(own_runs.items()):
        for number, again in pairwise([*numbers, len(runs)]):
            late = _Late(commits.get(client, ()), begins, range(number + 1, again), back_ns)
            until = begins[again] if again < len(runs) else None
            found += [
                (n, rank, _overlap(runs[number], runs[n], row, back_ns)) for row, n in late.pairs(begins[number], until)
            ]
    for rank, (client, rows) in enumerate(commits.items(), len(own_runs)):
        if client not in own_runs and rows[-1].error_code in FENCED:
            late = _Late(rows, begins, range(len(runs)), back_ns)
            found += [
                (n, rank, _overlap(_without_fetches(client, runs[n], rows[-1]), runs[n], row, back_ns))
                for row, n in late.pairs()
            ]
    found.sort(key=lambda one: one[:2])
    return [overlap for _, _, overlap in found if overlap is not None]


class _Late(NamedTuple):
    """Commits of one client, the begins of all runs, the numbers of those that others began meanwhile."""

    commits: Sequence[LateCommit]
    begins: Sequence[int]
    others: range
    back_ns: int

    def pairs(self, from_ns: int | None = None, before_ns: int | None = None) -> Iterator[tuple[LateCommit, int]]:
        """Each commit with the runs that it is the first one after, `back_ns` or more behind their begin.

        Of many such runs those that began last, so that the work follows the number of commits.
        """
        first = 0 if from_ns is None else bisect_left(self.commits, from_ns, key=_ts)
        last = len(self.commits) if before_ns is None else bisect_left(self.commits, before_ns, key=_ts)
        for place in range(first, last):
            row = self.commits[place]
            low = bisect_right(self.begins, self.commits[place - 1].ts) if place else 0
            high = min(bisect_right(self.begins, row.ts - self.back_ns), self.others.stop)
            for number in range(max(low, self.others.start, high - MOST_OTHERS), high):
                yield row, number


def _ts(commit: LateCommit) -> int:
    return commit.ts


def _without_fetches(client: Client, other: Read, last: LateCommit) -> Read:
    return Read(other.ts, other.ts, client, other.first_offset, last.offset, -1 - last.row)


def _overlap(own: Read, other: Read, late: LateCommit, back_ns: int) -> Overlap | None:
    """What this late commit tells of the two; None where it tells nothing."""
    began, reached, offset = other.first_offset, own.next_offset, late.offset
    if began is None or reached is None or offset is None or min(reached, offset) <= began:
        return None
    # Who fetched on, also where the capture lacks that, may have been given the partition back; a refusal says that it
    # was not.
    if (own.ts_last > other.ts + back_ns or offset > reached) and late.error_code not in FENCED:
        return None
    return Overlap(own, other, late, min(offset, reached) - began)


def _silence(overlaps: Sequence[ToldOverlap], silences: Sequence[Row]) -> Row | None:
    """The membership of the one that came back whose silence covers the moment at which the other began."""
    own, began = overlaps[-1].own, min(one.other.ts for one in overlaps)
    covers = (
        row
        for row in silences
        if (row["client_address"], row["client_id"]) == own.client
        and row["ts_silent"] is not None
        and row["max_heartbeat_gap_ms"] is not None
        and row["ts_silent"] <= began <= row["ts_silent"] + row["max_heartbeat_gap_ms"] * NS_PER_MS
    )
    return max(covers, key=lambda row: float(row["max_heartbeat_gap_ms"]), default=None)


def _read_twice(one: ToldOverlap) -> str:
    began = one.other.first_offset or 0
    return f"{partition_text(*one.own.place)} {began} to {began + one.records - 1}"


def _finding(cluster: str | None, overlaps: Sequence[ToldOverlap], silence: Row | None) -> Finding:
    own, other, late = overlaps[-1].own, overlaps[-1].other, overlaps[0].late
    accepted = any(one.late["error_code"] == 0 for one in overlaps)
    back = min(one.late["ts"] for one in overlaps)
    began = min(one.other.ts for one in overlaps)
    # Its last fetch may be one of after it came back.
    read_ns = max((one.own.ts_last for one in overlaps if one.own.ts_last < began), default=None)
    silent = silence["ts_silent"] if silence is not None else read_ns if own.fetches else None
    records = sum(one.records for one in overlaps)
    without = "a request to its group" if silence is not None else "reading"
    pause = f", after {seconds_text(back - silent)} without {without}" if silent is not None else ""
    slow = "" if silence and silence["idle_side"] else ", or handling longer than max.poll.interval.ms"
    side = f" {sentence_start(side_text(silence))}." if silence is not None else ""
    key = {"cluster": cluster, "group": own.group_id, "client": own.client_id, "address": own.client_address}
    where = [_read_twice(one) for one in overlaps[:MAX_NAMED]]
    member, places = late["member_id"] or own.member_id, len({one.own.place for one in overlaps})
    known = [member_name(one) for one in (member, other.member_id) if one]
    members = f" They are members {' and '.join(known)}." if len(known) == 2 else ""
    elsewhere = f" of {count(places, 'partition')}" if places > 1 else ""
    first, also = ("first ", f" Also {', '.join(where[1:])}.") if where[1:] else ("", "")
    more = f" and {len(overlaps) - 1:,} more" if overlaps[1:] else ""
    return RULE.finding(
        severity="critical" if accepted else "warning",
        confidence="high" if own.fetches else "medium",
        subject={**key, "other": other.client_id, "other_address": other.client_address},
        title=title_text(
            f"{count(records, 'record')} handled twice: {{}}{more}, by {{}} and {{}}",
            partition_text(*overlaps[0].own.place), *_two(own.client, other.client),
        ),
        sentence=(
            f"{group_text(own.group_id)}: {who_text(*own.client)} and {who_text(*other.client)} handled the same "
            f"{count(records, 'record')}{elsewhere} ({first}{where[0]}).{also}{members} "
            f"The first came back at {moment_text(back)}{pause}; its late commit was "
            f"{'accepted' if accepted else 'refused'}. The other had read since {moment_text(began)}.{side}"
        ),
        next_step=(
            f"Find out {side_step(silence or {'idle_side': None})}{slow}. "
            "Make handling idempotent, since Kafka cannot stop a member that comes back."
        ),
        proof=proof_of_runs(
            [one.own for one in overlaps] + [one.other for one in overlaps],
            [Evidence(one.late["file"], one.late["request_packet"], one.late["exchange_id"])
             for one in overlaps],
        )._replace(ts_last_ns=max(one.late["ts"] for one in overlaps)),
        numbers={
            **key,
            "client_id": own.client_id,
            "member": member,
            "partitions": partition_names(one.own.place for one in overlaps),
            "records_again": records,
            "accepted": accepted,
            "silent_ms": round((back - silent) / NS_PER_MS) if silent is not None else None,
            "idle_side": silence["idle_side"] if silence is not None else None,
            "ts_taken_over": time_text(began),
            "ts_back": time_text(back),
            "clients": [who_numbers(*own.client, member),
                        who_numbers(*other.client, other.member_id)],
        },
    )  # fmt: skip


def _two(one: Client, other: Client) -> tuple[str, str]:
    first, second = short_clients([one, other])
    return first, second


RULE = Rule(
    code="KAF127",
    question="concurrent",
    name="zombie-overlap",
    severity="critical",
    confidence="high",
    reads={
        RUNS: RUN_COLUMNS,
        COMMITS: (
            "ts", "exchange_id", "topic", "partition", "client_id", "client_address", "member_id", "committed_offset",
            "error_code", "file", "request_packet",
        ),
        MEMBERS: ("ts", "client_address", "client_id", "ts_silent", "max_heartbeat_gap_ms", "idle_side"),
    },
    partition_by=KEYS,
    detect=detect,
    # A commit so long after its client's last one is the first of those in its stretch of that length: to look for it
    # among the firsts takes a tenth of what putting all commits in order does.
    suspects=f"""
        SELECT other.cluster_id, other.group_id
        FROM r_{RUNS} AS other
        JOIN (SELECT {_BY_CLIENT},
                     max(ts) FILTER (coalesce(ts - before >= {_BACK_NS}, true)) AS ts,
                     max(committed_offset) AS committed_offset
              FROM (SELECT {_BY_CLIENT}, min(ts) AS ts, max(committed_offset) AS committed_offset,
                           lag(max(ts)) OVER (PARTITION BY {_BY_CLIENT} ORDER BY ts // {_BACK_NS}) AS before
                    FROM r_{COMMITS} GROUP BY {_BY_CLIENT}, ts // {_BACK_NS})
              GROUP BY {_BY_CLIENT}) AS late
            ON other.cluster_id IS NOT DISTINCT FROM late.cluster_id AND other.group_id = late.group_id
            AND other.topic = late.topic AND other.partition = late.partition
        WHERE late.ts > other.ts + {_BACK_NS} AND late.committed_offset > other.first_offset
            AND (late.client_id IS DISTINCT FROM other.client_id
                 OR late.client_address IS DISTINCT FROM other.client_address)""",
)  # fmt: skip

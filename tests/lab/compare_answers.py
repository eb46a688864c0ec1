"""The broker's answers beside what wirewitness tells at the instants of the questions.

In: an analysis of the capture and the answers (`broker_answers.py`). Out: Compared rows, one for each thing asked of.
What a question took stands between `from` and `to`: what wirewitness tells at one of both, or anything in between, may
be the answer. Between the broker's memory and its network card lies a way that takes longer on a busy machine; how
long, the requests say that were answered about then (`load_slack.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tests.lab.load_slack import Slack
from wirewitness.analyser.analysis.analysis import Analysis
from wirewitness.analyser.kafka.facts.log_ends import DELETED_TOPICS, LOG_STEPS, ends_of_bins
from wirewitness.reports.base.questions.source import rows
from wirewitness.reports.protocols.kafka.questions.view import view_sql
from wirewitness.reports.protocols.kafka.questions.views import VIEWS

# Offsets of a deleted topic go when the coordinator has read of it in the cluster's metadata, not with the answer.
REACHES_NS = 1_000_000_000
NO_OFFSET = "no stored offset"

_UNDER_WAY = """
    select distinct transactional_id, epoch_ns(exchanges.ts) as begin, epoch_ns(exchanges.ts_response) as done
    from kafka_transaction_spans as spans join exchanges on exchanges.client_id = spans.client_id
    where operation = 'EndTxn' or exchanges.ts = spans.ts"""
# What changes who is a member and what it has, at its answer.
_MEMBERSHIP = """
    select distinct epoch_ns(ts_response) as at_ns from exchanges where ts_response is not null
    and operation in ('JoinGroup', 'SyncGroup', 'LeaveGroup', 'ConsumerGroupHeartbeat')"""
_FIRST_TOLD = """
    select topic || '-' || partition as part, min(epoch_ns(ts)) as at_ns from kafka_partitions group by all"""
_IN_TRANSACTIONS = "select distinct topic from kafka_produce_batches where transactional"

Row = tuple[str, str, Any, tuple[Any, ...]]  # kind, what, the answer, what is told
Stand = dict[tuple[str, str], tuple[Any, Any, Any]]  # of group and partition: committed offset, log end, lag
Offsets = dict[str, dict[str, int]]  # of groups, of partitions


class Compared(NamedTuple):
    """One comparison. told: what wirewitness tells at the question's begin and end, and in between."""

    kind: str
    at_ns: int
    what: str
    answer: Any
    told: tuple[Any, ...]
    within: bool  # a number between those that were told

    @property
    def equal(self) -> bool:
        """Whether the answer is told at one of both ends, or in between."""
        return self.answer in self.told

    @property
    def good(self) -> bool:
        """Whether both agree."""
        return self.equal or self.within


def view_at(analysis: Analysis, name: str, flag: str, at_ns: int) -> list[dict[str, Any]]:
    """Rows of a view as `--at` shows them."""
    return rows(analysis, view_sql(VIEWS[name][flag], until_ns=at_ns))


class Told:
    """What wirewitness tells, at any time."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._slack = Slack(analysis)
        self._stored: tuple[tuple[Stand, Stand], Offsets] = (({}, {}), {})
        self._answered: set[tuple[str, str]] = set()  # group and partition of which the broker had an offset once
        self._changes = [_ns(row) for row in rows(analysis, view_sql(VIEWS["groups"]["changes"]))]
        self._spans = [_ns(row) for row in rows(analysis, view_sql(VIEWS["clients"]["transactions"]))]
        self._memberships = [row["at_ns"] for row in rows(analysis, _MEMBERSHIP)]
        self._first_told = {row["part"]: row["at_ns"] for row in rows(analysis, _FIRST_TOLD)}
        self._with_markers = {row["topic"] for row in rows(analysis, _IN_TRANSACTIONS)}
        self._deletions = rows(analysis, DELETED_TOPICS)
        # From the question to the answer nobody but the broker knows.
        self._under_way = rows(analysis, _UNDER_WAY)

    def compared(self, answer: Mapping[str, Any]) -> Iterator[Compared]:
        """The comparisons that one answer gives."""
        kinds = {"groups": self._groups, "offsets": self._offsets, "ends": self._log_ends,
                 "transactions": self._transactions, "replicas": self._replicas}  # fmt: skip
        begin, end = self._slack.around(answer["from"], answer["to"])
        for kind, what, value, told in kinds[answer["event"]](answer["told"], begin, end):
            # Nothing yet is less than any number.
            numbers = [-1 if one is None else one for one in told if one is None or isinstance(one, int)]
            within = isinstance(value, int) and bool(numbers) and min(numbers) <= value <= max(numbers)
            yield Compared(kind, answer["from"], what, value, told, within)

    # begin and end of the following: with the slack

    def _groups(self, answers: dict[str, Any], begin: int, end: int) -> Iterator[Row]:
        times = (begin, *sorted({one for one in self._memberships if begin < one < end}), end)
        members = [_members(view_at(self._analysis, "groups", "members", when)) for when in times]
        for group, answer in answers.items():
            told = self._between(group, begin, end)
            if answer["state"] in ("Dead", "Empty") and self._begins(group) >= begin:
                continue  # the broker answered before the group's first request
            yield "state", group, answer["state"], tuple(one["state"] for one in told)
            yield "members", group, len(answer["members"]), tuple(one["members"] for one in told)
            if answer["type"]:
                yield "type", group, answer["type"], tuple((one["type"] or "").title() for one in told)
            if answer["assignor"] and any(one["assignor"] for one in told):
                yield "assignor", group, answer["assignor"], tuple(one["assignor"] for one in told)
            if answer["epoch"] is not None and any(one["generation"] is not None for one in told):
                yield "epoch", group, answer["epoch"], tuple(one["generation"] for one in told)
            for member, said in answer["members"].items():
                seen = tuple(one.get((group, member)) for one in members)
                if said["client_id"]:
                    who = (said["client_id"], said["host"])
                    yield "who", f"{group} {member}", who, tuple(one and one[:2] for one in seen)
                yield "assignment", f"{group} {member}", said["has"], tuple(one and one[2] for one in seen)

    def _begins(self, group: str) -> int:
        """When the group is first heard of; the end of time where never."""
        return min((row["ts"] for row in self._changes if row["group_id"] == group), default=2**63 - 1)

    def _between(self, group: str, begin: int, end: int) -> list[dict[str, Any]]:
        own = [row for row in self._changes if row["group_id"] == group]
        return [
            row
            for row, after in zip(own, [*own[1:], None], strict=True)
            if row["ts"] <= end and (after is None or after["ts"] >= begin)
        ]

    def _offsets(self, answers: Offsets, begin: int, end: int) -> Iterator[Row]:
        stands = self._stand(begin), self._stand(end)
        self._stored = (stands, answers)
        stored = {(group, part): offset for group, parts in answers.items() for part, offset in parts.items()}
        self._answered |= set(stored)
        told_of = {key for stand in stands for key, (committed, *_) in stand.items() if committed is not None}
        for key in sorted({*stored, *self._answered, *told_of}):
            if key[0] in answers:
                told = tuple(one.get(key, (None,))[0] for one in (*stands, *self._before_deletion(key[1], begin, end)))
                yield "committed" if key in stored else NO_OFFSET, " ".join(key), stored.get(key), told

    def _stand(self, when: int) -> Stand:
        return _partitions(view_at(self._analysis, "groups", "", when))

    def _before_deletion(self, part: str, begin: int, end: int) -> Iterator[Stand]:
        """How things stood before the topic was deleted, where the coordinator may not know of that yet."""
        for one in self._deletions:
            if part.rpartition("-")[0] == one["topic"] and begin - REACHES_NS <= one["at_ns"] <= end:
                yield self._stand(one["at_ns"] - 1)

    def _log_ends(self, answers: dict[str, int], begin: int, end: int) -> Iterator[Row]:
        """These are asked for right after the stored offsets; the lag is of both questions together."""
        (first, second), offsets = self._stored
        third = self._stand(end)
        # A group's partition has a row once it is assigned: what was told of its log before stands elsewhere.
        before = self._ends_told(begin, answers)
        for part, answer in answers.items():
            told = {one[1] for stand in (first, second, third) for (_, of), one in stand.items() if of == part}
            if told:  # a partition that some group reads
                yield "log end", part, answer, (before.get(part), *told)
        for (group, part), (committed, log_end, _) in third.items():
            stored, earlier = offsets.get(group, {}).get(part), first.get((group, part))
            if stored is None or earlier is None or part not in answers:
                continue
            ends = [one for one in (earlier[1], before.get(part)) if one is not None]
            if ends and None not in (earlier[0], committed, log_end):
                # The least and the most that it can have been; the same where nothing happened.
                yield "lag", f"{group} {part}", answers[part] - stored, (min(ends) - committed, log_end - earlier[0])

    def _ends_told(self, when: int, parts: Iterable[str]) -> dict[str, int]:
        """Log ends that answers had told by then, whether a group reads the partition or not.

        A transaction's marker is told of when its end is asked for; the broker writes it behind its answer, by a
        request of its own. So it takes that way twice.
        """
        marked = [part for part in parts if part.rpartition("-")[0] in self._with_markers]
        late = self._ends_at(self._slack.earlier(when)) if marked else {}
        told = self._ends_at(when)
        return {part: late.get(part, told[part]) if part in marked else told[part] for part in parts if part in told}

    def _ends_at(self, when: int) -> dict[str, int]:
        told = rows(
            self._analysis,
            ends_of_bins(f"(SELECT *, 0 AS bin, true AS here FROM ({LOG_STEPS}) WHERE at_ns <= {when})"),
        )
        return {f"{row['topic']}-{row['partition']}": row["log_end"] for row in told}

    def _transactions(self, answers: dict[str, Any], begin: int, end: int) -> Iterator[Row]:
        for name, answer in answers.items():
            own = [span for span in self._spans if span["transactional_id"] == name]
            told = tuple(any(_open(span, when) for span in own) for when in (begin, end))
            changing = {one for span in own for one in (span["ts"], span["ts"] + round((span["open_ms"] or 0) * 1e6))}
            if any(
                one["transactional_id"] == name and one["begin"] <= end and one["done"] >= begin
                for one in self._under_way
            ) or any(begin <= one <= end for one in changing):
                told = (True, False)
            yield "transaction open", name, answer["state"] == "Ongoing", told

    def _replicas(self, answers: dict[str, Any], begin: int, end: int) -> Iterator[Row]:
        told = view_at(self._analysis, "topics", "partitions", end)
        seen = {f"{row['topic']}-{row['partition']}": (row["leader_id"], row["isr"]) for row in told}
        for part, (leader, isr) in answers.items():
            if self._first_told.get(part, begin) < end:  # later: no client had asked for it by then
                yield "leader and ISR", part, (leader, str(isr)), (seen.get(part),)


def _ns(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "ts": row["ts"].value}


def _members(found: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {
        (row["group_id"], row["member_id"]): (row["client_id"], row["client_address"], _parts(row["assignment"]))
        for row in found
    }


def _parts(assignment: str | None) -> list[str]:
    """["orders-0", "orders-1"] of "orders(0,1)"."""
    topics = [one.rstrip(")").split("(") for one in (assignment or "").split(", ") if one]
    return sorted(f"{topic}-{part}" for topic, parts in topics for part in parts.split(","))


def _partitions(found: list[dict[str, Any]]) -> Stand:
    return {
        (row["group_id"], f"{row['topic']}-{row['partition']}"): (
            row["committed_offset"], row["log_end_offset"], row["lag"],
        )
        for row in found
    }  # fmt: skip


def _open(span: dict[str, Any], when: int) -> bool:
    return bool(span["ts"] <= when and (span["open_ms"] is None or when < span["ts"] + span["open_ms"] * 1e6))

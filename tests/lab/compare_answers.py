"""The broker's answers beside what wirewitness tells at the instants of the questions.

In: an analysis of the capture and the answers (`broker_answers.py`). Out: Compared rows, one for each thing asked of.
What a question took stands between `from` and `to`: what wirewitness tells at one of both, or anything in between, may
be the answer; SLACK_NS goes for the way of packets between the broker's memory and its network card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from analyser.tables.analysis import Analysis
from reports.questions.kafka_views import VIEWS, view_sql
from reports.questions.source import rows

SLACK_NS = 50_000_000


_UNDER_WAY = """
    select distinct transactional_id, epoch_ns(exchanges.ts) as begin, epoch_ns(exchanges.ts_response) as done
    from kafka_transaction_spans as spans join exchanges on exchanges.client_id = spans.client_id
    where operation = 'EndTxn' or exchanges.ts = spans.ts"""


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
        self._stored: tuple[list[dict[tuple[str, str], Any]], dict[str, dict[str, int]]] = ([{}, {}], {})
        self._changes = [_ns(row) for row in rows(analysis, view_sql(VIEWS["groups"]["changes"]))]
        self._spans = [_ns(row) for row in rows(analysis, view_sql(VIEWS["clients"]["transactions"]))]
        # From the question to the answer nobody but the broker knows.
        self._under_way = rows(analysis, _UNDER_WAY)

    def compared(self, answer: Mapping[str, Any]) -> Iterator[Compared]:
        """The comparisons that one answer gives."""
        kinds = {"groups": self._groups, "offsets": self._offsets, "ends": self._log_ends,
                 "transactions": self._transactions, "replicas": self._replicas}  # fmt: skip
        for kind, what, value, told in kinds[answer["event"]](answer["told"], answer["from"], answer["to"]):
            # Nothing yet is less than any number.
            numbers = [-1 if one is None else one for one in told if one is None or isinstance(one, int)]
            within = isinstance(value, int) and bool(numbers) and min(numbers) <= value <= max(numbers)
            yield Compared(kind, answer["from"], what, value, told, within)

    def _groups(self, answers: dict[str, Any], begin: int, end: int) -> Iterator[tuple[str, str, Any, tuple[Any, ...]]]:
        members = [_members(view_at(self._analysis, "groups", "members", when)) for when in _ends(begin, end)]
        for group, answer in answers.items():
            told = self._between(group, begin, end)
            if answer["state"] in ("Dead", "Empty") and self._begins(group) >= begin - SLACK_NS:
                continue  # the broker answered before the group's first request
            yield "state", group, answer["state"], tuple(one["state"] for one in told)
            yield "members", group, len(answer["members"]), tuple(one["members"] for one in told)
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
            if row["ts"] <= end + SLACK_NS and (after is None or after["ts"] >= begin - SLACK_NS)
        ]

    def _offsets(
        self, answers: dict[str, Any], begin: int, end: int
    ) -> Iterator[tuple[str, str, Any, tuple[Any, ...]]]:
        stands = [_partitions(view_at(self._analysis, "groups", "", when)) for when in _ends(begin, end)]
        self._stored = (stands, answers)
        for group, stored in answers.items():
            for part, offset in stored.items():
                yield (
                    "committed",
                    f"{group} {part}",
                    offset,
                    tuple(one.get((group, part), (None,))[0] for one in stands),
                )

    def _log_ends(
        self, answers: dict[str, int], begin: int, end: int
    ) -> Iterator[tuple[str, str, Any, tuple[Any, ...]]]:
        """These are asked for right after the stored offsets; the lag is of both questions together."""
        (first, second), offsets = self._stored
        third = _partitions(view_at(self._analysis, "groups", "", end + SLACK_NS))
        for part, answer in answers.items():
            told = {one[1] for stand in (first, second, third) for (_, of), one in stand.items() if of == part}
            if told:  # a partition that some group reads
                yield "log end", part, answer, tuple(told)
        for (group, part), (committed, log_end, _) in third.items():
            stored, before = offsets.get(group, {}).get(part), first.get((group, part))
            if stored is not None and before is not None and None not in (*before, committed, log_end):
                # The least and the most that it can have been; the same where nothing happened.
                yield "lag", f"{group} {part}", answers[part] - stored, (before[1] - committed, log_end - before[0])

    def _transactions(
        self, answers: dict[str, Any], begin: int, end: int
    ) -> Iterator[tuple[str, str, Any, tuple[Any, ...]]]:
        for name, answer in answers.items():
            own = [span for span in self._spans if span["transactional_id"] == name]
            told = tuple(any(_open(span, when) for span in own) for when in _ends(begin, end))
            changing = {one for span in own for one in (span["ts"], span["ts"] + round((span["open_ms"] or 0) * 1e6))}
            if any(
                one["transactional_id"] == name and one["begin"] <= end + SLACK_NS and one["done"] >= begin - SLACK_NS
                for one in self._under_way
            ) or any(begin - SLACK_NS <= one <= end + SLACK_NS for one in changing):
                told = (True, False)
            yield "transaction open", name, answer["state"] == "Ongoing", told

    def _replicas(
        self, answers: dict[str, Any], begin: int, end: int
    ) -> Iterator[tuple[str, str, Any, tuple[Any, ...]]]:
        told = view_at(self._analysis, "topics", "partitions", end)
        seen = {f"{row['topic']}-{row['partition']}": (row["leader_id"], row["isr"]) for row in told}
        for part, (leader, isr) in answers.items():
            yield "leader and ISR", part, (leader, str(isr)), (seen.get(part),)


def _ends(begin: int, end: int) -> tuple[int, int]:
    return begin - SLACK_NS, end + SLACK_NS


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


def _partitions(found: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[Any, Any, Any]]:
    return {
        (row["group_id"], f"{row['topic']}-{row['partition']}"): (
            row["committed_offset"], row["log_end_offset"], row["lag"],
        )
        for row in found
    }  # fmt: skip


def _open(span: dict[str, Any], when: int) -> bool:
    return bool(span["ts"] <= when and (span["open_ms"] is None or when < span["ts"] + span["open_ms"] * 1e6))

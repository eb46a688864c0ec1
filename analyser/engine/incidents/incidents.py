"""Findings of one cause become one incident: the cause first, then what followed from it.

In: rows of the table of findings, whatever rules gave them. Out: the same rows with `incident_id` (the finding that is
told first) and `incident_order` (a text by which they sort as a report tells them). Both depend on the rows alone, so
that captures, live windows and datasets get them in the same way, after all rules ran.

One fault shows on many partitions: findings that are alike are put together first (`_Alike`). Each of these groups then
looks for its cause in the table of links (`incident_links.py`): what both must have in common, and that the consequence
is no earlier than the cause. The group at the head of a chain gives the incident its id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wirewitness.analyser.base.severity import confidence_rank, severity_rank
from wirewitness.analyser.base.times import NS_PER_S
from wirewitness.analyser.engine.incidents.incident_facts import Facts, Shared, facts_of, numbers_of
from wirewitness.analyser.engine.incidents.incident_links import LINKS, Link
from wirewitness.analyser.engine.numbers import cost

Row = Mapping[str, Any]

# So long after a cause is over something may still follow from it, unless the link lasts.
_LATER_NS = 90 * NS_PER_S
# Candidates looked at for one consequence: more are alike in everything that is compared.
_MOST_CANDIDATES = 64
# Rules whose findings accuse one client: so many clients are told one by one, more of them are one incident.
_TOLD_BY_CLIENT = ("KAF", "NET", "MON")
# Rules about what a server answers: each kind of trouble is told by itself, for all clients that meet it.
_TOLD_BY_KIND = ("MON102",)
_MOST_CULPRITS = 3
# What rules of a protocol say goes before what TCP says of it, and this before what the capture lacks.
_FAMILIES = {"NET": 1, "TCP": 2, "CAP": 3}
_WORST_COST = 10**12 - 1
# Where a code stands in the table of links: causes before what follows from them.
_RANKS = {code: place for place, code in enumerate(dict.fromkeys(link.cause for link in LINKS))}


@dataclass(slots=True)
class _Member:
    """A finding with what is read from its numbers."""

    row: Row
    numbers: Mapping[str, Any]
    facts: Facts
    cost: float

    @property
    def badness(self) -> tuple[int, int, int, float, str]:
        """Sort key: the most severe first, among these what causes the others, the surest, the dearest."""
        row, severity, confidence = self.row, self.row["severity"], self.row["confidence"]
        rank = _RANKS.get(row["code"], len(_RANKS))
        return -severity_rank(severity), rank, -confidence_rank(confidence), -self.cost, row["finding_id"]


@dataclass(slots=True)
class _Alike:
    """Findings that tell one thing, the worst first. code: of the worst; cause: what it follows from."""

    members: list[_Member]
    shared: frozenset[Shared]
    cluster: str | None
    first_ns: int | None
    last_ns: int | None
    cause: _Alike | None = None
    followed_by: list[_Alike] = field(default_factory=list)

    @property
    def code(self) -> str:
        return str(self.members[0].row["code"])

    @property
    def operations(self) -> set[Any]:
        """What the requests did that it is about, or what kind of trouble it is, where it says so."""
        return {value for member in self.members for value in _operations(member.numbers)}

    @property
    def head(self) -> _Alike:
        found = self
        while found.cause is not None:
            found = found.cause
        return found


def with_stories(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows with `incident_id` and `incident_order`, in that order. Times are Unix ns or None."""
    alike = _alike([_member(row) for row in rows])
    _link(alike)
    told = [row for head in _clients_together(alike) if head.cause is None for row in _rows(head)]
    return sorted(told, key=lambda row: (row["incident_order"], row["finding_id"]))


def _member(row: Row) -> _Member:
    numbers = numbers_of(row)
    return _Member(row, numbers, facts_of(row, numbers), cost(numbers))


# Findings that are alike --------------------------------------------------------------------------------------------


def _alike(members: Sequence[_Member]) -> list[_Alike]:
    """Those with the same committers of a partition's findings, or with one code in a group; else by who caused them.

    A partition's findings name some of its committers each, so that all of them together say which partitions are hit
    by the same ones.
    """
    committers: dict[tuple[Any, ...], set[tuple[Any, ...]]] = defaultdict(set)
    for member in members:
        committers[_place(member)] |= member.facts.committers
    groups: dict[tuple[Any, ...], list[_Member]] = defaultdict(list)
    for member in members:
        groups[_likeness(member, frozenset(committers[_place(member)]))].append(member)
    return [_put_together(found) for found in groups.values()]


def _place(member: _Member) -> tuple[Any, ...]:
    """What the finding is about as narrowly as it says."""
    numbers = member.numbers
    topic, partition = numbers.get("topic"), numbers.get("partition")
    is_one = topic is not None and isinstance(partition, int)
    place = f"{topic}-{partition}" if is_one else f"finding {member.row['finding_id']}"
    return str(member.facts.cluster), str(numbers.get("group")), place


def _likeness(member: _Member, committers: frozenset[tuple[Any, ...]]) -> tuple[Any, ...]:
    code, group = member.row["code"], member.numbers.get("group")
    of = (str(member.facts.cluster), str(group))
    if committers:
        return (*of, committers)
    if group is not None:
        return (*of, code)
    return (*of, code, _kind(member), member.facts.culprits[:1] or frozenset(member.facts.of_kind("server")))


def _kind(member: _Member) -> str | None:
    """What kind of trouble it is, where each is told by itself."""
    kind = member.numbers.get("kind")
    return kind if isinstance(kind, str) and member.row["code"] in _TOLD_BY_KIND else None


def _put_together(members: list[_Member]) -> _Alike:
    ordered = sorted(members, key=lambda member: member.badness)
    firsts = [m.facts.first_ns for m in members if m.facts.first_ns is not None]
    lasts = [m.facts.last_ns for m in members if m.facts.last_ns is not None]
    clusters = {m.facts.cluster for m in members} - {None}
    return _Alike(
        ordered,
        frozenset().union(*(m.facts.shared for m in members)),
        clusters.pop() if len(clusters) == 1 else None,
        min(firsts, default=None),
        max(lasts, default=None),
    )


# Causes -------------------------------------------------------------------------------------------------------------


def _link(found: Sequence[_Alike]) -> None:
    """Give each its cause, where there is one: the first link that holds, there the one with most in common."""
    by_code: dict[str, list[_Alike]] = defaultdict(list)
    for one in found:
        for code in {member.row["code"] for member in one.members}:
            by_code[code].append(one)
    for link in LINKS:
        causes = [one for one in by_code.get(link.cause, ()) if not link.of or one.operations & set(link.of)]
        if not causes:
            continue
        of_value: dict[Shared, list[_Alike]] = defaultdict(list)
        for cause in causes:
            for value in cause.shared:
                if value[0] in link.agree:
                    of_value[value].append(cause)
        for code in link.follows:
            for one in by_code.get(code, ()):
                if one.cause is None and one.code == code:
                    _take_cause(one, link, of_value)


def _take_cause(one: _Alike, link: Link, of_value: Mapping[Shared, Sequence[_Alike]]) -> None:
    near = {id(c): c for value in one.shared for c in of_value.get(value, ())[:_MOST_CANDIDATES]}
    fitting = [c for c in near.values() if c.head is not one and _fits(c, one, link)]
    if fitting:
        one.cause = max(fitting, key=lambda c: (len(c.shared & one.shared), -(c.first_ns or 0), _id(c)))
        one.cause.followed_by.append(one)


def _operations(numbers: Mapping[str, Any]) -> set[Any]:
    done = None if numbers.get("error_code") else numbers.get("operation")  # what was refused did nothing
    return {value for value in (done, numbers.get("kind")) if isinstance(value, str)}


def _id(one: _Alike) -> str:
    return str(one.members[0].row["finding_id"])


def _fits(cause: _Alike, one: _Alike, link: Link) -> bool:
    """One cluster, not another client of one host, and the consequence neither before the cause nor long after it."""
    if cause.cluster is not None and one.cluster is not None and cause.cluster != one.cluster:
        return False
    if not _agree(cause.shared & one.shared, link):
        return False
    if cause.first_ns is None or cause.last_ns is None or one.first_ns is None or one.last_ns is None:
        return True
    begins_in_time = link.lasts or one.first_ns <= cause.last_ns + _LATER_NS
    return begins_in_time and one.last_ns >= _began_ns(cause, link) - link.seen_late_s * NS_PER_S


def _began_ns(cause: _Alike, link: Link) -> int:
    """When what the link is about began: one client's incident may hold other operations from before."""
    meant = [one for one in cause.members if not link.of or _operations(one.numbers) & {*link.of}]
    return min((one.facts.first_ns for one in meant if one.facts.first_ns is not None), default=cause.first_ns or 0)


def _agree(common: frozenset[Shared], link: Link) -> bool:
    """Something else than an address is in common, or an address whose client one of them does not know."""
    kinds = {kind for kind, _ in common if kind in link.agree}
    if kinds != {"address"}:
        return bool(kinds)
    return any(("named", value) not in common for kind, value in common if kind == "address")


# Clients with one trouble --------------------------------------------------------------------------------------------


def _clients_together(found: Sequence[_Alike]) -> list[_Alike]:
    """Clients that have one trouble of one cause are one part of an incident: all of them, where rules do not tell them
    one by one, else more than a few. A client whose trouble has another cause, or none, is not among them."""
    made: list[_Alike] = []
    parts: dict[tuple[Any, ...], list[_Alike]] = defaultdict(list)
    for one in found:
        if one.cause is None:
            parts[_trouble(one)].append(one)
    while parts:
        level, parts = parts, defaultdict(list)
        for alike in level.values():
            for one in _joined(alike):
                made.append(one)
                for follower in one.followed_by:
                    follower.cause = one
                    parts[_trouble(follower)].append(follower)
                one.followed_by = []
                if one.cause is not None:
                    one.cause.followed_by.append(one)
    return made


def _trouble(one: _Alike) -> tuple[Any, ...]:
    """What is put together has this in common."""
    worst, cause = one.members[0], id(one.cause)
    if worst.facts.committers or worst.numbers.get("group") is not None:
        return cause, id(one)
    return cause, str(one.cluster), one.code, _kind(worst)


def _joined(alike: list[_Alike]) -> list[_Alike]:
    code = alike[0].code
    by_client = code.startswith(_TOLD_BY_CLIENT) and code not in _TOLD_BY_KIND
    if len(alike) == 1 or (len(alike) <= _MOST_CULPRITS and by_client):
        return alike
    whole = _put_together([member for one in alike for member in one.members])
    whole.cause = alike[0].cause
    whole.followed_by = [follower for one in alike for follower in one.followed_by]
    return [whole]


# Order --------------------------------------------------------------------------------------------------------------


def _rows(head: _Alike) -> Iterable[dict[str, Any]]:
    """Rows of an incident: the cause, then what followed from it, the worst first, each before its own followers."""
    parts = list(_told(head))
    members = [member for part in parts for member in part.members]
    severity = max(severity_rank(member.row["severity"]) for member in members)
    family = min(_FAMILIES.get(member.row["code"][:3], 0) for member in members)
    # What several findings of an incident count is mostly the same records.
    worst_cost = max(member.cost for member in members)
    # In thousandths of a record; what cost little stands before what cost nothing that is known.
    whole_cost = min(max(round(1000 * worst_cost), int(worst_cost > 0)), _WORST_COST)
    order = f"{2 - severity}{family}-{_WORST_COST - whole_cost:012d}"
    order += f"-{9999 - min(len(members), 9999):04d}-{head.code}-{_id(head)}"
    for place, part in enumerate(parts):
        for number, member in enumerate(part.members):
            yield {**member.row, "incident_id": _id(head), "incident_order": f"{order}-{place:04d}-{number:05d}"}


def _told(head: _Alike) -> Iterable[_Alike]:
    waiting = [head]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += sorted(one.followed_by, key=lambda part: part.members[0].badness, reverse=True)

"""Findings that somebody has looked at, told from those that are new. In: findings, and entries of a review. Out: for
each finding the entry that it was looked at under, and what has grown since.

An entry is of one rule and one subject (`review_subject.py`) and says how much there was of it. Findings of that rule
whose subject has all pairs of the entry are the same trouble again. It has grown when it is more severe, when the
number that counts it is at least twice what it was and five more, or when new partitions are at least half as many as
there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from wirewitness.analyser.base.severity import severity_rank
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.review_subject import Subject, measured, places_of, subject_of, sum_of

TIMES_AS_MUCH = 2
LEAST_MORE = 5
_PLACES_NAMED = 8
_WHO_NAMED = 5


@dataclass(frozen=True, slots=True)
class Entry:
    """What was looked at, by whom, and how large it was then.

    subject: pairs that a finding's subject must have; `*` in a value stands for any text, and a cluster is compared
    only where the finding knows its own. measure: name of the number that `size` is the sum of. places: partitions,
    as `topic-number`. who: clients that it was about, for people.
    """

    rule: str
    subject: Subject = field(hash=False)
    note: str
    by: str
    date: date
    severity: str
    measure: str
    size: int | float
    places: tuple[str, ...] = ()
    who: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What two entries of one file cannot have in common; they sort by it."""
        return self.rule, " ".join(f"{name}={value}" for name, value in sorted(self.subject.items()))

    def covers(self, rule: str, subject: Subject) -> bool:
        """Whether findings of this rule and subject are what was looked at."""
        return rule == self.rule and all(_fits(name, wanted, subject) for name, wanted in self.subject.items())


class Trouble(NamedTuple):
    """Findings of one rule and one subject, the worst first."""

    rule: str
    subject: Subject
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> str:
        """The highest of them."""
        return max((finding.severity for finding in self.findings), key=severity_rank)


class Seen(NamedTuple):
    """A finding that was looked at. grew: what has grown since, for people; None: nothing has."""

    entry: Entry
    grew: str | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Findings beside a review. seen: finding id -> what is known. unmet: entries that no finding is of."""

    found: Sequence[Finding]
    seen: Mapping[str, Seen]
    unmet: Sequence[Entry] = ()

    @property
    def shown(self) -> list[Finding]:
        """Those that are new, and those that have grown."""
        return [finding for finding in self.found if not self.is_folded(finding)]

    @property
    def folded(self) -> list[Finding]:
        """Those that were looked at and have not grown."""
        return [finding for finding in self.found if self.is_folded(finding)]

    def is_folded(self, finding: Finding) -> bool:
        """Whether it was looked at and has not grown."""
        known = self.seen.get(finding.finding_id)
        return known is not None and known.grew is None

    def grown(self, finding: Finding) -> Seen | None:
        """What is known of a finding that was looked at and has grown."""
        known = self.seen.get(finding.finding_id)
        return known if known is not None and known.grew is not None else None


@dataclass(frozen=True, slots=True)
class Review:
    """The entries of a file. name: of the file, for people."""

    entries: tuple[Entry, ...]
    name: str = ""

    def judge(self, found: Sequence[Finding]) -> Judged:
        """The findings beside these entries: each trouble counts to the one that says most of its subject, of two alike
        to the newer."""
        met: dict[int, list[Finding]] = {}
        of_rule: dict[str, list[int]] = {}
        for number, entry in enumerate(self.entries):
            of_rule.setdefault(entry.rule, []).append(number)
        for trouble in troubles(found):
            numbers = of_rule.get(trouble.rule, ())
            fitting = [n for n in numbers if self.entries[n].covers(trouble.rule, trouble.subject)]
            if fitting:
                best = max(fitting, key=lambda n: (len(self.entries[n].subject), self.entries[n].date))
                met.setdefault(best, []).extend(trouble.findings)
        seen: dict[str, Seen] = {}
        for number, findings in met.items():
            entry = self.entries[number]
            seen |= dict.fromkeys((f.finding_id for f in findings), Seen(entry, growth(entry, findings)))
        return Judged(found, seen, [entry for number, entry in enumerate(self.entries) if number not in met])


NO_REVIEW = Review(())


def troubles(found: Iterable[Finding]) -> list[Trouble]:
    """Findings by rule and subject, in the order of their first one."""
    together: dict[tuple[str, tuple[tuple[str, str], ...]], list[Finding]] = {}
    for finding in found:
        together.setdefault((finding.code, tuple(sorted(subject_of(finding).items()))), []).append(finding)
    return [Trouble(rule, subject_of(findings[0]), tuple(findings)) for (rule, _), findings in together.items()]


def entry_of(trouble: Trouble, note: str, by: str, day: date) -> Entry:
    """The entry for a trouble as it is now."""
    measure, size = measured(trouble.findings)
    clients = [client for finding in trouble.findings for client in finding.who]
    names = dict.fromkeys(f"{c.get('client_id') or '(no client id)'}@{c.get('address') or '?'}" for c in clients)
    return Entry(
        rule=trouble.rule,
        subject=trouble.subject,
        note=note,
        by=by,
        date=day,
        severity=trouble.severity,
        measure=measure,
        size=size,
        places=places_of(trouble.findings),
        who=tuple(names)[:_WHO_NAMED],
    )


def growth(entry: Entry, found: Sequence[Finding]) -> str | None:
    """What has grown, for people; None where nothing has."""
    told = [*_more(entry, found), *_more_severe(entry, found), *_new_places(entry, found)]
    return "; ".join(told) or None


def _more(entry: Entry, found: Sequence[Finding]) -> Iterable[str]:
    now = sum_of(found, entry.measure)
    if now is not None and now >= TIMES_AS_MUCH * entry.size and now - entry.size >= LEAST_MORE:
        yield f"{entry.size:,} -> {now:,} {entry.measure.replace('_', ' ')}"


def _more_severe(entry: Entry, found: Sequence[Finding]) -> Iterable[str]:
    now = max((finding.severity for finding in found), key=severity_rank)
    if severity_rank(now) > severity_rank(entry.severity):
        yield f"severity {entry.severity} -> {now}"


def _new_places(entry: Entry, found: Sequence[Finding]) -> Iterable[str]:
    new = [place for place in places_of(found) if place not in entry.places]
    if entry.places and 2 * len(new) >= len(entry.places):
        more = f" and {len(new) - _PLACES_NAMED} more" if len(new) > _PLACES_NAMED else ""
        yield f"new {'partition' if len(new) == 1 else 'partitions'} {', '.join(new[:_PLACES_NAMED])}{more}"


def _fits(name: str, wanted: str, subject: Subject) -> bool:
    found = subject.get(name)
    return name == "cluster" if found is None else matches(found, wanted)


def matches(text: str, pattern: str) -> bool:
    """Whether the text is as the pattern says, in which `*` stands for any text; nothing else means anything."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *between, last = others
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for part in between:
        found = text.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True

"""Findings beside what was looked at before: whose subject is the same, and what has grown."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.app.cli.accepting import with_entries
from wirewitness.app.cli.review_file import entries_of
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.base.questions.review_subject import measured, subject_of
from wirewitness.reports.base.questions.reviews import Entry, Review, entry_of, growth, matches, troubles

DAY = date(2026, 11, 20)


def finding(subject: str, code: str = "KAF103", severity: str = "warning", **numbers: Any) -> Finding:
    return Finding(
        finding_id=f"{code} {subject} {numbers}", code=code, name="n", severity=severity, confidence="high",
        provisional=False, subject=subject, sentence="s", next_step="n", first_ns=None, last_ns=None, evidence=(),
        numbers=numbers, incident_id="s",
    )  # fmt: skip


def entry(*found: Finding) -> Entry:
    (trouble,) = troubles(found)
    return entry_of(trouble, "note", "anna", DAY)


@pytest.mark.parametrize(
    ("subject", "numbers", "kept"),
    [
        pytest.param(
            "cluster=abc group=g topic=t partition=4",
            {},
            {"cluster": "abc", "group": "g", "topic": "t"},
            id="partition",
        ),
        pytest.param("cluster=component:12ab group=g", {}, {"group": "g"}, id="cluster without a name"),
        pytest.param("cluster=? group=g", {}, {"group": "g"}, id="unknown"),
        pytest.param('group=g cause="offsets deleted" change=ab-c-90', {}, {"group": "g", "cause": "offsets deleted"}),
        pytest.param("client=app address=10.0.0.1 error=25", {}, {"client": "app", "error": "25"}, id="named client"),
        pytest.param(
            "client_id=consumer-1 address=10.0.0.1",
            {},
            {"client_id": "consumer-1", "address": "10.0.0.1"},
            id="no name",
        ),
        pytest.param("client=? address=10.0.0.1", {}, {"address": "10.0.0.1"}, id="no client id"),
        pytest.param(
            "flow=3fcc side=client remark=r",
            {"where": "10.0.0.2:1883", "clients": [{"client_id": "valve", "address": "10.0.0.9"}]},
            {"side": "client", "remark": "r", "where": "10.0.0.2:1883", "client_id": "valve"},
            id="connection",
        ),
        pytest.param(
            "flow=3fcc", {"server": "s:1", "address": "10.0.0.9"}, {"where": "s:1", "address": "10.0.0.9"}, id="unnamed"
        ),
        pytest.param(
            "transactional_id=tx producer_id=2 producer_epoch=0 at=2026-11-22T18:44:44.008Z",
            {},
            {"transactional_id": "tx"},
            id="transaction",
        ),
    ],
)
def test_a_subject_is_what_stays(subject: str, numbers: dict[str, Any], kept: dict[str, str]) -> None:
    assert subject_of(finding(subject, **numbers)) == kept


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("app", ["app"], ["app-1", "xapp", ""]),
        ("app-*", ["app-", "app-1"], ["app", "xapp-1"]),
        ("*-app", ["x-app"], ["app", "x-app-1"]),
        ("a*b*c", ["abc", "a1b2c", "abbc"], ["ac", "acb", "ab"]),
        ("ab*ba", ["abba", "abxba"], ["aba"]),
        ("*", ["", "x"], []),
        ("page/+/[1]?", ["page/+/[1]?"], ["page/+/1x"]),
    ],
)
def test_a_star_stands_for_any_text(pattern: str, fitting: list[str], others: list[str]) -> None:
    assert [text for text in (*fitting, *others) if matches(text, pattern)] == fitting


def test_a_pattern_of_stars_is_quick() -> None:
    assert not matches("a" * 4000, "*a" * 1500 + "b")


@pytest.mark.parametrize(
    ("then", "now", "grew"),
    [
        ({"steps_back": 12}, {"steps_back": 240}, "12 -> 240 steps back"),
        ({"steps_back": 12}, {"steps_back": 23}, None),
        ({"steps_back": 12}, {"steps_back": 24}, "12 -> 24 steps back"),
        ({"steps_back": 1}, {"steps_back": 5}, None),
        ({"steps_back": 1}, {"steps_back": 6}, "1 -> 6 steps back"),
        ({"steps_back": 12}, {"other": 1000}, None),
        ({"stood_still_ms": 1000.5}, {"stood_still_ms": 2001.0}, "1,000.5 -> 2,001.0 stood still ms"),
    ],
)
def test_what_counts_as_more(then: dict[str, Any], now: dict[str, Any], grew: str | None) -> None:
    assert growth(entry(finding("group=g", **then)), [finding("group=g", **now)]) == grew


def of_partitions(*numbers: int) -> list[Finding]:
    return [finding(f"group=g partition={n}", topic="t", partition=n, steps_back=10) for n in numbers]


@pytest.mark.parametrize(
    ("then", "now", "grew"),
    [
        ((1,), (1, 2), "10 -> 20 steps back; new partition t-2"),
        ((1, 2), (2, 3), "new partition t-3"),
        ((1, 2), (1,), None),
        ((1, 2, 3), (2, 3, 4), None),
        ((1, 2, 3), (1, 4, 5), "new partitions t-4, t-5"),
    ],
)
def test_new_partitions_are_growth_when_they_are_half_as_many(
    then: tuple[int, ...], now: tuple[int, ...], grew: str | None
) -> None:
    assert growth(entry(*of_partitions(*then)), of_partitions(*now)) == grew


def test_a_higher_severity_is_growth() -> None:
    known = entry(finding("group=g"))
    assert growth(known, [finding("group=g", severity="critical")]) == "severity warning -> critical"
    assert growth(known, [finding("group=g", severity="info")]) is None


def test_the_entry_that_says_most_counts() -> None:
    wide = Entry("KAF103", {}, "all", "", DAY, "critical", "", 0)
    narrow = Entry("KAF103", {"group": "g"}, "one", "", DAY, "critical", "", 0)
    other = Entry("KAF101", {}, "other rule", "", DAY, "critical", "", 0)
    found = [finding("group=g"), finding("group=h"), finding("group=g", code="KAF102")]
    judged = Review((wide, narrow, other)).judge(found)
    assert [judged.seen[f.finding_id].entry.note for f in found[:2]] == ["one", "all"]
    assert judged.shown == found[2:]
    assert judged.unmet == [other]


def test_a_cluster_is_compared_where_both_know_it() -> None:
    known = entry(finding("cluster=abc group=g"))
    found = [finding(f"cluster={name} group=g") for name in ("abc", "component:12", "?", "def")]
    assert [one.subject for one in Review((known,)).judge(found).shown] == ["cluster=def group=g"]


def test_findings_without_a_number_are_counted() -> None:
    assert measured([finding("group=g"), finding("group=h")]) == ("findings", 2)
    assert measured([finding("group=g", count=True, requests=3)]) == ("requests", 3)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(
        st.builds(
            Entry,
            rule=st.sampled_from(["KAF103", "MON104"]),
            subject=st.dictionaries(TEXTS, TEXTS, max_size=3),
            note=TEXTS,
            by=TEXTS,
            date=st.dates(),
            severity=st.sampled_from(["info", "critical"]),
            measure=TEXTS,
            size=st.integers(0, 2**62) | st.floats(0, 1e12),
            places=st.lists(TEXTS, max_size=9).map(tuple),
            who=st.lists(TEXTS, max_size=3).map(tuple),
        ),
        max_size=4,
    )
)
def test_what_is_written_is_read_again(entries: list[Entry]) -> None:
    text = with_entries("review.toml", "", entries)
    assert sorted(entries_of("review.toml", text), key=lambda e: e.key) == sorted(
        {e.key: e for e in entries}.values(), key=lambda e: e.key
    )
    assert all(line.isprintable() for line in text.split("\n"))

"""No rule and no stage of the context compares row against row: twice the rows are twice the work.

Each is given N, 2N and 4N rows of one subject: those of a scenario that fires again and again, later, of other clients,
of other clients later, and at other places. What is counted is not time (`tests/support/growth.py`). Where the last
doubling grew by more than MOST_GROWTH of the one before, 8N and 16N are asked, too: what a threshold lets in grows
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

import pytest

from tests.analyser.engine.rules.concerned import stages_of
from tests.analyser.engine.rules.scenarios import FIRES, Scenario
from tests.support.growth import Watched, Work, growth
from tests.support.many_rows import WAYS, Rows, many, size
from tests.support.rows import connection_from_rows
from tests.support.shares import pairs
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.facts.stages import STAGE_OF, STAGES, Stage
from wirewitness.analyser.engine.rules.rule import Rule
from wirewitness.analyser.engine.rules.running import Failure, run

MOST_GROWTH = 2.3
ROWS = 200
SCENARIOS: Mapping[str, Scenario] = {one.code: one for one in reversed(FIRES)}

# Columns of which a value stands in one row on one side of each join that asks for more, by what they name.
ALONE = tuple(
    map(
        frozenset,
        (
            {"episode"},  # a rebalance, numbered
            {"cluster", "generation", "group_id"},  # a generation of a group is one rebalance
            {"before_id"},  # a commit before a pause
            {"flow_id", "next_flow"},  # a connection has one row in `flows`
            {"alike", "place"},  # a batch among those that may be the same, numbered
            {"client_id", "place"},  # a connection among those of its client id, numbered
            {"cluster", "group_id", "member_id", "life"},  # a membership
            {"sender"},  # a client that sends heartbeats, numbered
        ),
    )
)

# Rules and stages that still compare row against row -> the case that shows it best.
KNOWN: dict[str, tuple[str, str]] = {
    # Whatever is published reaches all who want it: deliveries are the square, up to the limits in docs/limits.md.
    "add_deliveries": ("MQT130", "others"), "MQT115": ("MQT115", "others"), "MQT130": ("MQT130", "others"),
    # Each write that waited may have waited for each transaction: so many rows are made, up to MOST_PRODUCT_ROWS.
    "add_mongo_use": ("MON125", "others"),
    # For each finding, of which there are 2,000 at most.
    "KAF310": ("KAF310", "others"),
    # Filters are matched with topics, which `counted_matches.py` counts.
    "MQT150": ("MQT150", "others"), "MQT152": ("MQT152", "places"), "MQT153": ("MQT153", "places"),
    # With each client's requests 1,000 of the others are compared.
    "KAF319": ("KAF319", "others"),
}  # fmt: skip

# Tables that no rule reads, by the rule whose rows their stages are given.
UNREAD = {"KAF101": ("kafka_lag",), "KAF134": ("kafka_group_states",)}

# Of the cases that only the exhaustive run has, these run always: what once compared row against row.
ALWAYS = [
    ("KAF101", "later"),
    ("KAF217", "others"), ("MON123", "later"), ("MON135", "others"), ("TCP101", "later"), ("KAF134", "later"),
    ("KAF112", "others"), ("KAF128", "others later"), ("KAF206", "others"), ("KAF302", "later"), ("KAF308", "later"),
    ("KAF310", "others"), ("KAF342", "others"), ("NET101", "others later"), ("TCP105", "others"), ("TCP106", "later"),
    ("KAF129", "later"), ("KAF135", "others"), ("KAF208", "later"), ("MQT126", "others later"),
    ("KAF119", "others"), ("KAF212", "later"), ("KAF213", "others"), ("KAF334", "others"), ("KAF344", "others later"),
    ("MON139", "later"), ("MQT134", "others"), ("MQT142", "places"), ("MQT151", "others later"),
    ("MQT154", "others later"), ("KAF328", "places"), ("MON119", "places"),
    ("MON120", "places"), ("MON138", "later"), ("MON143", "later"), ("KAF115", "others"),
    ("MQT120", "others"), ("MQT127", "others"), ("MQT139", "others"), ("MQT141", "places"), ("MQT144", "others"),
    ("MQT146", "others later"), ("MQT149", "others"), ("MQT156", "others later"),
]  # fmt: skip
CASES = [(code, way) for code in RULES for way in WAYS]


def stages_for(rows: Rows, rule: Rule) -> list[Stage]:
    """The stages that are measured with a rule, in their order."""
    return [*stages_of(rows, [rule]), *(STAGE_OF[table] for table in UNREAD.get(rule.code, ()))]


def measured(scenario: Scenario, copies: int, way: str) -> dict[str, Work]:
    """What each stage of the context, by its function, and the rule do for so many copies of the rows."""
    rule, rows = RULES[scenario.code], many(scenario.rows, copies, way)
    con = connection_from_rows(rows, own=True)
    found: dict[str, Work] = {}
    for stage in stages_for(rows, rule):
        work = found[stage.function] = Work(ALONE)
        watched = Watched(con, work)
        with work.counting():
            stage.run(watched)  # type: ignore[arg-type]
        watched.end()
    failures: list[Failure] = []
    work = found[rule.code] = Work(ALONE)
    watched = Watched(con, work)
    with work.counting():
        run(watched, [rule], failures)  # type: ignore[arg-type]
    watched.end()
    con.close()
    assert [one for one in failures if one.is_own_fault] == []
    return found


def too_much(code: str, way: str, besides: Collection[str] = (), doublings: int = 4) -> Iterator[tuple[str, str]]:
    """Parts that grow too much with each of the last doublings, by the function of the stage or the code of the rule,
    and what they do. besides: parts that are not looked at."""
    scenario = SCENARIOS[code]
    given = size(scenario.rows)
    copies = max(ROWS // given, 4)
    got = [measured(scenario, copies << doubled, way) for doubled in range(2)]
    left = [(part, kind) for part in got[0] if part not in besides for kind in ("lines", "rows")]
    while left and len(got) <= doublings:
        got.append(measured(scenario, copies << len(got), way))
        left = [one for one in left if growth(_totals(got, *one), copies * given) > MOST_GROWTH]
    for part, kind in left:
        yield part, f"{kind} {_totals(got, part, kind)}: {_most(got[-1][part], got[-2][part], kind)}"


def _totals(got: list[dict[str, Work]], part: str, kind: str) -> list[int]:
    return [sum(getattr(one[part], kind).values()) for one in got]


def _most(now: Work, before: Work, kind: str) -> str:
    """Where most of the growth is."""
    more: Counter[object] = getattr(now, kind) - getattr(before, kind)
    return ", ".join(f"{getattr(where, 'co_qualname', where)} +{number:,}" for where, number in more.most_common(3))


@pytest.mark.parametrize(("code", "way"), pairs(CASES, ALWAYS))
def test_twice_the_rows_are_twice_the_work(code: str, way: str) -> None:
    assert dict(too_much(code, way, KNOWN)) == {}


@pytest.mark.parametrize("part", KNOWN)
@pytest.mark.exhaustive
@pytest.mark.xfail(strict=True, reason="compares row against row still")
def test_what_still_compares_row_against_row(part: str) -> None:
    assert part not in dict(too_much(*KNOWN[part], KNOWN.keys() - {part}, 3))


def test_every_stage_is_measured() -> None:
    reached = {stage.function for one in SCENARIOS.values() for stage in stages_for(one.rows, RULES[one.code])}
    assert reached == {stage.function for stage in STAGES}


def test_what_is_known_is_a_rule_or_a_stage() -> None:
    assert {*KNOWN} <= {*RULES, *(stage.function for stage in STAGES)}

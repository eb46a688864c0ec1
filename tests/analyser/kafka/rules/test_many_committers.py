"""A partition that thousands of members commit: a process that restarts again and again has a new id each time."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.analyser.engine.rules.concerned import partitions
from tests.analyser.engine.rules.scenarios.build import commit
from tests.support.rows import connection_from_rows
from tests.support.timing import takes_less_than
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.kafka.facts.committed import add_committed
from wirewitness.analyser.kafka.rules.commits import COMMITS

MEMBERS = 4000


@pytest.mark.parametrize(
    ("code", "findings", "told"),
    [pytest.param("KAF101", 1, MEMBERS, id="KAF101"), pytest.param("KAF104", MEMBERS - 1, 2, id="KAF104")],
)
def test_findings_of_many_committers_take_no_look_at_all_commits_each(code: str, findings: int, told: int) -> None:
    """Looking through all commits for each committer takes several seconds of a core."""
    owned = {"owner_member_id": "member 0", "ownership_confidence": "high"}
    rows = [commit(n / 1000, n, member_id=f"member {n % MEMBERS}", **owned) for n in range(2 * MEMBERS)]
    con = connection_from_rows({COMMITS: rows})
    add_committed(con)
    ((_, frames),) = islice(partitions(con, RULES[code]), 2)
    found = list(RULES[code].detect(frames))
    assert takes_less_than(2, lambda: list(RULES[code].detect(frames)))
    assert len(found) == findings
    assert all(len(one.numbers["committers"]) == told and len(one.sentence) < 2000 for one in found)

"""MON138, where several indexes are dropped at once."""

from __future__ import annotations

import pytest

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios.build_mongo import alone, command
from tests.analyser.engine.rules.scenarios.scenario import silent
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.running import run

FINDS = [(1 + n / 2, 5) for n in range(12)] + [(10 + n, 300) for n in range(24)]
BEFORE, WITHIN, LATE = (8, 100), (8.5, 500), (30, 100)


@pytest.mark.parametrize(
    ("drops", "slow"),
    [
        ([BEFORE], [24]),
        ([BEFORE, WITHIN], [24, 24]),
        ([(8, 12_000), WITHIN], [14, 24]),
        ([(7, 13_000), (8, 12_000), WITHIN, LATE], [14, 14, 24]),
        ([BEFORE, (28, 100)], [24]),
    ],
    ids=["one", "two in turn", "one within another", "three within each other, and one when all is slow", "one later"],
)
def test_each_drop_has_the_queries_behind_its_own_reply(drops: list[tuple[float, float]], slow: list[int]) -> None:
    """drops: seconds and ms; slow: how many slow finds begin after the reply of each that is told, by their times."""
    rows = [
        *(command(at, "find", ms, documents_returned=1, shape_id=f"s{shape}")
          for shape in range(2) for at, ms in FINDS),
        *(command(at, "dropIndexes", ms, shape_id=None, query_shape=None) for at, ms in drops),
    ]  # fmt: skip
    found = run(connected(silent("MON138", "", **alone(*rows))), [RULES["MON138"]])
    assert [(one.numbers["shapes"], one.numbers["wasted_ms"]) for one in found] == [(2, 2 * n * 295) for n in slow]

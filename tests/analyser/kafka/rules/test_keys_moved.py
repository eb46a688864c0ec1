"""KAF222 says why keys go to other partitions."""

from __future__ import annotations

import pytest

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios.build_offsets import changed
from tests.analyser.engine.rules.scenarios.kafka_contents import placed
from tests.analyser.engine.rules.scenarios.scenario import fires
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.running import run

# The writer used partition 3 before, for other keys.
ROWS = placed(1, lambda key: key % 4) + placed(1, lambda key: (key + 1) % 4, start=10.0)
BY_OPS = "Partitions were added by client ops at 10.1.0.77"


@pytest.mark.parametrize(
    ("changed_at", "why"),
    [
        pytest.param(9.0, BY_OPS, id="partitions were added a second before"),
        pytest.param(-500.0, BY_OPS, id="the writer learns of them minutes later"),
        pytest.param(-700.0, "the partitioner is another one", id="partitions were added long before"),
        pytest.param(12.0, "the partitioner is another one", id="partitions were added later"),
    ],
)
def test_a_change_before_is_the_reason(changed_at: float, why: str) -> None:
    change = changed(changed_at, "topic", "orders", "partitions=4") | {"cluster_id": ROWS[0]["cluster_id"]}
    change["resource_name"] = ROWS[0]["topic"]
    rows = {"kafka_produce_batches": ROWS, "kafka_admin_changes": [change]}
    (found,) = run(connected(fires("KAF222", "warning", "keys move", **rows)), [RULES["KAF222"]])
    assert why in found.sentence
    assert found.numbers["partitions_added"] == (why == BY_OPS)

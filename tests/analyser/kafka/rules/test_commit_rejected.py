"""KAF118 says what became of the offsets that were rejected: it is looked up, not supposed."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import commit
from tests.support.rows import connection_from_rows
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.findings import Finding
from wirewitness.analyser.engine.rules.running import run


def the_finding(*commits: dict[str, Any]) -> Finding:
    (found,) = run(connection_from_rows({"kafka_offset_commits": commits}), [RULES["KAF118"]])
    return found


def test_the_same_client_with_a_new_member_id_stores_its_offset() -> None:
    later = commit(9, 130, client_id="billing-1", member_id="m1-again")
    found = the_finding(commit(1, 100, error_code=29), commit(2, 110, error_code=29), later)
    assert "nothing" not in found.sentence
    assert "payments-0 was committed again" in found.sentence
    assert found.numbers["not_stored"] == []


def test_another_member_stores_it_after_the_partition_was_moved() -> None:
    found = the_finding(commit(1, 100, error_code=16), commit(2, 110, error_code=16), commit(9, 110, "m2"))
    assert (found.severity, found.numbers["healed"]) == ("info", True)


def test_what_stays_unstored_is_counted_by_partition() -> None:
    found = the_finding(
        commit(1, 500), commit(1, 70, partition=1),
        commit(2, 600, error_code=29), commit(2, 90, partition=1, error_code=29),
        commit(3, 700, error_code=29), commit(4, 95, partition=1),
    )  # fmt: skip
    assert found.severity == "warning"
    assert found.numbers["not_stored"] == [
        {"topic": "payments", "partition": 0, "rejected_offset": 700, "stored_offset": 500, "records": 200}
    ]
    assert "payments-0 is at 500, 200 messages below" in found.sentence


def test_an_offset_that_was_never_seen_stored_is_not_called_zero() -> None:
    found = the_finding(commit(1, 100, error_code=30))
    assert found.numbers["not_stored"][0]["stored_offset"] is None
    assert found.numbers["not_stored"][0]["records"] is None
    assert "payments-0" in found.sentence

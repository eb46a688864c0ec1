"""KAF309 says how to undo what was done, with the offsets that were there."""

from __future__ import annotations

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios.build import commit, stored
from tests.analyser.engine.rules.scenarios.build_offsets import STORED, changed, joined, listed, read
from tests.analyser.engine.rules.scenarios.scenario import fires
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.running import run
from wirewitness.analyser.kafka.rules.names import Stored, put_back_text


def test_a_deleted_group_is_set_to_where_it_stood() -> None:
    rows = joined(
        kafka_offset_commits=[*STORED, commit(20, 120)],
        kafka_admin_changes=[changed(5, "group", "billing", "delete")],
        kafka_offset_fetches=[stored(6, -1)],
        kafka_list_offsets=[listed(6.1, -2, 0)],
        kafka_fetch_partitions=[read(1, 0, 500), read(7, 0, 120)],
    )
    rule = RULES["KAF309"]
    scenario = fires("KAF309", "warning", "a group is deleted and reads all again", **rows)
    (found,) = run(connected(scenario), [rule])
    assert found.severity == "warning"
    assert "--group billing --topic payments:0 --reset-offsets --to-offset 500 --execute" in found.next_step
    assert "KAF" not in found.next_step


def test_names_cannot_become_commands_and_many_partitions_are_counted() -> None:
    text = put_back_text([Stored("g; rm -rf x", "t", n, 10 + n) for n in range(6)])
    assert "--group 'g; rm -rf x' --topic t:0 " in text
    assert text.count("--to-offset") == 4
    assert "and 2 more partitions" in text

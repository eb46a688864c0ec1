"""Rules that look at partitions of one key."""

from __future__ import annotations

from dataclasses import replace

from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.families import families


def codes(*wanted: str) -> list[list[str]]:
    return [[one.code for one in family] for family in families(RULES[code] for code in wanted)]


def test_those_of_one_key_are_together_in_their_order() -> None:
    assert codes("KAF102", "KAF101", "KAF120", "KAF103", "KAF123") == [
        ["KAF102", "KAF103"], ["KAF101"], ["KAF120", "KAF123"],
    ]  # fmt: skip


def test_a_table_has_one_key_for_all_of_them() -> None:
    """Two that call other columns of a table the key would want other rows of it together."""
    first = RULES["KAF101"]
    other = replace(first, code="KAF901", keys={"kafka_offset_commits": {"group_id": "member_id"}})
    assert [len(family) for family in families([first, other, first])] == [2, 1]


def test_every_rule_is_in_one_family() -> None:
    assert sorted(one.code for family in families(RULES.values()) for one in family) == sorted(RULES)

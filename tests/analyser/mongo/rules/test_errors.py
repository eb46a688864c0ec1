"""Every error code is in at most one group, and the groups are those of the specifications."""

from __future__ import annotations

import pytest

from wirewitness.analyser.mongo.rules.errors import GROUPS, OTHER, group_of
from wirewitness.dissectors.mongo.error_codes import ERROR_NAMES

# Codes of duplicate keys that old servers gave; error_codes.yml has only the one that stayed.
OLD = {11001, 12582, 450}


@pytest.mark.parametrize(
    ("group", "codes"),
    [
        # server discovery and monitoring specification
        ("not primary", {10107, 13435, 10058}),
        ("node is recovering", {11600, 11602, 13436, 189, 91}),
        # retryable reads specification, what is left of its table
        ("network between servers", {262, 7, 6, 89, 9001, 134}),
        # error_codes.yml: category ExceededTimeLimitError, those that clients see
        ("time limit", {50, 290}),
        ("cursor is gone", {43, 237}),
        ("transaction conflict", {112, 251}),
        ("authentication", {18}),
        ("not authorised", {13}),
        # error_codes.yml: category WriteConcernError
        ("write concern", {64, 75, 79, 100}),
        ("old driver", {352}),
        ("duplicate key", {11000}),
        ("everyday", {59, 72, 26}),
        ("request", {2, 9, 121, 10334}),
        ("other", {1, 8000, 99_999}),
    ],
)
def test_codes_are_in_their_group(group: str, codes: set[int]) -> None:
    assert {group_of(code).name for code in codes} == {group}


def test_what_no_try_heals_is_known() -> None:
    never = {code for code, group in GROUPS.items() if group.heals == "never"}
    assert {2, 13, 18, 59, 121, 352} <= never
    assert not never & {112, 10107, 43, 50, 11000, 11600, 64, 6}


def test_codes_are_those_that_servers_have() -> None:
    assert set(GROUPS) - OLD <= set(ERROR_NAMES)
    assert group_of(None) is OTHER
    assert len({group.name for group in GROUPS.values()}) == len(set(GROUPS.values()))
    assert all(group.next_step.endswith(".") for group in GROUPS.values())

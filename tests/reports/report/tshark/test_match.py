"""Messages of two sides find each other, whatever each side has that the other has not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirewitness.reports.report.tshark.match import WINDOW, Pair, matched
from wirewitness.reports.report.tshark.message import Flow, Key, Ours, Theirs

SENDER, RECEIVER = ("10.0.0.1", 40000), ("10.0.0.2", 9092)


def ours(packet: int, number: int, length: int = 10, *, cut: bool = False, late: bool = False) -> Ours:
    key = Key("kafka", SENDER, RECEIVER, length, number)
    return Ours(packet, key, "Fetch", "request", "4", {}, f"f-c-{packet}", "f", Flow(late, None), cut)


def theirs(packet: int, number: int, length: int = 10) -> Theirs:
    return Theirs(packet, Key("kafka", SENDER, RECEIVER, length, number), "Fetch", "request", "4", {})


def shown(pairs: list[Pair]) -> list[tuple[int | None, int | None]]:
    """Numbers of both sides, sorted."""
    found = [(pair.ours and pair.ours.key.number, pair.theirs and pair.theirs.key.number) for pair in pairs]
    return sorted(found, key=lambda pair: [-1 if number is None else number for number in pair])


CASES = {
    "alike": ([ours(1, 1), ours(2, 2)], [theirs(1, 1), theirs(2, 2)], [(1, 1), (2, 2)]),
    "they name a later packet": ([ours(1, 1, late=True), ours(2, 2)], [theirs(2, 2), theirs(5, 1)], [(1, 1), (2, 2)]),
    "a later packet without disorder": ([ours(1, 1)], [theirs(5, 1)], [(None, 1), (1, None)]),
    "they never name an earlier packet": ([ours(5, 1, late=True)], [theirs(1, 1)], [(None, 1), (1, None)]),
    "one is missing there": ([ours(1, 1), ours(2, 2)], [theirs(2, 2)], [(1, None), (2, 2)]),
    "one is missing here": ([ours(2, 2)], [theirs(1, 1), theirs(2, 2)], [(None, 1), (2, 2)]),
    "another number in the same packet": ([ours(1, 1)], [theirs(1, 7)], [(1, 7)]),
    "another size in the same packet": ([ours(1, 1, 10)], [theirs(1, 1, 11)], [(1, 1)]),
    "a cut message has no partner": ([ours(1, 1, cut=True)], [theirs(1, 7)], [(None, 7), (1, None)]),
    "too far away": (
        [ours(1, 1, late=True), ours(2 + WINDOW, 2)],
        [theirs(9 + WINDOW, 1)],
        [(None, 1), (1, None), (2, None)],
    ),
    "the same number again": ([ours(1, 1), ours(9, 1)], [theirs(1, 1), theirs(9, 1)], [(1, 1), (1, 1)]),
}


@pytest.mark.parametrize("name", CASES)
def test_pairs(name: str) -> None:
    mine, others, expected = CASES[name]
    assert shown(list(matched(mine, others))) == expected


def test_equal_numbers_are_paired_in_order() -> None:
    pairs = list(matched([ours(1, 1), ours(9, 1)], [theirs(1, 1), theirs(9, 1)]))
    assert [(pair.ours.packet, pair.theirs.packet) for pair in pairs if pair.ours and pair.theirs] == [(1, 1), (9, 9)]


SIDES = st.lists(st.tuples(st.integers(0, 2 * WINDOW), st.integers(0, 3), st.integers(10, 11)), max_size=30)


@given(SIDES, SIDES)
def test_every_message_is_in_one_pair(mine: list[tuple[int, int, int]], others: list[tuple[int, int, int]]) -> None:
    one = [ours(*message) for message in sorted(mine)]
    other = [theirs(*message) for message in sorted(others)]
    pairs = list(matched(iter(one), iter(other)))
    assert sorted(pair.ours.packet for pair in pairs if pair.ours) == [message.packet for message in one]
    assert sorted(pair.theirs.packet for pair in pairs if pair.theirs) == [message.packet for message in other]
    assert all(pair.ours or pair.theirs for pair in pairs)

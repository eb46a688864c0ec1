"""The state of a group behind each sign."""

from __future__ import annotations

import pytest

from wirewitness.analyser.kafka.facts.group_state_machine import GroupState, Sign
from wirewitness.analyser.kafka.facts.group_state_signs import GIVEN_NS


def states(*signs: Sign, covered: bool | None = None) -> list[str | None]:
    """What is told after each sign that changes anything."""
    group = GroupState(covered)
    return [group.state().state for sign in signs if group.take(sign)]


def classic(order_ns: int, sign: str, generation: int | None = None, member_id: str = "m1", **more: object) -> Sign:
    return Sign(order_ns, sign, member_id, "classic", generation, **more)  # type: ignore[arg-type]


def epochs(order_ns: int, sign: str, generation: int | None = None, member_id: str = "m1", **more: object) -> Sign:
    return Sign(order_ns, sign, member_id, "consumer", generation, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        pytest.param(
            [
                classic(1, "asks"), classic(2, "alive", alive=1), classic(2, "joined", 1, members=1),
                classic(3, "synced", 1), classic(4, "beat", 1, asked_ns=4), classic(5, "beat", 1, asked_ns=5),
                classic(6, "told", 1), classic(7, "left", alive=-1),
            ],
            [None, "PreparingRebalance", "CompletingRebalance", "Stable", "Stable", "PreparingRebalance", "Empty"],
            id="a classic group of one",
        ),
        pytest.param(
            [classic(1, "alive", alive=1), classic(2, "beat", 1), classic(3, "gone", alive=-1)],
            [None, "Stable", None],
            id="it is not known how many there are",
        ),
        pytest.param([classic(1, "alone")], ["Empty"], id="who commits without a member is alone"),
        pytest.param([classic(1, "alive", alive=1), Sign(2, "deleted")], [None, "Dead"], id="deleted"),
        pytest.param(
            [Sign(1, "described", protocol="classic", told="Empty", members=0)], ["Empty"], id="described as empty"
        ),
        pytest.param(
            [
                epochs(1, "alive", alive=1), epochs(1, "beat", 1, asked_ns=1),
                epochs(2, "alive", alive=1, member_id="m2"), epochs(2, "beat", 2, member_id="m2", asked_ns=2),
                epochs(3, "beat", 2, asked_ns=3),
            ],
            [None, "Stable", "Reconciling", "Reconciling", "Stable"],
            id="one is behind the newest epoch",
        ),
        pytest.param(
            [
                epochs(1, "alive", alive=1), epochs(1, "beat", 1, asked_ns=1),
                epochs(2, "alive", alive=1, member_id="m2"), epochs(2, "beat", 1, member_id="m2", asked_ns=2),
                epochs(4, "left", alive=-1, member_id="m2", asked_ns=3), epochs(6, "beat", 1, asked_ns=5),
                epochs(8, "beat", 2, asked_ns=7),
            ],
            [None, "Stable", "Reconciling", "Stable", "Assigning", "Reconciling", "Stable"],
            id="one left, and nobody asked yet",
        ),
        pytest.param(
            [
                epochs(1, "alive", alive=1), epochs(1, "beat", 1, asked_ns=1), Sign(2, "freed", freed=1),
                Sign(2 + GIVEN_NS, "given"),
            ],
            [None, "Stable", "Reconciling", "Stable"],
            id="a partition that nobody has",
        ),
        pytest.param(
            [
                Sign(1, "alive", "m1", "streams", alive=1), Sign(1, "beat", "m1", "streams", 1, not_ready=True),
                Sign(2, "beat", "m1", "streams", 1, not_ready=False),
            ],
            [None, "NotReady", "Stable"],
            id="streams whose topics are missing",
        ),
    ],
)  # fmt: skip
def test_states(signs: list[Sign], expected: list[str | None]) -> None:
    assert states(*signs) == expected


def test_partitions_of_all_members_are_there() -> None:
    """Without a number of members it is told by partitions whether all that were there have gone."""
    signs = epochs(1, "alive", alive=1), epochs(1, "beat", 1), epochs(2, "left", alive=-1, asked_ns=2)
    assert states(*signs, covered=True)[-1] == "Empty"
    assert states(*signs, covered=None)[-1] is None


def test_an_era_begins_anew() -> None:
    """Whoever comes when all had gone does not have to reach the epoch of those."""
    signs = (
        epochs(1, "alive", alive=1), epochs(1, "beat", 9), epochs(2, "left", alive=-1, asked_ns=2),
        epochs(3, "alive", alive=1, member_id="m2"), epochs(3, "beat", 3, member_id="m2", asked_ns=3),
    )  # fmt: skip
    assert states(*signs)[-1] == "Stable"

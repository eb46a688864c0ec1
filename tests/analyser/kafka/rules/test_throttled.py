"""KAF304 names who sent most of those that may share a quota."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyser.engine.rules.concerned import connected
from tests.analyser.engine.rules.scenarios.build import Row
from tests.analyser.engine.rules.scenarios.kafka_connections import connection
from tests.analyser.engine.rules.scenarios.kafka_traffic import exchange
from tests.analyser.engine.rules.scenarios.scenario import fires
from wirewitness.analyser.analysis.all_rules import RULES
from wirewitness.analyser.engine.rules.running import run


def held_up(number: int, name: str, sent: int, **more: Any) -> tuple[Row, Row]:
    """A client that a quota of the broker holds up: its connection, and a response that says so."""
    who = {"client_id": name, "client_address": f"10.1.0.{number}"}
    return (
        connection(number, 0, **{**who, "throttled": 3, "bytes_to_server": sent, **more}),
        exchange(number, "Produce", 2000, **who, flow_id=f"k{number}", exchange_id=f"k{number}-c1"),
    )


def told(*clients: tuple[Row, Row]) -> dict[str, str]:
    """Address -> sentence of the finding."""
    rows = {"kafka_connections": [one for one, _ in clients], "exchanges": [one for _, one in clients]}
    found = run(connected(fires("KAF304", "warning", "a shared quota", **rows)), [RULES["KAF304"]])
    return {one.numbers["address"]: one.sentence for one in found}


@pytest.mark.parametrize(
    ("other", "more", "expected"),
    [
        ("etl", {}, "2 throttled clients of this client id may share the quota: client etl at 10.1.0.2 sent 90 %"),
        ("load", {"user_name": "ann"}, "2 throttled clients of user ann may share the quota: client load at 10.1.0.2"),
        ("load", {}, None),
        ("etl", {"server_port": 9093}, None),
    ],
    ids=["same client id", "same user", "nothing in common", "another broker"],
)
def test_who_sent_most_is_named(other: str, more: dict[str, Any], expected: str | None) -> None:
    user = {"user_name": more["user_name"]} if "user_name" in more else {}
    sentences = told(held_up(1, "etl", 1000, **user), held_up(2, other, 9000, **more))
    assert len(sentences) == 2
    if expected is None:
        assert not any("share" in text for text in sentences.values())
    else:
        assert expected in sentences["10.1.0.1"]
        assert "it sent 90 % of their bytes" in sentences["10.1.0.2"]


def test_one_client_id_of_two_users_is_two_quotas() -> None:
    sentences = told(held_up(1, "etl", 1000, user_name="ann"), held_up(2, "etl", 9000, user_name="bob"))
    assert not any("share" in text for text in sentences.values())

"""Authentications of real clients, against what the clients themselves printed."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.lab import broker_log
from tests.oracle.test_broker_log import compare, recording_of
from wirewitness.dissectors.core.closed import closed_user

SAMPLE: dict[str, Any] = next(
    sample
    for sample in tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())["sample"]
    if sample["file"] == "kafka_sasl.pcapng"
)
FACTS = SAMPLE["facts"]


@cache
def tables() -> dict[str, list[dict[str, Any]]]:
    names = ("kafka_authentications", "exchanges", "messages", "expert_infos")
    with wirewitness.read(SAMPLES / SAMPLE["file"], tables=names) as analysis:
        return {name: analysis.arrow(name).to_pylist() for name in names}


@pytest.mark.parametrize("fact", FACTS["authentication"], ids=lambda fact: str(fact["client_id"]))
def test_clients_are_told_as_they_told_it(fact: dict[str, Any]) -> None:
    rows = [row for row in tables()["kafka_authentications"] if row["client_id"] == fact["client_id"]]
    assert rows
    for row in rows:
        user = fact.get("user_name")
        assert (row["mechanism"], row["user_name"]) == (fact["mechanism"], user and closed_user(user))
        assert row["form"] == fact["form"]
        # A client that is refused tries again until it ends, perhaps in the middle of one more attempt.
        assert row["accepted"] in (fact["accepted"], None)
        if fact["accepted"] and row["form"] == "sasl_authenticate":
            assert row["session_lifetime_ms"] == FACTS["reauthenticate_ms"]
    assert any(row["accepted"] is fact["accepted"] for row in rows)


def test_the_same_connection_authenticates_again() -> None:
    rows = [row for row in tables()["kafka_authentications"] if row["client_id"] == FACTS["reauthenticating"]]
    again = [row for row in rows if row["reauthentication"]]
    assert again
    for row in again:
        first = [one for one in rows if one["flow_id"] == row["flow_id"] and not one["reauthentication"]]
        assert len(first) == 1
        waited_ms = (row["ts"] - first[0]["ts"]).total_seconds() * 1000
        assert 0.5 * FACTS["reauthenticate_ms"] < waited_ms


def test_bare_tokens_are_exchanges_and_requests_go_on_behind_them() -> None:
    for fact in FACTS["authentication"]:
        if fact["form"] != "bare_tokens":
            continue
        mine = [row for row in tables()["exchanges"] if row["client_id"] == fact["client_id"]]
        operations = [row["operation"] for row in mine]
        tokens = 2 if fact["mechanism"].startswith("SCRAM") else 1
        assert operations == ["ApiVersions", "SaslHandshake", *["SaslToken"] * tokens, "Metadata"]
        assert {row["status"] for row in mine} == {"ok"}


def test_what_the_broker_logged_is_what_we_read() -> None:
    """All but authentication, which a broker does not log."""
    log = broker_log.load(SAMPLES / SAMPLE["broker_log"])
    found = compare(log, recording_of("kafka_sasl").exchanges)
    assert found.differences == []
    assert found.exchanges == len(log) >= 20


def test_every_message_is_read() -> None:
    assert not [row for row in tables()["messages"] if row["error"]]
    assert {row["code"] for row in tables()["expert_infos"]} <= {"reset", "retransmission"}

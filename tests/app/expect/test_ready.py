"""The contracts that come along: healthy traffic keeps to them, sick traffic does not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import wirewitness
from tests.conftest import ROOT, SAMPLES
from tests.support.shares import pairs
from wirewitness.app.expect.checking import FAILED, NOTHING, OK, check_all, tables_of
from wirewitness.app.expect.rules import ready_contract, ready_contracts

HEALTHY = [
    ("kafka-consumer", "kafka_healthy"),
    ("kafka-consumer", "kafka_cluster"),
    ("kafka-consumer", "incidents/rolling_restart-10"),
    ("kafka-consumer", "incidents/static_restart-3"),
    ("kafka-producer", "kafka_healthy"),
    ("mqtt-client", "mqtt_healthy"),
    ("mqtt-client", "mqtt_v5_features"),
    ("mongo-driver", "mongo_healthy"),
    ("only-tls", "tls/kafka_tls"),
    ("answered-in-time", "mqtt_healthy"),
    ("connections-kept", "mqtt_v5_features"),
    ("known-topics", "mqtt_healthy"),
    ("no-stale-commit", "kafka_healthy"),
]
SICK = [
    ("kafka-consumer", "kafka_stale_commit", "committed offsets do not move back"),
    ("kafka-consumer", "incidents/never_commits-5", "what is read is committed"),
    ("kafka-consumer", "incidents/poison_loop-3", "members send heartbeats in time, and no record throws them out"),
    ("kafka-consumer", "incidents/offsets_deleted-2", "reading goes on at the committed offset, and skips nothing"),
    ("kafka-producer", "incidents/epoch_bump_duplicates-1", "no record is written twice"),
    ("kafka-producer", "incidents/out_of_sequence-1", "batches are stored in the order of their sequence"),
    ("mqtt-client", "mqtt_faults", "the keep-alive is kept, and pings are answered"),
    ("mqtt-client", "mqtt_takeover_loop", "no client takes over another's id again and again"),
    ("mongo-driver", "mongo_shapes_and_errors", "cursors are read to their end or killed"),
    ("only-tls", "mqtt_healthy", "every connection is encrypted"),
    ("answered-in-time", "mqtt_faults", "every request that is due a response gets one"),
    ("known-topics", "incidents/unknown_topic-4", "no broker is asked for a topic that it does not know"),
    ("finds-limited", "mongo_healthy", "finds have a limit"),
    ("no-stale-commit", "kafka_stale_commit", "no commit brings an older offset back"),
]


def states(contract: str, sample: str) -> dict[str, str]:
    folder = SAMPLES / sample
    captures = sorted(folder.glob("*.pcapng*")) if folder.is_dir() else [SAMPLES / f"{sample}.pcapng"]
    expectations = ready_contract(contract)
    with wirewitness.read(captures, tables=tables_of(expectations)) as analysis:
        return {one.expectation.name: one.state for one in check_all(analysis, expectations)}


@pytest.mark.parametrize(("contract", "sample"), pairs(HEALTHY, [("mqtt-client", "mqtt_healthy")]))
def test_healthy_traffic_keeps_to_them(contract: str, sample: str) -> None:
    found = states(contract, sample)
    assert FAILED not in found.values(), found
    assert OK in found.values()


@pytest.mark.parametrize(("contract", "sample", "broken"), pairs(SICK, [SICK[-1]]))
def test_sick_traffic_does_not(contract: str, sample: str, broken: str) -> None:
    assert states(contract, sample)[broken] == FAILED


def test_what_does_not_occur_is_not_ok() -> None:
    assert set(states("kafka-consumer", "mqtt_takeover_loop").values()) == {NOTHING}


@pytest.mark.parametrize("name", ready_contracts())
def test_each_says_what_it_is_for_and_what_it_needs(name: str) -> None:
    contract = ready_contracts()[name]
    assert contract.line.startswith(("A ", "An "))
    for entry in tomllib.loads(contract.text)["expect"]:
        assert entry["needs"], entry


def test_they_are_in_the_package() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert told["wirewitness.app.expect"] == ["ready/*.toml"]
    assert {path.stem for path in Path(ROOT / "app/expect/ready").glob("*.toml")} == set(ready_contracts())

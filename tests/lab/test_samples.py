"""The samples are what MANIFEST.toml says, and the broker logs beside them say the same."""

from __future__ import annotations

import hashlib
import tomllib
from typing import Any

import pytest

from tests.lab import broker_log, commits, everyday, make, runs
from tests.lab.mosquitto import Mosquitto

ENTRIES: list[dict[str, Any]] = tomllib.loads(make.MANIFEST.read_text())["sample"]
BY_FILE = [pytest.param(entry, id=entry["file"]) for entry in ENTRIES]
MOSQUITTO = Mosquitto().name
OF_KAFKA = [pytest.param(entry, id=entry["file"]) for entry in ENTRIES if entry["protocol"] == "kafka"]


def commits_of(entry: dict[str, Any]) -> list[commits.Commit]:
    return commits.read_commits(broker_log.load(make.SAMPLES / entry["broker_log"]))


def test_every_scenario_has_its_sample_and_no_other_file_lies_there() -> None:
    files = {f"{name}.pcapng" for name in runs.SCENARIOS}
    assert {entry["file"] for entry in ENTRIES if entry["scenario"].startswith("tests.lab.")} >= files
    assert {path.name for path in make.SAMPLES.glob("*.pcapng")} == {entry["file"] for entry in ENTRIES}


@pytest.mark.parametrize("entry", BY_FILE)
def test_bytes_are_those_that_the_run_left(entry: dict[str, Any]) -> None:
    content = (make.SAMPLES / entry["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert len(content) == entry["size_bytes"] <= make.SAMPLE_LIMIT_BYTES
    log = entry[make.LOG_KINDS.get(entry["protocol"], "broker_log")]
    assert (make.SAMPLES / log).stat().st_size <= make.BROKER_LOG_LIMIT_BYTES


@pytest.mark.parametrize("entry", BY_FILE)
def test_versions_are_those_of_the_build_files(entry: dict[str, Any]) -> None:
    scenario = runs.load_scenario(entry["file"].removesuffix(".pcapng"))
    name, _, version = entry["server"].rpartition(" ")
    assert name == scenario.SERVER.name
    if name != MOSQUITTO:  # the distribution's, of whatever version is there; it may not be installed here
        assert version == scenario.SERVER.version
    assert entry["clients"] == list(scenario.CLIENTS)


@pytest.mark.parametrize("entry", OF_KAFKA)
def test_partitions_that_went_back_are_those_in_the_broker_log(entry: dict[str, Any]) -> None:
    pairs = commits.regressions(commits_of(entry))
    found = {(after.group, after.topic, after.partition) for _, after in pairs}
    told = {
        (group["group"], group["topic"], partition)
        for group in entry["facts"]["group"]
        for partition in (*group.get("partitions_affected", ()), *group.get("partitions_reset", ()))
    }
    assert found == told


def test_the_stale_ledger_commits_belong_to_partitions_of_others() -> None:
    [entry] = [entry for entry in ENTRIES if entry["file"] == "kafka_stale_commit.pcapng"]
    ledger = next(group for group in entry["facts"]["group"] if group["group"] == "payments-ledger")
    owner = {
        (session["generation"], partition): session["member_id"]
        for session in ledger["assignment"]
        for partition in session["partitions"]
    }
    stale = [after for _, after in commits.regressions(commits_of(entry)) if after.group == "payments-ledger"]
    assert len(stale) >= 10
    assert {row.client_id for row in stale} == {"ledger-a"}
    assert all(owner[row.generation, row.partition] != row.member_id for row in stale)


def test_the_healthy_sample_covers_the_apis_that_are_decoded() -> None:
    [entry] = [entry for entry in ENTRIES if entry["file"] == "kafka_healthy.pcapng"]
    records = broker_log.load(make.SAMPLES / entry["broker_log"])
    wanted = {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 18, 22, 24, 25, 26, 28, 68, 69}
    assert wanted <= {record.api_key for record in records}
    assert everyday.check_everyday(records) == entry["facts"]["everyday_errors"]

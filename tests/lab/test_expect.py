"""A contract tells a library with a fault from the release that mends it, on the traffic of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES
from tests.lab.scenarios.kafka.commits_in_order import NEW, OLD
from tests.lab.shared_runs import outcome_of

# The first run fetches the server and the clients' modules.
pytestmark = [pytest.mark.lab, pytest.mark.timeout(1500)]


def test_the_faulty_release_breaks_the_contract_and_the_mended_one_keeps_it() -> None:
    outcome = outcome_of("kafka_commits_in_order")
    assert outcome.facts["back"][NEW] == 0
    found = {}
    for group in (OLD, NEW):
        words = ("expect", "kafka-consumer", outcome.pcap, "--about", f"group={group}", "--format", "json", "--quiet")
        done = run(*words)
        found[group] = (done.returncode, json.loads(done.stdout)["expectations"])
    assert [found[OLD][0], found[NEW][0]] == [1, 0], found
    (broken,) = [one for one in found[OLD][1] if one["state"] == "FAILED"]
    assert broken["name"] == "stored offsets do not go back"
    assert {finding["code"] for finding in broken["findings"]} == {"KAF103"}
    assert broken["findings"][0]["evidence"][0]["packet"] > 0
    kept = {one["name"]: one["state"] for one in found[NEW][1]}
    assert kept["stored offsets do not go back"] == "ok"


def test_what_was_looked_at_in_one_run_is_known_in_the_next(tmp_path: Path) -> None:
    """Other addresses of connections, member ids and packets, and races that go otherwise; the same troubles."""
    review, fresh = tmp_path / "review.toml", outcome_of("kafka_stale_commit").pcap
    sample = SAMPLES / "kafka_stale_commit.pcapng"
    accepted = run("findings", sample, "--review", review, "--accept", "all", "--note", "known", "--quiet")
    assert accepted.returncode == 0
    lines = run("findings", fresh, "--review", review, "--format", "jsonl", "--quiet").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert {one["code"] for one in found} >= {"KAF101", "KAF102", "KAF103", "KAF104"}
    assert [one["sentence"] for one in found if one["review_note"] != "known"] == []

"""What the analyser says of the sample captures equals what the lab knows of the runs that made them."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from functools import cache
from typing import Any

import pandas as pd
import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.burrow import verdicts_over_time
from tests.support.expected import expected_codes
from tests.support.shares import share, smallest

MANIFEST: dict[str, dict[str, Any]] = {
    entry["file"]: entry for entry in tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())["sample"]
}
STALE = "kafka_stale_commit.pcapng"
EVERY_SAMPLE = pytest.mark.parametrize("name", share(MANIFEST, {STALE, *smallest(MANIFEST, 2)}))
KAFKA = [name for name in MANIFEST if name.startswith("kafka_")]
KAFKA_SAMPLES = pytest.mark.parametrize("name", share(KAFKA, {STALE, *smallest(KAFKA, 2)}))


@cache
def tables(name: str) -> dict[str, pd.DataFrame]:
    """Findings and commits of a sample."""
    with wirewitness.read(SAMPLES / name) as analysis:
        held = {table: analysis.table(table) for table in ("findings", "kafka_offset_commits", "exchanges", "flows")}
        assert analysis.failures == [], "a rule broke: its findings are missing"
    return held


def findings(name: str) -> list[dict[str, Any]]:
    """Findings above info, numbers and evidence decoded."""
    rows = tables(name)["findings"].to_dict("records")
    for row in rows:
        row["numbers"], row["evidence"] = json.loads(row["numbers"]), json.loads(row["evidence"])
    return [row for row in rows if row["severity"] != "info"]


@EVERY_SAMPLE
def test_exactly_the_expected_rules_fire(name: str) -> None:
    assert {row["code"] for row in findings(name)} == expected_codes(MANIFEST[name])


@EVERY_SAMPLE
def test_evidence_is_packets_of_the_capture(name: str) -> None:
    told = tables(name)["findings"]["evidence"].map(json.loads)
    assert [item for items in told for item in items if item["file"] is None or item["packet"] is None] == []


@KAFKA_SAMPLES
def test_codes_and_partitions_are_those_of_each_group(name: str) -> None:
    for group in MANIFEST[name]["facts"]["group"]:
        mine = [row for row in findings(name) if row["numbers"].get("group") == group["group"]]
        assert {row["code"] for row in mine} == set(group.get("expected_detectors", []))
        back = {row["numbers"]["partition"] for row in mine if row["code"] == "KAF103"}
        assert back == set(group.get("partitions_affected", []))


@KAFKA_SAMPLES
def test_commits_are_those_that_the_broker_took(name: str) -> None:
    commits = tables(name)["kafka_offset_commits"]
    for group in MANIFEST[name]["facts"]["group"]:
        mine = commits[(commits["group_id"] == group["group"]) & (commits["api"] == "OffsetCommit")]
        if "commits_accepted" in group:
            assert int((mine["error_code"] == 0).sum()) == group["commits_accepted"]
            assert int((mine["error_code"] != 0).sum()) == group["commits_refused"]
        for committer in group["committer"]:
            his = mine[mine["member_id"] == committer["member_id"]]
            assert set(his["client_id"]) == {committer["client_id"]}
            assert set(his["client_address"]) == {committer["address"]}


def test_the_stale_committer_is_named() -> None:
    for group in MANIFEST[STALE]["facts"]["group"]:
        for stale in group.get("stale_committer", []):
            named = [row for row in findings(STALE) if row["numbers"].get("group") == group["group"]]
            assert named
            for row in named:
                assert any(
                    (who["client_id"], who["address"], who["member_id"])
                    == (stale["client_id"], stale["address"], stale["member_id"])
                    for who in row["numbers"]["committers"]
                )
                assert stale["client_id"] in row["sentence"]


def test_evidence_leads_to_the_commits() -> None:
    commits = tables(STALE)["kafka_offset_commits"]
    requests = set(zip(commits["exchange_id"], commits["request_packet"], strict=True))
    answers = set(zip(commits["response_message_id"], commits["response_packet"], strict=True))
    for row in findings(STALE):
        assert row["evidence"]
        for item in row["evidence"]:
            assert (item["message_id"], item["packet"]) in requests | answers


def test_burrow_says_ok_where_the_stale_committer_is_named() -> None:
    """Asked after every commit, Burrow nearly always says OK: it judges stored offsets, not who wrote them."""
    commits = tables(STALE)["kafka_offset_commits"]
    named = {
        (row["numbers"]["group"], row["numbers"]["topic"], row["numbers"]["partition"])
        for row in findings(STALE)
        if row["code"] == "KAF103"
    }
    assert len(named) >= 10
    for key, rows in commits[commits["error_code"] == 0].groupby(["group_id", "topic", "partition"]):
        if key in named:
            said = Counter(verdicts_over_time(rows))
            assert said["OK"] > 0.8 * said.total(), (key, said)

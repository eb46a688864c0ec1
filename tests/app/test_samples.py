"""The report on the sample captures names what their manifest knows from the clients and the broker."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from typing import Any

import pytest

from tests.app.program import run
from tests.conftest import ROOT
from tests.support.expected import expected_codes
from tests.support.shares import share, smallest

SAMPLES = ROOT / "sample_pcaps"
MANIFEST: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text())["sample"]
FAULTS = [
    pytest.param(sample["file"], group, id=f"{sample['file']}:{group['group']}")
    for sample in MANIFEST
    for group in sample["facts"].get("group", ())
    if group.get("stale_committer")
]
GROUPS = [
    pytest.param(sample["file"], group, id=f"{sample['file']}:{group['group']}")
    for sample in MANIFEST
    for group in sample["facts"].get("group", ())
    if "partitions_committed" in group
]

FEW = smallest([sample["file"] for sample in MANIFEST])
EVERY_SAMPLE = pytest.mark.parametrize(
    "sample",
    share(MANIFEST, [sample for sample in MANIFEST if sample["file"] in FEW]),
    ids=lambda one: str(one["file"]),
)


@cache
def text_report(file: str, width: str) -> str:
    result = run("analyse", SAMPLES / file, COLUMNS=width)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


@cache
def judged_report(file: str) -> tuple[int, Any]:
    """Exit status with --fail-on warning, and the report; nothing else is said."""
    result = run("analyse", SAMPLES / file, "--format", "json", "--fail-on", "warning", "--quiet")
    assert result.stderr == b""
    return result.returncode, json.loads(result.stdout)


def json_report(file: str) -> Any:
    return judged_report(file)[1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", share(["80", "200"], ["80"]))
@pytest.mark.parametrize(("file", "group"), FAULTS)
def test_the_text_names_the_stale_committer(file: str, group: dict[str, Any], width: str) -> None:
    shown = text_report(file, width)
    blocks = shown.partition("\nFINDINGS\n")[2].split("CRITICAL  ")[1:]
    heading = next(one for one in blocks if f"Group {group['group']}:" in " ".join(one.split()))
    block = " ".join(heading.split())
    for committer in group["stale_committer"]:
        for fact in (committer["client_id"], committer["address"], committer["member_id"]):
            assert fact in block
    assert "frame.number in {" in block


@pytest.mark.parametrize(("file", "group"), FAULTS)
def test_the_json_names_the_partitions(file: str, group: dict[str, Any]) -> None:
    about = [f["numbers"] for f in json_report(file)["findings"] if f["numbers"].get("group") == group["group"]]
    assert {n["partition"] for n in about if n.get("partition") is not None} == set(group["partitions_affected"])
    stale = {committer["member_id"] for committer in group["stale_committer"]}
    assert all(stale & {c["member_id"] for c in numbers["committers"]} for numbers in about)


@pytest.mark.parametrize(("file", "group"), GROUPS)
def test_groups_count_the_commits(file: str, group: dict[str, Any]) -> None:
    (found,) = (g for g in json_report(file)["groups"] if g["group_id"] == group["group"])
    assert sum(p["accepted"] for p in found["partitions"]) == group["commits_accepted"]
    assert sum(p["refused"] for p in found["partitions"]) == group["commits_refused"]
    assert [p["partition"] for p in found["partitions"]] == sorted(group["partitions_committed"])
    assert {c["member_id"] for c in group["committer"]} <= {m["member_id"] for m in found["members"]}
    stands = {p["partition"]: p["committed_offset"] for p in found["partitions"]}
    for affected in group.get("affected", []):
        assert stands[affected["partition"]] == affected["last_offset"]


@EVERY_SAMPLE
def test_fail_on_tells_faults_from_health(sample: dict[str, Any]) -> None:
    assert judged_report(sample["file"])[0] == (1 if expected_codes(sample) else 0)


@EVERY_SAMPLE
def test_packets_are_counted(sample: dict[str, Any]) -> None:
    assert json_report(sample["file"])["quality"]["packets"] == sample["packets"]


@EVERY_SAMPLE
def test_the_findings_table_equals_the_report(sample: dict[str, Any]) -> None:
    rows = run("table", "findings", SAMPLES / sample["file"], "--format", "jsonl").stdout.decode().splitlines()
    told = [{**one} for one in json_report(sample["file"])["findings"]]
    assert all("first_cause" in one for one in told)
    assert [json.loads(row) for row in rows] == [{k: v for k, v in one.items() if k != "first_cause"} for one in told]

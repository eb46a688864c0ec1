"""The log of a real broker, as it wrote it, names the faults that the run's own facts tell."""

from __future__ import annotations

import gzip
import hashlib
import json
import tomllib
from typing import Any

import pytest

from tests.app.program import run
from tests.conftest import SAMPLES

FOLDER = SAMPLES / "request_logs"
ENTRIES: list[dict[str, Any]] = tomllib.loads((FOLDER / "MANIFEST.toml").read_text())["log"]
BY_FILE = [pytest.param(entry, id=entry["file"]) for entry in ENTRIES]


def test_every_log_has_its_entry() -> None:
    assert {path.name for path in FOLDER.glob("*.gz")} == {entry["file"] for entry in ENTRIES} != set()


@pytest.mark.parametrize("entry", BY_FILE)
def test_bytes_are_those_that_the_run_left(entry: dict[str, Any]) -> None:
    packed = (FOLDER / entry["file"]).read_bytes()
    assert (len(packed), hashlib.sha256(packed).hexdigest()) == (entry["size_bytes"], entry["sha256"])
    assert len(gzip.decompress(packed)) == entry["log_bytes"]


@pytest.mark.parametrize("entry", BY_FILE)
def test_the_faults_are_named_from_the_log_alone(entry: dict[str, Any]) -> None:
    printed = run("analyse", FOLDER / entry["file"], "--format", "json", "--quiet")
    document = json.loads(printed.stdout)
    assert document["quality"]["lines"] == entry["requests"]
    found = document["findings"]
    assert set(entry["expected_detectors"]) <= {one["code"] for one in found}
    back = {
        (one["numbers"]["group"], one["numbers"]["topic"], one["numbers"]["partition"])
        for one in found
        if one["code"] == "KAF103"
    }
    facts = entry["facts"]["group"]
    assert back == {
        (group["group"], group["topic"], partition) for group in facts for partition in group["partitions_affected"]
    }
    [ledger] = [group for group in facts if "KAF101" in group["expected_detectors"]]
    who = {(one["address"], one["client_id"], one["member_id"]) for one in ledger["committer"]}
    for one in found:
        if one["code"] == "KAF101":
            named = {(c["address"], c["client_id"], c["member_id"]) for c in one["numbers"]["committers"]}
            assert named <= who
    assert not [one for one in found if one["numbers"].get("group") in entry["facts"]["healthy_groups"]]

"""The JSON report."""

from __future__ import annotations

import json
from typing import Any

from tests.reports.incident import START_NS, incident_rows
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.analyser.tables.tables import TABLES
from wirewitness.reports.report.json_document import json_pieces


def document(rows: dict[str, list[dict[str, Any]]], options: ReadOptions | None = None) -> Any:
    return json.loads(b"".join(json_pieces(RowsAnalysis(rows, options))))


def test_keys_are_the_contract() -> None:
    assert list(document(incident_rows())) == [
        "schema_version", "captures", "quality", "flows", "operations", "groups", "stored_offsets", "unseen_commits",
        "mqtt", "mongo",
        "encrypted_connections", "unjudged_errors", "stands_out", "findings",
    ]  # fmt: skip


def test_a_finding_is_as_in_the_table_with_json_inside() -> None:
    found = document(incident_rows())["findings"]
    assert len(found) == 5
    assert tuple(found[0]) == (*TABLES["findings"].column_names(), "first_cause")
    kafka = next(f for f in found if f["code"] == "KAF103")
    assert kafka["evidence"][0] == {"file": "incident.pcapng", "packet": 812, "message_id": "m812"}
    assert kafka["numbers"]["committers"][1]["address"] == "10.11.0.22"
    assert kafka["ts_first"] == "2026-11-18T11:06:40.000000000Z"


def test_groups_operations_and_quality() -> None:
    made = document(incident_rows())
    (group,) = made["groups"]
    assert group["group_id"] == "billing"
    assert group["partitions"][0]["lag"] == 7803
    assert group["partitions"][0]["client_address"] == "10.11.0.22"
    assert group["partitions"][0]["ts_last"] == "2026-11-18T11:06:40.000000001Z"
    assert made["operations"][0]["latency_ms"] == {"median": 20.5, "p99": 39.12, "max": 39.5}
    assert made["operations"][0]["error_names"] == {"NOT_LEADER_OR_FOLLOWER": 5}
    assert made["quality"]["dropped_packets"] is None
    assert [flow["client_port"] for flow in made["flows"]] == [45678, 51234]


def test_nothing_at_all_is_still_a_document() -> None:
    made = document({})
    assert (made["captures"], made["flows"], made["findings"], made["groups"]) == ([], [], [], [])
    assert made["quality"]["ts_first"] is None


def test_times_select_rows() -> None:
    assert document(incident_rows(), ReadOptions(from_ns=START_NS + 10))["operations"][0]["exchanges"] == 15

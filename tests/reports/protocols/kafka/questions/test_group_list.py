"""Every group is in the list, the worst first, with counts of the time range and the lag at its end."""

from __future__ import annotations

from typing import Any

from tests.analyser.engine.rules.scenarios.build import at, commit
from tests.support.analysis_from_rows import RowsAnalysis
from wirewitness.analyser.base.options import ReadOptions
from wirewitness.reports.base.questions.causes import Finding
from wirewitness.reports.protocols.kafka.questions.group_list import group_list
from wirewitness.reports.protocols.kafka.questions.groups import SHARE_COUNTS, deliveries_of, groups

Row = dict[str, Any]


def fetch(seconds: float, end: int) -> Row:
    return {"ts": at(seconds), "ts_response": at(seconds), "cluster_id": "c1", "topic": "payments", "partition": 0,
            "high_watermark": end, "exchange_id": f"f-c{round(seconds * 1000)}", "flow_id": "f"}  # fmt: skip


def shared(seconds: float, first: int, last: int, **more: Any) -> Row:
    return {"exchange_id": f"s-c{round(seconds * 1000)}", "ts": at(seconds), "cluster_id": "c1", "flow_id": "s",
            "group_id": "jobs", "member_id": "w", "client_id": "worker", "client_address": "10.1.0.7", "topic": "tasks",
            "partition": 0, "first_offset": first, "last_offset": last, "error_code": 0, **more}  # fmt: skip


TABLES: dict[str, list[Row]] = {
    "captures": [{"file": "a.pcap", "packets": 1, "captured_bytes": 1, "wire_bytes": 1, "tcp_segments": 1,
                  "other_packets": 0, "undecoded_packets": 0, "truncated_packets": 0, "ts_first": at(0),
                  "ts_last": at(100)}],
    "kafka_offset_commits": [
        *(commit(s, 10, "m2", group_id=f"quiet-{s:02}") for s in range(38)),
        commit(1, 50, owner_member_id="m1"),
        commit(60, 40, "m2", owner_member_id="m1"),
        commit(61, 0, "m2", error_code=25),
    ],
    "kafka_fetch_partitions": [fetch(0, 52), fetch(90, 90)],
    "kafka_share_fetches": [
        shared(1, 0, 9, records_count=10, delivery_count=1), shared(2, 5, 9, records_count=5, delivery_count=2),
        shared(3, 0, 0, error_code=6),
    ],
    "kafka_share_acknowledges": [
        shared(4, 0, 4, acknowledge_type="accept", api="ShareAcknowledge"),
        shared(5, 5, 9, acknowledge_type="release", api="ShareAcknowledge"),
        shared(6, 0, 9, acknowledge_type="accept", error_code=121, api="ShareAcknowledge"),
    ],
}  # fmt: skip


def finding(group: str, severity: str) -> Finding:
    return Finding("f1", "KAF103", "offset-regression", severity, "high", False, "s", "s", "n", None, None, (),
                   {"group": group}, "f1")  # fmt: skip


def listed(found: list[Finding], from_s: float | None = None) -> list[Row]:
    whole = RowsAnalysis(TABLES)
    in_range = RowsAnalysis(TABLES, ReadOptions(from_ns=None if from_s is None else at(from_s)))
    before = groups(RowsAnalysis(TABLES, ReadOptions(to_ns=at(50))))
    return group_list(in_range, whole, groups(whole), before, found)


def test_the_worst_of_forty_groups_is_first() -> None:
    found = listed([finding("billing", "critical"), finding("quiet-07", "warning")])
    assert len(found) == 40
    assert [row["group_id"] for row in found[:2]] == ["billing", "quiet-07"]
    worst = found[0]
    assert {name: worst[name] for name in ("lag", "grown", "foreign_commits", "refused", "committers", "commits")} == {
        "lag": 50, "grown": 48, "foreign_commits": 1, "refused": 1, "committers": 2, "commits": 2,
    }  # fmt: skip


def test_without_findings_foreign_commits_come_first() -> None:
    assert listed([])[0]["group_id"] == "billing"


def test_counts_are_of_the_range_and_the_lag_is_that_of_its_end() -> None:
    worst = next(row for row in listed([], from_s=30) if row["group_id"] == "billing")
    assert (worst["commits"], worst["refused"], worst["lag"]) == (1, 1, 50)


def test_share_groups_are_in_the_list_with_what_they_did() -> None:
    row = next(row for row in listed([]) if row["group_id"] == "jobs")
    assert (row["type"], row["share_exchanges"]) == ("share", 6)
    source = RowsAnalysis(TABLES)
    told = source.sql(SHARE_COUNTS.format(where="group_id = 'jobs'")).to_pylist()
    assert told == [{"fetched": 15, "redelivered": 5, "accepted": 5, "released": 5, "rejected": 0, "errors": 2}]
    (one,) = source.sql(deliveries_of("group_id = 'jobs'")).to_pylist()
    assert (one["client_id"], one["partition"], one["most_deliveries"], one["fetched"]) == ("worker", 0, 2, 15)

"""tshark and we agree on every message of the samples and of captures that others published.

The comparison is the product's own (`wirewitness crosscheck`); what tshark cannot decode has a reason in its table of
limits, so that a new kind of difference fails here. That the comparison sees differences is tested beside it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import wirewitness
from tests.conftest import SAMPLES, SHARED_CAPTURES, shared_capture
from tests.support.installed import installed
from tests.support.shares import every, share, smallest
from wirewitness.reports.report.tshark import TABLES, CrossCheck, cross_check

NAMES = sorted(path.name for path in SAMPLES.glob("*.pcapng"))
PUBLISHED = sorted(path.name for path in SHARED_CAPTURES.glob("*.pcap")) or ["kafka_produce_v7_sw8.pcap"]
SASL, WEBSOCKET = "kafka_sasl.pcapng", "mqtt_websocket.pcapng"
# What a sample has been made to show, or what tshark 4.0 is known to fail on there.
REASONS: dict[str, set[str]] = {
    "kafka_admin.pcapng": {"null_array"},
    "kafka_cluster.pcapng": {"null_array", "cut_message"},
    "kafka_healthy.pcapng": {"blobs", "cut_message"},
    "kafka_old_clients.pcapng": {"blobs", "message_set", "first_versions", "cut_message"},
    SASL: {"blobs", "sasl_token", "id_again"},
    "kafka_stale_commit.pcapng": {"blobs"},
    "mongo_compressed.pcapng": {"zstd"},
    "mqtt_faults.pcapng": {"endless_length", "not_utf8"},
    WEBSOCKET: {"websocket"},
    "mqtt_roundtrip.pcap": {"after_gap"},
}
EVERYWHERE_IN_KAFKA = {"api_version", "request_forgotten"}


@cache
def compared(path: Path) -> tuple[CrossCheck, list[str]]:
    """The comparison of a capture, and what our own tables call wrong in its whole messages."""
    with wirewitness.read(path, tables=TABLES) as analysis:
        found = cross_check(analysis, installed())
        errors = analysis.sql("select distinct error from messages where complete and error is not null").to_pylist()
    return found, [str(row["error"]) for row in errors]


@pytest.fixture(params=share(NAMES, smallest(NAMES, 2)), ids=lambda name: name.partition(".")[0])
def sample(request: pytest.FixtureRequest, tshark: str) -> tuple[str, CrossCheck]:
    return request.param, compared(SAMPLES / request.param)[0]


Sample = tuple[str, CrossCheck]


def operations(found: CrossCheck, role: str) -> set[str]:
    """Operations on which both agreed at least once."""
    return {operation for (_, operation, its_role), counts in found.counts.items() if its_role == role and counts.agree}


def assert_reasons(found: CrossCheck, name: str, besides: set[str]) -> None:
    """The reasons are those of REASONS; another tshark may be without some."""
    applied, expected = set(found.explained) - besides, REASONS.get(name, set())
    assert applied == expected if found.version.startswith("4.0.") else applied <= expected


def test_nothing_disagrees(sample: Sample) -> None:
    _, found = sample
    assert found.disagreements == []
    assert found.disagreeing == found.too_large == 0
    assert found.unread == []


def test_only_the_known_reasons_apply(sample: Sample) -> None:
    name, found = sample
    assert_reasons(found, name, EVERYWHERE_IN_KAFKA)
    assert name.startswith("kafka_") or not set(found.explained) & EVERYWHERE_IN_KAFKA


def test_what_tshark_gives_up_on_is_no_fault_of_ours(sample: Sample) -> None:
    """Where it says malformed for a known reason, we have decoded the message without a remark."""
    name, _ = sample
    errors = [error for error in compared(SAMPLES / name)[1] if "not decoded" not in error]
    assert errors == [] or not name.startswith(("kafka_", "mongo_"))


def test_enough_is_compared(sample: Sample) -> None:
    name, found = sample
    total = found.agreeing + sum(one.count for one in found.explained.values())
    assert total >= 10
    protocol = name.partition("_")[0]
    wanted = {
        "kafka": ("operation", "version", "number", "length_bytes", "client_id", "request", "error_code"),
        "mqtt": ("operation", "version", "number", "length_bytes", "client_id", "qos", "retain", "dup", "topic"),
        "mongo": ("operation", "version", "number", "length_bytes", "request", "database", "ok", "compressor"),
    }[protocol]
    assert {value for _, value in found.compared} >= set(wanted)
    cut = found.explained.get("cut_message")
    assert cut is None or cut.count <= max(total // 500, 1)
    seen_whole = sum(one.count for code, one in found.explained.items() if code not in {"cut_message", "websocket"})
    assert found.compared[protocol, "length_bytes"] >= found.agreeing + seen_whole - 1
    if protocol == "mongo":
        assert found.compared[protocol, "version"] == total


@pytest.mark.exhaustive
def test_kafka_is_compared_in_width(tshark: str) -> None:
    found = [compared(SAMPLES / name)[0] for name in NAMES if name.startswith("kafka_")]
    requests = set().union(*(operations(one, "request") for one in found))
    responses = set().union(*(operations(one, "response") for one in found))
    assert len(requests) >= 25
    assert len(responses) >= 25
    assert requests & responses >= {"OffsetCommit", "OffsetFetch", "Produce", "Fetch"}
    for value, least in (("partitions", 2000), ("group_id", 1000), ("request", 2500)):
        assert sum(one.compared.get(("kafka", value), 0) for one in found) >= least


@pytest.mark.parametrize("name", share(PUBLISHED, every(3, PUBLISHED)))
def test_published_captures(name: str, tshark: str) -> None:
    found, _ = compared(shared_capture(name))
    assert found.disagreements == []
    assert found.agreeing > 0
    assert_reasons(found, name, {"api_version"})

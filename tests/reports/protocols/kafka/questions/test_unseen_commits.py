"""Offsets that a broker stored and nothing that was captured asks for: only of the same time and coordinator."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import wirewitness
from tests.conftest import SAMPLES
from tests.support.record_batches import Sent, batch
from tests.support.segments import commit_key, commit_value, segment, write_segment
from wirewitness.reports.base.formats.text import render
from wirewitness.reports.protocols.kafka.questions.unseen_commits import stored_clocks, unseen_commits
from wirewitness.reports.report.contents import report

CAPTURE = SAMPLES / "kafka_stale_commit.pcapng"
LOG = SAMPLES / "request_logs" / "kafka_stale_commit.log.gz"
AHEAD_MS = 1_500
Stored = tuple[str, str, int, int, int]  # group, topic, partition, offset, Unix ms


def commits_in(path: Path) -> list[Stored]:
    """What the coordinator stored of what was asked for in a capture or log: the accepted ones, at their time."""
    columns = ["group_id", "topic", "partition", "committed_offset", "error_code", "ts"]
    with wirewitness.read(path, tables=["kafka_offset_commits"]) as analysis:
        told = analysis.arrow("kafka_offset_commits", columns=columns).to_pylist()
    return [
        (row["group_id"], row["topic"], row["partition"], row["committed_offset"], row["ts"].value // 1_000_000)
        for row in told
        if row["error_code"] == 0
    ]


@pytest.fixture(scope="module")
def asked() -> list[Stored]:
    return commits_in(CAPTURE)


def written(folder: Path, stored: Iterable[Stored], partition: int = 2, ahead_ms: int = AHEAD_MS) -> Path:
    sent = [
        Sent(ms + ahead_ms, commit_key(group, topic, number), commit_value(offset, ms=ms + ahead_ms))
        for group, topic, number, offset, ms in stored
    ]
    return write_segment(folder, f"__consumer_offsets-{partition}", segment((0, batch(sent))))


def told(*paths: Path) -> list[tuple[Any, ...]]:
    with wirewitness.read([*paths]) as analysis:
        return [(one.group_id, one.topic, one.partitions, one.stored) for one in unseen_commits(analysis)]


def nightly(asked: list[Stored], share: float, offset: int = 9) -> Stored:
    """A commit of another group, at this share of the time of the others."""
    times = [one[-1] for one in asked]
    return "nightly", "orders", 3, offset, round(min(times) + (max(times) - min(times)) * share)


def test_all_that_is_captured_is_seen(asked: list[Stored], tmp_path: Path) -> None:
    path = written(tmp_path, asked)
    with wirewitness.read([CAPTURE, path]) as analysis:
        assert unseen_commits(analysis) == []
        [clock] = stored_clocks(analysis)
    assert clock.compared == len(asked) > 2000
    assert abs(clock.ahead_ns / 1e6 - AHEAD_MS) < 2


def test_what_nothing_asks_for_is_told_with_its_time(asked: list[Stored], tmp_path: Path) -> None:
    others = [nightly(asked, 0.4), nightly(asked, 0.5, 10)]
    lost = [one for one in asked if one[:3] == ("payments-ledger", "payments", 4)][:1]
    path = written(tmp_path, [*asked, *others, (*lost[0][:3], 7_777, lost[0][-1] + 5_000)])
    assert told(CAPTURE, path) == [("nightly", "orders", [3], 2), ("payments-ledger", "payments", [4], 1)]
    with wirewitness.read([CAPTURE, path]) as analysis:
        [first, _] = unseen_commits(analysis)
        text = " ".join(render(report(analysis), 200).split())
    assert [first.first_ns // 10**9, first.last_ns // 10**9] == [one[-1] // 1000 for one in others]
    assert "3 offsets were stored in this time, and no packet and no logged request asks for them" in text
    assert re.search(r"the clock of their broker is 1,(499|500)\.\d ms ahead of the capture's", text)


def test_what_was_stored_before_and_after_is_not_missed(asked: list[Stored], tmp_path: Path) -> None:
    path = written(tmp_path, [nightly(asked, -0.5), *asked, nightly(asked, 1.5)])
    assert told(CAPTURE, path) == []


def test_nothing_is_said_of_a_coordinator_that_is_not_captured(asked: list[Stored], tmp_path: Path) -> None:
    written(tmp_path, asked)
    written(tmp_path, [nightly(asked, share) for share in (0.3, 0.5, 0.6)], partition=3)
    assert told(CAPTURE, tmp_path) == []


def test_nothing_is_said_of_another_day(asked: list[Stored], tmp_path: Path) -> None:
    path = written(tmp_path, [*asked, nightly(asked, 0.5)], ahead_ms=86_400_000)
    assert told(CAPTURE, path) == []
    assert told(path) == told(CAPTURE) == []


def test_a_request_log_is_such_a_witness_too(tmp_path: Path) -> None:
    (tmp_path / "request.log").write_bytes(gzip.decompress(LOG.read_bytes()))
    own = commits_in(tmp_path / "request.log")
    path = written(tmp_path, [*own, nightly(own, 0.5)])
    assert told(tmp_path / "request.log", path) == [("nightly", "orders", [3], 1)]


def test_an_offset_of_an_aborted_transaction_was_never_stored(asked: list[Stored], tmp_path: Path) -> None:
    group, topic, partition, offset, ms = nightly(asked, 0.5)
    path = written(tmp_path, asked)
    sent = [Sent(ms + AHEAD_MS, commit_key(group, topic, partition), commit_value(offset, ms=ms + AHEAD_MS))]
    open_one = batch(sent, transactional=True, producer=(5, 0, 0))
    write_segment(tmp_path, "__consumer_offsets-2", segment((len(asked), open_one)), len(asked))
    assert told(CAPTURE, path.parent) == []

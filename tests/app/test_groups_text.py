"""`wirewitness groups` on terminals of several widths: as kafka-consumer-groups --describe, and who committed."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from click.testing import CliRunner

from tests.conftest import SAMPLES
from wirewitness.app.cli.main import cli

# What the tool of Kafka prints (org.apache.kafka.tools.consumer.group.ConsumerGroupCommand).
KAFKAS = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
HEALTHY = str(SAMPLES / "kafka_healthy.pcapng")


def table(width: int, *options: str, capture: str = HEALTHY) -> list[str]:
    """The lines below the group's state."""
    done = CliRunner().invoke(cli, ["groups", capture, "--quiet", *options], env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.stderr
    return done.stdout.partition("\n\n")[2].splitlines()


def test_a_wide_terminal_has_the_headings_of_kafkas_tool_and_whole_ids() -> None:
    heading, row, *_ = table(200, "--group", "events-archive", "--at", "2026-11-20T11:22:59.2")
    assert heading.split()[: len(KAFKAS)] == KAFKAS
    assert row.split()[:2] == ["events-archive", "events"]
    assert "archive-a-69ffa9df-c5d0-4e0a-807a-24813880fe92" in row.split()


def test_at_100_columns_it_is_a_table_with_short_ids_that_stand_in_full_below() -> None:
    first, second, *rows = table(100, "--group", "events-archive", "--at", "2026-11-20T11:22:59.2")
    assert second.split()[:4] == ["TOPIC", "PARTITION", "OFFSET", "OFFSET"]
    assert first.split()[:2] == ["CURRENT-", "LOG-END-"]
    assert [row.split()[:2] for row in rows[:4]] == [["events", str(number)] for number in range(4)]
    short = rows[0].split()[5]
    assert f"{short} = archive-a-69ffa9df-c5d0-4e0a-807a-24813880fe92" in rows


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("group", ["payments-ledger", "orders-billing", "shipments-labels"])
def test_it_fits_the_width_and_says_who_committed(width: int, group: str) -> None:
    lines = table(width, "--group", group, capture=str(SAMPLES / "kafka_stale_commit.pcapng"))
    assert max(map(len, lines)) <= width
    assert any("COMMITTED-" in line for line in lines[:2])
    assert len([line for line in lines if line.startswith(group.partition("-")[0])]) >= 3


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize("capture", ["incidents/clean_stop-1/capture.pcapng.zst", "kafka_stale_commit.pcapng"])
def test_all_groups_show_the_same_columns(width: int, capture: str) -> None:
    """Also where one of them alone has a committer that is not the consumer, or much longer names."""
    lines = table(width, capture=str(SAMPLES / capture))
    # The line that a folded heading ends in stands above the rows and has a word for each column.
    headings = [line.split() for line in lines if line.startswith(("GROUP ", "TOPIC ")) and len(line.split()) > 2]
    assert len(headings) >= 3
    assert {len(heading) for heading in headings} == {len(headings[0])}
    assert len({heading[-1] for heading in headings}) == 1


def test_an_empty_group_has_dashes() -> None:
    heading, row, *_ = table(200, "--group", "clicks-live")
    cells = dict(zip(heading.split(), row.split(), strict=False))  # a note has several words
    assert [cells[name] for name in KAFKAS[-3:]] == ["-", "-", "-"]


def test_members_tell_the_topics_that_they_want() -> None:
    heading, first, second, *_ = table(100, "--members", "--group", "events-archive")
    place = heading.index("TOPICS")
    assert [line[place:].split()[0] for line in (first, second)] == ["events", "events"]


def test_the_group_of_a_killed_member_waited_for_the_end_of_its_session() -> None:
    """A classic member, killed: no LeaveGroup, so nothing moves until its session of 6 s is over."""
    (capture,) = (SAMPLES / "incidents/member_killed-5").glob("*.zst")
    asked = ["groups", str(capture), "--rebalances", "--quiet", "--format", "jsonl"]
    (line,) = CliRunner().invoke(cli, asked).stdout.splitlines()
    row = json.loads(line)
    assert (row["trigger"], row["trigger_client_id"], row["protocol"]) == ("expired", "score_0f55", "classic")
    assert (row["waited_for"], row["waited_client_id"]) == ("absent member", "score_0f55")
    waited_s = (datetime.fromisoformat(row["ts"]) - datetime.fromisoformat(row["ts_waited_last"])).total_seconds()
    assert row["waited_ms"] == pytest.approx(waited_s * 1000, abs=0.01)
    assert 6000 < row["waited_ms"] < 6000 + 3000
